"""The pace of a run's requests: limits a minute over all its workers, one pause for all where the server wants it.

Requests are spread evenly, in the order in which they come, so that no minute holds more than its limit. What tokens
a request takes is known afterwards: it is reckoned beforehand from its text and from what replies took so far, then
put right. Sends nothing again: that is `agent.ask`'s alone. Lives on one loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Protocol

from hermes_engine.errors import RateLimited
from hermes_engine.messages import Reply, Usage
from hermes_engine.protocols import Client, DeltaSink, ModelRequest

IN_A_ROW = 5
"""So many refusals (429) without a named wait, and no reply between them, make all requests wait."""

LONGEST_UNNAMED = 30.0
LONGEST_NAMED = 3600.0
TOLD_FROM = 3.0
"""A pause of so many seconds is told."""

OPENING = 5.0
"""Seconds that the first request goes alone, at most."""

_FIRST_ANSWER = 300
_CHARACTERS_A_TOKEN = 4


class Paces(Protocol):
    """What a client asks before and tells after each request.

    Attributes:
        limited: whether there is a limit a minute.
    """

    limited: bool

    async def turn(self, characters: int) -> float:
        """Waits until a request of so many characters may go out; the tokens it was reckoned with."""
        ...

    def answered(self, reckoned: float, usage: Usage) -> None:
        """A reply came: what it really took counts."""
        ...

    def refused(self, reckoned: float, error: RateLimited) -> None:
        """The server said that it is too much: it took no tokens, and its wait holds for all."""
        ...


class Pace:
    """What all clients of a run share. Implements `Paces`.

    Args:
        requests, tokens: a minute, or None for no limit.
        tell: shows a line, with its level.
    """

    def __init__(self, requests: float | None, tokens: float | None, tell: Callable[[str, str], None]) -> None:
        self._each = 60 / requests if requests else 0.0
        self._token = 60 / tokens if tokens else 0.0
        self.limited = bool(requests or tokens)
        self._tell = tell
        self._line = asyncio.Lock()
        self._next_request = self._next_tokens = self._held = 0.0
        self._refusals = 0
        self._answer = float(_FIRST_ANSWER)

    async def turn(self, characters: int) -> float:
        """See `Paces`."""
        reckoned = characters / _CHARACTERS_A_TOKEN + self._answer if self._token else 0.0
        async with self._line:
            while (wait := max(self._next_request, self._next_tokens, self._held) - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            now = time.monotonic()
            self._next_request = now + self._each
            self._next_tokens = now + reckoned * self._token
        return reckoned

    def answered(self, reckoned: float, usage: Usage) -> None:
        """See `Paces`."""
        self._refusals = 0
        if usage.tokens_known:
            self._next_tokens += (usage.total_tokens - reckoned) * self._token
            self._answer += (usage.completion_tokens - self._answer) / 8

    def refused(self, reckoned: float, error: RateLimited) -> None:
        """See `Paces`."""
        self._next_tokens -= reckoned * self._token
        if error.retry_after is None and time.monotonic() < self._held:
            return  # it was under way before all began to wait, and says nothing new
        self._refusals += 1
        if error.retry_after is not None:
            wait = min(error.retry_after, LONGEST_NAMED)
        elif self._refusals >= IN_A_ROW:
            wait = min(2.0 ** (self._refusals - IN_A_ROW), LONGEST_UNNAMED)
        else:
            return
        until = time.monotonic() + wait
        if until > self._held:
            if wait >= TOLD_FROM and self._held < time.monotonic():
                self._tell("warning", f"too many requests for the server (429); all rows wait {wait:.0f} s")
            self._held = until


class PacedClient:
    """A client whose requests wait their turn. Implements `protocols.Client`.

    Until something has come of its first request a connection may still be in the making, where further requests
    would gather and go out together: they wait for that.
    """

    def __init__(self, inner: Client, pace: Paces) -> None:
        self._inner, self._pace = inner, pace
        self._line = asyncio.Lock()
        self._sent = False
        self._opened = asyncio.Event()

    async def complete(self, request: ModelRequest, on_delta: DeltaSink | None = None) -> Reply:
        """See `protocols.Client`."""
        async with self._line:
            if self._sent and not self._opened.is_set() and self._pace.limited:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._opened.wait(), OPENING)
                self._opened.set()
            reckoned = await self._pace.turn(_characters(request))
            self._sent = True

        def heard(*, text: str = "", reasoning: str = "") -> None:
            self._opened.set()
            if on_delta is not None:
                on_delta(text=text, reasoning=reasoning)

        try:
            reply = await self._inner.complete(request, on_delta if self._opened.is_set() else heard)
        except RateLimited as error:
            self._pace.refused(reckoned, error)
            raise
        finally:
            self._opened.set()
        self._pace.answered(reckoned, reply.usage)
        return reply

    async def context_window(self, model: str) -> int | None:
        """See `protocols.Client`."""
        return await self._inner.context_window(model)

    async def close(self) -> None:
        """See `protocols.Client`."""
        await self._inner.close()


def _characters(request: ModelRequest) -> int:
    return sum(
        len(message.content) + sum(len(call.arguments) for call in message.tool_calls) for message in request.messages
    )
