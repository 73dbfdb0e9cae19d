"""Changes a YAML file of settings by command and keeps its comments, order and unknown keys.

One writer at a time (a lock beside the file), the new content checked before it replaces the old in one step. A
file that does not parse, or that would no longer mean what was meant, is left byte for byte as it is.
"""

from __future__ import annotations

import contextlib
import copy
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from hermes_engine.errors import ConfigError, StateError, UsageError
from hermes_engine.paths import FILE_MODE, open_private, private_dir, write_atomic
from hermes_engine.settings.reading import (
    KeyPath,
    YamlFile,
    check_settings,
    known_keys,
    nearest_key,
    parse_settings,
    parse_yaml,
    read_text,
)
from hermes_engine.settings.values import Section, Settings
from hermes_engine.toolsets import EVERYTHING, expand

Change = Callable[[MutableMapping[str, Any]], None]
"""Changes the file's mapping in place. It runs more than once, on plain and on comment-keeping values alike."""

_LOCK_SECONDS = 10.0


def edit_config(path: Path, change: Change, model: type[Section] = Settings) -> bool:
    """Applies a change to a file, under its lock; the file is created (0600) when there is none.

    Args:
        path: the file.
        change: what to do.
        model: what its values must be afterwards.

    Returns:
        Whether the file's bytes changed.

    Raises:
        ConfigError: the file does not parse, or the outcome is no valid setting; nothing was written.
        StateError: the lock or the disk is not to be had.
    """
    target = path.resolve()
    private_dir(target.parent)
    with locked(target):
        before = read_text(target)
        after = edited_text(path, before or "", change, model)
        if after == before or (before is None and not after):
            return False
        mode = stat.S_IMODE(target.stat().st_mode) if before is not None else FILE_MODE
        try:
            write_atomic(target, after, mode=mode)
        except OSError as error:
            raise StateError(f"{path}: cannot be written: {error.strerror or error}") from error
    return True


def edited_text(path: Path, text: str, change: Change, model: type[Section] = Settings) -> str:
    """The text after a change, comments kept; `path` is for messages. Raises ConfigError. Writes nothing."""
    present = parse_yaml(path, text)
    meant = copy.deepcopy(present.values)
    change(meant)
    if meant == present.values:
        return text
    check_settings(YamlFile(path, meant, present.lines), model)
    after = _dumped(text, change)
    if parse_yaml(path, after).values != meant:
        raise ConfigError(
            f"{path}: this change cannot be made without changing other values", hint="edit the file by hand"
        )
    return after


def _dumped(text: str, change: Change) -> str:
    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedMap

    newline = "\r\n" if "\r\n" in text else "\n"
    source = text.replace("\r\n", "\n")
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 1 << 16
    yaml.indent(*_indents(source))
    data = yaml.load(source)
    head = ""
    if data is None:
        data = CommentedMap()
        head = source if not source or source.endswith("\n") else source + "\n"
    present = list(_everything(data))
    change(data)
    _dress(data, {id(value) for value in present})
    out = StringIO()
    yaml.dump(data, out)
    return (head + out.getvalue()).replace("\n", newline)


def _indents(text: str) -> tuple[int, int, int]:
    """Indents of the file's mappings and lists, so that the other lines stay as they are."""
    from ruamel.yaml.util import load_yaml_guess_indent

    _, sequence, offset = load_yaml_guess_indent(text)
    mapping = next((width for width in map(_mapping_indent, text.split("\n")) if width), 2)
    return mapping, sequence or 2, offset or 0


def _mapping_indent(line: str) -> int:
    body = line.lstrip(" ")
    return len(line) - len(body) if body and body[0] not in "#-" and ":" in body else 0


def _everything(data: Any) -> Iterator[Any]:
    """Every value below a mapping or list, each container once."""
    waiting, seen = [data], {id(data)}
    while waiting:
        here = waiting.pop()
        for value in here.values() if isinstance(here, dict) else here:
            yield value
            if isinstance(value, dict | list) and id(value) not in seen:
                seen.add(id(value))
                waiting.append(value)


def _dress(data: Any, known: set[int]) -> None:
    """Gives values that a change put in the form a person would write: short lists on one line, odd text quoted."""
    from ruamel.yaml.comments import CommentedMap, CommentedSeq

    for here in [data, *(value for value in _everything(data) if isinstance(value, dict | list))]:
        for key, value in list(here.items() if isinstance(here, dict) else enumerate(here)):
            if id(value) in known:
                continue
            if type(value) is str:
                here[key] = _quoted_if_needed(value)
            elif type(value) is list:
                here[key] = CommentedSeq(map(_quoted_if_needed, value))
                here[key].fa.set_flow_style()
            elif type(value) is dict:
                here[key] = CommentedMap(value)
                _dress(here[key], known)


