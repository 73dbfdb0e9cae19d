"""A client around another one for `tool_mode: json_schema`: asks in that form, lets an answer's text stream.

Knows no transport; what the form is stands in `schema_calls`.
"""

from __future__ import annotations

import json

from hermes_engine.clients.openai_client import OpenAIClient
from hermes_engine.clients.prices import Price
from hermes_engine.clients.schema_calls import ANSWER_START, STRING_PART, asked, heard
from hermes_engine.clients.text_repair import SurrogateJoiner
from hermes_engine.messages import Reply
from hermes_engine.protocols import DeltaSink, ModelRequest


class SchemaClient:
    """Implements `protocols.Client`."""

    def __init__(self, inner: OpenAIClient) -> None:
        self._inner = inner

    async def complete(self, request: ModelRequest, on_delta: DeltaSink | None = None) -> Reply:
        """See `protocols.Client`."""
        if not request.tools:
            return await self._inner.complete(asked(request), on_delta)
        stream = None if on_delta is None else AnswerStream(on_delta)
        reply = heard(await self._inner.complete(asked(request), stream))
        if stream is not None:
            stream.settle(reply.text)
        return reply

    async def context_window(self, model: str) -> int | None:
        """See `protocols.Client`."""
        return await self._inner.context_window(model)

    async def price(self, model: str) -> Price | None:
        """The price of a model; None when unknown."""
        return await self._inner.price(model)

    async def close(self) -> None:
        """Closes the connections."""
        await self._inner.close()


class AnswerStream:
    """A delta sink that hears JSON and passes on the text of an answer; `settle` shows what turned out to be text."""

    def __init__(self, on_delta: DeltaSink) -> None:
        self._on_delta = on_delta
        self._shown: list[str] = []
        self._waiting = ""
        self._form = ""
        self._joiner = SurrogateJoiner()

    def __call__(self, *, text: str = "", reasoning: str = "") -> None:
        """See `protocols.DeltaSink`."""
        if reasoning:
            self._on_delta(reasoning=reasoning)
        if text:
            self._waiting += text
            self._form = self._form or self._recognised()
            self._go_on()

    def settle(self, final: str) -> None:
        """Shows the rest of the settled text."""
        shown = "".join(self._shown)
        if final.startswith(shown):
            self._say(final[len(shown) :])

    def _recognised(self) -> str:
        """What comes: an answer in JSON, plain text, or "" while neither is certain (a call never is)."""
        if begun := ANSWER_START.match(self._waiting):
            self._waiting = self._waiting[begun.end() :]
            return "answer"
        start = self._waiting.lstrip()
        return "plain" if start and start[0] not in "{`" else ""

    def _go_on(self) -> None:
        if self._form == "plain":
            piece, self._waiting = self._waiting, ""
            self._say(piece)
        elif self._form == "answer" and (part := STRING_PART.match(self._waiting)):
            if part.end() < len(self._waiting) and self._waiting[part.end()] == '"':
                self._form = "over"
            self._waiting = self._waiting[part.end() :]
            self._say(self._joiner.feed(json.loads(f'"{part[0]}"', strict=False)))

    def _say(self, piece: str) -> None:
        if piece:
            self._shown.append(piece)
            self._on_delta(text=piece)
