"""Pure rules for shortening a conversation: what may go, what stays, never a call parted from its result.

Knows no client: the words of a summary are handed in.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from hermes_engine.messages import Message, user
from hermes_engine.protocols import ToolSchema

BYTES_PER_TOKEN = 4
"""Rough, and only used where the server reported no figures."""

KEPT_OF_OLD_RESULT = 400
"""Characters an old tool result keeps when it is cut to save room."""

_MOST_SIZES = 500

SUMMARY_HEAD = "[The conversation so far grew too long. This is a summary of its earlier part.]\n\n"
DROPPED_HEAD = "[The conversation so far grew too long; its earlier part was left out.]"


def estimate(messages: Sequence[Message], tools: Sequence[ToolSchema] = ()) -> int:
    """Tokens these messages and tool definitions take, roughly."""
    size = sum(
        16 + len(m.content.encode("utf-8", "surrogatepass")) + sum(len(c.arguments) + 40 for c in m.tool_calls)
        for m in messages
    )
    return (size + sum(map(_size_of, tools))) // BYTES_PER_TOKEN


_sizes: dict[int, tuple[ToolSchema, int]] = {}


def _size_of(schema: ToolSchema) -> int:
    """Characters of a tool's definition; agents of one kind share the very same ones, so each is looked at once."""
    known = _sizes.get(id(schema))
    if known is None or known[0] is not schema:
        if len(_sizes) >= _MOST_SIZES:
            _sizes.clear()
        known = _sizes[id(schema)] = schema, len(str(schema))
    return known[1]


def rounds(messages: Sequence[Message]) -> list[list[Message]]:
    """The conversation in pieces that must stay whole: a user message, or an assistant message with its results."""
    out: list[list[Message]] = []
    for message in messages:
        if message.role == "tool" and out:
            out[-1].append(message)
        else:
            out.append([message])
    return out


@dataclass(frozen=True, slots=True)
class Parts:
    """A conversation taken apart.

    Attributes:
        head: system messages.
        old: what a summary may replace.
        kept: the last user message, word for word, and the latest rounds.
    """

    head: list[Message]
    old: list[Message]
    kept: list[Message]

    def joined(self, summary: str) -> list[Message]:
        """The shorter conversation; `summary` "" says that the earlier part was left out."""
        if not self.old:
            return [*self.head, *self.kept]
        return [*self.head, user(SUMMARY_HEAD + summary if summary else DROPPED_HEAD), *self.kept]


def parted(messages: Sequence[Message], room: int) -> Parts:
    """Takes a conversation apart so that `kept` takes about `room` tokens: at least the last round and the last
    user message.
    """
    head = [m for m in messages if m.role == "system"]
    pieces = rounds([m for m in messages if m.role != "system"])
    last_user = max((i for i, piece in enumerate(pieces) if piece[0].role == "user"), default=-1)
    start = len(pieces)
    used = estimate(pieces[last_user]) if last_user >= 0 else 0
    while start > 0:
        cost = 0 if start - 1 == last_user else estimate(pieces[start - 1])
        if start < len(pieces) and used + cost > room:
            break
        used += cost
        start -= 1
    kept_apart = pieces[last_user] if 0 <= last_user < start else []
    old = [m for i, piece in enumerate(pieces[:start]) if i != last_user for m in piece]
    return Parts(head, old, [*kept_apart, *(m for piece in pieces[start:] for m in piece)])


def pruned(messages: Sequence[Message], *, spare_rounds: int) -> list[Message]:
    """The same conversation with long tool results cut, but for those of the last `spare_rounds` rounds."""
    pieces = rounds(messages)
    edge = len(pieces) - spare_rounds
    return [_cut(m) if i < edge else m for i, piece in enumerate(pieces) for m in piece]


def _cut(message: Message) -> Message:
    if message.role != "tool" or len(message.content) <= KEPT_OF_OLD_RESULT * 2:
        return message
    left = len(message.content) - KEPT_OF_OLD_RESULT
    text = f"{message.content[:KEPT_OF_OLD_RESULT]}\n[… {left} characters left out to save room]"
    return dataclasses.replace(message, content=text)


def as_text(messages: Sequence[Message], limit: int) -> str:
    """The messages as plain text to be summarised, at most about `limit` characters, the middle left out."""
    lines: list[str] = []
    for message in pruned(messages, spare_rounds=0):
        if message.content:
            who = f"result of {message.name}" if message.role == "tool" else message.role
            lines.append(f"{who}: {message.content}")
        lines.extend(f"{message.role} calls {c.name} {c.arguments[:KEPT_OF_OLD_RESULT]}" for c in message.tool_calls)
    text = "\n".join(lines)
    if len(text) <= limit:
        return text
    return f"{text[: limit // 2]}\n[…]\n{text[-limit // 2 :]}"
