"""A chat as text to take away: answers, code blocks, Markdown and JSON. Pure functions over messages."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hermes_engine.messages import Message

if TYPE_CHECKING:
    from hermes_engine.session import SessionView

EXTENSIONS = ("md", "json")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*\n(.*?)^ {0,3}\1[`~]*[ \t]*$", re.DOTALL | re.MULTILINE)


def answers(messages: Sequence[Message]) -> list[str]:
    """What the model said, oldest first, without turns that only call tools."""
    return [message.content for message in messages if message.role == "assistant" and message.content.strip()]


def code_blocks(text: str) -> list[str]:
    """Contents of the fenced code blocks of a Markdown text, exactly as they stand."""
    return [match[2].removesuffix("\n") for match in _FENCE.finditer(text)]


def written(view: SessionView, form: str) -> str:
    """The chat in a file's form: `md` or `json`."""
    return _json(view) if form == "json" else _markdown(view)


def _json(view: SessionView) -> str:
    value = {
        "session_id": view.id,
        "title": view.title,
        "model": view.model,
        "messages": [message_record(message) for message in view.messages],
    }
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def message_record(message: Message) -> dict[str, Any]:
    """The message as a JSON object; keys without a value are left out."""
    record: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.reasoning:
        record["reasoning"] = message.reasoning
    if message.tool_calls:
        record["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.recorded()} for call in message.tool_calls
        ]
    if message.role == "tool":
        record |= {"tool_call_id": message.tool_call_id, "name": message.name}
    if message.partial:
        record["partial"] = True
    return record


def _markdown(view: SessionView) -> str:
    parts = [f"# {view.title or view.id}", f"Model: {view.model}"]
    for message in view.messages:
        if message.role == "user":
            parts += ["## User", message.content]
        elif message.role == "assistant":
            parts.append("## Assistant")
            parts += [message.content] if message.content else []
            parts += [f"Called `{call.name}`:\n\n{_fenced(call.arguments, 'json')}" for call in message.tool_calls]
        elif message.role == "tool":
            parts += [f"Result of `{message.name}`:", _fenced(message.content)]
    return "\n\n".join(parts) + "\n"


def _fenced(text: str, language: str = "") -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
