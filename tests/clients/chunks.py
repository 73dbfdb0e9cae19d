"""Short ways to feed chunks to an assembler; for tests only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hermes_engine.clients.assemble import ReplyAssembler
from hermes_engine.messages import Reply
from tests.server.scripted import chunk

Chunks = Iterable[Mapping[str, Any]]


def reply(chunks: Chunks, *, finish: str | None = "stop", ended: bool = True) -> Reply:
    """The reply of these chunks, a finishing one added."""
    assembler = ReplyAssembler()
    for part in [*chunks, chunk({}, finish=finish)]:
        assembler.feed(part)
    return assembler.finish(ended)


def told(*deltas: Mapping[str, Any], **options: Any) -> Reply:
    """The reply of chunks with these deltas."""
    return reply([chunk(delta) for delta in deltas], **options)


def shown(chunks: Chunks) -> dict[str, str]:
    """What a screen hears, by kind."""
    assembler = ReplyAssembler()
    out = {"text": "", "reasoning": ""}
    for part in chunks:
        for kind, text in assembler.feed(part):
            out[kind] += text
    for kind, text in assembler.drain():
        out[kind] += text
    return out


def piece(**fields: Any) -> dict[str, Any]:
    """A delta with one piece of a call: index, id, name, arguments as given; the rest is left out."""
    function = {name: fields.pop(name) for name in ("name", "arguments") if name in fields}
    return {"tool_calls": [{**fields, "function": function}]}


def named(answer: Reply) -> list[tuple[str, str]]:
    """(name, arguments) of each call."""
    return [(call.name, call.arguments) for call in answer.tool_calls]
