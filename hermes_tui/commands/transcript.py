"""A chat as text to take away: answers, code blocks, Markdown and JSON. Only `write_new` touches the disk."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hermes_engine.errors import UsageError
from hermes_engine.messages import Message
from hermes_tui.texts import _

EXTENSIONS = ("md", "json")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*\n(.*?)^ {0,3}\1[`~]*[ \t]*$", re.DOTALL | re.MULTILINE)


def answers(messages: Sequence[Message]) -> list[str]:
    """What the model said, oldest first, without turns that only call tools."""
    return [message.content for message in messages if message.role == "assistant" and message.content.strip()]


def code_blocks(text: str) -> list[str]:
    """Contents of the fenced code blocks of a Markdown text, exactly as they stand."""
    return [match[2].removesuffix("\n") for match in _FENCE.finditer(text)]


def written(session: str, title: str, model: str, messages: Sequence[Message], form: str) -> str:
    """A chat in a file's form: `md` or `json`."""
    if form != "json":
        return _markdown(title or session, model, messages)
    told = [message_record(message) for message in messages]
    value = {"session_id": session, "title": title, "model": model, "messages": told}
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def write_new(path: Path, text: str) -> None:
    """Writes a file that must not be there yet. Blocks. Raises UsageError."""
    try:
        with path.open("x", encoding="utf-8", errors="replace", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(_("{path} exists already; nothing was written").format(path=path.name)) from None
    except OSError as error:
        raise UsageError(_("{path} cannot be written: {why}").format(path=path.name, why=error.strerror)) from None


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


def _markdown(title: str, model: str, messages: Sequence[Message]) -> str:
    parts = [f"# {title}", f"Model: {model}"]
    for message in messages:
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
