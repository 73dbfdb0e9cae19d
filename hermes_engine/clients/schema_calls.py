"""Tools for models whose server enforces a JSON schema but no tool calls: a request in that form, a reply read back.

The reply is one JSON object, a call or an answer; the history is told in the same form, since templates of such
models know neither calls nor results. Cut and broken JSON become what a native call would: a cut call is not run, a
broken one gets an error as its result. Pure: no transport, no stream.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hermes_engine.clients.assemble import CUT_CALLS_NOTE, unique_ids
from hermes_engine.clients.text_repair import whole_text
from hermes_engine.messages import Message, Reply, ToolCall
from hermes_engine.protocols import ModelRequest, ToolSchema

ANSWER_START = re.compile(r'\s*(?:```(?:json)?\s*)?\{\s*"answer"\s*:\s*"')
"""How an answer begins, up to the first character of its text."""

STRING_PART = re.compile(r'(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*')
"""As much of a JSON string as is whole: no half escape at its end."""

NOTE = (
    'Reply with one JSON object and nothing else: {{"answer": "text"}} to answer, or {{"name": "tool", '
    '"arguments": {{…}}}} to use a tool; its result comes back to you. Tools (? = may be left out):\n{tools}'
)
_FENCE = re.compile(r"```(?:json)?\s*(\{.*?)\s*(?:```\s*)?\Z", re.DOTALL)
_CALL_START = re.compile(r'\{\s*"name"\s*:\s*"(?P<name>(?:[^"\\]|\\.)*)"\s*,\s*"arguments"\s*:\s*', re.DOTALL)
_BEGUN = re.compile(r'\{\s*(?:"(?:[a-z]{0,6}"?|name"\s*:.*))?\Z', re.DOTALL)
_JSON = json.JSONDecoder(strict=False)


def asked(request: ModelRequest) -> ModelRequest:
    """The request without tools, with a schema that allows an answer or a call of one of them."""
    framed = bool(request.tools)
    messages = list(_merged(_told(message, framed=framed) for message in request.messages))
    if not framed:
        plain = dataclasses.replace(request, messages=messages)
        return _held(plain, request.answer_schema) if request.answer_schema else plain
    note = NOTE.format(tools="\n".join(map(_line, request.tools)))
    head = messages.pop(0).content + "\n\n" if messages and messages[0].role == "system" else ""
    framed_request = dataclasses.replace(request, messages=[Message("system", head + note), *messages], tools=())
    return _held(framed_request, reply_schema(request.tools, must_call=request.must_call))


def _held(request: ModelRequest, schema: Mapping[str, Any]) -> ModelRequest:
    """The request with the body field that holds the reply to a schema."""
    form = {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}
    return dataclasses.replace(request, extra_body={**request.extra_body, "response_format": form})


def reply_schema(tools: Sequence[ToolSchema], *, must_call: bool = False) -> dict[str, Any]:
    """What a reply must be: a call of one of `tools`, or an answer unless it `must_call`."""
    answer = _object({"answer": {"type": "string"}})
    calls = []
    for tool in tools:
        function = tool["function"]
        arguments = {"type": "object", "additionalProperties": False, **(function.get("parameters") or {})}
        calls.append(_object({"name": {"const": function["name"]}, "arguments": arguments}))
    return {"anyOf": calls if must_call else [answer, *calls]}


def heard(reply: Reply) -> Reply:
    """The reply with its JSON read: the answer's text, or calls. What is no such JSON stays text."""
    text = fenced[1] if (fenced := _FENCE.match(reply.text.strip())) else reply.text.strip()
    if not text.startswith("{") or reply.finish_reason == "content_filter":
        return reply
    answers: list[str] = []
    calls: list[ToolCall] = []
    while text:
        try:
            value, end = _JSON.raw_decode(text)
        except (ValueError, RecursionError):
            return _unfinished(reply, text, answers, calls)
        if isinstance(answer := value.get("answer"), str):
            answers.append(answer)
        elif isinstance(name := value.get("name"), str) and "arguments" in value:
            calls.append(_call(name, value["arguments"]))
        else:
            return reply
        text = text[end:].lstrip()
        if text and not text.startswith("{"):
            return _made(reply, [*answers, text], calls)
    return _made(reply, answers, calls)


def string_start(text: str) -> str:
    """The beginning of a JSON string's inside, decoded as far as it is whole."""
    part = STRING_PART.match(text)
    return whole_text(str(json.loads(f'"{part[0]}"', strict=False))) if part else ""


def _unfinished(reply: Reply, text: str, answers: list[str], calls: list[ToolCall]) -> Reply:
    """The reply whose JSON from `text` on is cut off or broken."""
    if begun := ANSWER_START.match(text):
        return _made(reply, [*answers, string_start(text[begun.end() :])], calls)
    if reply.finish_reason == "length" and _BEGUN.match(text):
        return dataclasses.replace(_made(reply, answers, calls), notes=(*reply.notes, CUT_CALLS_NOTE))
    if call := _CALL_START.match(text):
        return _made(reply, answers, [*calls, ToolCall("", string_start(call["name"]), text[call.end() :])])
    return _made(reply, [*answers, text], calls) if answers or calls else reply


def _made(reply: Reply, answers: Iterable[str], calls: Sequence[ToolCall]) -> Reply:
    finish = "tool_calls" if calls and reply.finish_reason != "length" else reply.finish_reason
    return dataclasses.replace(
        reply, text=whole_text("\n".join(answers)), tool_calls=unique_ids(calls, set()), finish_reason=finish
    )


def _call(name: str, arguments: Any) -> ToolCall:
    text = (
        arguments
        if isinstance(arguments, str)
        else json.dumps({} if arguments is None else arguments, ensure_ascii=False)
    )
    return ToolCall("", whole_text(name), whole_text(text) or "{}")


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _line(tool: ToolSchema) -> str:
    """A tool in few tokens: `name(needed, other?): first sentence`."""
    function = tool["function"]
    parameters = function.get("parameters") or {}
    needed = parameters.get("required", ())
    names = [name if name in needed else f"{name}?" for name in parameters.get("properties", {})]
    first = re.split(r"(?<=\.)\s", str(function.get("description", "")), maxsplit=1)[0]
    return f"{function['name']}({', '.join(names)}): {first}"


def _told(message: Message, *, framed: bool) -> Message:
    """The message without calls and results of its own form."""
    if message.role == "tool":
        return Message("user", f"[result of {message.name or 'the tool'}]\n{message.content}")
    if message.role != "assistant":
        return Message(message.role, message.content)
    parts = [_written({"name": call.name, "arguments": call.recorded()}) for call in message.tool_calls]
    if message.content:
        parts.insert(0, _written({"answer": message.content}) if framed and not parts else message.content)
    return Message("assistant", "\n".join(parts))


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _merged(messages: Iterable[Message]) -> Iterator[Message]:
    """Neighbours of one role as one message: many templates want user and assistant by turns."""
    held: Message | None = None
    for message in messages:
        if held is not None and held.role == message.role:
            held = Message(held.role, f"{held.content}\n\n{message.content}")
        else:
            if held is not None:
                yield held
            held = message
    if held is not None:
        yield held
