"""One run: how far it is, its counters, its rows by need, and what can be told of it in figures."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll

from hermes_tui.cleaning import one_line
from hermes_tui.presenter.batch import FILTERS, SORTS, TableRow
from hermes_tui.screens.agents.base import Words
from hermes_tui.screens.batch import drawing
from hermes_tui.screens.batch.base import BatchBase
from hermes_tui.screens.batch.book import BatchBook, Follow
from hermes_tui.screens.batch.figures import figures
from hermes_tui.screens.batch.table import Table
from hermes_tui.screens.host import SCREENS
from hermes_tui.texts import _
from hermes_tui.widgets import chrome
from hermes_tui.widgets.bar import Bar, Part
from hermes_tui.widgets.look import look_of

if TYPE_CHECKING:
    from hermes_tui.presenter.batch import RunModel
    from hermes_tui.screens.agents.book import AgentsBook
    from hermes_tui.screens.host import Host

FIGURE_SECONDS = 1.0

STATISTICS = 110
"""From this width on they stand beside the table."""


class RunScreen(BatchBase):
    """One run."""

    AUTO_FOCUS = "Table"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", _("What the row says"), show=False, id="run.open"),
        Binding("a", "answer", _("Answer a row that asks"), show=False, id="run.answer"),
        Binding("r", "retry", _("Run a failed row again"), show=False, id="run.retry"),
        Binding("plus", "workers(1)", _("One worker more"), show=False, id="run.more"),
        Binding("minus", "workers(-1)", _("One worker less"), show=False, id="run.fewer"),
        Binding("f", "only", _("Which rows"), show=False, id="run.only"),
        Binding("slash", "filter", _("Filter by text"), show=False, id="run.filter"),
        Binding("s", "sort", _("Sort"), show=False, id="run.sort"),
        Binding("c", "columns", _("Columns"), show=False, id="run.columns"),
        Binding("y", "copy", _("Copy the answer"), show=False, id="run.copy"),
        Binding("tab", "statistics", _("Statistics"), show=False, id="run.statistics", priority=True),
    ]

    def __init__(self, host: Host, agents: AgentsBook, batch: BatchBook, folder: Path) -> None:
        super().__init__(host, agents, batch)
        self.follow = Follow(host.desk, folder)
        self.line, self.counts, self.about = Bar(id="line"), Bar(id="counts"), Bar(id="about")
        self.warning = Bar(id="warning")
        self.bar, self.words = Words(id="bar"), Words(id="figures")
        self.table = Table(id="rows")
        self._only, self._sort, self._columns = FILTERS[0], SORTS[0], drawing.COLUMNS[0]
        self._text: str | None = None
        self._typing = self._turned = False
        self._figured: tuple[float, int, object] = (0.0, 0, None)
        """When figures were drawn last, how wide, in which look: over many rows they cost more than the rest."""
        self.rows: list[TableRow] = []

    def compose(self) -> ComposeResult:
        yield self.header
        yield self.line
        yield self.bar
        yield self.counts
        yield self.warning
        with Horizontal(id="middle"):
            yield self.table
            with VerticalScroll(id="statistics", can_focus=False):
                yield self.words
        yield self.about
        yield self.status

    @property
    def model(self) -> RunModel:
        """The run."""
        return self.follow.model

    @property
    def run_folder(self) -> Path | None:
        return self.follow.folder

    def at_work(self) -> str:
        return "here" if self.model.here else "elsewhere" if self.model.at_work else ""

    def paused(self) -> bool:
        return self.model.paused

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self.follow.close()

    # Drawing

    def beat(self) -> None:
        self.follow.look()
        self.draw()

    def draw(self) -> None:
        if not self.is_attached:
            return
        look, (width, height), now = look_of(self), self.app.size, self.runs_book.now()
        model = self.model
        self.line.show(*drawing.sentence(model, now, look))
        self.bar.show([drawing.progress(model.counters(), width, look)])
        self.counts.show(*drawing.counts(model, width, look))
        self.warning.display = bool(model.warning)
        if model.warning:
            words = f"{look.glyphs.warning} {one_line(model.warning, 400)}"
            self.warning.show([Part(words, "warning", gap=1, weight=9, shrinks=10)], [])
        beside, only = self._statistics()
        self.set_class(beside, "-statistics")
        self.set_class(only, "-only-statistics")
        if beside or only:
            column = max(10, (self.words.size.width if self.words.size.width else 38) - 1)
            if now - self._figured[0] >= FIGURE_SECONDS or self._figured[1:] != (column, look):
                self._figured = (now, column, look)
                self.words.show(figures(model, now, column, look))
        if not only:
            self._draw_rows(now)
        self._draw_bars(width, height)

    def _statistics(self) -> tuple[bool, bool]:
        """Whether they stand beside the table, or in its place."""
        wide = self.app.size.width >= STATISTICS
        return wide and not self._turned, not wide and self._turned

    def _draw_rows(self, now: float) -> None:
        look, width = look_of(self), self.table.size.width
        rows = self.rows = self.model.rows(now, only=self._only, text=self._text or "", sort=self._sort)
        self.table.show(
            [row.name for row in rows],
            lambda place: drawing.row_line(rows[place], self._columns, width, look),
            head=drawing.head(self._columns, width, look),
            empty=self._nothing(),
        )

    def _nothing(self) -> Text:
        look, told = look_of(self), self.model.counters()
        if self.model.state is None or self.model.reading:
            return Text(_("reading the rows…"), look.faint)
        if self._only != "all" or self._text:
            return Text(_("0 of {count}. Esc clears.").format(count=told.total), look.soft)
        if self.model.at_work and not self.model.here:
            return Text(_("No row has ended yet; those in flight are known to their program only."), look.soft)
        if not self.model.at_work and not told.total:
            return Text(_("Its dataset holds no prompt."), look.soft)
        return Text(_("No row has begun yet."), look.soft)

    def _draw_bars(self, width: int, height: int) -> None:
        look = look_of(self)
        work = self.desk.work_facts(None)
        file = Path(str(self.model.setting("dataset_file") or "")).name
        place = self.desk.place_facts(doing="", escape="", hint="", unseen=0)
        place = dataclasses.replace(place, screens=SCREENS, title="", folder=file, branch="")
        self.header.show(*chrome.header(place, work, width, look.glyphs, "batch"))
        only = {"all": _("all"), "running": _("running"), "failed": _("failed"), "rejected": _("rejected"),
                "kept": _("kept")}[self._only]  # fmt: skip
        sort = {"need": _("by need"), "row": _("row"), "time": _("time"), "turns": _("turns"),
                "tokens": _("tokens")}[self._sort]  # fmt: skip
        count = _("showing {count}").format(count=len(self.rows))
        if removed := self.model.removed:
            count += _(", {count} of them no longer in the dataset").format(count=removed)
        self.about.show(
            [
                Part(count, "faint", gap=1, weight=5),
                Part(_("sort: {by} s").format(by=sort), "faint", "sort", weight=4),
                Part(_("filter: {only} f").format(only=only), "faint", "only", weight=4),
            ],
            [Part(_("Tab statistics"), "faint", "statistics", weight=3), Part("", gap=1, weight=9)],
        )
        self.about.display = height >= chrome.SHORT
        if self._typing:
            hint = [Part(_("Enter keeps it · Esc clears"), "faint", weight=4)]
            self.status.show([Part(f"/{self._text or ''}▏", "text", gap=1, weight=9)], hint)
        else:
            self.show_status(self.key_parts(self._keys()), [])

    def _keys(self) -> list[tuple[str, str, int]]:
        row, told = self.chosen, self.model.counters()
        keys: list[tuple[str, str, int]] = []
        if self._text:
            keys.append((_("Esc clears /{filter}").format(filter=self._text), "back", 9))
        if told.needs:
            keys.append((_("a answer"), "answer", 9))
        if row is not None:
            keys.append((_("Enter open trace"), "open", 8))
        if told.failed and self.at_work() != "elsewhere":
            keys.append((_("R retry {count} failed").format(count=told.failed), "retry_all", 6))
            if row is not None and row.state == "failed":
                keys.append((_("r retry one"), "retry", 5))
        if self.model.here:
            keys += [(_("p go on") if self.model.paused else _("p pause"), "pause", 7), (_("+ - workers"), "", 4)]
        keys += [(_("e export"), "export", 3), (_("c columns"), "columns", 1), (_("f filter"), "only", 2)]
        return [*keys, (_("/ text"), "filter", 2), (_("Esc back"), "back", 3)]

    # Keys

    @property
    def chosen(self) -> TableRow | None:
        """The row the keys act on."""
        place = self.table.place
        return self.rows[place] if place is not None and place < len(self.rows) else None

    def on_table_chosen(self) -> None:
        """Another row is chosen."""
        self.draw()

    def on_table_opened(self) -> None:
        """A click on the chosen one."""
        self.action_open()

    def on_key(self, event: events.Key) -> None:
        """Typing into the filter."""
        if not self._typing:
            return
        if event.key in ("enter", "escape", "backspace", "ctrl+u") or (event.is_printable and event.character):
            event.stop()
            event.prevent_default()
            self._type(event.key, event.character or "")
            self.draw()

    def on_paste(self, event: events.Paste) -> None:
        """Pasted text is for the filter."""
        event.stop()
        self._typing, self._text = True, (self._text or "") + event.text.split("\n", 1)[0]
        self.draw()

    def _type(self, key: str, character: str) -> None:
        if key == "enter":
            self._typing = False
        elif key == "escape":
            self._typing, self._text = False, None
        elif key == "ctrl+u":
            self._text = ""
        else:
            self._text = (self._text or "")[:-1] if key == "backspace" else (self._text or "") + character

    def action_back(self) -> None:
        """Clears the filters, then goes back."""
        if self._text or self._typing or self._only != FILTERS[0]:
            self._text, self._typing, self._only = None, False, FILTERS[0]
            self.draw()
        elif self._statistics()[1]:
            self.action_statistics()
        else:
            super().action_back()

    def action_filter(self) -> None:
        """Begins to type a filter."""
        self._typing, self._text = True, self._text or ""
        self.draw()

    def action_only(self) -> None:
        """The next kind of rows."""
        self._only = FILTERS[(FILTERS.index(self._only) + 1) % len(FILTERS)]
        self.draw()

    def action_sort(self) -> None:
        """The next order."""
        self._sort = SORTS[(SORTS.index(self._sort) + 1) % len(SORTS)]
        self.draw()

    def action_columns(self) -> None:
        """The next set of columns."""
        self._columns = drawing.COLUMNS[(drawing.COLUMNS.index(self._columns) + 1) % len(drawing.COLUMNS)]
        self.draw()

    def action_statistics(self) -> None:
        """Shows the statistics, or takes them away."""
        self._turned = not self._turned
        self.draw()
        self.call_after_refresh(self.draw)

    def action_workers(self, step: int) -> None:
        """More or fewer rows at once."""
        if self.model.here:
            self.doing(self.acts.workers(self.model.name, step))
        else:
            self.remark(_("It is not at work here"))

    def action_answer(self) -> None:
        """Answers the chosen row when it asks, else the first one that does."""
        asking = [row for row in self.model.rows(self.runs_book.now(), only="running") if row.request]
        row = next((row for row in asking if self.chosen is not None and row.name == self.chosen.name), None)
        if (row := row or next(iter(asking), None)) is None:
            self.remark(_("No row asks anything"))
        else:
            self.answer(row, self.model.name)

    def action_next_request(self) -> None:
        """A row of this run that asks, else whatever else needs the person."""
        if self.model.counters().needs:
            self.action_answer()
        else:
            super().action_next_request()

    def action_retry(self) -> None:
        """Runs the chosen row again, if it failed."""
        row = self.chosen
        if row is None or row.state != "failed":
            self.remark(_("Only failed rows run again"))
        elif (folder := self._ours()) is not None:
            self.doing(self.acts.retry(folder, {row.name}))

    def action_copy(self) -> None:
        """Copies what the chosen row answered."""
        if (row := self.chosen) is not None:
            self.doing(self._copy(row))

    async def _copy(self, row: TableRow) -> str:
        text = await self.acts.answer(row)
        return self.host.copy(text) if text else _("It has not answered")

    def action_open(self) -> None:
        """Shows what the chosen row says."""
        from hermes_tui.screens.batch.trace import TraceScreen

        if (row := self.chosen) is not None:
            self.app.push_screen(TraceScreen(self, row))
