"""Orders to a run at work: pause, more or fewer workers, failed rows again. Lives on the run's loop."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from hermes_engine.batch.crew import Crew
from hermes_engine.batch.floor import RowName
from hermes_engine.batch.job import sample_of
from hermes_engine.batch.plan import Plan
from hermes_engine.batch.schedule import Task
from hermes_engine.events import BatchChanged

MOST_WORKERS = 4096
"""Rows in flight at once, at most."""


class Steering:
    """The workers of a run, as many as there are to be.

    Attributes:
        floor: what goes on.
        tasks: of the workers.
        over: set when all have ended, or one by a fault.
    """

    def __init__(self, crew: Crew, plan: Plan) -> None:
        self._crew, self._plan, self.floor = crew, plan, crew.floor
        self.tasks: list[asyncio.Task[None]] = []
        self._ended = 0
        self.over = asyncio.Event()

    def hire(self) -> None:
        """Puts workers to work, up to what the floor says; no more than there are rows."""
        wanted = min(self.floor.workers, len(self._crew.schedule.rows()) + len(self.floor.rows))
        while len(self.tasks) - self._ended < wanted:
            task = asyncio.create_task(self._crew.work())
            task.add_done_callback(self._left)
            self.tasks.append(task)

    def _left(self, task: asyncio.Task[None]) -> None:
        self._ended += 1
        if self._ended == len(self.tasks) or (not task.cancelled() and task.exception() is not None):
            self.over.set()

    def pause(self, on: bool) -> None:
        """Begins no further rows, or goes on; those in flight are finished."""
        self.floor.paused = on
        self._changed()

    def set_workers(self, count: int) -> int:
        """Has so many rows in flight at most from now on; fewer take effect as rows end. The number that holds."""
        self.floor.workers = max(1, min(MOST_WORKERS, count))
        self.hire()
        self._changed()
        return self.floor.workers

    def retry(self, names: Collection[RowName] | None = None) -> int:
        """Has failed rows of these names, or all, run again in this invocation; how many.

        Those that wait to be run again already are not among them.
        """
        crew, failed = self._crew, self._plan.ledger.failed
        waiting = crew.schedule.rows() | crew.books.in_flight
        found = [
            (place, sample_of(row))
            for row, place in self._plan.places.items()
            if row in failed and row not in waiting and (names is None or (place.index, sample_of(row)) in names)
        ]
        size, first = crew.options.batch_size, crew.writer.next_batch
        tasks = [Task(*row, first + number // size) for number, row in enumerate(found)]
        for task in tasks:
            crew.writer.expect(task.batch)
        crew.schedule.add(tasks)
        self.hire()
        return len(tasks)

    def _changed(self) -> None:
        crew, floor = self._crew, self.floor
        crew.schedule.set_places(0 if floor.paused else floor.workers)
        crew.writer.touch()
        crew.emit(BatchChanged, name=crew.options.run_name, paused=floor.paused, workers=floor.workers)
