"""Keeps the conversations of all agents in the store, on the store's own thread: `work`'s `Keeper`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor

from hermes_engine.errors import StateError
from hermes_engine.protocols import AgentSpec, Journal
from hermes_engine.session.journal import StoreJournal
from hermes_engine.session.state import State


class StoreKeeper:
    """See `work.maker.Keeper`. What is no coroutine may be called from any thread and returns at once."""

    def __init__(self, state: State, pool: Executor) -> None:
        self._state, self._pool = state, pool

    async def open(self, spec: AgentSpec, *, title: str, parent: str) -> tuple[str, Journal | None]:
        """A new conversation below session `parent`. Raises StateError."""
        loop = asyncio.get_running_loop()
        session = await loop.run_in_executor(self._pool, self._state.new_session, spec, title, parent)
        return session, self.journal(session)

    def journal(self, session: str) -> StoreJournal:
        """What keeps the messages of a conversation."""
        return StoreJournal(self._state.sessions, session, self._pool, self._state.redactor)

    async def recorded(self) -> None:
        """Returns when every event so far is on disk. Raises StateError: nothing may start unrecorded."""
        loop = asyncio.get_running_loop()
        if not await loop.run_in_executor(self._pool, self._state.recorder.flush):
            raise StateError("the agent's record could not be written, so it was not started")

    def delivered(self, agents: Sequence[str]) -> None:
        """The results of these agents have reached whom they were for."""
        if agents:
            self._pool.submit(self._state.agents.mark_seen, list(agents))

    def fact(self, session: str, key: str, value: object) -> None:
        """Keeps one fact about a conversation."""
        self._pool.submit(self._state.keep, session, key, value)

    def let_go(self, session: str) -> None:
        """A conversation has ended here: any program may go on with it."""
        self._pool.submit(self._state.let_go, session)

    def hold(self, session: str) -> None:
        """One that had ended goes on here after all."""
        self._pool.submit(self._state.hold, session)
