"""Batch runs started from a front end: each on a thread of the background pool, shown as one agent of the tree."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from hermes_engine.errors import HermesError, UsageError
from hermes_engine.events import BatchFinished, BatchStarted, Event, RowFinished, Sink
from hermes_engine.profiles import Resolved
from hermes_engine.work.supervisor import Ending, Supervisor

if TYPE_CHECKING:
    from hermes_engine.batch.options import BatchOptions
    from hermes_engine.batch.runner import BatchRun

_STATES = {"done": "done", "interrupted": "cancelled", "stopped": "failed", "failed": "failed"}


class Runs:
    """The runs of this process. Lives on the engine's loop; `stop` may be called from any thread."""

    def __init__(self, resolved: Resolved, supervisor: Supervisor, sink: Sink) -> None:
        self._resolved, self._supervisor, self._sink = resolved, supervisor, sink
        self._pool = ThreadPoolExecutor(resolved.settings.batch.max_runs, thread_name_prefix="hermes-batch")
        self._running: dict[str, BatchRun] = {}

    def start(self, options: BatchOptions) -> str:
        """Starts a run; returns its name. Raises UsageError when one of this name is at work here."""
        from hermes_engine.batch.runner import BatchRun  # loads the whole batch, which a chat does without

        name = options.run_name
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
        run = BatchRun(options, self._resolved, self._told(agent, asyncio.get_running_loop()))
        self._running[name] = run
        task = self._supervisor.start(agent, lambda: self._work(agent, run))
        task.add_done_callback(lambda done: self._ended(name, agent, done.result()))
        return name

    def stop(self, name: str) -> bool:
        """Lets the run take no more prompts and end those in flight; False when none of this name runs."""
        return self._stop_run(name)

    def stop_all(self) -> None:
        """Ends every run at once: what is in flight is run again on resume."""
        for run in list(self._running.values()):
            run.stop(now=True)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _stop_run(self, name: str) -> bool:
        run = self._running.get(name)
        if run is not None:
            run.stop(now=False)
        return run is not None

    async def _work(self, agent: str, run: BatchRun) -> Ending:
        try:
            summary = await asyncio.get_running_loop().run_in_executor(self._pool, run.run)
        except HermesError as error:  # it never began, so nobody has heard of its end yet
            name = run.options.run_name
            self._sink(BatchFinished(session=name, agent=agent, name=name, state="failed", reason=error.line))
            raise
        return Ending(_STATES.get(summary.state, "failed"), answer=_told_counts(summary.counts), error=summary.reason)

    def _ended(self, name: str, agent: str, ending: Ending) -> None:
        self._running.pop(name, None)
        self._supervisor.finish(agent, ending)

    def _told(self, agent: str, loop: asyncio.AbstractEventLoop) -> Sink:
        """The sink of a run: names its agent in each event, and keeps the agent's row true."""

        def hear(event: Event) -> None:
            named = dataclasses.replace(event, agent=agent)
            self._sink(named)
            if isinstance(event, BatchStarted | RowFinished):
                loop.call_soon_threadsafe(self._note, agent, named)

        return hear

    def _note(self, agent: str, event: Event) -> None:
        if isinstance(event, BatchStarted | RowFinished) and self._supervisor.row(agent):
            self._supervisor.observe(event)
            self._supervisor.change(agent, activity=_told_counts(event.counts))


def _told_counts(counts: Mapping[str, int]) -> str:
    total = counts.get("total", 0)
    settled = total - counts.get("pending", 0)
    share = f"{100 * settled // total}% " if total else ""
    return f"{share}{settled}/{total}"
