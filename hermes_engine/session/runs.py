"""Batch runs started from a front end: each on a thread of the background pool, shown as one agent of the tree.

`Engine.runs` is the front door: its methods may be called from any thread, those marked as blocking not on its loop.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from hermes_engine.errors import HermesError, UsageError
from hermes_engine.events import BatchChanged, BatchFinished, BatchStarted, Event, RowFinished, Sink
from hermes_engine.profiles import Resolved
from hermes_engine.requests import ASKS, Broker
from hermes_engine.work.supervisor import Ending, Supervisor

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from hermes_engine.batch.floor import Floor, RowName
    from hermes_engine.batch.options import BatchOptions
    from hermes_engine.batch.runner import BatchRun, BatchSummary
    from hermes_engine.batch.steering import Steering
    from hermes_engine.messages import Message

_STATES = {"done": "done", "interrupted": "cancelled", "stopped": "failed", "failed": "failed"}

T = TypeVar("T")


class RunOnLoop(Protocol):
    """Runs work on the engine's loop and waits for its outcome."""

    def __call__(self, work: Coroutine[object, object, T], /) -> T: ...


class Runs:
    """The runs of this process. `run` does work on the engine's loop and waits for it; `front` hears the rows that are
    looked at and those that ask, which nobody records; `broker` has their questions answered.
    """

    def __init__(
        self, resolved: Resolved, supervisor: Supervisor, sink: Sink, *, front: Sink, run: RunOnLoop, broker: Broker
    ) -> None:
        self._resolved, self._supervisor, self._sink, self._front = resolved, supervisor, sink, front
        self._run, self._broker = run, broker
        self._pool = ThreadPoolExecutor(resolved.settings.batch.max_runs, thread_name_prefix="hermes-batch")
        self._running: dict[str, BatchRun] = {}
        self._tickets: dict[str, Future[BatchSummary]] = {}

    def start(self, options: BatchOptions, only: Collection[RowName] | None = None) -> str:
        """Starts a run, or these rows of it; returns its name. Blocks for a moment.

        Raises:
            UsageError: one of this name is at work here.
        """
        return self._run(self._start(options, only))

    async def _start(self, options: BatchOptions, only: Collection[RowName] | None) -> str:
        from hermes_engine.batch.runner import BatchRun  # loads the whole batch, which a chat does without

        name, url = options.run_name, self._resolved.overrides.base_url
        if url and not options.resume and not options.base_url:  # the run goes on there, whatever resumes it
            options = options.model_copy(update={"base_url": (url,)})
        if name in self._running:
            raise UsageError(f"the run {name} is at work", hint="stop it first, or give another name")
        agent = self._supervisor.add(
            name=name,
            kind="batch",
            title=str(options.dataset_file or name),
            session=name,
            model=options.model or self._resolved.settings.model,
            on_stop=lambda: self._stop_run(name),
        )
        run = BatchRun(
            options, self._resolved, self._told(agent, asyncio.get_running_loop()), only=only, broker=self._broker
        )
        self._running[name] = run
        task = self._supervisor.start(agent, lambda: self._work(agent, run))
        task.add_done_callback(lambda done: self._ended(name, agent, done.result()))
        return name

    def stop(self, name: str) -> bool:
        """Lets the run take no more prompts and end those in flight; False when none of this name runs."""
        return self._stop_run(name)

    def floor(self, name: str) -> Floor | None:
        """What goes on in a run at work here; None when none of this name is."""
        run = self._running.get(name)
        return run.floor if run is not None else None

    def folder(self, name: str) -> Path | None:
        """Where a run at work here has its files."""
        run = self._running.get(name)
        return run.options.folder if run is not None else None

    @property
    def names(self) -> tuple[str, ...]:
        """The runs at work here."""
        return tuple(self._running)

    def pause(self, name: str, on: bool) -> None:
        """Lets a run begin no further rows, or go on. Blocks for a moment; raises UsageError when it does not work."""
        self._run(self._order(name, lambda steering: steering.pause(on)))

    def set_workers(self, name: str, count: int) -> int:
        """Has so many rows of a run in flight; the number that holds. Blocks and raises as `pause`."""
        return self._run(self._order(name, lambda steering: steering.set_workers(count)))

    def retry(self, folder: Path, rows: Collection[RowName] | None = None) -> int:
        """Has failed rows run again, those of these names or all: in the run that is at work here, else in one that
        begins with nothing but them. Blocks for a moment.

        Returns:
            how many are run again, −1 when that is not known yet.

        Raises:
            UsageError: it is at work here and cannot take them.
        """
        from hermes_engine.batch.options import checked

        name = folder.name
        if name in self._running:
            return self._run(self._order(name, lambda steering: steering.retry(rows)))
        given = {"run_name": name, "output_dir": folder.parent, "resume": True, "only_failed": True}
        self.start(checked(given), rows)
        return -1

    def open_row(self, name: str, row: RowName) -> tuple[tuple[Message, ...], list[Event]] | None:
        """Has a row in flight tell everything from now on, pieces of replies among it, to the sink of this process.
        Blocks for a moment.

        Returns:
            its conversation so far, and the events of the step under way; None when it is not in flight.
        """

        def opened(steering: Steering) -> tuple[tuple[Message, ...], list[Event]] | None:
            at_work = steering.floor.row(row)
            return at_work.watch(self._front) if at_work is not None else None

        return self._run(self._order(name, opened, looks=True))

    def close_row(self, name: str, row: RowName) -> None:
        """Nobody looks at the row any more. Returns at once."""
        at_work = floor.row(row) if (floor := self.floor(name)) is not None else None
        if at_work is not None:
            at_work.watch(None)

    async def _order(self, name: str, what: Callable[[Steering], T], *, looks: bool = False) -> T:
        run = self._running.get(name)
        if run is None:
            raise UsageError(f"the run {name} is not at work here")
        return await run.order(what, looks=looks)

    def stop_all(self) -> None:
        """Ends every run at once: what is in flight is run again on resume."""
        for run in list(self._running.values()):
            run.stop(now=True)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _stop_run(self, name: str) -> bool:
        run = self._running.get(name)
        if run is not None:
            run.stop(now=False)
            if (ticket := self._tickets.get(name)) is not None:
                ticket.cancel()  # it waited for another run
        return run is not None

    async def _work(self, agent: str, run: BatchRun) -> Ending:
        name = run.options.run_name
        ticket = self._tickets[name] = self._pool.submit(run.run)
        try:
            await asyncio.wait({asyncio.wrap_future(ticket)})
            if ticket.cancelled():
                self._sink(BatchFinished(session=name, agent=agent, name=name, state="interrupted"))
                return Ending("cancelled")
            summary = ticket.result()
        except HermesError as error:  # it never began, so nobody has heard of its end yet
            self._sink(BatchFinished(session=name, agent=agent, name=name, state="failed", reason=error.line))
            raise
        return Ending(_STATES.get(summary.state, "failed"), answer=_told_counts(summary.counts), error=summary.reason)

    def _ended(self, name: str, agent: str, ending: Ending) -> None:
        self._running.pop(name, None)
        self._tickets.pop(name, None)
        self._supervisor.finish(agent, ending)

    def _told(self, agent: str, loop: asyncio.AbstractEventLoop) -> Sink:
        """The sink of a run: names its agent in each event, and keeps the agent's row true."""

        def hear(event: Event) -> None:
            if isinstance(event, ASKS):  # of a row, under its own name
                self._front(event)
                return
            named = dataclasses.replace(event, agent=agent)
            self._sink(named)
            if isinstance(event, BatchStarted | RowFinished | BatchChanged):
                loop.call_soon_threadsafe(self._note, agent, named)

        return hear

    def _note(self, agent: str, event: Event) -> None:
        if self._supervisor.row(agent) is None:
            return
        if isinstance(event, BatchStarted | RowFinished):
            self._supervisor.observe(event)
        floor = self.floor(event.session)
        counts = floor.counts if floor is not None else getattr(event, "counts", {})
        paused = "paused " if floor is not None and floor.paused else ""
        self._supervisor.change(agent, activity=paused + _told_counts(counts))


def _told_counts(counts: Mapping[str, int]) -> str:
    total = counts.get("total", 0)
    settled = total - counts.get("pending", 0)
    share = f"{100 * settled // total}% " if total else ""
    return f"{share}{settled}/{total}"
