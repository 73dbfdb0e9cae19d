"""A record's conversation taken apart: what every export builds its own form from. Pure data."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hermes_engine.batch.job import Record
from hermes_engine.toolsets import TOOLSETS, tools_of

TAG = re.compile(r"<(?=/?tool_(?:call|response)>)")
"""Where a tag begins that stands around calls or results in text."""

_THOUGHT = re.compile(r"\A<think>\n?(.*?)\n?</think>\n*", re.DOTALL)


class Unfit(Exception):
    """The row cannot be told in this form; `str()` is the reason, short and the same for all such rows."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One call with its result; `result` is None when the row ended before it came."""

    name: str
    arguments: Mapping[str, Any]
    result: str | None = None

    @property
    def as_json(self) -> str:
        """`{"name": …, "arguments": {…}}`."""
        return between_tags({"name": self.name, "arguments": self.arguments})


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn with the results that follow it.

    Attributes:
        role: system | user | assistant.
        value: text as recorded, its thought included.
        thought, text: the two parts of it.
        calls: of an assistant turn, each with its result.
    """

    role: str
    value: str
    thought: str = ""
    text: str = ""
    calls: Sequence[Asked] = field(default=())


_ROLES = {"system": "system", "human": "user", "gpt": "assistant"}


def turns_of(record: Record) -> list[Turn]:
    """The turns of a record, results joined to their calls by place.

    Raises:
        Unfit: it is no conversation of this program's form.
    """
    turns: list[Turn] = []
    results: list[str] = []
    for entry in [*record["conversations"], {"from": ""}]:
        if entry["from"] == "tool":
            results.append(entry["value"])
            continue
        if turns and turns[-1].role == "assistant":
            turns[-1] = _answered(turns[-1], results)
        elif results:
            raise Unfit("a result without a call")
        results = []
        if role := _ROLES.get(entry["from"]):
            turns.append(_turn(role, entry))
    return turns


def _turn(role: str, entry: Mapping[str, Any]) -> Turn:
    value = entry["value"]
    found = _THOUGHT.match(value) if role == "assistant" else None
    calls = tuple(Asked(call["name"], call["arguments"]) for call in entry.get("tool_calls") or ())
    return Turn(role, value, found[1] if found else "", value[found.end() :] if found else value, calls)


def _answered(turn: Turn, results: Sequence[str]) -> Turn:
    if len(results) > len(turn.calls):
        raise Unfit("a result without a call")
    told = [*results, *[None] * (len(turn.calls) - len(results))]
    calls = tuple(Asked(call.name, call.arguments, result) for call, result in zip(turn.calls, told, strict=True))
    return Turn(turn.role, turn.value, turn.thought, turn.text, calls)


def whole_rounds(turns: Sequence[Turn]) -> Iterator[Turn]:
    """The turns. Raises Unfit when a call has no result: consumers demand one for each."""
    for turn in turns:
        if any(call.result is None for call in turn.calls):
            raise Unfit("a call has no result")
        yield turn


def tools_of_row(record: Record, schemas: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The definitions that were on offer in this row, in the run's order."""
    drawn = [name for name in record["toolsets_used"] if name in TOOLSETS]
    offered = set(tools_of(drawn))
    return [schema for schema in schemas if schema["function"]["name"] in offered]


def dumps(value: Any) -> str:
    """JSON as models write it."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def between_tags(value: Any) -> str:
    """JSON to stand between tags: those that it quotes are escaped, since readers look for the next one."""
    return TAG.sub(r"\\u003c", dumps(value))
