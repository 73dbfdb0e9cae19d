"""What the scripted server can say: answers as plain data, and builders for good and for deviant ones.

An answer is a list of steps: bytes are written as one packet, numbers are pauses in seconds. Knows no socket.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

End = Literal["whole", "cut", "reset", "eof"]
Step = bytes | float
DEFAULT_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
DONE = b"data: [DONE]\n\n"
_numbers = itertools.count(1)


@dataclass(slots=True)
class Seen:
    """A request as it arrived; `ended` is set when its answer is out or its client has gone.

    Attributes:
        path: with query.
        body: decoded JSON object, {} when there is none.
        headers: names in lower case.
        started, ended: `time.monotonic()`.
        aborted: the client closed before the answer was whole.
        raw: the body as bytes.
        index: place in `requests`.
    """

    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    started: float
    ended: float | None = None
    aborted: bool = False
    raw: bytes = b""
    method: str = "POST"
    index: int = 0

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation that was sent."""
        return list(self.body.get("messages", []))

    @property
    def last(self) -> dict[str, Any]:
        """The last message of it, {} when there is none."""
        return self.messages[-1] if self.messages else {}

    @property
    def tools(self) -> list[str]:
        """Names of the tools on offer."""
        return [tool["function"]["name"] for tool in self.body.get("tools", [])]


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP response.

    Attributes:
        steps: body packets and pauses, in order; a pause that stands first comes before the headers.
        status, headers: of the response; Content-Length or chunked framing is added.
        end: whole | cut (closed without the last chunk) | reset (RST) | eof (no framing, a plain close).
        silent: no response at all: after the pauses the connection is closed.
    """

    steps: tuple[Step, ...] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    end: End = "whole"
    silent: bool = False


def event(data: Mapping[str, Any] | str, *, eol: str = "\n", space: bool = True) -> bytes:
    """One SSE event. U+2028 and the like go out raw, lone surrogates as JSON escapes."""
    text = data if isinstance(data, str) else _json(data)
    return f"data:{' ' if space else ''}{text}{eol}{eol}".encode()


def chunk(delta: Mapping[str, Any] | None = None, *, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chat.completion.chunk with one choice; `fields` stand beside `choices`."""
    choice = {"index": 0, "delta": {} if delta is None else dict(delta), "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "scripted", "choices": [choice], **fields}


def stream(
    parts: Iterable[Mapping[str, Any] | bytes | float],
    *,
    end: bool | End = True,
    eol: str = "\n",
    space: bool = True,
    split: int = 0,
    together: bool = False,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Raw chunks as given: objects become events, bytes go out as they are, numbers are pauses.

    Args:
        parts: the stream.
        end: True adds [DONE]; False closes the body cleanly without it; cut, reset and eof drop it.
        eol, space: line ends, and whether a blank follows `data:`.
        split: at most so many bytes a packet; 0 = each part its own packet.
        together: everything between two pauses in one packet.
        headers: added or replaced.
    """
    steps: list[Step] = []
    for part in parts:
        match part:
            case bytes() | float():
                steps.append(part)
            case int():
                steps.append(float(part))
            case _:
                steps.append(event(part, eol=eol, space=space))
    if end is True:
        steps.append(event("[DONE]", eol=eol, space=space))
    if together or split:
        steps = _joined(steps)
    if split:
        steps = [cut for step in steps for cut in _split(step, split)]
    how: End = "whole" if isinstance(end, bool) else end
    return Answer(tuple(steps), headers={"Content-Type": "text/event-stream", **(headers or {})}, end=how)


def say(
    text: str,
    reasoning: str | None = None,
    *,
    usage: Mapping[str, Any] | None = DEFAULT_USAGE,
    chunks: int = 1,
    delay: float = 0.0,
    first_delay: float = 0.0,
    finish: str | None = "stop",
    reasoning_field: str = "reasoning_content",
) -> Answer:
    """An answer in words.

    Args:
        text, reasoning: what is said and thought.
        usage: as the last chunk; None = none is told.
        chunks: in how many pieces the text comes.
        delay: seconds before each piece but the first; 0 sends everything in one packet.
        first_delay: seconds before the response begins.
        finish: finish_reason of the last choice.
        reasoning_field: under which name the reasoning comes.
    """
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    if reasoning is not None:
        deltas.append({reasoning_field: reasoning})
    deltas.extend({"content": piece} for piece in _pieces(text, chunks))
    return _finished(deltas, finish=finish, usage=usage, delay=delay, first_delay=first_delay)


def call(
    name: str,
    arguments: Mapping[str, Any] | str | None = None,
    *,
    id: str | None = None,
    text: str = "",
    reasoning: str | None = None,
    finish: str = "tool_calls",
    usage: Mapping[str, Any] | None = DEFAULT_USAGE,
    delay: float = 0.0,
    first_delay: float = 0.0,
) -> Answer:
    """An answer that calls one tool; without `id` it gets a fresh one (the same at each repeat of this answer)."""
    asked = [(name, {} if arguments is None else arguments, id)]
    return calls(
        asked, text=text, reasoning=reasoning, finish=finish, usage=usage, delay=delay, first_delay=first_delay
    )


def calls(
    asked: Sequence[tuple[str, Mapping[str, Any] | str] | tuple[str, Mapping[str, Any] | str, str | None]],
    *,
    text: str = "",
    reasoning: str | None = None,
    finish: str = "tool_calls",
    usage: Mapping[str, Any] | None = DEFAULT_USAGE,
    delay: float = 0.0,
    first_delay: float = 0.0,
) -> Answer:
    """An answer with several calls, each (name, arguments) or (name, arguments, id)."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": text or None}]
    if reasoning is not None:
        deltas.append({"reasoning_content": reasoning})
    for index, (name, arguments, *rest) in enumerate(asked):
        key = rest[0] if rest and rest[0] is not None else f"call_{next(_numbers)}"
        given = arguments if isinstance(arguments, str) else json.dumps(arguments)
        head = {"index": index, "id": key, "type": "function", "function": {"name": name, "arguments": ""}}
        deltas.append({"tool_calls": [head]})
        deltas.append({"tool_calls": [{"index": index, "function": {"arguments": given}}]})
    return _finished(deltas, finish=finish, usage=usage, delay=delay, first_delay=first_delay)


