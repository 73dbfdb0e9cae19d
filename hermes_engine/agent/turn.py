"""What one turn has used up, and how it ended. Knows the limits; not the loop."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from hermes_engine.agent.ask import Draft, kept
from hermes_engine.agent.repetition import Repetition
from hermes_engine.errors import LimitReached, ProviderError, StateError
from hermes_engine.events import Emitter, ReplyFinished, RunStatus, TurnFinished
from hermes_engine.messages import (
    CANCELLED_RESULT,
    NO_USAGE,
    Message,
    Reply,
    ToolCall,
    ToolResult,
    Usage,
    assistant,
    tool_message,
)
from hermes_engine.protocols import Limits, TurnResult

_STOP_REASONS = {"turns": "max_turns", "length": "length", "budget": "budget", "tokens": "budget"}


class Turn:
    """Counters of one turn."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.turns = self.api_calls = self.retries = self.tool_calls = 0
        self.usage: Usage = NO_USAGE
        self.answer = ""
        self.repetition = Repetition()
        self._asked_again = False

    def check(self) -> None:
        """Called before each request; raises LimitReached when no further one is allowed."""
        limits = self.limits
        if limits.max_turns is not None and self.turns >= limits.max_turns:
            asked = "1 request" if limits.max_turns == 1 else f"{limits.max_turns} requests"
            raise LimitReached(f"turn limit: {asked} without a final answer", limit="turns", hint="raise max_turns")
        if limits.max_cost_usd is not None and not self.usage.cost_known:
            raise LimitReached(
                "the price of this model is unknown, so the cost cap cannot be kept",
                limit="budget",
                hint="set provider.prices, or take limits.max_cost_usd out",
            )
        if limits.max_cost_usd is not None and self.usage.cost_usd >= limits.max_cost_usd:
            raise LimitReached(
                f"cost cap: ${self.usage.cost_usd:.4f} of ${limits.max_cost_usd:.4f} spent",
                limit="budget",
                hint="raise limits.max_cost_usd",
            )
        if limits.max_total_tokens is not None and self.usage.total_tokens >= limits.max_total_tokens:
            raise LimitReached(
                f"token cap: {self.usage.total_tokens:,} of {limits.max_total_tokens:,} used",
                limit="budget",
                hint="raise the cap",
            )

    def asks_again(self) -> bool:
        """Grants one request more, in which the answer is asked for again; False when that was done already."""
        if self._asked_again:
            return False
        self._asked_again = True
        if self.limits.max_turns is not None:
            self.limits = dataclasses.replace(self.limits, max_turns=self.limits.max_turns + 1)
        return True

    def results(
        self, part: Sequence[ToolCall], calls: Sequence[ToolCall], done: Mapping[str, ToolResult]
    ) -> list[Message]:
        """The messages that answer `part` of a reply's `calls`; those not in `done` were cut off."""
        self.tool_calls += sum(call.id in done for call in part)
        self.usage = sum((done[call.id].usage for call in part if call.id in done), self.usage)
        texts = [done[call.id].text if call.id in done else CANCELLED_RESULT for call in part]
        if part and part[-1] is calls[-1]:
            texts[-1] += self.repetition.note(calls, [done[c.id].text if c.id in done else "" for c in calls])
        return [
            tool_message(call, text, done[call.id].status if call.id in done else "cancelled")
            for call, text in zip(part, texts, strict=True)
        ]

    def check_repetition(self) -> None:
        """Raises LimitReached when the model only repeats itself."""
        if self.repetition.hopeless:
            raise LimitReached(
                f"stopped: the model went round in circles, {self.repetition.count} rounds brought nothing new",
                limit="repetition",
            )

    def take(self, step: int, draft: Draft, reply: Reply | None, emit: Emitter) -> Message | None:
        """Takes in one step, whole or cut off, and tells of it; returns the message that keeps it, if any."""
        self.api_calls += draft.api_calls
        self.retries += draft.retries
        self.usage += draft.lost if reply is not None else draft.used()
        if reply is not None:
            self.turns += 1
            self.usage += reply.usage
        part = reply or kept(draft)
        if part is None:
            emit(ReplyFinished, step=step, partial=True)
            return None
        self.answer = part.text or self.answer
        emit(
            ReplyFinished,
            step=step,
            text=part.text,
            reasoning=part.reasoning,
            calls=len(part.tool_calls),
            finish_reason=part.finish_reason,
            partial=reply is None,
        )
        return assistant(part, partial=reply is None)

    def ended(self, status: RunStatus, error: str = "", *, exception: Exception | None = None) -> TurnResult:
        """The turn's result."""
        stop_reason: str = {"ok": "done"}.get(status, status)
        kind: str = "" if status == "ok" else status
        if isinstance(exception, LimitReached):
            stop_reason = _STOP_REASONS.get(exception.limit, "error")
            kind = exception.limit
        elif isinstance(exception, ProviderError | StateError):
            kind = exception.kind
        return TurnResult(
            status=status,
            answer=self.answer,
            error=error,
            stop_reason=stop_reason,
            turns=self.turns,
            api_calls=self.api_calls,
            retries=self.retries,
            tool_calls=self.tool_calls,
            usage=self.usage,
            error_kind=kind,
            exception=exception,
        )


def tell(result: TurnResult, emit: Emitter) -> None:
    """Emits the run's last event."""
    emit(
        TurnFinished,
        status=result.status,
        answer=result.answer,
        error=result.error,
        turns=result.turns,
        tool_calls=result.tool_calls,
        usage=result.usage,
    )
