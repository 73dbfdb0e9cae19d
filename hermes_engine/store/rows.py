"""Between values and table rows: messages, usage, paths. Pure."""

from __future__ import annotations

import dataclasses
import json
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hermes_engine.messages import Message, ToolCall, Usage
from hermes_engine.store.database import clean

MESSAGE_COLUMNS = "session, position, role, content, calls, call_id, name, reasoning, partial, created, status"


def message_values(session: str, position: int, message: Message, now: float) -> tuple[Any, ...]:
    """Values for MESSAGE_COLUMNS."""
    calls = [[call.id, call.name, call.arguments] for call in message.tool_calls]
    return (
        session,
        position,
        message.role,
        clean(message.content),
        clean(json.dumps(calls, ensure_ascii=False)) if calls else "",
        clean(message.tool_call_id),
        clean(message.name),
        clean(message.reasoning),
        int(message.partial),
        now,
        message.status,
    )


def message_of(row: sqlite3.Row) -> Message:
    """The message of a row."""
    calls = json.loads(row["calls"]) if row["calls"] else []
    return Message(
        row["role"],
        row["content"],
        tuple(ToolCall(*call) for call in calls),
        row["call_id"],
        row["name"],
        row["reasoning"],
        bool(row["partial"]),
        row["status"],
    )


def as_stored(message: Message) -> Message:
    """The message as it comes back from the table: without lone surrogates."""
    calls = tuple(ToolCall(clean(call.id), clean(call.name), clean(call.arguments)) for call in message.tool_calls)
    return dataclasses.replace(
        message,
        content=clean(message.content),
        tool_calls=calls,
        tool_call_id=clean(message.tool_call_id),
        name=clean(message.name),
        reasoning=clean(message.reasoning),
    )


def common_ends(old: Sequence[Message], new: Sequence[Message]) -> tuple[int, int]:
    """How many messages two conversations share at their beginning and, besides these, at their end."""
    shortest = min(len(old), len(new))
    head = 0
    while head < shortest and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < shortest - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return head, tail


USAGE_COLUMNS = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "tokens_known", "cost_usd", "cost_known")


def usage_of(row: sqlite3.Row) -> Usage:
    """The usage in a row that has USAGE_COLUMNS."""
    return Usage(
        row["prompt_tokens"],
        row["completion_tokens"],
        row["reasoning_tokens"],
        bool(row["tokens_known"]),
        row["cost_usd"],
        bool(row["cost_known"]),
    )


def usage_text(usage: Usage) -> str:
    """Usage as JSON text."""
    return json.dumps(dataclasses.asdict(usage))


def usage_from_text(text: str) -> Usage:
    """Usage from `usage_text`; no usage from ""."""
    return Usage(**json.loads(text)) if text else Usage()


def path_value(path: Path) -> str | bytes:
    """A path as SQLite holds it: bytes where it is no text."""
    text = str(path)
    return text if clean(text) == text else os.fsencode(path)


def path_of(value: str | bytes) -> Path:
    """The path from `path_value`."""
    return Path(os.fsdecode(value))
