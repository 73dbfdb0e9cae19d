"""Tool calls that a model writes as text, for servers that do not read them. Off unless the settings ask for it.

A call counts only where an answer ends with it: it begins a line, stands in no code fence, names a tool on offer,
nothing but further calls follows, and it is not copied from what the model was shown. Pure: no transport.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hermes_engine.clients.assemble import unique_ids
from hermes_engine.messages import Message, Reply, ToolCall
from hermes_engine.protocols import DeltaSink, ModelRequest, ToolSchema

_MARKERS = ("<tool_call>", "<function=")
_BEGINNING = max(map(len, _MARKERS))
_START = re.compile(r"(?:^|\n)[ \t]*(?=<tool_call>|<function=)")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_BLOCK = re.compile(
    r"\s*(?:<tool_call>\s*(?P<inner>.*?)\s*(?:</tool_call>|\Z)|(?P<bare><function=.*?</function>))", re.DOTALL
)
_FUNCTION = re.compile(r"<function=(?P<name>[\w.-]+)>(?P<body>.*?)</function>\s*\Z", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=(?P<name>[\w.-]+)>\n?(?P<value>.*?)\n?</parameter>", re.DOTALL)


def with_text_calls(reply: Reply, request: ModelRequest) -> Reply:
    """The reply with the calls its text ends with, their mark-up removed; the same reply when there are none."""
    if reply.tool_calls or reply.finish_reason == "content_filter" or not request.tools:
        return reply
    schemas = {tool["function"]["name"]: tool for tool in request.tools}
    for start in _starts(reply.text):
        tail = reply.text[start:]
        calls = _calls(tail, schemas)
        if calls and not _quoted(tail.strip(), request.messages):
            text = reply.text[:start].rstrip()
            return dataclasses.replace(
                reply, text=text, tool_calls=unique_ids(calls, set()), finish_reason="tool_calls"
            )
    return reply


class MarkupHider:
    """A delta sink that keeps back text from the first mark-up on; `settle` shows what turned out to be text."""

    def __init__(self, on_delta: DeltaSink) -> None:
        self._on_delta = on_delta
        self._shown: list[str] = []
        self._line = ""
        self._waiting = ""
        self._hiding = False

    def __call__(self, *, text: str = "", reasoning: str = "") -> None:
        """See `protocols.DeltaSink`."""
        if reasoning:
            self._on_delta(reasoning=reasoning)
        if text and not self._hiding:
            self._waiting += text
            self._emit(self._safe_length())

    def settle(self, final: str) -> None:
        """Shows the rest of the settled text."""
        shown = "".join(self._shown)
        if final.startswith(shown):
            self._waiting = final[len(shown) :]
            self._emit(len(self._waiting))

    def _safe_length(self) -> int:
        """How much of what waits can be no mark-up: a line that may yet become some waits."""
        text = self._line + self._waiting
        before = len(self._line)
        if found := _START.search(text):
            self._hiding = True  # `settle` gets the whole
            return max(0, found.start() - before)
        line_start = text.rfind("\n") + 1
        line = text[line_start:].lstrip(" \t")
        if any(marker.startswith(line) for marker in _MARKERS):
            return max(0, line_start - before)
        return len(self._waiting)

    def _emit(self, length: int) -> None:
        piece, self._waiting = self._waiting[:length], self._waiting[length:]
        if piece:
            self._shown.append(piece)
            line = (self._line + piece).rpartition("\n")[2]
            self._line = line.lstrip(" \t")[:_BEGINNING]  # only how a line begins can be mark-up
            self._on_delta(text=piece)


def _starts(text: str) -> Iterator[int]:
    """Where mark-up begins a line outside code fences."""
    fence, position = "", 0
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = ""
        elif not fence and line.lstrip(" \t").startswith(_MARKERS):
            yield position
        position += len(line) + 1


def _calls(tail: str, schemas: Mapping[str, ToolSchema]) -> list[ToolCall]:
    """The calls `tail` consists of; none when anything else stands there or a name is unknown."""
    calls: list[ToolCall] = []
    position = 0
    while position < len(tail.rstrip()):
        block = _BLOCK.match(tail, position)
        call = _call(block["inner"] or block["bare"] or "", schemas) if block else None
        if block is None or call is None or block.end() == position:
            return []
        calls.append(call)
        position = block.end()
    return calls


def _call(inner: str, schemas: Mapping[str, ToolSchema]) -> ToolCall | None:
    if function := _FUNCTION.match(inner):
        name = function["name"]
        if name not in schemas:
            return None
        given = {
            item["name"]: _value(item["value"], item["name"], schemas[name])
            for item in _PARAMETER.finditer(function["body"])
        }
        return ToolCall("", name, json.dumps(given, ensure_ascii=False))
    try:
        value = json.loads(inner, strict=False)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or value.get("name") not in schemas:
        return None
    arguments = value.get("arguments", value.get("parameters", {}))
    if isinstance(arguments, str):
        return ToolCall("", value["name"], arguments or "{}")
    return ToolCall("", value["name"], json.dumps(arguments or {}, ensure_ascii=False))


def _value(text: str, name: str, schema: ToolSchema) -> Any:
    """A parameter's text as the type its schema names."""
    properties = schema["function"].get("parameters", {}).get("properties", {})
    if properties.get(name, {}).get("type", "string") == "string":
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _quoted(markup: str, messages: Sequence[Message]) -> bool:
    """Whether the model only repeats what it read."""
    return any(markup in message.content for message in messages if message.role != "assistant")
