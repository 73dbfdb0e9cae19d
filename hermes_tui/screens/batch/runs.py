"""The batch screen: the runs of this folder and of this program."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from hermes_engine.errors import HermesError
from hermes_engine.events import BatchChanged, BatchFinished, BatchStarted
from hermes_tui.screens.batch.base import BatchBase
from hermes_tui.screens.batch.book import BatchBook, RunItem
from hermes_tui.screens.batch.drawing import run_line
from hermes_tui.screens.batch.form import RunForm, Wanted
from hermes_tui.screens.batch.run import RunScreen
from hermes_tui.screens.batch.table import Table
from hermes_tui.screens.host import SCREENS
from hermes_tui.texts import _
from hermes_tui.widgets import chrome
from hermes_tui.widgets.look import look_of

if TYPE_CHECKING:
    from hermes_engine.events import Event
    from hermes_tui.screens.agents.book import AgentsBook
    from hermes_tui.screens.host import Host


class RunsScreen(BatchBase):
    """Every run there is."""

    AUTO_FOCUS = "Table"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", _("Open"), show=False, id="batch.open"),
        Binding("n", "new", _("Start a run"), show=False, id="batch.new"),
        Binding("x,X", "stop", _("Stop it; with no run: make a sample file"), show=False, id="runs.stop"),
    ]

    def __init__(self, host: Host, agents: AgentsBook, batch: BatchBook) -> None:
        super().__init__(host, agents, batch)
        self.table = Table(id="runs")
        self._came_from = batch.chosen
        """The run that was chosen when the screen was left, until it is chosen again."""

    def compose(self) -> ComposeResult:
        yield self.header
        yield self.table
        yield self.status

    def hear(self, events: Sequence[Event]) -> None:
        if self.is_active and any(isinstance(event, (BatchStarted, BatchChanged, BatchFinished)) for event in events):
            self.call_after_refresh(self.draw)

    def beat(self) -> None:
        self.runs_book.look()
        self.draw()

    @property
    def chosen(self) -> RunItem | None:
        """The chosen run."""
        return self.runs_book.item(str(self.table.chosen)) if self.table.chosen is not None else None

    @property
    def run_folder(self) -> Path | None:
        return self.runs_book.place(self.chosen.name) if self.chosen is not None else None

    def at_work(self) -> str:
        item = self.chosen
        return "" if item is None or not item.at_work else "here" if item.here else "elsewhere"

    def paused(self) -> bool:
        return self.chosen is not None and self.chosen.paused

    # Drawing

    def draw(self) -> None:
        if not self.is_attached:
            return
        look, width, items = look_of(self), self.app.size.width, self.runs_book.items
        names = [item.name for item in items]
        column = max(map(len, names), default=0)
        self.table.show(names, lambda place: run_line(items[place], column, width, look), empty=self._nothing())
        if names and self._came_from:
            chosen, self._came_from = self._came_from, ""
            self.table.choose(chosen)
        work = self.desk.work_facts(None)
        place = self.desk.place_facts(doing="", escape="", hint="", unseen=0)
        place = dataclasses.replace(place, screens=SCREENS)
        self.header.show(*chrome.header(place, work, width, look.glyphs, "batch"))
        self.show_status(self.key_parts(self._keys()), [])

    def _nothing(self) -> Text:
        look = look_of(self)
        if not self.runs_book.ready:
            return Text(_("looking for runs…"), look.faint)
        lines = (
            (_("No run yet. A run takes every prompt of a file and keeps each result."), look.text),
            ("", look.text),
            (_("/batch prompts.jsonl — one JSON object per line with `prompt`"), look.soft),
            (_("n starts one here · x makes a sample file"), look.soft),
        )
        return Text("\n").join([Text(words, style) for words, style in lines])

    def _keys(self) -> list[tuple[str, str, int]]:
        item = self.chosen
        if item is None:
            return [(_("n new"), "new", 9), (_("x sample file"), "stop", 8), (_("Esc back"), "back", 5)]
        keys = [(_("Enter open"), "open", 8), (_("n new"), "new", 7)]
        if item.here and not item.queued:
            keys.append((_("p go on") if item.paused else _("p pause"), "pause", 6))
        elif item.left and not item.at_work:
            keys.append((_("p resume"), "pause", 8))
        if item.at_work:
            keys.append((_("x stop"), "stop", 6))
        if item.counters.failed and (item.here or not item.at_work):
            keys.append((_("R retry {count} failed").format(count=item.counters.failed), "retry_all", 4))
        return [*keys, (_("e export"), "export", 3), (_("Esc back"), "back", 2)]

    # Keys

    def on_table_chosen(self) -> None:
        """Another run is chosen."""
        self.runs_book.chosen = str(self.table.chosen or "")
        self.draw()

    def on_table_opened(self) -> None:
        """A click on the chosen one."""
        self.action_open()

    def action_open(self) -> None:
        """Shows the chosen run."""
        if (folder := self.run_folder) is not None:
            self.show_run(folder)

    def show_run(self, folder: Path) -> None:
        """Shows one run."""
        self.app.push_screen(RunScreen(self.host, self.book, self.runs_book, folder))

    def action_stop(self) -> None:
        """Stops the chosen run; with none makes a sample file."""
        if self.runs_book.items or not self.runs_book.ready:
            super().action_stop()
        else:
            self.doing(self._sample())

    async def _sample(self) -> str:
        made = await self.acts.sample()
        self.action_new(Wanted(file=made.name, model=self.desk.model))
        return _("Made {file}").format(file=made.name)

    def action_new(self, wanted: Wanted | None = None) -> None:
        """Starts a run by a form."""
        self.doing(self._new(wanted or Wanted(model=self.desk.model)))

    async def _new(self, wanted: Wanted) -> str:
        fault = ""
        while (given := await self.app.push_screen_wait(RunForm(wanted, fault))) is not None:
            wanted = given
            try:
                values = given.values(self.desk.cwd, self.runs_book.folder)
                folder = await self.acts.start(values)
            except HermesError as error:
                fault = error.line
                continue
            await self.runs_book.read()
            self.draw()
            self.show_run(folder)
            break
        return ""
