"""Asks the model once for the loop, and is the only place of the engine that sends a request again.

Rules (contract, section 3): three tries in all; waits of 1 s and 2 s with jitter unless the server names one; a
named wait over the cap is reported, not slept. An empty reply counts as a failed try. Knows no tools.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from hermes_engine.errors import EmptyReply, EndpointDown, ProviderError
from hermes_engine.events import Emitter, StepRetried, TextDelta, ThoughtDelta
from hermes_engine.messages import NO_USAGE, UNKNOWN_USAGE, Reply, Usage
from hermes_engine.protocols import Client, ModelRequest

WaitOut = Callable[[EndpointDown], Awaitable[None]]
"""Waits until the endpoint is back (a batch run pauses as a whole); raises when it waited long enough."""


@dataclass(frozen=True, slots=True)
class RetryRules:
    """When to ask again.

    Attributes:
        tries: requests in all for one step.
        first_wait: seconds before the second try; doubles from then on.
        named_wait_cap: longest wait a server may name, in seconds.
        deltas: whether pieces of the reply are emitted (rows of a batch leave them out).
        wait_out: called instead of a wait when the endpoint is down; such a try is not counted.
    """

    tries: int = 3
    first_wait: float = 1.0
    named_wait_cap: float = 60.0
    deltas: bool = True
    wait_out: WaitOut | None = None


@dataclass(slots=True)
class Draft:
    """What has come of the reply so far, and what it took; read by the loop when a step is cut off."""

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    api_calls: int = 0
    retries: int = 0
    lost: Usage = NO_USAGE
    """What earlier tries have used."""
    whole: bool = False
    """The pieces are those of a whole reply, whose usage is counted."""

    def clear(self) -> None:
        """Forgets the pieces: a new try begins."""
        self.lost = self.used()
        self.whole = False
        self.text.clear()
        self.reasoning.clear()

    def used(self) -> Usage:
        """What all tries have used until now; unknown when one of them broke off within its reply."""
        broken = not self.whole and (self.text or self.reasoning)
        return self.lost + UNKNOWN_USAGE if broken else self.lost

    def answered(self, reply: Reply) -> None:
        """Takes in a whole reply that is of no use: its usage is known, its words stay as pieces."""
        self.lost += reply.usage
        self.whole = True


async def ask(
    client: Client, request: ModelRequest, emit: Emitter, step: int, rules: RetryRules, draft: Draft
) -> Reply:
    """The model's reply to `request`.

    Raises:
        ProviderError: the last one, when the tries are used up or trying again cannot help.
    """

    def heard(*, text: str = "", reasoning: str = "") -> None:
        if text:
            draft.text.append(text)
            if rules.deltas or emit.deltas:
                emit(TextDelta, text=text)
        if reasoning:
            draft.reasoning.append(reasoning)
            if rules.deltas or emit.deltas:
                emit(ThoughtDelta, text=reasoning)

    attempt = 1
    while True:
        draft.clear()
        draft.api_calls += 1
        try:
            reply = await client.complete(request, heard)
            if (reply.empty and reply.finish_reason != "length") or reply.finish_reason == "content_filter":
                draft.answered(reply)
                raise _unusable(reply)
            return reply
        except EndpointDown as error:
            if rules.wait_out is None:
                await _pause(error, attempt, emit, step, rules)
                attempt += 1
            else:
                await rules.wait_out(error)
                emit(StepRetried, step=step, attempt=attempt, reason=error.line)
        except ProviderError as error:
            await _pause(error, attempt, emit, step, rules)
            attempt += 1
        draft.retries += 1


async def _pause(error: ProviderError, attempt: int, emit: Emitter, step: int, rules: RetryRules) -> None:
    """Sleeps before the next try, or raises `error` when there is none."""
    if not error.retryable or attempt >= rules.tries:
        if attempt > 1:
            error.args = (f"{error} (tried {attempt}×)",)
        raise error
    named = error.retry_after
    if named is not None and named > rules.named_wait_cap:
        error.hint = error.hint or f"the server asks to wait {named:.0f} s; try again then"
        raise error
    delay = named if named is not None else rules.first_wait * 2 ** (attempt - 1) * random.uniform(0.9, 1.2)
    emit(StepRetried, step=step, attempt=attempt, tries=rules.tries, delay=delay, reason=error.line)
    await asyncio.sleep(delay)


def _unusable(reply: Reply) -> EmptyReply:
    if reply.finish_reason == "content_filter":
        error = EmptyReply("the model's server filtered the answer", hint="change the prompt")
        error.kind = "content_filter"
        return error
    what = "only reasoning, no answer" if reply.reasoning else "an empty answer"
    error = EmptyReply(f"the model gave {what}")
    error.retryable = True
    return error


def kept(draft: Draft) -> Reply | None:
    """What a cut-off step leaves worth keeping, or None."""
    text = "".join(draft.text)
    if not text.strip():
        return None
    return Reply(text=text, reasoning="".join(draft.reasoning), finish_reason="")
