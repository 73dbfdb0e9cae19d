"""Answers that must follow a JSON schema: finding the JSON in a reply, checking it, asking once for a better one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from hermes_engine.cleaning import one_line

_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)\n\s*```", re.DOTALL)


def schema_fault(schema: Mapping[str, Any]) -> str:
    """What is wrong with a schema itself, "" when it can be used."""
    from jsonschema import SchemaError  # 60 ms, and most children have no schema
    from jsonschema.validators import validator_for
    from referencing import Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    try:
        validator_for(schema).check_schema(schema)
        resource = Resource.from_contents(dict(schema), default_specification=DRAFT202012)
        base = resource.id() or ""
        resolver = _known().with_resource(base, resource).resolver(base)
        for ref in _refs(schema):
            resolver.lookup(ref)
    except SchemaError as error:
        return f"output_schema is no JSON schema: {one_line(error.message, 200)}"
    except Unresolvable as error:
        return f"output_schema points to what it does not hold: {one_line(str(error), 200)}"
    return ""


def checked_answer(answer: str, schema: Mapping[str, Any]) -> tuple[str, str]:
    """The JSON text of an answer and what is wrong with it ("" when it follows the schema)."""
    from jsonschema.validators import validator_for

    found = False
    for text in (answer.strip(), *(match[1] for match in reversed(list(_FENCE.finditer(answer))))):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        found = True
        try:
            faults = validator_for(schema)(schema, registry=_known()).iter_errors(value)
            errors = sorted(faults, key=lambda error: list(map(str, error.path)))
        except RecursionError:
            return text, "it cannot be checked: the schema never ends"
        if not errors:
            return text, ""
        break
    if not found:
        return answer, "the answer is not JSON"
    told = "; ".join(f"{error.json_path}: {one_line(error.message, 160)}" for error in errors[:5])
    return text, told


def _known() -> Any:
    """The schemas of the standard and nothing else: a reference must never make us read a file or an address."""
    from jsonschema_specifications import REGISTRY

    return REGISTRY


def _refs(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _refs(item)


def repair_prompt(fault: str, schema: Mapping[str, Any]) -> str:
    """Asks for the answer again, in the form that is needed."""
    return (
        f"Your answer cannot be used as it is: {fault}\n"
        f"Answer again with one JSON value and nothing else. The schema:\n{json.dumps(schema, ensure_ascii=False)}"
    )
