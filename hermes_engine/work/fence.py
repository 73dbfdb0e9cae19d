"""Lets a worker touch nothing once its card is not its own any more, and lets its turn end when it has ended the card.

Asked before each call of a tool, since a program that was suspended wakes up in the middle of its work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from hermes_engine.agent.inbox import Inbox
from hermes_engine.agent.loop import Agent
from hermes_engine.board import BoardGone, RunOver
from hermes_engine.errors import EndpointDown
from hermes_engine.events import Emitter
from hermes_engine.messages import Message, ToolCall, ToolResult
from hermes_engine.protocols import AgentSpec, Job, Journal, Toolbox, ToolSchema
from hermes_engine.tools.permissions import Gate
from hermes_engine.work.boards_pool import on_board_at_last
from hermes_engine.work.cards import Worker
from hermes_engine.work.maker import Hands, Maker


class FencedMaker:
    """Makes the agent of one card; see `work.maker.Maker`.

    Args:
        maker: of the worker's profile.
        worker: who works the card.
        taken: called when the card is found to be taken away; it cancels the worker.
    """

    def __init__(self, maker: Maker, worker: Worker, taken: Callable[[], object]) -> None:
        self._maker, self._worker, self._taken = maker, worker, taken
        self.redactor, self.own_mode, self.own_model = maker.redactor, maker.own_mode, maker.own_model

    def spec(self, *, name: str, cwd: Path, kind: str = "chat", mode: str | None = None) -> AgentSpec:
        """See `Maker.spec`."""
        return self._maker.spec(name=name, cwd=cwd, kind=kind, mode=mode)

    def hands(
        self, spec: AgentSpec, agent: str, *, above: Gate | None = None, on_job_end: Callable[[Job], None] | None = None
    ) -> Hands:
        """See `Maker.hands`."""
        return self._maker.hands(spec, agent, above=above, on_job_end=on_job_end)

    async def build(
        self,
        spec: AgentSpec,
        *,
        agent: str,
        history: Sequence[Message] = (),
        journal: Journal | None = None,
        hands: Hands | None = None,
    ) -> Agent:
        """See `Maker.build`; what is made asks before each call."""
        made = await self._maker.build(spec, agent=agent, history=history, journal=journal, hands=hands)
        made.toolbox = _Fenced(made.toolbox, self._worker, made.inbox, self._taken)
        return made

    async def on_profile(self, name: str, *, worker: bool = False) -> Maker:
        """See `Maker.on_profile`."""
        return await self._maker.on_profile(name, worker=worker)

    async def probe(self, spec: AgentSpec) -> EndpointDown | None:
        """See `Maker.probe`."""
        return await self._maker.probe(spec)


class _Fenced:
    """A toolbox; see `protocols.Toolbox`."""

    def __init__(self, inner: Toolbox, worker: Worker, inbox: Inbox, taken: Callable[[], object]) -> None:
        self._inner, self._worker, self._inbox, self._taken = inner, worker, inbox, taken

    @property
    def names(self) -> Sequence[str]:
        """See `Toolbox.names`."""
        return self._inner.names

    def schemas(self) -> Sequence[ToolSchema]:
        """See `Toolbox.schemas`."""
        return self._inner.schemas()

    async def call(self, call: ToolCall, emit: Emitter) -> ToolResult:
        """See `Toolbox.call`."""
        if self._worker.verb:
            return ToolResult("not run: your card has ended", "error")
        try:
            await on_board_at_last(self._worker.hold.check)  # who cannot know must not act
        except BoardGone as error:
            return ToolResult(f"not run: {error.line}", "error")
        except RunOver:
            self._taken()
            await asyncio.Future()  # until the cancellation that this brought is here
        result = await self._inner.call(call, emit)
        self._inbox.done = bool(self._worker.verb)
        return result

    async def close(self) -> None:
        """See `Toolbox.close`."""
        await self._inner.close()
