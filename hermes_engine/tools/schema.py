"""From a typed function to a tool definition, and from a model's arguments back to typed values.

The definition comes from signature and docstring and is kept short, since it is paid for at every request.
Values are coerced where that is safe ("5" for a number); whatever else does not fit is told by name.
"""

from __future__ import annotations

import inspect
import json
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic.fields import FieldInfo

from hermes_engine.errors import ToolFault

_ARGUMENT = re.compile(r"^ {4}(\w+): (.*)$")
_ORDER = ("type", "description", "enum", "items", "properties", "required", "default")
_LONE = re.compile("[\ud800-\udfff]")
_DEEPEST = 100
"""Levels of lists and objects that arguments may have."""
_TOO_DEEP = f"are nested more than {_DEEPEST} levels deep; send a flatter JSON object"


@dataclass(frozen=True, slots=True)
class Signature:
    """What a tool takes.

    Attributes:
        description: the docstring's text before `Args:`, on one line.
        parameters: JSON schema of the arguments, an object.
        model: checks and coerces them.
        aliases: other names accepted for an argument.
    """

    description: str
    parameters: Mapping[str, Any]
    model: type[BaseModel]
    aliases: Mapping[str, str]

    @property
    def alone(self) -> str:
        """The one argument of a tool that takes a list and nothing else; "" for other tools."""
        names = list(self.parameters.get("properties", {}))
        return names[0] if len(names) == 1 and self.parameters["properties"][names[0]].get("type") == "array" else ""


def signature_of(function: Callable[..., Any], aliases: Mapping[str, str] | None = None) -> Signature:
    """Reads a tool function: its first parameter is the context, every other one is an argument."""
    hints = typing.get_type_hints(function, include_extras=True)
    text, described = _docstring(function)
    fields: dict[str, Any] = {}
    for name in list(inspect.signature(function).parameters)[1:]:
        default = inspect.signature(function).parameters[name].default
        required = default is inspect.Parameter.empty
        fields[name] = (hints[name], FieldInfo(default=... if required else default, description=described.get(name)))
    config = ConfigDict(extra="forbid", coerce_numbers_to_str=True, title=function.__name__)
    model: type[BaseModel] = create_model(function.__name__, __config__=config, **fields)
    schema = model.model_json_schema()
    return Signature(text, _compact(schema, schema.get("$defs", {})), model, dict(aliases or {}))


def check_arguments(name: str, signature: Signature, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as typed values. Raises ToolFault that names what is wrong and what is valid."""
    properties = signature.parameters.get("properties", {})
    required = signature.parameters.get("required", [])
    values: dict[str, Any] = {}
    for key, value in given.items():
        target = signature.aliases.get(key, key)
        if value is None and target in properties and target not in required:
            continue
        values[target] = _from_text(value, properties.get(target, {}))
    try:
        checked = signature.model.model_validate(values)
    except ValidationError as error:
        problems = "; ".join(_problem(dict(item)) for item in error.errors(include_url=False))
        raise ToolFault(f"bad arguments for {name}: {problems}. Valid: {_valid(properties, required)}") from None
    return {key: getattr(checked, key) for key in checked.model_fields_set}


def parse_arguments(name: str, text: str, *, alone: str = "") -> dict[str, Any]:
    """The argument text as an object; blank and null mean no arguments. Raises ToolFault.

    Args:
        name: of the tool.
        text: as the model wrote it.
        alone: the argument that a bare list stands for, "" for none.
    """
    if not text.strip():
        return {}
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ToolFault(f"the arguments for {name} are not valid JSON ({error}); send one JSON object") from None
    except RecursionError:
        raise ToolFault(f"the arguments for {name} {_TOO_DEEP}") from None
    if _is_deep(value):
        raise ToolFault(f"the arguments for {name} {_TOO_DEEP}")
    if value is None:
        return {}
    if isinstance(value, list) and alone:
        value = {alone: value}
    if not isinstance(value, dict):
        raise ToolFault(f"the arguments for {name} must be one JSON object, not {type(value).__name__}")
    mended = whole(value)
    return mended if isinstance(mended, dict) else {}


def _is_deep(value: Any) -> bool:
    """Whether it has more levels than may be; looks level by level, so it calls itself never."""
    level = [value]
    for _ in range(_DEEPEST + 1):
        level = [
            item
            for outer in level
            if isinstance(outer, (dict, list))
            for item in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True


def whole(value: Any) -> Any:
    """Lone surrogates, which JSON lets through, replaced: no file and no command could take them."""
    if isinstance(value, str):
        return _LONE.sub("\ufffd", value)
    if isinstance(value, list):
        return [whole(item) for item in value]
    if isinstance(value, dict):
        return {whole(key): whole(item) for key, item in value.items()}
    return value


def _from_text(value: Any, schema: Mapping[str, Any]) -> Any:
    """Lists and objects that came as JSON text, as several models send them."""
    if isinstance(value, str) and schema.get("type") in ("array", "object") and value.lstrip()[:1] in ("[", "{"):
        try:
            made = json.loads(value)
        except (ValueError, RecursionError):
            return value
        return value if _is_deep(made) else made
    return value


def _problem(error: Mapping[str, Any]) -> str:
    where = ".".join(str(part) for part in error["loc"])
    if error["type"] == "missing":
        return f"{where} is missing"
    if error["type"] == "extra_forbidden":
        return f"there is no argument {where!r}"
    if error.get("input", ...) is None:
        return f"{where} must not be null"
    return f"{where}: {error['msg'][:1].lower()}{error['msg'][1:]}"


def _valid(properties: Mapping[str, Any], required: list[str]) -> str:
    if not properties:
        return "none, it takes no arguments"
    return ", ".join(
        f"{name} ({schema.get('type', 'any')}{', required' if name in required else ''})"
        for name, schema in properties.items()
    )


def _compact(schema: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without titles, null alternatives, defaults of null and references."""
    if "$ref" in schema:
        named = shared[schema["$ref"].rpartition("/")[2]]
        return _compact({**named, **{key: value for key, value in schema.items() if key != "$ref"}}, shared)
    choices = [item for item in schema.get("anyOf", []) if item.get("type") != "null"]
    if len(choices) == 1:
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        return _compact({**choices[0], **rest}, shared)
    out: dict[str, Any] = {}
    for key in sorted(schema, key=lambda key: _ORDER.index(key) if key in _ORDER else len(_ORDER)):
        value = schema[key]
        if key in ("title", "$defs", "additionalProperties") or (key == "default" and not value):
            continue
        if key == "properties":
            out[key] = {name: _compact(item, shared) for name, item in value.items()}
        elif key == "items":
            out[key] = _compact(value, shared)
        elif key == "anyOf":
            out[key] = [_compact(item, shared) for item in choices]
        elif key == "description":
            out[key] = " ".join(value.split())
        else:
            out[key] = value
    return out


def _docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    before, _, rest = (inspect.getdoc(function) or "").partition("\nArgs:\n")
    arguments: dict[str, str] = {}
    current = ""
    for line in rest.splitlines():
        if match := _ARGUMENT.match(line):
            current = match[1]
            arguments[current] = match[2]
        elif line.strip() and current:
            arguments[current] += " " + line.strip()
        else:
            current = ""
    return " ".join(before.split()), arguments
