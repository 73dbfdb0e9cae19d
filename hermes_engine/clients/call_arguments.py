"""The arguments of a call as JSON text, from the parts in which they came. Pure; knows no call.

Evaluated only when all parts are there: servers send `{}` first and the object later, the whole object twice,
or growing snapshots of it.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from typing import Any

from hermes_engine.clients.text_repair import whole_text

MAX_DEPTH = 100
"""Objects and lists within one another; deeper arguments are no call of a tool, and would end a recursion."""

_SPACE = " \t\r\n"
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_decoder = json.JSONDecoder(strict=False, parse_constant=lambda name: None)


def json_values(text: str) -> list[Any] | None:
    """The JSON values that stand one after another in `text`; None when it is anything else, [] when blank."""
    values: list[Any] = []
    position, end = 0, len(text)
    while True:
        while position < end and text[position] in _SPACE:
            position += 1
        if position == end:
            return values
        try:
            value, position = _decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return None
        values.append(value)


def settled_arguments(parts: Sequence[str]) -> str:
    """JSON text of the arguments: as received where that can be read, "{}" for none, raw text for the rest."""
    text = whole_text("".join(parts))
    if _deep(text):
        return json.dumps({"_raw": text}, ensure_ascii=False)
    values = json_values(text)
    if values is None:
        snapshot = _last_snapshot(parts)
        return text if snapshot is None else settled_arguments([snapshot])
    said = [value for value in values if value not in (None, {}, "")]
    if not said:
        return "{}"
    if len(values) == 1:
        return _one(text.strip(_SPACE), said[0])
    last = said[-1]
    if all(value == last or grew(value, last) for value in said):
        return json.dumps(last, ensure_ascii=False)
    return text


def _one(text: str, value: Any) -> str:
    if isinstance(value, str):
        inner = json_values(value)
        return value if inner and len(inner) == 1 and isinstance(inner[0], dict) else text
    try:
        json.loads(text, parse_constant=_refuse)
    except ValueError:
        return whole_text(json.dumps(value, ensure_ascii=False))
    return text


def _deep(text: str) -> bool:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    depth = 0
    for letter in _STRING.sub("", text):
        depth += (letter in "[{") - (letter in "]}")
        if depth > MAX_DEPTH:
            return True
    return False


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def grew(before: Any, after: Any) -> bool:
    """Whether `after` is the object `before`, or that one with more in it."""
    return isinstance(before, dict) and isinstance(after, dict) and before.items() <= after.items()


def _last_snapshot(parts: Sequence[str]) -> str | None:
    """The last part when each one repeats the one before and adds to it."""
    filled = [part for part in parts if part]
    if len(filled) < 2 or any(not after.startswith(before) for before, after in itertools.pairwise(filled)):
        return None
    return filled[-1]
