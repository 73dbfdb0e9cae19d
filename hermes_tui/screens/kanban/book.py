"""What the app knows of one board: its cards as last read, read again whenever anybody changed them. No widget.

Reading and watching happen off the loop. The watch has a thread of its own only while somebody looks (`look_at`).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from hermes_engine.errors import HermesError, NotConfigured
from hermes_engine.events import CardChanged
from hermes_tui.screens.kanban.deck import deck, in_short

if TYPE_CHECKING:
    from hermes_engine.board import Board, Card, Changes
    from hermes_engine.events import Event
    from hermes_engine.session import Engine
    from hermes_tui.desk import Desk
    from hermes_tui.screens.agents.book import AgentsBook
    from hermes_tui.widgets.facts import BoardFact

PAUSE = 0.25
"""Least seconds between two readings."""

WAIT_SECONDS = 0.5
"""How long one wait for a change lasts: so long the watch's thread may live on after the last look."""

MOST_SECONDS = 5.0
"""Reasons go by the clock too (tries that wait, workers that fall silent): read again after so long at the latest."""


class BoardBook:
    """The board that was opened last.

    Attributes:
        slug: its name, "" before it is known.
        cards: all but archived ones.
        cap: cards that may be at work at once.
        fault: why it cannot be read, "" when it can.
        version: another number whenever something else was read.
        ready: whether it was read at least once.
        changed: called on the loop when something else was read.
        now: the time, in seconds since the epoch.
    """

    def __init__(self, desk: Desk, agents: AgentsBook, changed: Callable[[], None]) -> None:
        self._desk, self.agents, self.changed = desk, agents, changed
        self.slug = ""
        self.cards: tuple[Card, ...] = ()
        self.cap = 0
        self.fault = ""
        self.version = 0
        self.ready = False
        self.now: Callable[[], float] = time.time
        self._looking: set[str] = set()
        self._watch: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._again = False
        self._read_at = 0.0
        self._short: tuple[tuple[int, frozenset[str]], BoardFact] | None = None

    @property
    def engine(self) -> Engine:
        """The engine. Raises NotConfigured."""
        if self._desk.engine is None:
            raise NotConfigured("no model is set up yet")
        return self._desk.engine

    async def there(self) -> None:
        """Waits for an engine that is still coming up; returns at once where there will be none."""
        from hermes_tui.running import configured

        desk = self._desk
        while desk.engine is None and (desk.resolved is None or configured(desk.resolved)):
            await asyncio.sleep(0.05)

    def board(self) -> Board:
        """The board. Blocks; raises HermesError."""
        return self.engine.kanban.board(self.slug)

    @property
    def worked(self) -> bool:
        """Whether this program works the board."""
        engine = self._desk.engine
        return engine is not None and self.slug in engine.kanban.dispatched()

    def fact(self) -> BoardFact | None:
        """The board in short; None before it was read."""
        if not self.ready or self.fault:
            return None
        key = (self.version, frozenset(item.session for item in self.agents.items() if item.needs))
        if self._short is None or self._short[0] != key:
            self._short = (key, in_short(self.slug, deck(self.cards, key[1])))
        return self._short[1]

    # Looking

    def look_at(self, who: str, wanted: bool) -> None:
        """Somebody looks at the board from now on, or does so no more."""
        if wanted == (who in self._looking):
            return
        self._looking ^= {who}
        if self._looking and self._watch is None:
            self._watch = asyncio.create_task(self._watched(), name="watch of the board in view")
            self.read_soon()
        elif not self._looking and self._watch is not None:
            self._watch.cancel()
            self._watch = None

    async def _watched(self) -> None:
        pool = ThreadPoolExecutor(1, thread_name_prefix="hermes-board-view")
        try:
            await self.there()
            while True:
                with contextlib.suppress(HermesError):
                    await self._follow(pool, self.slug)
                await asyncio.sleep(WAIT_SECONDS)
                self.read_soon()
        finally:
            pool.shutdown(wait=False)

    async def _follow(self, pool: ThreadPoolExecutor, slug: str) -> None:
        """Reads whenever somebody changed the board, until another one is meant. Raises HermesError."""
        loop = asyncio.get_running_loop()
        opened: list[Changes] = []
        try:
            await loop.run_in_executor(pool, lambda: opened.append(self.board().changes()))
            while slug == self.slug or not slug:
                slug = slug or self.slug
                if (
                    await loop.run_in_executor(pool, opened[0].wait, WAIT_SECONDS)
                    or time.monotonic() - self._read_at > self._patience()
                ):
                    self.read_soon()
        finally:
            pool.submit(_close, opened)

    def _patience(self) -> float:
        """Seconds after which it is read again without a change: tries become due, processes of workers die."""
        return 1.0 if any(card.retry_at > self.now() or card.run for card in self.cards) else MOST_SECONDS

    def hear(self, events: Sequence[Event]) -> None:
        """A change told by this program's own dispatcher."""
        if any(isinstance(event, CardChanged) and event.board == self.slug for event in events):
            self.read_soon()

    # Reading

    def read_soon(self) -> None:
        """Reads again, at once or when the last reading is a moment ago; returns at once."""
        self._again = True
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read_on(), name="cards of a board")

    async def _read_on(self) -> None:
        while self._again:
            self._again = False
            await asyncio.sleep(max(0.0, self._read_at + PAUSE - time.monotonic()))
            await self.read()

    async def read(self) -> None:
        """Reads now."""
        await self.there()
        slug = self.slug
        try:
            board, cards = await self._desk.off_loop(self._read)
        except HermesError as error:
            self._read_at = time.monotonic()
            self._take(slug, (), self.cap, error.line)
            return
        self._read_at = time.monotonic()
        if slug == self.slug:
            self._take(board.slug, cards, board.rules.max_workers, "")

    def _read(self) -> tuple[Board, tuple[Card, ...]]:
        board = self.board()
        return board, board.cards()

    def _take(self, slug: str, cards: tuple[Card, ...], cap: int, fault: str) -> None:
        found = (slug, cards, cap, fault)
        if self.ready and found == (self.slug, self.cards, self.cap, self.fault):
            return
        self.slug, self.cards, self.cap, self.fault = found
        self.ready = self.ready or not fault
        self.version += 1
        self.changed()

    async def choose(self, slug: str) -> None:
        """Goes to another board. Raises UnknownName, StateError."""
        await self._desk.off_loop(lambda: self.engine.kanban.boards.use(slug))
        await self._desk.off_loop(lambda: self.engine.kanban.make_anew(slug))
        self.slug = slug
        await self.read()

    async def follow_choice(self) -> None:
        """Goes to the board that is chosen now, wherever that was done."""
        await self.there()
        with contextlib.suppress(HermesError):
            chosen = await self._desk.off_loop(lambda: self.engine.kanban.boards.chosen())
            if chosen != self.slug:
                self.slug = chosen
        await self.read()


def _close(opened: Sequence[Changes]) -> None:
    for changes in opened:
        changes.close()
