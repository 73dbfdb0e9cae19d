"""The agent's loop: `run` repeats `step`; `step` asks the model and runs its tool calls. Nothing else.

The conversation stays valid whatever happens. Knows client, toolbox and limits; not who listens or started it.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterable, Sequence

from hermes_engine.agent.ask import Draft, RetryRules, ask
from hermes_engine.agent.calls import grouped, run_side_by_side
from hermes_engine.agent.context import Context
from hermes_engine.agent.inbox import Inbox
from hermes_engine.agent.turn import Turn, tell
from hermes_engine.clients.assemble import unique_ids
from hermes_engine.errors import ContextTooLong, HermesError, LimitReached
from hermes_engine.events import Emitter, Notice, StepStarted, TurnStarted, UsageReported
from hermes_engine.messages import Message, Reply, ToolCall, ToolResult, closed, user
from hermes_engine.protocols import AgentSpec, Client, Journal, ModelRequest, Toolbox, TurnResult


class Agent:
    """One agent with its conversation; takes one turn at a time."""

    def __init__(
        self,
        spec: AgentSpec,
        client: Client,
        toolbox: Toolbox,
        context: Context,
        *,
        model: str,
        messages: Iterable[Message] = (),
        rules: RetryRules | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.spec, self.client, self.toolbox, self.context, self.model = spec, client, toolbox, context, model
        self.messages = list(messages)
        self.rules = rules or RetryRules()
        self._journal = journal
        self.inbox = Inbox()
        self.check: Callable[[str], str] | None = None
        """What is to be asked once more about a last answer, "" when it is good."""

    def steer(self, text: str) -> None:
        """Adds a user message before the next request of the running turn."""
        self.inbox.put(text)

    async def run(self, prompt: str | None, emit: Emitter) -> TurnResult:
        """One turn, or the rest of one that was cut off (None); see `RunningAgent.run`."""
        turn = Turn(self.spec.limits)
        emit(TurnStarted, prompt=prompt or "", model=self.model)
        result = turn.ended("error", "stopped by a fault of the program")  # what the reader of the log sees, too
        try:
            async with asyncio.timeout(self.spec.limits.timeout_seconds):
                if prompt is not None:
                    await self._append(user(prompt))
                while (ended := await self._step(turn, emit)) is None:
                    pass
                result = ended
        except TimeoutError as error:
            result = turn.ended("timeout", f"stopped after {self.spec.limits.timeout_seconds:g} s", exception=error)
        except LimitReached as error:
            result = turn.ended("max_turns" if error.limit == "turns" else "error", error.line, exception=error)
        except HermesError as error:
            result = turn.ended("error", error.line, exception=error)
        except asyncio.CancelledError:
            result = turn.ended("cancelled", "cancelled")
            raise
        finally:
            try:
                await self._append(*closed(self.messages)[len(self.messages) :])
            finally:  # a second stop cuts the waiting short, not the telling
                tell(result, emit)
        return result

    async def _step(self, turn: Turn, emit: Emitter) -> TurnResult | None:
        if self.inbox.leaving:
            return turn.ended("cancelled", "handed over")
        if self.inbox.done:
            return turn.ended("ok")
        turn.check()
        await self._append(*map(user, self.inbox.take()))
        tools = self.toolbox.schemas()
        turn.usage += self.context.charge()
        if smaller := await self.context.make_room(self.messages, tools, emit):
            await self.replace(smaller)
        try:
            reply = await self._ask(turn, emit)
        except ContextTooLong as error:
            await self.replace(await self.context.after_refusal(self.messages, tools, error, emit))
            return None
        if reply.tool_calls:
            await self._use(reply.tool_calls, turn, emit)
            return None
        if reply.finish_reason == "length":
            raise LimitReached("the answer was cut at the token limit", limit="length", hint="ask for less at once")
        if not self.inbox and self.check and (again := self.check(turn.answer)) and turn.asks_again():
            await self._append(user(again))
            return None
        return None if self.inbox else turn.ended("ok")

    async def _ask(self, turn: Turn, emit: Emitter) -> Reply:
        spec, tools = self.spec, self.toolbox.schemas()
        request = ModelRequest(
            self.model, self.messages, tools, spec.sampling, spec.extra_body, spec.reasoning_effort, spec.tokens,
            spec.answer_schema, spec.must_call,
        )  # fmt: skip
        draft, step = Draft(), turn.turns + 1
        reply: Reply | None = None
        emit(StepStarted, step=step)
        try:
            whole = await ask(self.client, request, emit, step, self.rules, draft)
            taken = {call.id for message in self.messages for call in message.tool_calls}
            calls = unique_ids(whole.tool_calls, taken)
            reply = whole if calls == whole.tool_calls else dataclasses.replace(whole, tool_calls=calls)
        finally:
            if message := turn.take(step, draft, reply, emit):
                await self._append(message)
        for note in reply.notes:
            emit(Notice, level="warning", text=note)
        tokens, estimated = self.context.measure(reply, self.messages, tools)
        window = self.context.window or 0
        emit(UsageReported, usage=reply.usage, context_tokens=tokens, context_window=window, estimated=estimated)
        return reply

    async def _use(self, calls: Sequence[ToolCall], turn: Turn, emit: Emitter) -> None:
        """Runs the calls; results join as soon as they are there, so that a crash loses none."""
        done: dict[str, ToolResult] = {}
        left = list(calls)
        try:
            for group in grouped(calls):
                await run_side_by_side(group, self.toolbox, emit, done)
                del left[: len(group)]  # before they are kept: a stop meanwhile must not add them twice
                await self._append(*turn.results(group, calls, done))
        finally:
            await self._append(*turn.results(left, calls, done))
        turn.check_repetition()

    async def shorten(self, emit: Emitter, hint: str) -> None:
        """Summarises the older part of the conversation now; `hint` says what to mind."""
        tools = self.toolbox.schemas()
        room = max(1000, self.context.size(self.messages, tools) // 4)
        await self.replace(await self.context.shorten(self.messages, tools, emit, room=room, hint=hint))

    async def _append(self, *messages: Message) -> None:
        self.messages.extend(messages)
        if self._journal and messages:
            await asyncio.shield(self._journal.append(messages))

    async def replace(self, messages: list[Message]) -> None:
        """Makes the conversation these messages."""
        self.messages[:] = messages
        if self._journal:
            await asyncio.shield(self._journal.replace(messages))

    async def close(self) -> None:
        """Ends what its tools still run; the client is shared and stays."""
        await self.toolbox.close()
