"""A client that says what it is told to: for tests of whatever stands above clients. Opens no connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from hermes_engine.clients.assemble import unique_ids
from hermes_engine.errors import ProviderError
from hermes_engine.messages import NO_USAGE, Reply, ToolCall, Usage
from hermes_engine.protocols import DeltaSink, ModelRequest

ScriptedReply = Reply | ProviderError | str | Callable[[ModelRequest], Reply]
"""A reply, an error to raise, an answer's text, or what makes the reply from the request."""


class ScriptedClient:
    """Implements `protocols.Client` from a list of replies, the last of which repeats.

    Attributes:
        requests: as they came; their messages are copied, since a conversation grows.
        closed: whether `close` was called.
    """

    def __init__(self, replies: Sequence[ScriptedReply], *, window: int | None = None, delay: float = 0.0) -> None:
        """Args:
        replies: played in order; at least one.
        window: what `context_window` tells.
        delay: seconds before each reply.
        """
        if not replies:
            raise ValueError("a script needs at least one reply")
        self.requests: list[ModelRequest] = []
        self.closed = False
        self._replies = list(replies)
        self._window = window
        self._delay = delay

    async def complete(self, request: ModelRequest, on_delta: DeltaSink | None = None) -> Reply:
        """The next reply of the script; its reasoning and text are heard as one piece each."""
        planned = self._replies[min(len(self.requests), len(self._replies) - 1)]
        self.requests.append(
            ModelRequest(
                request.model,
                tuple(request.messages),
                request.tools,
                request.sampling,
                request.extra_body,
                request.reasoning_effort,
            )
        )
        await asyncio.sleep(self._delay)
        if isinstance(planned, ProviderError):
            raise planned
        if isinstance(planned, str):
            reply = Reply(planned, finish_reason="stop", usage=NO_USAGE)
        else:
            reply = planned if isinstance(planned, Reply) else planned(request)
        if on_delta is not None and reply.reasoning:
            on_delta(reasoning=reply.reasoning)
        if on_delta is not None and reply.text:
            on_delta(text=reply.text)
        return reply

    async def context_window(self, model: str) -> int | None:
        """What the script was given."""
        return self._window

    async def close(self) -> None:
        """Notes that it was closed."""
        self.closed = True


def calling(*calls: tuple[str, str], text: str = "", usage: Usage = NO_USAGE) -> Reply:
    """A reply with calls, each (name, arguments as JSON text); ids are made."""
    made = unique_ids([ToolCall("", name, arguments) for name, arguments in calls], set())
    return Reply(text, tool_calls=made, finish_reason="tool_calls", usage=usage)
