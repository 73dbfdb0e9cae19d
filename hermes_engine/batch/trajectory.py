"""Makes a training record of a row's conversation, exactly as the contract has it, and one line of JSON of a record.

Measured rules (contract, section 6): `tool_calls` on every gpt turn and on no other; arguments are an object;
reasoning stands once, as a <think> block; no lone surrogate, no NaN, no secret.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from hermes_engine.batch.job import Record, Row, RowResult, ToolCount
from hermes_engine.messages import Message, ToolCall
from hermes_engine.redaction import Redactor

KEPT_STOPS = ("done", "max_turns", "length", "budget")
"""How a row may end and still be training data."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_ENDS = {"\u2028": "\\u2028", "\u2029": "\\u2029", "\x85": "\\u0085"}
THOUGHT = re.compile(r"\s*<(think|REASONING_SCRATCHPAD)>(.*?)</\1>\s*", re.DOTALL)
_TAG = re.compile(r"</?(?:think|REASONING_SCRATCHPAD)>")
_FROM = {"user": "human", "assistant": "gpt", "tool": "tool", "system": "system"}
_LARGEST_INT = 2**63


def thought_and_text(message: Message) -> tuple[str, str]:
    """The reasoning of an assistant message and its words, wherever the reasoning stood."""
    thoughts, text = [_TAG.sub("", message.reasoning).strip()], message.content
    while found := THOUGHT.match(text):
        thoughts.append(_TAG.sub("", found[2]).strip())
        text = text[found.end() :]
    return "\n\n".join(dict.fromkeys(thought for thought in thoughts if thought)), text


def reasoning_of(messages: Iterable[Message]) -> dict[str, int]:
    """How many assistant turns there are, and how many of them reason."""
    thoughts = [bool(thought_and_text(message)[0]) for message in messages if message.role == "assistant"]
    return {"turns": len(thoughts), "with_reasoning": sum(thoughts)}


def turn(message: Message, redactor: Redactor) -> dict[str, Any]:
    """One entry of `conversations`, without secrets."""
    if message.role != "assistant":
        return {"from": _FROM[message.role], "value": redactor.text(message.content)}
    thought, text = thought_and_text(message)
    if thought:
        text = f"<think>\n{thought}\n</think>\n{text}" if text else f"<think>\n{thought}\n</think>"
    asked = [recorded(call, redactor) for call in message.tool_calls]
    return {"from": "gpt", "value": redactor.text(text), "tool_calls": asked}


def recorded(call: ToolCall, redactor: Redactor) -> dict[str, Any]:
    """A call as the record has it; arguments that are no plain JSON object stand as {"_raw": text}."""
    arguments = call.parsed()
    if arguments is None or not _plain(arguments):
        arguments = {"_raw": call.arguments}
    return {"name": redactor.text(call.name), "arguments": redactor.value(arguments)}


def _plain(value: Any) -> bool:
    """Whether every number is one that JSON and its readers know."""
    if isinstance(value, dict):
        return all(_plain(item) for item in value.values())
    if isinstance(value, list):
        return all(_plain(item) for item in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or -_LARGEST_INT <= value < _LARGEST_INT


def dense(names: Iterable[str], counts: dict[str, ToolCount]) -> tuple[dict[str, Any], dict[str, int]]:
    """`tool_stats` and `tool_error_counts` over all `names`, zeros included, in their order."""
    zero = ToolCount()
    found = {name: counts.get(name, zero) for name in names}
    stats = {
        name: {"count": item.count, "success": item.success, "failure": item.failure} for name, item in found.items()
    }
    return stats, {name: item.failure for name, item in found.items()}


def make_record(
    row: Row, result: RowResult, *, tools: Sequence[str], batch: int, timestamp: str, redactor: Redactor
) -> Record:
    """The row as a record.

    Args:
        row, result: what was asked and what came.
        tools: every tool the run could offer; those of the row are added.
        batch: number of its batch.
        timestamp: when it ended, UTC, ISO 8601.
        redactor: takes secrets out of all text.
    """
    names = dict.fromkeys((*tools, *result.offered))
    stats, errors = dense(names, dict(result.tools))
    completed = result.stop_reason == "done"
    return {
        "prompt_index": row.index,
        "conversations": [turn(message, redactor) for message in result.conversation],
        "completed": completed,
        "toolsets_used": list(result.toolsets),
        "tool_stats": stats,
        "tool_error_counts": errors,
        "partial": not completed,
        "stop_reason": result.stop_reason,
        "api_calls": result.api_calls,
        "retries": result.retries,
        "sample": row.sample,
        "reasoning": reasoning_of(result.conversation),
        "usage": result.usage.as_record(),
        "metadata": {
            "batch_num": batch,
            "timestamp": timestamp,
            "model": result.model,
            "row_id": row.key,
            "extra": redactor.text(row.extra),
        },
    }


def line_of(record: Record) -> bytes:
    """The record as one line with its line end: UTF-8, U+FFFD for lone surrogates, no other character that ends a line.

    Raises:
        ValueError: it holds NaN or an infinity.
    """
    text = json.dumps(record, ensure_ascii=False, allow_nan=False)
    for character, escape in _LINE_ENDS.items():
        if character in text:
            text = text.replace(character, escape)
    try:
        return f"{text}\n".encode()
    except UnicodeEncodeError:
        return f"{whole_characters(text)}\n".encode()


def whole_characters(text: str) -> str:
    """The text with U+FFFD for lone surrogates, which no UTF-8 can hold."""
    return _SURROGATE.sub("\ufffd", text)
