"""Works one board: claims cards for the profiles that are here, begins attempts, ends what it no longer holds.

Wakes on change, not by a slow clock. Everything it knows of the world it asks of the board, whose claims are fenced;
so any number of dispatchers, here and elsewhere, may work one board. Starts only when somebody starts it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor

from hermes_engine.board import BoardGone, Owner
from hermes_engine.cleaning import one_line
from hermes_engine.errors import EndpointDown, HermesError, StateError
from hermes_engine.events import CardChanged, Emitter, Notice
from hermes_engine.tools.pool import in_thread
from hermes_engine.work.attempt import ENDED, TAKEN, Attempt, Means
from hermes_engine.work.boards_pool import on_board
from hermes_engine.work.isolated import IsolatedAttempt, Isolation
from hermes_engine.work.remains import cleared

LOOK_SECONDS = 1.0
"""Longest time between two looks at the board, for waits that lapse without a change."""

ATTEND_SECONDS = 20.0
BOARD_PATIENCE = 120.0
"""Seconds a board may be unusable (locked, read-only, its server away) before working it ends."""

SERVER_PATIENCE = 60.0
"""Seconds that `once` waits for a model's server that is down; what works on without end waits without end."""

_LONGEST_PAUSE = 30.0
_ENDING_SECONDS = 5.0

log = logging.getLogger(__name__)


