"""How full the model's context is, and making room in it: cut old results first, then summarise.

A window of unknown size is never guessed: then only a refusal of the server makes room. Every path is bounded:
what cannot be made smaller is said, not tried again.
"""

from __future__ import annotations

from collections.abc import Sequence

from hermes_engine.agent.shorten import Parts, as_text, estimate, parted, pruned
from hermes_engine.errors import ContextTooLong, HermesError, ProviderError
from hermes_engine.events import ContextCompacted, Emitter, UsageReported
from hermes_engine.messages import NO_USAGE, Message, Reply, Usage, user
from hermes_engine.protocols import Client, ModelRequest, ToolSchema

FULL = 0.8
"""Share of the window from which on room is made."""

ASK_WINDOW_FROM = 4096
"""Estimated tokens below which no one needs to know how large the window is."""

GROWN = 0.1
"""Share of the window by which a conversation that could not be shortened must have grown to be tried again."""

REFUSALS = 2
"""How often a conversation the server refused as too long is shortened and sent again, in a row."""

SUMMARISE = """Summarise the conversation below so that the work can go on from the summary alone. Keep: what the \
person wants, decisions and their reasons, facts found (paths, names, numbers, commands), what was changed, what is \
still open. Leave out greetings and failed detours. Write plain notes, at most 600 words.{hint}

<conversation>
{text}
</conversation>"""


class Context:
    """The context of one agent's conversation."""

    def __init__(self, client: Client, model: str) -> None:
        self.client, self.model = client, model
        self.window: int | None = None
        self.spent: Usage = NO_USAGE
        """Usage of summaries that no turn has taken over yet."""
        self._asked = False
        self._reported: tuple[int, int] | None = None
        self._refusals = 0
        self._stuck: int | None = None
        """Tokens of the conversation when it could not be made shorter."""

    async def learn(self) -> int | None:
        """Asks the endpoint for the size of the window, once."""
        if not self._asked:
            self._asked = True
            self.window = await self.client.context_window(self.model)
        return self.window

    def size(self, messages: Sequence[Message], tools: Sequence[ToolSchema] = ()) -> int:
        """Tokens of the conversation: the server's last figure plus an estimate of what came since."""
        if self._reported is not None and self._reported[1] <= len(messages):
            return self._reported[0] + estimate(messages[self._reported[1] :])
        return estimate(messages, tools)

    def measure(self, reply: Reply, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> tuple[int, bool]:
        """Takes in a reply that has joined `messages`; returns tokens and whether they are our estimate."""
        self._refusals = 0
        known = reply.usage.tokens_known and reply.usage.prompt_tokens > 0
        self._reported = (reply.usage.total_tokens, len(messages)) if known else None
        return self.size(messages, tools), not known

    async def make_room(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema], emit: Emitter
    ) -> list[Message] | None:
        """A shorter conversation when the window is nearly full, else None.

        What cannot be made shorter (one long prompt) goes out as it is while it seems to fit: the server knows best.

        Raises:
            ContextTooLong: it does not fit and cannot be made shorter.
        """
        size = self.size(messages, tools)
        if size < ASK_WINDOW_FROM or not await self.learn() or self.window is None:
            return None
        if size < self.window * FULL or (self._stuck is not None and size < self._stuck + self.window * GROWN):
            return None
        try:
            return await self.shorten(messages, tools, emit, room=self.window // 2)
        except ProviderError:
            raise
        except HermesError as fault:
            if size < self.window:
                self._stuck = size
                return None
            raise ContextTooLong(
                f"the conversation takes about {size:,} tokens, the model has room for {self.window:,}, and it cannot "
                "be made shorter",
                hint="begin with less, or use a model with a larger context",
            ) from fault

    async def after_refusal(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema], error: ContextTooLong, emit: Emitter
    ) -> list[Message]:
        """A shorter conversation after the server refused this one; raises `error` when that does not help."""
        self._refusals += 1
        if self._refusals > REFUSALS:
            error.hint = error.hint or "start a new chat, or use a model with a larger context"
            raise error
        size = self.size(messages, tools)
        try:
            return await self.shorten(messages, tools, emit, room=size // (4 * self._refusals))
        except ProviderError:
            raise
        except HermesError as fault:
            raise ContextTooLong(f"{error}; {fault}", status=error.status) from error

    async def shorten(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema],
        emit: Emitter,
        *,
        room: int,
        hint: str | None = None,
    ) -> list[Message]:
        """A conversation that takes about `room` tokens; with a `hint` (also "") its old part is summarised anyway.

        Raises:
            HermesError: it cannot be made smaller.
        """
        before, told = estimate(messages, tools), self.size(messages, tools)
        shorter = pruned(messages, spare_rounds=2)
        spent = NO_USAGE
        if hint is not None or estimate(shorter, tools) > room:
            parts = parted(shorter, room)
            summary, spent = await self._summary(parts, room, hint or "")
            self.spent += spent
            shorter = parts.joined(summary)
        if estimate(shorter, tools) > room:
            shorter = pruned(shorter, spare_rounds=0)
        after = estimate(shorter, tools)
        if after >= before:
            raise HermesError("the conversation cannot be made shorter", hint="start a new chat with /new")
        self._reported = None
        emit(
            ContextCompacted,
            before_tokens=told,
            after_tokens=after,
            dropped=max(0, len(messages) - len(shorter)),
        )
        emit(UsageReported, usage=spent, context_tokens=after, context_window=self.window or 0, estimated=True)
        return shorter

    async def _summary(self, parts: Parts, room: int, hint: str) -> tuple[str, Usage]:
        """The model's summary of the old part and its price; "" when there is nothing old or the model gives none."""
        if not parts.old:
            return "", NO_USAGE
        wish = f"\nMind above all: {hint}" if hint else ""
        text = SUMMARISE.format(text=as_text(parts.old, max(2000, room * 4)), hint=wish)
        try:
            reply = await self.client.complete(ModelRequest(self.model, [user(text)]))
        except ProviderError:
            return "", NO_USAGE
        return reply.text.strip(), reply.usage

    def charge(self) -> Usage:
        """Hands the usage of summaries over to the turn that asks."""
        spent, self.spent = self.spent, NO_USAGE
        return spent
