"""A whole reply from the chunks of a stream, whatever a server leaves out, adds or misnames. Pure: no transport.

Chunks are decoded JSON objects in the form of chat.completion.chunk; a whole chat.completion is taken as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hermes_engine.clients.call_parts import CallParts
from hermes_engine.clients.faults import error_in_stream
from hermes_engine.clients.reply_tokens import TokenReader
from hermes_engine.clients.text_repair import SurrogateJoiner, whole_text
from hermes_engine.clients.thinking import Piece, ThoughtSplitter
from hermes_engine.clients.usage import UsageReader
from hermes_engine.errors import StreamBroken
from hermes_engine.messages import Reply, ToolCall

REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking", "reasoning_details")
"""Names under which servers send reasoning, the most telling first; one chunk counts for one of them."""

_FINISH = {
    "stop": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "safety": "content_filter",
}
CUT_CALLS_NOTE = "the answer was cut off within a tool call; that call was not run"


@dataclass(frozen=True, slots=True)
class _Parts:
    text: str = ""
    reasoning: str = ""


class ReplyAssembler:
    """Takes chunks in order; `finish` gives the reply.

    Attributes:
        began: whether anything of the answer has come: text, reasoning or part of a call.
        finished: whether the server gave a reason why the answer ends.
    """

    def __init__(self, *, tokens: bool = False) -> None:
        """`tokens`: whether those of the reply are gathered, where the server tells them."""
        self._tokens = TokenReader() if tokens else None
        self.began = False
        self.finished = False
        self._splitter = ThoughtSplitter()
        self._content = SurrogateJoiner()
        self._thought = SurrogateJoiner()
        self._reasoning: list[str] = []
        self._field = ""
        self._calls = CallParts()
        self._usage = UsageReader()
        self._index: int | None = None
        self._finish = ""
        self._model = ""
        self._late: list[Piece] = []
        self._heard = 0
        self._note = ""

    @property
    def size(self) -> int:
        """Characters of text, reasoning and calls so far."""
        return self._heard + self._calls.size

    def cut(self, note: str) -> None:
        """Ends the reply here as if its tokens were used up; `note` says why."""
        self.finished, self._finish, self._note = True, "length", note

    def feed(self, chunk: Mapping[str, Any]) -> list[Piece]:
        """What this chunk adds to text and reasoning.

        Raises:
            ProviderError: the chunk is an error object.
        """
        if chunk.get("error"):
            raise error_in_stream(chunk["error"])
        if usage := chunk.get("usage"):
            self._usage.feed(usage)
        if not self._model and isinstance(model := chunk.get("model"), str):
            self._model = whole_text(model)
        choices = chunk.get("choices")
        if not choices or not isinstance(choices, list):
            self._aside(chunk)
            return []
        choice = choices[0]
        if len(choices) > 1 or not isinstance(choice, dict) or choice.get("index", 0) != self._index:
            choice = self._ours(choices)
        if not isinstance(choice, dict):
            return []
        if self._tokens is not None:
            self._tokens.feed(chunk, choice)
        return self._choice(choice)

    def drain(self) -> list[Piece]:
        """What was held back until the end of the stream."""
        out = self._shown(self._splitter.feed(self._content.end()))
        if rest := self._thought.end():
            self._reasoning.append(rest)
            out.append(("reasoning", rest))
        out += self._shown(self._splitter.finish())
        if self._late and not _doubled(self._splitter.reasoning, "".join(self._reasoning)):
            out += self._late
        self._late = []
        return out

    def finish(self, ended: bool) -> Reply:
        """The whole reply, ids of its calls unique within it.

        Args:
            ended: the server said that this was all ([DONE], or a body that is not a stream).

        Raises:
            StreamBroken: it neither said so nor gave a reason why the answer ends; `partial` holds the text.
        """
        self.drain()
        if not ended and not self.finished:
            raise StreamBroken("the connection closed before the reply was whole", partial=self.text)
        cut_off = self._finish in ("length", "content_filter")
        calls = unique_ids(self._calls.calls(cut_off=cut_off), set())
        dropped = cut_off and len(calls) < len(self._calls.calls())
        text = self._splitter.text
        if calls and not text.strip():
            text = ""
        finish = "tool_calls" if calls and not cut_off else self._finish
        usage = self._usage.result(answered=self.began)
        tokens = self._tokens.result(usage) if self._tokens is not None else None
        reply = Reply(text, self.reasoning, calls, finish, usage, self._model, tokens=tokens)
        notes = (*([self._note] if self._note else []), *([CUT_CALLS_NOTE] if dropped else []))
        return replace(reply, notes=notes) if notes else reply

    @property
    def cached_tokens(self) -> int:
        """Prompt tokens the server says it had in its cache."""
        return self._usage.cached

    @property
    def text(self) -> str:
        """The answer so far."""
        return self._splitter.text

    @property
    def reasoning(self) -> str:
        """The reasoning so far, once, whatever field or tag it came in."""
        told, tagged = "".join(self._reasoning).strip(), self._splitter.reasoning
        if not told or not tagged:
            return told or tagged
        if _doubled(tagged, told):
            return told
        return tagged if told in tagged else f"{told}\n{tagged}"

    def _ours(self, choices: list[Any]) -> Any:
        """The choice we follow where a server sends several: the lowest one of the first chunk that has any."""
        found = [(_index(choice), choice) for choice in choices if isinstance(choice, dict)]
        if self._index is None and found:
            self._index = min(index for index, _ in found)
        return next((choice for index, choice in found if index == self._index), None)

    def _choice(self, choice: Mapping[str, Any]) -> list[Piece]:
        if error := choice.get("error"):
            raise error_in_stream(error)
        delta = choice.get("delta")
        whole = False
        if not delta and not self.began:
            delta = choice.get("message")
            whole = bool(delta)
        if finish := choice.get("finish_reason"):
            self._end(finish)
        if usage := choice.get("usage"):
            self._usage.feed(usage)
        if isinstance(delta, dict):
            return self._delta(delta, whole)
        text = choice.get("text")
        return self._say(text) if isinstance(text, str) and not self.began else []

    def _delta(self, delta: Mapping[str, Any], whole: bool) -> list[Piece]:
        out: list[Piece] = []
        content = delta.get("content")
        if type(content) is not str:
            parts = _content_parts(content)
            if parts.reasoning:
                out += self._think("content", parts.reasoning)
            content = parts.text or _plain(delta.get("refusal"))
        if len(delta) > 1 or not content:
            for name in REASONING_FIELDS:
                if (value := delta.get(name)) and (thought := _reasoning_text(value)):
                    out += self._think(name, thought)
                    break
            if calls := delta.get("tool_calls"):
                self.began = True
                self._calls.feed(calls, whole=whole)
            elif call := delta.get("function_call"):
                self.began = True
                self._calls.feed({"index": 0, "function": call})
        return out + self._say(content) if content else out

    def _say(self, content: str) -> list[Piece]:
        self.began = self.began or bool(content)
        self._heard += len(content)
        return self._shown(self._splitter.feed(self._content.feed(content)))

    def _think(self, name: str, thought: str) -> list[Piece]:
        """Reasoning of a field; the details of a server that sent it in words before only repeat it."""
        if name == "reasoning_details" and self._field not in ("", name):
            return []
        self._field = name
        self.began = True
        self._splitter.lone_close = False
        self._heard += len(thought)
        thought = self._thought.feed(thought)
        self._reasoning.append(thought)
        return [("reasoning", thought)] if thought else []

    def _shown(self, pieces: list[Piece]) -> list[Piece]:
        """Reasoning in tags beside reasoning in a field is mostly the same once more: it waits for the end."""
        if not self._field or not pieces:
            return pieces
        self._late += [piece for piece in pieces if piece[0] == "reasoning"]
        return [piece for piece in pieces if piece[0] == "text"]

    def _end(self, finish: Any) -> None:
        word = str(finish).lower()
        if word == "error":
            raise error_in_stream({"message": "the model's server ended the answer with an error"})
        self.finished = True
        self._finish = _FINISH.get(word, "stop")

    def _aside(self, chunk: Mapping[str, Any]) -> None:
        groq = chunk.get("x_groq")
        if isinstance(groq, dict) and isinstance(groq.get("usage"), dict):
            self._usage.feed(groq["usage"])


def unique_ids(calls: Iterable[ToolCall], used: set[str]) -> tuple[ToolCall, ...]:
    """The calls with ids that are neither empty nor in `used`; a server's own id is kept where it is unique.

    Made ids have nine letters and digits, the one form every server takes. `used` grows by the ids returned.
    """
    out: list[ToolCall] = []
    number = len(used)
    for call in calls:
        key = call.id.strip()
        while not key or key in used:
            number += 1
            key = f"call{number:05d}"
        used.add(key)
        out.append(call if key == call.id else replace(call, id=key))
    return tuple(out)


def _index(choice: Mapping[str, Any]) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def _doubled(tagged: str, told: str) -> bool:
    return tagged.strip() in told


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _content_parts(content: Any) -> _Parts:
    """Text and reasoning of a content that is a list of parts."""
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return _Parts()
    text: list[str] = []
    reasoning: list[str] = []
    for part in content:
        if isinstance(part, str):
            text.append(part)
        elif isinstance(part, dict):
            kind = str(part.get("type", ""))
            if "think" in kind or "reason" in kind:
                reasoning.append(_reasoning_text(part))
            else:
                text.append(_plain(part.get("text")) or _plain(part.get("refusal")))
    return _Parts("".join(text), "".join(reasoning))


def _reasoning_text(value: Any) -> str:
    """The words of a reasoning field: text, a part with text, or a list of such; encrypted ones have none."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_reasoning_text(part) for part in value)
    if isinstance(value, dict):
        for name in ("text", "summary", "thinking", "reasoning", "content"):
            if value.get(name):
                return _reasoning_text(value[name])
    return ""
