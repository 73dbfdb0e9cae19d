"""Reads a YAML file of settings: values, the line of every key, and what is wrong with it, in words.

Never writes. A file that does not parse, is not a mapping or holds a wrong type is a ConfigError that names
file, line and key; a key we don't know is a warning with the nearest known one, and is passed over.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from hermes_engine.errors import ConfigError
from hermes_engine.redaction import is_secret_name
from hermes_engine.settings.values import Section, Settings

KeyPath = tuple[str, ...]
SectionT = TypeVar("SectionT", bound=Section)


@dataclass(frozen=True, slots=True)
class YamlFile:
    """A mapping read from a file.

    Attributes:
        path: the file, for messages.
        values: its content; {} when the file is missing or empty.
        lines: line (from 1) of each key by its path of names.
    """

    path: Path
    values: dict[str, Any] = field(default_factory=dict)
    lines: Mapping[KeyPath, int] = field(default_factory=dict)

    def where(self, key: KeyPath) -> str:
        """`file:line` of the key, or of the nearest key above it."""
        for length in range(len(key), 0, -1):
            if line := self.lines.get(key[:length]):
                return f"{self.path}:{line}"
        return str(self.path)


def read_text(path: Path) -> str | None:
    """The file as text without a byte order mark; None when there is none. Raises ConfigError."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: not UTF-8 text") from None


def read_yaml(path: Path) -> YamlFile:
    """Reads a file that holds one mapping. A missing or empty file is an empty mapping.

    Raises:
        ConfigError: unreadable, not YAML, not a mapping, or a key given twice.
    """
    text = read_text(path)
    return YamlFile(path) if text is None else parse_yaml(path, text)


def parse_yaml(path: Path, text: str) -> YamlFile:
    """The mapping in `text`; `path` is for messages only. Raises ConfigError."""
    import yaml

    loader_class: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        loader = loader_class(text)
        try:
            node = loader.get_single_node()
            lines = dict(_key_lines(path, node))
            values = None if node is None else loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise _syntax_error(path, text, error) from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply") from None
    except (ValueError, TypeError, OverflowError) as error:
        raise ConfigError(f"{path}: a value cannot be read: {error}") from None
    if values is None:
        return YamlFile(path)
    if not isinstance(values, dict):
        kind = "a list" if isinstance(values, list) else "a single value"
        raise ConfigError(f"{path}:1: the file holds {kind}", hint="it must hold lines of the form key: value")
    return YamlFile(path, {str(key): value for key, value in values.items()}, lines)


def _syntax_error(path: Path, text: str, error: Any) -> ConfigError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is not None:
        line = min(mark.line, max(len(text.splitlines()) - 1, 0)) + 1
    else:
        line = text.count("\n", 0, getattr(error, "position", 0)) + 1
    begun = getattr(error, "context_mark", None)
    since = f" (in what begins in line {begun.line + 1})" if begun is not None and begun.line + 1 < line else ""
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    return ConfigError(
        f"{path}:{line}: not valid YAML: {problem}{since}", hint="mend the file; nothing was changed in it"
    )


def _key_lines(path: Path, node: Any, prefix: KeyPath = ()) -> Iterator[tuple[KeyPath, int]]:
    """Line of every key of nested mappings. Only mappings directly under one another: aliases may be loops."""
    if getattr(node, "id", "") != "mapping" or len(prefix) > 4:
        return
    seen: set[str] = set()
    for key, value in node.value:
        name = str(key.value)
        line = key.start_mark.line + 1
        if name in seen:
            dotted = ".".join((*prefix, name))
            raise ConfigError(f"{path}:{line}: {dotted} is given twice", hint="keep one of them")
        if name != "<<":
            seen.add(name)
        yield (*prefix, name), line
        yield from _key_lines(path, value, (*prefix, name))


def check_settings(file: YamlFile, model: type[Section] = Settings) -> tuple[str, ...]:
    """Checks a file's values on their own.

    Returns:
        Warnings about keys nobody knows, each with file, line, key and the nearest known key.

    Raises:
        ConfigError: a value of the wrong type or out of range.
    """
    warnings = tuple(_unknown_keys(file, file.values, model, ()))
    parse_settings(file, model)
    return warnings


