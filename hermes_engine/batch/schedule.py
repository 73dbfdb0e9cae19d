"""Which row is worked next: in the dataset's order, rows of one folder one after another. Lives on one loop.

Knows places of rows, not their texts; nothing of how rows end.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable
from typing import NamedTuple

from hermes_engine.batch.dataset import Place
from hermes_engine.batch.job import ident


class Task(NamedTuple):
    """A row to be worked."""

    place: Place
    sample: int
    batch: int

    @property
    def ident(self) -> str:
        """Identity of the row."""
        return ident(self.place.key, self.sample)


class Schedule:
    """The rows that wait.

    Args:
        tasks: in order.
        shared_cwd: rows that name the same folder may be worked at the same time.
        places: how many rows may be worked at once, whoever asks for one.
    """

    def __init__(self, tasks: Iterable[Task], *, shared_cwd: bool = False, places: int = 4096) -> None:
        self._waiting = deque(tasks)
        self._shared, self._places = shared_cwd, places
        self._busy: set[str] = set()
        self._held_back: defaultdict[str, deque[Task]] = defaultdict(deque)
        self._at_work = 0
        self._idle: deque[asyncio.Future[None]] = deque()
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether no more rows are handed out."""
        return self._closed

    @property
    def waiting(self) -> bool:
        """Whether rows are left that nobody works yet."""
        return bool(self._waiting) or any(self._held_back.values())

    def rows(self) -> set[str]:
        """Identities of those rows."""
        return {task.ident for tasks in (self._waiting, *self._held_back.values()) for task in tasks}

    def add(self, tasks: Iterable[Task]) -> None:
        """More rows wait, behind the others."""
        self._waiting.extend(tasks)
        self._wake_all()

    def set_places(self, count: int) -> None:
        """So many rows may be worked at once from now on; with 0 those at work are the last ones until it is more."""
        self._places = count
        self._wake_all()

    async def take(self) -> Task | None:
        """The next row; waits while none may be worked yet; None when no more will come."""
        while not self._closed:
            task = self._next() if self._at_work < self._places else None
            if task is not None:
                self._at_work += 1
                return task
            if not self._at_work and not self._waiting:
                break
            idle: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle.append(idle)
            await idle
        self._wake_all()
        return None

    def _next(self) -> Task | None:
        while self._waiting:
            task = self._waiting.popleft()
            folder = task.place.cwd
            if not folder or self._shared:
                return task
            if folder not in self._busy:
                self._busy.add(folder)
                return task
            self._held_back[folder].append(task)
        return None

    def done(self, task: Task) -> None:
        """The row is settled, or given up for this invocation."""
        self._at_work -= 1
        folder = task.place.cwd
        if folder and not self._shared:
            self._busy.discard(folder)
            if self._held_back[folder]:
                self._waiting.appendleft(self._held_back[folder].popleft())
        if not self._at_work and not self._waiting:
            self._wake_all()
        elif self._waiting:
            self._wake_one()

    def give_back(self, task: Task) -> None:
        """The row was not settled through no fault of its own: it comes again, last."""
        self._waiting.append(task)
        self.done(task)

    def close(self) -> None:
        """No more rows are handed out."""
        self._closed = True
        self._wake_all()

    def _wake_one(self) -> None:
        while self._idle:
            idle = self._idle.popleft()
            if not idle.done():
                idle.set_result(None)
                return

    def _wake_all(self) -> None:
        while self._idle:
            self._wake_one()
