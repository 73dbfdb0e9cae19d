"""Has the replies of a row come with their tokens, each token of its conversation once. Knows no file.

A reply is linked to the one before: what its request shares with that is left out.
"""

from __future__ import annotations

import dataclasses
from array import array
from contextvars import ContextVar
from dataclasses import dataclass, field

from hermes_engine.messages import Reply, ReplyTokens
from hermes_engine.protocols import Client, DeltaSink, ModelRequest


@dataclass(slots=True)
class Chain:
    """The tokens that a row's last request and its reply were."""

    tokens: array[int] = field(default_factory=lambda: array("q"))

    def linked(self, told: ReplyTokens) -> ReplyTokens:
        """The tokens of the next reply, without what they share with those before: a conversation is kept once."""
        prompt, before = array("q", told.prompt), self.tokens
        shared = _shared(before, prompt)
        self.tokens = prompt + array("q", told.tokens)
        return dataclasses.replace(told, prompt=prompt[shared:], shared=shared)


CHAIN: ContextVar[Chain | None] = ContextVar("chain", default=None)
"""The chain of the row in whose task one is."""


def _shared(one: array[int], other: array[int]) -> int:
    """How many tokens both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class TokenClient:
    """A client whose replies come with their tokens, told in short. Implements `protocols.Client`."""

    def __init__(self, inner: Client) -> None:
        self._inner = inner

    async def complete(self, request: ModelRequest, on_delta: DeltaSink | None = None) -> Reply:
        """See `protocols.Client`."""
        reply = await self._inner.complete(request, on_delta)
        chain = CHAIN.get()
        if not request.tokens or chain is None:
            return reply
        if reply.tokens is None or reply.empty or reply.finish_reason == "content_filter":
            return dataclasses.replace(reply, tokens=None)  # such a reply is asked for again, and is no turn
        return dataclasses.replace(reply, tokens=chain.linked(reply.tokens))

    async def context_window(self, model: str) -> int | None:
        """See `protocols.Client`."""
        return await self._inner.context_window(model)

    async def close(self) -> None:
        """See `protocols.Client`."""
        await self._inner.close()
