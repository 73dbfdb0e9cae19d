"""What is not a row's fault: a server that is down, one and the same refusal of every row, one and the same reject.

Watches how rows end and says what follows for the run. Knows no file and no client. Lives on one loop.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from weakref import WeakKeyDictionary

from hermes_engine.batch.filters import CHOSEN, WHAT_TO_DO, Verdict
from hermes_engine.batch.job import RowResult
from hermes_engine.batch.ledger import Failure
from hermes_engine.errors import EndpointDown
from hermes_engine.events import Event, ReplyFinished

Tell = Callable[[str, str], None]
"""Takes a level (info, warning, error) and a line for the person."""

Probe = Callable[[], Awaitable[EndpointDown | None]]
"""Asks the server something that no row is to blame for; the error when nobody answers."""

EQUAL_FAILURES = 20
EQUAL_REJECTS = 20
LONELY_TRIES = 5
"""How often one request may find the server down while others get answers, before that is its row's own failure."""

ROW_TRIES = 2
"""How often rows themselves try in one pause; from then on the run asks."""

_FIRST_WAIT = 1.0
_LONGEST_WAIT = 30.0
_TOLD_FROM = 3
"""A pause is told when it will last so many first waits."""

_UNASKED = (EndpointDown.kind, "fault", "row_place", "worker_lost")
"""Kinds of errors that say nothing of the server."""

_VARYING = re.compile(r"[0-9a-fA-F]{6,}|\d+")


class Outage:
    """Pauses the run while the server is down, and lets one row at a time try whether it is back.

    Where somebody answers, with 502 or 503, it asks by itself after a few such tries, with a request of its own: what
    one row finds says little about the server when that row is the only one left to try.

    Args:
        limit: seconds after which the run gives up.
        tell: shows the pause and its end.
        give_up: called once when the limit is passed.
        probe: asks the server something small; the error when it is down. None: the rows try for ever.
    """

    def __init__(self, limit: float, tell: Tell, give_up: Callable[[str], None], *, probe: Probe | None = None) -> None:
        self._limit, self.tell, self._give_up = limit, tell, give_up
        self.probe = probe
        self._since: float | None = None
        self._before = 0.0
        self._wait = _FIRST_WAIT
        self._own_tries = 0
        self._told = False
        self._up = asyncio.Event()
        self._up.set()
        self._turn = asyncio.Lock()
        self._error = EndpointDown("the server is down")
        self._replies = 0
        self._tries: WeakKeyDictionary[object, tuple[int, int]] = WeakKeyDictionary()
        self.given_up = False

    @property
    def down(self) -> bool:
        """Whether the run is paused."""
        return self._since is not None

    @property
    def seconds(self) -> float:
        """How long the run has been paused until now, in all."""
        return self._before + (time.monotonic() - self._since if self._since is not None else 0.0)

    async def passable(self) -> None:
        """Waits, before a row begins, until the run is not paused or this row is to try."""
        self._forget_tries()
        if self._since is not None:
            await self._wait_turn()

    async def wait_out(self, error: EndpointDown, asking: object = None) -> None:
        """Called in a row's task when the server is down; returns when the row may try again.

        Args:
            error: what the row found.
            asking: stands for the task that met it, where that is not this one.

        Raises:
            EndpointDown: it is no use: the limit is passed, or only this request finds the server down.
        """
        tries, alone = self._count_try(asking or asyncio.current_task())
        if self.given_up or tries >= LONELY_TRIES:
            raise error
        if alone:
            named = error.retry_after or 0
            await asyncio.sleep(min(max(named, _FIRST_WAIT * 2 ** (tries - 1)), _LONGEST_WAIT))
            if self._since is None:
                return
        self._error = error
        if self._since is None:
            self._since, self._wait = time.monotonic(), _FIRST_WAIT
            self._own_tries, self._told = (ROW_TRIES if tries else 0), False
            self._up.clear()
        if not await self._wait_turn():
            raise error

    async def _wait_turn(self) -> bool:
        """Waits until the server is back, or it is this one's turn to try; False when the run has given up.

        Rows in flight and workers without a row stand in one line: a row whose own time runs out while it waits
        leaves the line, and those behind it still try.
        """
        async with self._turn:
            while self.down and not self.given_up:
                paused = self.seconds - self._before
                if paused >= self._limit:
                    self._end()
                    break
                wait = min(max(self._wait, self._error.retry_after or 0), self._limit - paused)
                if paused + wait >= _TOLD_FROM * _FIRST_WAIT:
                    self._say_once()
                try:
                    await asyncio.wait_for(self._up.wait(), wait)
                except TimeoutError:
                    self._wait = min(self._wait * 2, _LONGEST_WAIT)
                    if await self._rows_may_try():
                        break
            return not self.given_up

    def _end(self) -> None:
        self.given_up = True
        self._give_up(f"the server was down for {self.seconds:.0f} s ({self._error})")
        self._up.set()

    def _say_once(self) -> None:
        """Shows a pause that lasts; one that ends with the first try is nobody's concern."""
        if not self._told:
            self._told = True
            self.tell("warning", f"{self._error}; the run waits for the server, up to {self._limit:g} s")

    async def _rows_may_try(self) -> bool:
        """Whether the row at the head of the line is to try; when they tried enough, the server is asked here."""
        self._own_tries += 1
        refused = self._error.status is None  # nobody is there at all: no row can be to blame for that
        if self.probe is None or refused or self._own_tries <= ROW_TRIES:
            return True
        error = await self.probe()
        if error is not None:
            self._error = error
            self._tries.clear()
            return False
        self._replies += 1
        self.back()
        return True

    def _count_try(self, asking: object) -> tuple[int, bool]:
        """How often this request found the server down while others got answers, and whether it just did again."""
        tries, replies = self._tries.get(asking, (0, self._replies))
        alone = self._replies > replies
        self._tries[asking] = (tries + alone, self._replies)
        return tries + alone, alone

    def _forget_tries(self) -> None:
        """The row in this task got an answer, or is a new one: what it found before says nothing any more."""
        task = asyncio.current_task()
        if task is not None:
            self._tries.pop(task, None)

    def hear(self, event: Event) -> None:
        """An event of a row, in its task: a whole reply means that the server is there."""
        if isinstance(event, ReplyFinished) and not event.partial:
            self._replies += 1
            self._forget_tries()
            self.back()

    def ended(self, result: RowResult) -> None:
        """A row ended: a refusal is an answer too."""
        if result.stop_reason == "error" and result.error_kind not in _UNASKED:
            self.back()

    def back(self) -> None:
        """The server answers."""
        if self._since is None or self.given_up:
            return
        gone = time.monotonic() - self._since
        self._before += gone
        self._since = None
        self._up.set()
        if self._told:
            self.tell("info", f"the server is back after {gone:.0f} s; the run goes on")