def _quoted_if_needed(text: Any) -> Any:
    """Text that bare would read as a number, a yes or nothing (YAML 1.1 reads more so than 1.2) gets quotes."""
    import yaml
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString

    if not isinstance(text, str):
        return text
    try:
        same = yaml.safe_load(text) == text
    except (yaml.YAMLError, ValueError):
        same = False
    return text if same else DoubleQuotedScalarString(text)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the lock of a file, so that one change at a time reads and replaces it. Raises StateError."""
    descriptor = open_private(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT)
    try:
        deadline = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise StateError(f"{path} is being changed by another program") from None
                time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)


# -- one key ------------------------------------------------------------------------------------------------------


def set_value(path: Path, dotted_key: str, value: Any, model: type[Section] = Settings) -> bool:
    """Sets one key, named like `limits.max_turns`.

    Args:
        path: the file.
        dotted_key: a key of the settings.
        value: the value, or its text as typed on a command line; None (or "null") empties a key that may be empty.
        model: the settings the key is one of.

    Returns:
        Whether the file changed.

    Raises:
        UsageError: no such key, or a value it cannot have.
        ConfigError, StateError: see `edit_config`.
    """
    key = checked_key(dotted_key, model)
    plain = typed_value(key, value, model)

    def change(values: MutableMapping[str, Any]) -> None:
        _put(values, key, plain)

    return edit_config(path, change, model)


def checked_key(dotted_key: str, model: type[Section] = Settings) -> KeyPath:
    """The key's path of names; below a table (provider.prices) the rest is one name, dots and all.

    Raises:
        UsageError: no such key; names the nearest.
    """
    key = tuple(dotted_key.split("."))
    known = set(known_keys(model))
    if key in known:
        return key
    if len(key) > 2 and key[:2] in known and _field(key[:2], model).default_factory is dict:
        return (*key[:2], ".".join(key[2:]))
    near = nearest_key(key, model)
    raise UsageError(f"there is no setting {dotted_key!r}", hint=f"did you mean {near}?" if near else "")


def _field(key: KeyPath, model: type[Section]) -> Any:
    info: Any = model.model_fields[key[0]]
    for name in key[1:]:
        info = info.annotation.model_fields[name]
    return info


def typed_value(key: KeyPath, value: Any, model: type[Section] = Settings) -> Any:
    """What stands in the file for a value typed on a command line. Raises UsageError when the key cannot have it."""
    candidates = _readings(value) if isinstance(value, str) else [value]
    fault: ConfigError | None = None
    for candidate in candidates:
        nested: dict[str, Any] = {}
        _put(nested, key, candidate)
        try:
            found: Any = parse_settings(YamlFile(Path("value"), nested), model)
        except ConfigError as error:
            fault = error
            continue
        if candidate is None or isinstance(candidate, list | dict):
            return candidate
        for name in key:
            found = found.get(name) if isinstance(found, dict) else getattr(found, name)
        if isinstance(found, tuple):
            return [part.strip() for part in str(candidate).split(",")] if key == ("toolsets",) else [candidate]
        return candidate if isinstance(found, Section) else found
    raise UsageError(str(fault).removeprefix("value: ") if fault else f"{'.'.join(key)} cannot have that value")


def _readings(text: str) -> list[Any]:
    """What typed text can mean, in the order to try: nothing, a list or block in YAML, the text itself, a scalar."""
    import yaml

    try:
        parsed = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        return [text]
    if text.strip().lower() in ("null", "~"):
        return [None]
    return [parsed, text] if isinstance(parsed, list | dict) else [text, parsed]


def _put(values: MutableMapping[str, Any], key: KeyPath, value: Any) -> None:
    for name in key[:-1]:
        if not isinstance(values.get(name), MutableMapping):
            values[name] = {}
        values = values[name]
    old = values.get(key[-1])
    if isinstance(old, list) and isinstance(value, list):
        _become(old, value)
    else:
        values[key[-1]] = copy.deepcopy(value)


def _become(old: list[Any], new: Sequence[Any]) -> None:
    """Makes a list another in place, so that comments beside the items that stay are kept."""
    for index in range(len(old) - 1, -1, -1):
        if old[index] not in new:
            del old[index]
    for item in new:
        if item not in old:
            old.append(item)
    if list(old) != list(new):
        old[:] = new


# -- toolsets -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolsetChange:
    """What became of a list of toolsets.

    Attributes:
        path: the file.
        before, after: names in effect, `all` spelled out.
    """

    path: Path
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def changed(self) -> bool:
        """Whether anything did."""
        return self.before != self.after


def change_toolsets(
    path: Path, inherited: Sequence[str], *, enable: Iterable[str] = (), disable: Iterable[str] = ()
) -> ToolsetChange:
    """Puts toolsets on or takes them off a file's list.

    Args:
        path: a `config.yaml`.
        inherited: what is in effect when the file has no list of its own.
        enable: sets to add; `all` is every one but kanban.
        disable: sets to remove, by their own names.

    Raises:
        UnknownName: no such toolset.
        UsageError: `all` cannot be disabled as a whole.
        ConfigError, StateError: see `edit_config`.
    """
    adding, removing = tuple(enable), tuple(disable)
    expand([*adding, *removing])
    if any(name in EVERYTHING for name in removing):
        raise UsageError(
            "`all` is not disabled as a whole", hint="name the toolsets, or: hermes config set toolsets '[]'"
        )
    seen: list[tuple[str, ...]] = []

    def change(values: MutableMapping[str, Any]) -> None:
        written = values.get("toolsets")
        listed = [part.strip() for part in written.split(",")] if isinstance(written, str) else written
        names = list(inherited if listed is None else listed)
        seen.append(expand(names))
        wanted = _changed_names(names, adding, removing)
        seen.append(expand(wanted))
        if wanted != names:
            _put(values, ("toolsets",), wanted)

    edit_config(path, change)
    return ToolsetChange(path, seen[0], seen[-1])


def _changed_names(names: Sequence[str], adding: Sequence[str], removing: Sequence[str]) -> list[str]:
    wanted = [*names]
    for name in adding:
        if set(expand([name])) - set(expand(wanted)):
            wanted.append(name)
    if set(removing) & set(expand(wanted)):
        if any(name in EVERYTHING for name in wanted):
            wanted = [*expand(wanted)]
        wanted = [name for name in wanted if name not in removing]
    return wanted