def status(
    code: int, body: Mapping[str, Any] | str | bytes = "", headers: Mapping[str, str] | None = None, *, delay: float = 0
) -> Answer:
    """An error response. An object goes out as JSON, text as text/plain (or text/html when it looks so)."""
    if isinstance(body, str | bytes):
        raw = body if isinstance(body, bytes) else body.encode()
        kind = "text/html" if raw.lstrip().startswith(b"<") else "text/plain"
    else:
        raw, kind = _json(body).encode(), "application/json"
    steps: tuple[Step, ...] = (float(delay), raw) if delay else (raw,)
    return Answer(steps, code, {"Content-Type": kind, **(headers or {})})


def plain_json(reply: Mapping[str, Any]) -> Answer:
    """A reply that is not a stream, whatever was asked. `message(...)` builds one."""
    return Answer((_json(reply).encode(),), headers={"Content-Type": "application/json"})


def message(
    content: Any = "",
    *,
    finish: str | None = "stop",
    usage: Mapping[str, Any] | None = DEFAULT_USAGE,
    **fields: Any,
) -> dict[str, Any]:
    """A whole chat.completion object; `fields` (tool_calls, reasoning_content, …) go into its message."""
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **fields}, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion", "model": "scripted", "choices": [choice], "usage": usage}


def hang(seconds: float) -> Answer:
    """Takes the request and says nothing for so long, then closes."""
    return Answer((float(seconds),), silent=True)


def drop() -> Answer:
    """Closes the connection without a word."""
    return Answer(silent=True)


def refuse_field(name: str, otherwise: Answer, *, code: int = 400) -> Callable[[Seen], Answer]:
    """A script: requests with body field `name` are refused with a text that names it, others are answered."""

    def answer(seen: Seen) -> Answer:
        if name in seen.body:
            return status(code, {"error": {"message": f"Unrecognized request argument supplied: {name}"}})
        return otherwise

    return answer


def _finished(
    deltas: Sequence[Mapping[str, Any]],
    *,
    finish: str | None,
    usage: Mapping[str, Any] | None,
    delay: float,
    first_delay: float,
) -> Answer:
    packets = [event(chunk(delta)) for delta in deltas]
    packets.append(event(chunk({}, finish=finish)))
    if usage is not None:
        packets.append(event({"object": "chat.completion.chunk", "model": "scripted", "choices": [], "usage": usage}))
    packets.append(DONE)
    steps: list[Step] = [float(first_delay)] if first_delay else []
    if delay:
        for packet in packets[:-2]:
            steps += [packet, float(delay)]
        steps += packets[-2:]
    else:
        steps.append(b"".join(packets))
    return Answer(tuple(steps), headers={"Content-Type": "text/event-stream"})


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value)
    return text


def _pieces(text: str, count: int) -> list[str]:
    size = max(1, -(-len(text) // max(1, count)))
    return [text[start : start + size] for start in range(0, len(text), size)]


def _joined(steps: Iterable[Step]) -> list[Step]:
    out: list[Step] = []
    for step in steps:
        if isinstance(step, bytes) and out and isinstance(out[-1], bytes):
            out[-1] += step
        else:
            out.append(step)
    return out


def _split(step: Step, size: int) -> list[Step]:
    if not isinstance(step, bytes):
        return [step]
    return [step[start : start + size] for start in range(0, len(step), size)]