def parse_settings(file: YamlFile, model: type[SectionT]) -> SectionT:
    """The file's values as settings. Raises ConfigError naming file, line and key."""
    try:
        return model.model_validate(file.values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        names = tuple(str(part) for part in first["loc"])
        raise ConfigError(f"{file.where(names)}: {'.'.join(names) or 'file'}: {_problem(first)}") from None


_PROBLEMS = {
    "string_type": "should be text",
    "bool_type": "should be true or false",
    "bool_parsing": "should be true or false",
    "int_type": "should be a whole number",
    "int_parsing": "should be a whole number",
    "int_from_float": "should be a whole number",
    "float_type": "should be a number",
    "float_parsing": "should be a number",
    "tuple_type": "should be a list",
    "dict_type": "should be a block of keys",
    "model_type": "should be a block of keys",
}


def _problem(error: Mapping[str, Any]) -> str:
    """What is wrong with one value, in words a person uses."""
    if error["type"] == "value_error":
        return str(error["msg"]).removeprefix("Value error, ")
    words = _PROBLEMS.get(error["type"]) or str(error["msg"]).replace("Input should be", "should be")
    value = error["input"]
    if isinstance(value, dict | list):
        return f"{words}, not {'a block of keys' if isinstance(value, dict) else 'a list'}"
    text = "nothing" if value is None else repr(value)
    return f"{words}, not {text if len(text) <= 60 else text[:57] + '…'}"


def _unknown_keys(file: YamlFile, values: Mapping[str, Any], model: type[Section], prefix: KeyPath) -> Iterator[str]:
    for name, value in values.items():
        key = (*prefix, str(name))
        info = model.model_fields.get(str(name))
        if info is None:
            near = nearest_key(key, model)
            hint = f"; did you mean {near}?" if near else ""
            if is_secret_name(str(name)):
                hint = "; a key belongs into .env"
            yield f"{file.where(key)}: unknown key {'.'.join(key)}{hint}"
        elif _is_section(info.annotation) and isinstance(value, Mapping):
            section: Any = info.annotation
            yield from _unknown_keys(file, value, section, key)


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def given(values: Mapping[str, Any], model: type[Section] = Settings) -> dict[str, Any]:
    """The values without keys left empty and without unknown ones, so that they can lie over others."""
    out: dict[str, Any] = {}
    for name, info in model.model_fields.items():
        if name not in values or (values[name] is None and info.default is not None):
            continue
        value = values[name]
        if _is_section(info.annotation) and isinstance(value, Mapping):
            section: Any = info.annotation
            value = given(value, section)
        out[name] = value
    return out


def overlaid(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """`upper` over `lower`: blocks are merged key by key, everything else is replaced."""
    out = dict(lower)
    for name, value in upper.items():
        below = out.get(name)
        out[name] = overlaid(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return out


def known_keys(model: type[Section] = Settings, prefix: KeyPath = ()) -> Iterator[KeyPath]:
    """Every key there is, sections included, in the order of the documentation."""
    for name, info in model.model_fields.items():
        yield (*prefix, name)
        if _is_section(info.annotation):
            section: Any = info.annotation
            yield from known_keys(section, (*prefix, name))


def nearest_key(key: KeyPath, model: type[Section] = Settings) -> str:
    """The known key most like `key`: beside it first, then by last name anywhere. "" when none is."""
    beside = {".".join((*key[:-1], name)): name for name in model.model_fields}
    everywhere = {".".join(path): path[-1] for path in known_keys()}
    for candidates in (beside, everywhere):
        match = difflib.get_close_matches(key[-1], candidates.values(), n=1, cutoff=0.7)
        if match:
            return next(dotted for dotted, name in candidates.items() if name == match[0])
    contained = [dotted for dotted, name in everywhere.items() if len(name) > 3 and name in key[-1]]
    return contained[0] if contained else ""