class FirstTries:
    """Notices when rows fail one after another, before any reply, for one and the same reason."""

    def __init__(self) -> None:
        self._reason = ""
        self.told = ""
        """The failure in the words of the last row."""
        self.streak: list[tuple[str, Failure | None]] = []
        """Rows of the streak, with what they were before."""

    def note(self, row: str, result: RowResult, before: Failure | None) -> bool:
        """Takes in an ended row; whether the run is to stop."""
        if not result.unheard:
            self.streak.clear()
            return False
        reason, self.told = reason_of(result), result.error
        if reason != self._reason:
            self._reason = reason
            self.streak.clear()
        self.streak.append((row, before))
        return len(self.streak) >= EQUAL_FAILURES

    def same(self, result: RowResult) -> bool:
        """Whether a row ended for the reason the run was stopped for."""
        return result.unheard and reason_of(result) == self._reason


def reason_of(result: RowResult) -> str:
    """The failure without what differs from request to request (ids, counts)."""
    return f"{result.error_kind}: {_VARYING.sub('#', result.error)}"


class Rejects:
    """Says it aloud once when the first rows of an invocation were all rejected for one reason."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._seen: Counter[str] = Counter()
        self._over = False

    def note(self, verdict: Verdict) -> None:
        """Takes in a verdict."""
        if self._over:
            return
        if verdict.outcome == "kept":
            self._over = True
        elif verdict.outcome == "rejected":
            self._seen[verdict.reason] += 1
            if len(self._seen) == 1 and self._seen[verdict.reason] >= EQUAL_REJECTS:
                self._over = True
                hint = WHAT_TO_DO.get(verdict.reason, CHOSEN)
                words = f"all {EQUAL_REJECTS} rows so far were rejected ({verdict.reason}): {hint}"
                self._tell("warning", f"{words}; a resume leaves rejected rows as they are, a new run works them again")
