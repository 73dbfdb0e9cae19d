"""Sets one key of a settings file from a value or from its text as typed. Knows no file format."""

from __future__ import annotations

import copy
from collections.abc import MutableMapping, Sequence
from pathlib import Path
from typing import Any

from hermes_engine.errors import ConfigError, UsageError
from hermes_engine.redaction import is_secret_name
from hermes_engine.settings.reading import KeyPath, YamlFile, known_keys, nearest_key, parse_settings
from hermes_engine.settings.values import Section, Settings
from hermes_engine.settings_edit.file import edit_config


def set_value(path: Path, dotted_key: str, value: Any, model: type[Section] = Settings) -> bool:
    """Sets one key, named like `limits.max_turns`.

    Args:
        path: the file.
        dotted_key: a key of the settings.
        value: the value, or its text as typed on a command line; None ("null", or nothing) empties the key, so
            that its default counts.
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
        put(values, key, plain)

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
    hint = f"did you mean {near}?" if near else ""
    if is_secret_name(key[-1]):
        hint = "a key belongs into .env"
    raise UsageError(f"there is no setting {dotted_key!r}", hint=hint)


def _field(key: KeyPath, model: type[Section]) -> Any:
    info: Any = model.model_fields[key[0]]
    for name in key[1:]:
        info = info.annotation.model_fields[name]
    return info


def typed_value(key: KeyPath, value: Any, model: type[Section] = Settings) -> Any:
    """What stands in the file for a value typed on a command line. Raises UsageError when the key cannot have it."""
    candidates = _readings(value) if isinstance(value, str) else [value]
    if value == "" and key != ("toolsets",):
        candidates = [None]
    fault: ConfigError | None = None
    for candidate in candidates:
        nested: dict[str, Any] = {}
        put(nested, key, candidate)
        try:
            found: Any = parse_settings(YamlFile(Path("value"), nested), model)
        except ConfigError as error:
            if fault is None or not isinstance(candidates[0], list | dict):
                fault = error
            continue
        if candidate is None or isinstance(candidate, list | dict):
            return candidate
        for name in key:
            found = found.get(name) if isinstance(found, dict) else getattr(found, name)
        if isinstance(found, tuple):
            return (
                [part.strip() for part in str(candidate).split(",") if part.strip()]
                if key == ("toolsets",)
                else [candidate]
            )
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


def put(values: MutableMapping[str, Any], key: KeyPath, value: Any) -> None:
    """Sets a key in nested mappings, blocks made where missing, lists changed in place."""
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
