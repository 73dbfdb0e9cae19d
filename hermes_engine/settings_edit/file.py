"""Changes a YAML file of settings by command and keeps its comments, order and unknown keys.

One writer at a time (a lock beside the file), the new content checked before it replaces the old in one step. A
file that does not parse, or that would no longer mean what was meant, is left byte for byte as it is.
"""

from __future__ import annotations

import contextlib
import copy
import fcntl
import itertools
import os
import stat
import time
from collections.abc import Callable, Iterator, MutableMapping
from io import StringIO
from pathlib import Path
from typing import Any

from hermes_engine.errors import ConfigError, StateError
from hermes_engine.paths import FILE_MODE, open_private, private_dir, write_atomic
from hermes_engine.settings.reading import (
    YamlFile,
    check_settings,
    parse_yaml,
    read_text,
)
from hermes_engine.settings.values import Section, Settings
from hermes_engine.settings_edit.comments import put_back, taken_out

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
    bare, comments = taken_out(text, present)
    dumped = _dumped(bare, change)
    dumped = put_back(dumped, _outcome(path, dumped, meant), present, comments)
    return _with_old_blocks(text, present, dumped, _outcome(path, dumped, meant))


def _outcome(path: Path, text: str, meant: dict[str, Any]) -> YamlFile:
    """The text as a reader takes it. Raises ConfigError where that is not what was meant."""
    try:
        outcome = parse_yaml(path, text)
    except ConfigError:
        outcome = None
    if outcome is None or outcome.values != meant:
        raise ConfigError(
            f"{path}: this change cannot be made without changing other values", hint="edit the file by hand"
        )
    return outcome


def _with_old_blocks(text: str, old: YamlFile, dumped: str, new: YamlFile) -> str:
    """The new text with the blocks of unchanged top keys as they were written, indents and all."""
    before, after = _blocks(text, old), _blocks(dumped, new)
    same = [name for name in after if name in before and old.values.get(name) == new.values.get(name)]
    out = "".join(before[name] if name in same else block for name, block in after.items())
    try:
        return out if parse_yaml(old.path, out).values == new.values else dumped
    except ConfigError:
        return dumped


def _blocks(text: str, file: YamlFile) -> dict[str, str]:
    """The text cut before each top key; under "" what stands above the first. {} where keys share a line."""
    lines = text.splitlines(keepends=True)
    starts = [(name[0], line - 1) for name, line in file.lines.items() if len(name) == 1]
    if any(later <= earlier for (_, earlier), (_, later) in itertools.pairwise(starts)):
        return {}
    names = ["", *(name for name, _ in starts)]
    edges = [0, *(line for _, line in starts), len(lines)]
    return {name: "".join(lines[a:b]) for name, (a, b) in zip(names, itertools.pairwise(edges), strict=True)}


def _dumped(text: str, change: Change) -> str:
    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedMap

    newline = "\r\n" if "\r\n" in text else "\n"
    source = text.replace("\r\n", "\n")
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 1 << 16
    yaml.indent(*_indents(source))
    yaml.representer.add_representer(float, _float)
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


def _float(representer: Any, value: float) -> Any:
    """A number as every reader of YAML takes it for one: `1e-05` is text to some, `1.0e-05` is not."""
    text = {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}.get(repr(value), repr(value))
    mantissa, sign, power = text.partition("e")
    if sign and "." not in mantissa:
        text = f"{mantissa}.0e{power}"
    return representer.represent_scalar("tag:yaml.org,2002:float", text)


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
            if isinstance(value, CommentedSeq) and not value:
                # What is left of comments between its items would break the text.
                here[key] = CommentedSeq()
                here[key].fa.set_flow_style()
                if isinstance(here, CommentedMap) and (beside := here.ca.items.get(key)):
                    beside[3] = None
            elif id(value) in known:
                continue
            elif type(value) is str:
                here[key] = _quoted_if_needed(value)
            elif type(value) is list:
                here[key] = CommentedSeq(map(_quoted_if_needed, value))
                here[key].fa.set_flow_style()
            elif type(value) is dict:
                here[key] = CommentedMap(value)
                _dress(here[key], known)


def _quoted_if_needed(text: Any) -> Any:
    """Text that bare would read as a number, a yes or nothing, on a line or between braces, gets quotes."""
    import yaml
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString

    if not isinstance(text, str):
        return text
    try:
        same = yaml.safe_load(text) == text and yaml.safe_load(f"{{a: {text}, b: [{text}]}}") == {
            "a": text,
            "b": [text],
        }
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
