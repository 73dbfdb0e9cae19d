"""Messages and requests as JSON bytes. A message is encoded once and kept in `Message.wire`, so that a long
conversation costs each request only its new messages. Knows no transport.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from hermes_engine.clients.text_repair import whole_text
from hermes_engine.messages import Message, ToolCall
from hermes_engine.protocols import ModelRequest, ToolSchema

SendReasoning = Literal["off", "reasoning_content"]
OURS = frozenset({"messages", "tools", "stream"})
"""Body fields that sampling and extra fields cannot replace."""

_KEPT_TOOL_LISTS = 64


def encoded(value: Any) -> bytes:
    """Compact JSON as UTF-8; half surrogates become U+FFFD."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return whole_text(text).encode()


def message_bytes(message: Message) -> bytes:
    """The message as it goes out, without reasoning; from its cache when it was sent before."""
    if message.wire:
        return message.wire[0]
    data = encoded(_message(message))
    message.wire[:] = [data]
    return data


def sendable(message: Message) -> bool:
    """Whether a server may see it: no message without words and calls, but for the person's own."""
    return bool(message.content or message.tool_calls) or message.role in ("user", "tool")


class BodyWriter:
    """Builds request bodies of one endpoint; remembers encoded tool lists."""

    def __init__(self, send_reasoning: SendReasoning = "off") -> None:
        self._send_reasoning = send_reasoning
        self._tools: dict[tuple[int, ...], tuple[Sequence[ToolSchema], bytes]] = {}

    def body(self, request: ModelRequest, fields: Mapping[str, Any], *, stream: bool = True) -> bytes:
        """The whole body: model, messages, tools where there are any, then `fields` and `stream`.

        Args:
            request: model, messages and tools are taken from it.
            fields: everything else, ready to send; None values are left out.
            stream: whether the reply is to come in pieces.
        """
        pieces = [b'{"model":', encoded(fields.get("model", request.model)), b',"messages":[']
        pieces.append(b",".join(self._sent(request.messages)))
        pieces.append(b"]")
        if request.tools:
            pieces += [b',"tools":', self._tool_bytes(request.tools)]
        rest = {
            name: value for name, value in fields.items() if value is not None and name not in OURS and name != "model"
        }
        pieces.append(b"," + encoded({**rest, "stream": stream})[1:])
        return b"".join(pieces)

    def _sent(self, messages: Sequence[Message]) -> list[bytes]:
        """The messages that go out; neighbours of the person's are one, as strict templates want turns to alternate."""
        sent: list[bytes] = []
        before = ""
        for message in messages:
            if not sendable(message):
                continue
            piece = self._piece(message)
            if message.role == before == "user":
                sent[-1] = _as_one(sent[-1], piece)
            else:
                sent.append(piece)
            before = message.role
        return sent

    def _piece(self, message: Message) -> bytes:
        data = message_bytes(message)
        if self._send_reasoning == "off" or message.role != "assistant" or not message.reasoning:
            return data
        return data[:-1] + b',"reasoning_content":' + encoded(message.reasoning) + b"}"

    def _tool_bytes(self, tools: Sequence[ToolSchema]) -> bytes:
        """Tool lists stay the same objects from request to request; the kept list holds their ids valid."""
        key = tuple(map(id, tools))
        kept = self._tools.get(key)
        if kept is None:
            if len(self._tools) >= _KEPT_TOOL_LISTS:
                self._tools.clear()
            kept = self._tools[key] = (list(tools), encoded(list(tools)))
        return kept[1]


_USER = b'{"role":"user","content":"'


def _as_one(first: bytes, second: bytes) -> bytes:
    """Two encoded messages of the person as one, a blank line between their texts."""
    return first[: -len(b'"}')] + rb"\n\n" + second[len(_USER) :]


def _message(message: Message) -> dict[str, Any]:
    fields: dict[str, Any] = {"role": message.role}
    if message.role == "tool":
        fields["tool_call_id"] = message.tool_call_id
    fields["content"] = message.content
    if message.tool_calls:
        fields["tool_calls"] = [_call(call) for call in message.tool_calls]
    return fields


def _call(call: ToolCall) -> dict[str, Any]:
    """History keeps valid JSON objects: templates of several servers decode the arguments again."""
    arguments = call.arguments if call.parsed() is not None else encoded(call.recorded()).decode()
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
