"""Tasks without a chat, to their end: progress on standard error, what they bring on standard output. Nobody is there
to be asked, so what would ask is denied. Knows the engine by its front door only.
"""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Sequence

from hermes_engine.errors import HermesError
from hermes_engine.events import AgentFinished, Event
from hermes_engine.session import AgentRow, Engine
from hermes_tui.cleaning import clean
from hermes_tui.cli.flags import Flags, resolve
from hermes_tui.cli.presses import stopping
from hermes_tui.outcomes import heard
from hermes_tui.printing.lines import EventLines
from hermes_tui.printing.streams import err, error, out
from hermes_tui.texts import _


def carry_on(flags: Flags, tasks: Sequence[str], *, anew: bool) -> int:
    """Goes on with tasks, or runs them again `anew`, until all have ended; prints what each brought.

    Returns:
        0 when all are done, 130 when interrupted, else 1; a partial answer is printed all the same.

    Raises:
        UsageError, ConfigError: before anything was asked.
    """
    resolved = resolve(flags)
    inbox: queue.SimpleQueue[Event] = queue.SimpleQueue()
    engine = Engine(resolved, inbox.put, attended=False)
    engine.start()
    try:
        work = Work(engine, inbox)
        with stopping(work.stop) as presses:
            for task in tasks:
                resolved.endpoint_for(flags.model or engine.tasks.record(task).model or None)
            for task in tasks:
                work.add((engine.tasks.retry if anew else engine.tasks.resume)(task))
                engine.tasks.seen([task])
            work.follow()
    finally:
        engine.close()
    return work.deliver(interrupted=presses.count > 0)


class Work:
    """The tasks of one such process."""

    def __init__(self, engine: Engine, inbox: queue.SimpleQueue[Event]) -> None:
        self._engine, self._inbox = engine, inbox
        self._lines: dict[str, tuple[str, EventLines]] = {}
        self._ends: dict[str, AgentFinished | None] = {}
        self._stopped = False

    def add(self, row: AgentRow) -> None:
        """Follows a task from now on."""
        self._ends[row.id] = None
        self._lines[row.id] = row.name, EventLines(row.session, answers=False, children=True)
        if self._stopped:  # while it was starting
            self.stop()

    def follow(self) -> None:
        """Prints progress until every task has ended."""
        while None in self._ends.values():
            event = self._inbox.get()
            several = len(self._lines) > 1
            for name, fold in self._lines.values():
                for line in fold.feed(event):
                    err(f"{name}: {line.text}" if several else line.text, style=line.style)
            if isinstance(event, AgentFinished) and event.agent in self._ends:
                self._ends[event.agent] = event

    def deliver(self, *, interrupted: bool) -> int:
        """Prints the answers; the exit code."""
        code = 0
        for end in self._ends.values():
            if end is None:
                continue
            if end.answer:
                out(clean(end.answer).rstrip("\n"))
            for line in heard(end).remains():
                err(line, style="dim")
            if end.state != "done":
                error(f"{end.name}: {end.error or end.state}")
                code = 1
        if interrupted:
            error(_("interrupted"))
            return 130
        return code

    def stop(self) -> None:
        """Stops them all, and what is added later. Safe within a signal handler."""
        self._stopped = True
        for agent in self._ends:
            with contextlib.suppress(HermesError):
                self._engine.stop_agent(agent)
