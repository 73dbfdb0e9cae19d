"""What the agents' screens know: the engine's list as it is now, and what was last read from disk. No widget."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hermes_engine.errors import HermesError, StateError
from hermes_tui.desk import short_folder
from hermes_tui.screens.agents.items import AgentItem, gathered, of_record
from hermes_tui.screens.agents.steps import OpenSteps

if TYPE_CHECKING:
    from hermes_engine.session import Engine
    from hermes_engine.store.agents import AgentRecord
    from hermes_tui.desk import Desk

LOOK_SECONDS = 1.0
"""Between two looks at other programs' agents."""

PAST = 100
"""Ended agents that are listed."""


@dataclass(frozen=True, slots=True)
class _Read:
    """What was last read from disk."""

    past: tuple[AgentRecord, ...] = ()
    elsewhere: tuple[AgentRecord, ...] = ()
    programs: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    folders: Mapping[str, str] = field(default_factory=dict)
    """Of chats that ended agents belong to."""


class AgentsBook:
    """Every agent there is to know of; one of these serves all screens about agents.

    Attributes:
        steps: what running turns have brought since their last saved message.
        drain: shows at once everything the engine has said so far.
        chosen: agent that was last looked at.
        drafts: what is written for each conversation, not sent yet.
        now: the time, in seconds since the epoch.
    """

    def __init__(self, desk: Desk, steps: OpenSteps, drain: Callable[[], object]) -> None:
        self._desk, self.steps, self.drain = desk, steps, drain
        self.chosen = ""
        self.drafts: dict[str, str] = {}
        self.now: Callable[[], float] = time.time
        self._read = _Read()
        self._looked = 0.0
        self._reading: asyncio.Task[None] | None = None
        self._ended: frozenset[str] = frozenset()

    def items(self) -> tuple[AgentItem, ...]:
        """All agents now. Cheap: nothing is read."""
        engine, read = self._desk.engine, self._read
        if engine is None:
            return ()
        rows = engine.agents()
        working = [row.id for row in rows if row.live and engine.supervisor.at_work(row.id)]
        here = short_folder(self._desk.cwd)
        folders = {chat: folder for chat, folder in read.folders.items() if folder != here}
        return gathered(rows, working, read.past, read.elsewhere, read.programs, folders)

    def find(self, agent: str) -> AgentItem | None:
        """One agent, None where nobody knows of it any more."""
        return next((item for item in self.items() if item.id == agent), None)

    async def fetch(self, agent: str) -> AgentItem | None:
        """One agent, read from disk where the lists do not have it."""
        engine = self._desk.engine
        if (item := self.find(agent)) is not None or engine is None:
            return item
        await self.read()
        if (item := self.find(agent)) is not None:
            return item
        try:
            return of_record(await self._desk.off_loop(lambda: engine.tasks.record(agent)), "past")
        except HermesError:
            return None

    def siblings(self, item: AgentItem) -> list[AgentItem]:
        """Those started by the same agent or for the same chat, itself among them, oldest first."""
        if item.kind == "chat":
            return [item]
        found = [
            other
            for other in self.items()
            if other.place == item.place
            and other.kind not in ("chat", "batch")
            and (other.parent, other.owner) == (item.parent, item.owner)
        ]
        return sorted(found, key=lambda other: other.started)

    def children(self, item: AgentItem) -> list[AgentItem]:
        """Those it started, oldest first."""
        return sorted((other for other in self.items() if other.parent == item.id), key=lambda other: other.started)

    def look(self) -> None:
        """Reads from disk again when it is time to; returns at once."""
        engine = self._desk.engine
        if engine is None or (self._reading is not None and not self._reading.done()):
            return
        ended = frozenset(row.id for row in engine.agents() if row.ended)
        if ended != self._ended or time.monotonic() - self._looked >= LOOK_SECONDS:
            self._ended = ended
            self._reading = asyncio.create_task(self.read(), name="agents on disk")

    async def read(self) -> None:
        """Reads from disk now."""
        engine = self._desk.engine
        if engine is None:
            return
        known = self._read.folders
        self._read = await self._desk.off_loop(lambda: _read(engine, known))
        self._looked = time.monotonic()


def _read(engine: Engine, folders: Mapping[str, str]) -> _Read:
    """Blocks. Nothing where nothing is kept."""
    tasks = engine.tasks
    try:
        past, away = tasks.past(PAST), tasks.elsewhere()
        known = {record.owner: folders.get(record.owner) or _folder(engine, record.owner) for record in past}
        return _Read(past, away, tasks.programs() if away else {}, known)
    except HermesError:
        return _Read()


def _folder(engine: Engine, session: str) -> str:
    """Where a chat works, "" when it is not kept. Blocks."""
    try:
        return short_folder(engine.sessions().row(session).cwd)
    except StateError:
        return ""
