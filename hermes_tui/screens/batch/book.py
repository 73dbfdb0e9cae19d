"""What the batch screens know: the runs of this folder and of this program, and one that is followed closely.

Files are read in the desk's pool, never on the app's loop. Knows no widget.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_tui.presenter.batch import RunModel
from hermes_tui.presenter.batch_counts import Counters, counters, counters_now, run_word

if TYPE_CHECKING:
    from hermes_engine.batch.folder import RunFolder
    from hermes_engine.batch.overview import RunState
    from hermes_engine.batch.watching import RunWatch
    from hermes_engine.session.runs import Runs
    from hermes_tui.desk import Desk

LOOK_SECONDS = 0.5
"""Between two looks at files."""


@dataclass(frozen=True, slots=True)
class RunItem:
    """One run of the list. `here`: this program works it; `queued`: it will, when another run has ended."""

    state: RunState
    here: bool
    paused: bool
    counters: Counters
    queued: bool = False

    @property
    def name(self) -> str:
        """Its name."""
        return self.state.name

    @property
    def at_work(self) -> bool:
        """Whether anybody works it."""
        return self.here or bool(self.state.holder)

    @property
    def left(self) -> int:
        """Rows that a resume would run."""
        told = self.counters
        return 0 if self.at_work else told.waiting + told.running + told.needs + told.failed

    @property
    def word(self) -> str:
        """How it stands."""
        if self.queued:
            return "queued"
        if self.at_work:
            return "paused" if self.paused else "running"
        return run_word(self.state.state, self.counters)


class BatchBook:
    """See the module's docstring. `now` may be another clock."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.now: Callable[[], float] = time.time
        self.items: tuple[RunItem, ...] = ()
        self.chosen = ""
        self.ready = False
        self._cache: dict[Path, tuple[object, RunState]] = {}
        self._due = 0.0
        self._reading: asyncio.Task[None] | None = None

    @property
    def folder(self) -> Path:
        """Where the runs of this folder are."""
        return self._desk.cwd / "data"

    @property
    def runs(self) -> Runs | None:
        """The engine's runs."""
        return self._desk.engine.runs if self._desk.engine is not None else None

    # The list

    def look(self) -> None:
        """Reads again what runs there are when it is time to; returns at once."""
        if time.monotonic() >= self._due and (self._reading is None or self._reading.done()):
            self._due = time.monotonic() + LOOK_SECONDS
            self._reading = asyncio.create_task(self.read(), name="batch runs")

    async def read(self) -> None:
        """Reads what runs there are."""
        try:
            states = await self._desk.off_loop(self._states)
        except OSError:  # a folder went away while it was read
            return
        self.items = tuple(sorted((self._item(state) for state in states), key=_urgency))
        self.ready = True

    def _states(self) -> list[RunState]:
        from hermes_engine.batch.folder import RunFolder, all_runs

        runs = self.runs
        here = [folder for name in (runs.names if runs else ()) if (folder := runs and runs.folder(name))]
        found = {folder.root.absolute(): folder for folder in all_runs(self.folder)}
        for root in here:
            found.setdefault(root.absolute(), RunFolder(root))
        return [self._state(folder) for folder in found.values()]

    def _state(self, folder: RunFolder) -> RunState:
        from hermes_engine.batch.folder import holder
        from hermes_engine.batch.overview import run_state

        try:
            mark: object = (folder.checkpoint.stat().st_mtime_ns, holder(folder))
        except OSError:
            mark = None
        before = self._cache.get(folder.root)
        if before is not None and mark is not None and before[0] == mark:
            return before[1]
        state = run_state(folder)
        self._cache[folder.root] = mark, state
        return state

    def _item(self, state: RunState) -> RunItem:
        floor = self.runs.floor(state.name) if self.runs else None
        if floor is not None:
            return RunItem(state, True, floor.paused, counters_now(floor, state.rows), queued=not floor.begun)
        running = int(state.checkpoint.get("running") or 0) if state.holder else 0
        paused = bool(state.holder and state.checkpoint.get("paused"))
        return RunItem(state, False, paused, counters(state.rows, running))

    def item(self, name: str) -> RunItem | None:
        """One run of the list."""
        return next((item for item in self.items if item.name == name), None)

    def place(self, name: str) -> Path:
        """The folder of a run."""
        at_work = self.runs.folder(name) if self.runs else None
        item = self.item(name)
        return at_work or (item.state.folder if item is not None else self.folder / name)


def _urgency(item: RunItem) -> tuple[float, float, str]:
    """Those at work first, then those that wait for them, those that can be gone on with, the rest; newest first."""
    rank = 0 if item.here else 1 if item.at_work else 2 if item.left else 3
    try:
        when = item.state.folder.joinpath("checkpoint.json").stat().st_mtime if not item.at_work else 0.0
    except OSError:
        when = 0.0
    return rank + 0.5 * item.queued, -when, item.name


class Follow:
    """One run, followed closely."""

    def __init__(self, desk: Desk, folder: Path) -> None:
        self._desk = desk
        self.folder = folder
        self.model = RunModel(folder.name)
        self._watch: RunWatch | None = None
        self._due = 0.0
        self._turn = asyncio.Lock()
        self._looking: asyncio.Task[None] | None = None

    def look(self) -> None:
        """Looks at its files when it is time to; returns at once."""
        if time.monotonic() >= self._due and (self._looking is None or self._looking.done()):
            self._due = time.monotonic() + LOOK_SECONDS
            self._looking = asyncio.create_task(self.read(), name="batch run")

    async def read(self) -> None:
        """Reads what is new, to its end."""
        async with self._turn:
            while True:
                try:
                    look = await self._desk.off_loop(self._watching().look)
                except OSError:  # the folder went away while it was read
                    return
                engine = self._desk.engine
                self.model.take(look, engine.runs.floor(self.model.name) if engine is not None else None)
                if not look.more:
                    return

    def _watching(self) -> RunWatch:
        if self._watch is None:
            from hermes_engine.batch.folder import RunFolder
            from hermes_engine.batch.watching import RunWatch

            self._watch = RunWatch(RunFolder(self.folder))
        return self._watch

    def close(self) -> None:
        """Nobody looks any more."""
        if self._looking is not None:
            self._looking.cancel()
