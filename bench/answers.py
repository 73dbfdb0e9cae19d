"""What the bench's server answers, as ready packets: tool rounds of one `echo` each, then words. Knows no socket."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["prose", "code", "paragraph", "list", "table"]
END_MARK = "ЖЪЩ"
"""Last word of a long text: it stands nowhere else, so that a screen that shows it shows the end."""

THOUGHT = "One command will tell."
_USAGE = {"prompt_tokens": 900, "completion_tokens": 60, "total_tokens": 960}

_WORDS = ("the", "store", "reads", "each", "line", "once,", "then", "keeps", "what", "it", "found", "for", "later")
_PROSE = """\
## Part {n}

The store reads each line once and keeps `what it found` for later use; **nothing** is read twice, and a line
that does not parse is named by its number.

- first, the lock is taken
- then the *rows* are read, in order
- at last the index is written

```python
def read(path: Path) -> list[str]:
    return [line for line in path.open() if line.strip()]
```

"""

_BLOCKS: dict[Kind, tuple[str, str, str]] = {
    "prose": ("", _PROSE, ""),
    "code": ("```python\n", "value_{n} = compute({n}, 'some text')\n", "\n```"),
    "paragraph": ("", "part {n} of a *paragraph* that never ends, ", ""),
    "list": ("", "- item {n} of a list that never ends\n", ""),
    "table": ("| n | what |\n|---|---|\n", "| {n} | a row of a table that never ends |\n", ""),
}
"""What stands first, what is repeated, what closes it."""


@dataclass(frozen=True, slots=True)
class Script:
    """How a server answers every conversation.

    Attributes:
        rounds: tool rounds before the final answer.
        chunks: content chunks of each answer.
        per_packet: chunks that leave in one write.
        gap: seconds between two writes.
        latency: seconds before an answer begins.
        text_bytes: when not 0, the final answer is so long, in pieces of `piece` bytes, `chunks` is not used.
        piece: bytes of a piece of such a text.
        kind: what a long text is made of: prose is mixed Markdown; the others are one single block of their kind.
        brief_first: the first turn of a conversation is answered in `chunks` words all the same.
    """

    rounds: int = 1
    chunks: int = 6
    per_packet: int = 10
    gap: float = 0.005
    latency: float = 0.05
    text_bytes: int = 0
    piece: int = 4
    kind: Kind = "prose"
    brief_first: bool = False


def packets(script: Script, done: int, turn: int) -> list[bytes]:
    """The answer to a conversation in its `turn`th turn in which `done` tool calls have results, as HTTP chunks."""
    final = done >= script.rounds
    if final and script.text_bytes and not (script.brief_first and turn == 1):
        text = long_text(script.kind, script.text_bytes)
        pieces: Iterable[str] = (text[at : at + script.piece] for at in range(0, len(text), script.piece))
    else:
        pieces = words(script.chunks)
        if final and script.brief_first:  # with code in it: what colours code is loaded before anything is measured
            pieces = [*pieces, "\n\n```python\nx = 1\n```\n"]
    call = None if final else _echo(done)
    return packed([*events(chunks(pieces, call, done)), b"data: [DONE]\n\n"], script.per_packet)


def whole(script: Script, done: int) -> bytes:
    """The same answer in one piece, for who asks for no stream; long texts are not told so."""
    final = done >= script.rounds
    message: dict[str, Any] = {"role": "assistant", "content": "".join(words(script.chunks))}
    message["reasoning_content"] = THOUGHT
    if not final:
        function = {"name": _echo(done).name, "arguments": _echo(done).arguments}
        message["tool_calls"] = [{"id": f"call_{done}", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "stop" if final else "tool_calls"}
    about = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "bench"}
    return json.dumps({**about, "choices": [choice], "usage": _USAGE}).encode()


def words(count: int) -> Iterator[str]:
    """So many pieces of a short answer."""
    return (f"{_WORDS[at % len(_WORDS)]} " for at in range(count))


def _echo(done: int) -> Call:
    return Call("terminal", json.dumps({"command": f"echo part-{done}"}))


def packed(lines: Sequence[bytes], per_packet: int) -> list[bytes]:
    """Events as HTTP chunks, so many events in each."""
    grouped = [b"".join(lines[at : at + per_packet]) for at in range(0, len(lines), per_packet)]
    return [b"%x\r\n%b\r\n" % (len(packet), packet) for packet in grouped]


def long_text(kind: Kind, size: int) -> str:
    """Text of about `size` bytes, in whole parts, that ends with `END_MARK`."""
    first, step, last = _BLOCKS[kind]
    count = size // len(step.format(n=0)) + 1
    return (first + "".join(step.format(n=n) for n in range(count))).rstrip() + f"{last}\n\n{END_MARK}\n"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call: the tool's name, and its arguments as they are sent, which may be no JSON."""

    name: str
    arguments: str


def chunks(pieces: Iterable[str], call: Call | None, done: int, thought: str = THOUGHT) -> Iterator[dict[str, Any]]:
    """A reply as the objects of its stream: thought, words, a call, the reason why it ends, usage.

    Args:
        pieces: of its words.
        call: what it ends with; None for a last answer.
        done: rounds before it, which make the call's id.
        thought: its reasoning, "" for none.
    """
    yield _chunk({"role": "assistant", "content": ""})
    if thought:
        yield _chunk({"reasoning_content": thought})
    for piece in pieces:
        yield _chunk({"content": piece})
    if call is not None:
        head = {"index": 0, "id": f"call_{done}", "type": "function", "function": {"name": call.name, "arguments": ""}}
        yield _chunk({"tool_calls": [head]})
        yield _chunk({"tool_calls": [{"index": 0, "function": {"arguments": call.arguments}}]})
    yield _chunk({}, finish="stop" if call is None else "tool_calls")
    yield {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "bench", "choices": [], "usage": _USAGE}


def _chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "bench", "choices": [choice]}


def events(objects: Iterable[dict[str, Any]]) -> list[bytes]:
    """The objects as lines of a stream."""
    told = (json.dumps(item, ensure_ascii=False, separators=(",", ":")) for item in objects)
    return [f"data: {text}\n\n".encode() for text in told]