class Dispatcher:
    """See the module's docstring. Lives on the engine's loop.

    Args:
        means: what attempts are made with; the board is closed by whoever opened it.
        profiles: names of the profiles that can work here; blocks.
        emit: says that cards changed.
        workers: cards at work at once; None: the board's rule.
        only: the one profile whose cards are worked; None: all.
        isolation: how workers get processes of their own; None: they are agents of this one.
    """

    def __init__(
        self,
        means: Means,
        *,
        profiles: Callable[[], Collection[str]],
        emit: Emitter,
        workers: int | None = None,
        only: str | None = None,
        isolation: Isolation | None = None,
    ) -> None:
        self._isolation = isolation
        self.board, self._means = means.board, means
        self._profiles, self._emit, self._workers, self._only = profiles, emit, workers, only
        self._owner: Owner = means.cards.owner
        self._at_work: dict[str, Attempt | IsolatedAttempt] = {}
        """Attempts by the token of their run."""
        self._pauses: dict[str, asyncio.Task[None]] = {}
        """Profiles whose model's server is down."""
        self._paused: dict[str, str] = {}
        """The same with what was said of it."""
        self._said: dict[str, str] = {}
        """What the board knows of that."""
        self._given_up: dict[str, EndpointDown] = {}
        self._excused: set[str] = set()
        """Cards that met such a server once: from then on it counts, so that nothing goes on for ever."""
        self._woken = asyncio.Event()
        self._stopping = self._once = False
        self._attended = float("-inf")
        self._unrecorded = ""
        """Why this program could not record an attempt; nothing is claimed until it can."""
        self._unusable: float | None = None
        self._seen = 0
        self._looking: asyncio.Task[None] | None = None
        self._watch = ThreadPoolExecutor(1, thread_name_prefix="hermes-board")

    def stop(self) -> None:
        """Claims no more and ends its workers; their cards wait anew. `run` returns then."""
        self._stopping = True
        self._woken.set()

    async def run(self, *, once: bool = False) -> None:
        """Works the board until it is stopped; `once`: until nothing is ready or running here.

        Raises:
            StateError: the board cannot be used, also after a while.
            EndpointDown: `once`, and the model's server of the cards that are left stayed down.
        """
        self._once = once
        try:
            while not self._stopping:
                self._woken.clear()
                try:
                    if await self._round():
                        break
                    self._borne()
                except StateError as error:
                    self._bear(error)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), LOOK_SECONDS)
        finally:
            self._stopping = True
            if self._looking is not None:
                self._looking.cancel()
            await self._end_all()
            with contextlib.suppress(HermesError):
                await on_board(self.board.leave, self._owner)
                await self._tell()
            self._watch.shutdown(wait=False)

    async def _round(self) -> bool:
        """One look at everything; True when there is nothing left to do."""
        if self._looking is None:
            self._seen = await on_board(self.board.latest)
            self._looking = asyncio.create_task(self._look(), name="watch of a board")
        await self._tend()
        if self._unrecorded:
            await self._means.delegation.recorded()
            self._unrecorded = ""
        while not self._stopping and await self._claimed():
            pass
        if not self._once or self._stopping or self._at_work or await self._left():
            return False
        if self._given_up and await self._left(given_up=True):
            raise next(iter(self._given_up.values()))
        return True

    def _bear(self, error: StateError) -> None:
        """The board cannot be used now. Raises the error when that is for good, or has lasted too long."""
        now = time.monotonic()
        if isinstance(error, BoardGone):
            raise error
        if self._unusable is None:
            log.warning("the board %s cannot be used: %s", self.board.slug, error)
            self._emit(Notice, level="warning", text=f"the board {self.board.slug} cannot be worked now: {error.line}")
            self._unusable = now
        if now - self._unusable > BOARD_PATIENCE:
            raise error

    def _borne(self) -> None:
        """The board was used without a fault."""
        if self._unusable is not None:
            self._emit(Notice, level="info", text=f"the board {self.board.slug} is worked again")
            self._unusable = None

    async def _look(self) -> None:
        """Wakes the loop whenever anybody changed the board, and tells of it."""
        loop = asyncio.get_running_loop()
        while not self._stopping:
            changes = None
            try:
                changes = await loop.run_in_executor(self._watch, self.board.changes)
                while not self._stopping:
                    if not await loop.run_in_executor(self._watch, changes.wait, LOOK_SECONDS / 2):
                        continue
                    await self._tell()
                    self._woken.set()
            except StateError as error:
                log.warning("the board %s cannot be watched: %s", self.board.slug, error)
                await asyncio.sleep(LOOK_SECONDS)
            finally:
                if changes is not None:
                    self._watch.submit(changes.close)

    async def _tell(self) -> None:
        """Tells of what happened on the board since the last time."""
        for event in await on_board(lambda: self.board.events(after=self._seen)):
            if event.id > self._seen:
                self._seen = event.id
                self._emit(
                    CardChanged,
                    board=self.board.slug,
                    card=event.card,
                    status=event.target,
                    verb=event.verb,
                    text=event.text,
                )

    async def _tend(self) -> None:
        """Says that it is here, takes cards from the dead, ends workers whose run is over."""
        now, paused = asyncio.get_running_loop().time(), dict(self._paused)
        if now - self._attended > ATTEND_SECONDS or paused != self._said:
            await on_board(self.board.attend, self._owner, takes=self._only or "", paused=paused)
            self._attended, self._said = now, paused
        await on_board(lambda: self.board.reclaim_expired(alive=cleared))
        if not self._at_work:
            return
        standing = await on_board(self.board.standing, list(self._at_work))
        for token, attempt in self._at_work.items():
            if token not in standing and not attempt.worker.verb:
                attempt.stop(TAKEN)

    async def _names(self) -> set[str]:
        """Profiles that work for this dispatcher."""
        names = set(await in_thread(self._profiles))
        return names if self._only is None else names & {self._only}

    async def _claimed(self) -> bool:
        """Takes one card and begins an attempt; False when there is none to take."""
        names = await self._names() - self._pauses.keys()
        claim = await on_board(lambda: self.board.claim(self._owner, profiles=names, cap=self._workers))
        if claim is None:
            return False
        excused = claim.card.id in self._excused
        attempt = (
            IsolatedAttempt(self._means, claim, self._isolation, excused=excused)
            if self._isolation
            else Attempt(self._means, claim, excused=excused)
        )
        self._at_work[claim.token] = attempt
        attempt.begin().add_done_callback(lambda _: self._over(claim.token, claim.card.id, claim.run.profile))
        return True

    def _over(self, token: str, card: str, profile: str) -> None:
        attempt = self._at_work.pop(token)
        self._unrecorded = attempt.unrecorded or self._unrecorded
        self._woken.set()
        if attempt.task.cancelled():
            return
        if attempt.task.exception() is not None:
            log.error("the attempt at %s failed", card, exc_info=attempt.task.exception())
        elif (error := attempt.task.result()) is not None and not self._stopping:
            self._excused.add(card)
            if profile not in self._pauses:
                self._paused[profile] = one_line(str(error), 200)
                pause = self._wait_out(profile, attempt, error)
                self._pauses[profile] = asyncio.create_task(pause, name=f"pause of {profile}")

    async def _wait_out(self, profile: str, attempt: Attempt | IsolatedAttempt, error: EndpointDown) -> None:
        """Claims nothing for a profile until its model's server answers."""
        self._emit(Notice, level="warning", text=f"{error}; cards of {profile} wait until it is back")
        began, wait = time.monotonic(), 1.0
        while True:
            await asyncio.sleep(wait)
            if await attempt.probe() is None:
                break
            if self._once and time.monotonic() - began >= SERVER_PATIENCE:
                self._given_up[profile] = error
                self._woken.set()
                return
            wait = min(wait * 2, _LONGEST_PAUSE)
        self._emit(Notice, level="info", text=f"the model's server is back; cards of {profile} are worked again")
        del self._pauses[profile], self._paused[profile]
        self._woken.set()

    async def _left(self, *, given_up: bool = False) -> bool:
        """Whether a card is ready (perhaps only later) for a profile that is here, or that was `given_up`."""
        names = await self._names()
        names = names & self._given_up.keys() if given_up else names - self._given_up.keys()
        cards = await on_board(self.board.cards)
        return any(
            (card.status == "ready" and card.assignee in names) or (card.status == "review" and card.reviewer in names)
            for card in cards
        )

    async def _end_all(self) -> None:
        for pause in self._pauses.values():
            pause.cancel()
        for attempt in self._at_work.values():
            attempt.stop(ENDED, leaving=True)
        tasks = [attempt.task for attempt in self._at_work.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=_ENDING_SECONDS)
