"""What the batch screens have in common: verbs behind keys, each fault told as one line; questions before a stop."""

from __future__ import annotations

from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType

from hermes_engine.errors import HermesError
from hermes_tui.cleaning import one_line
from hermes_tui.screens.agents.base import AgentsBase
from hermes_tui.screens.batch.acts import Acting
from hermes_tui.screens.overlays.card import Card, Choice
from hermes_tui.screens.overlays.picker import Item, Picker
from hermes_tui.texts import _
from hermes_tui.widgets.bar import Part
from hermes_tui.widgets.look import look_of

if TYPE_CHECKING:
    from hermes_tui.presenter.batch import TableRow
    from hermes_tui.screens.agents.book import AgentsBook
    from hermes_tui.screens.batch.book import BatchBook
    from hermes_tui.screens.host import Host


class BatchBase(AgentsBase):
    """A screen about runs; `run_folder` is the one the keys act on."""

    CSS_PATH = Path(__file__).with_name("batch.tcss")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "pause", _("Pause, go on, resume"), show=False, id="batch.pause"),
        Binding("R", "retry_all", _("Run all failed rows again"), show=False, id="batch.retry_all"),
        Binding("x,X", "stop", _("Stop the run"), show=False, id="batch.stop"),
        Binding("e", "export", _("Export"), show=False, id="batch.export"),
        Binding("q", "back", _("Back"), show=False, id="batch.quit"),
        Binding("question_mark", "keys", _("Keys"), show=False, id="batch.keys"),
    ]

    def __init__(self, host: Host, agents: AgentsBook, batch: BatchBook) -> None:
        super().__init__(host, agents)
        self.runs_book = batch
        self.acts = Acting(host.desk)

    @property
    def run_folder(self) -> Path | None:
        """The run the keys act on."""
        return None

    def at_work(self) -> str:
        """Whether that run is worked: here | elsewhere | ""."""
        return ""

    def paused(self) -> bool:
        """Whether that run is paused."""
        return False

    def doing(self, work: Coroutine[Any, Any, str]) -> None:
        """Does something and says what came of it; a fault is one line."""

        async def run() -> None:
            try:
                if words := await work:
                    self.remark(one_line(words, 400))
            except HermesError as error:
                self.remark(error.line)
            except OSError as error:
                self.remark(one_line(str(error)))

        self.run_worker(run(), group="batch", exit_on_error=False)

    def key_parts(self, keys: list[tuple[str, str, int]]) -> list[Part]:
        """Keys of the status line: words, action, weight."""
        dot = look_of(self).glyphs.dot
        return [
            Part(f"{dot} {text}" if number else text, "soft", action, weight=weight, gap=1)
            for number, (text, action, weight) in enumerate(keys)
        ]

    def action_pause(self) -> None:
        """Pauses the run or lets it go on; one that nobody works is resumed."""
        folder = self.run_folder
        if folder is None:
            return
        match self.at_work():
            case "here":
                self.doing(self.acts.pause(folder.name, on=not self.paused()))
            case "":
                self.doing(self.acts.resume(folder))
            case _:
                self.remark(_("Another program works it; only stopping it is possible from here"))

    def answer(self, row: TableRow, run: str) -> None:
        """Has a row's question answered."""
        from hermes_tui.screens.batch.answering import answered

        if (engine := self.desk.engine) is not None:
            asker = _("row {row} of {run}").format(row=row.name[0], run=run)
            self.doing(answered(self.app, engine, row.request, asker))

    def action_retry_all(self) -> None:
        """Runs all failed rows again."""
        if (folder := self._ours()) is not None:
            self.doing(self.acts.retry(folder))

    def _ours(self) -> Path | None:
        """The run, when no other program works it."""
        if self.at_work() == "elsewhere":
            self.remark(_("Another program works it; only stopping it is possible from here"))
            return None
        return self.run_folder

    def action_stop(self) -> None:
        """Ends the run in order, after a question."""
        folder = self.run_folder
        if folder is None or not self.at_work():
            self.remark(_("Nobody works it"))
        else:
            self.doing(self._stop(folder))

    async def _stop(self, folder: Path) -> str:
        lines = [_("Rows in flight get a moment to end; everything done is kept, p resumes it later.")]
        choices = [Choice("stop", _("Stop it")), Choice("", _("Let it run"))]
        title = _("Stop {name}?").format(name=one_line(folder.name, 60))
        if await self.app.push_screen_wait(Card(title, lines, choices)) != "stop":
            return ""
        return await self.acts.stop(folder)

    def action_export(self) -> None:
        """Writes the run's rows for a trainer."""
        if (folder := self.run_folder) is not None:
            self.doing(self._export(folder))

    async def _export(self, folder: Path) -> str:
        from hermes_engine.batch.export import FORMATS

        told = {
            "sharegpt": _("the records as they are"),
            "openai": _("messages and tools"),
            "hermes-fc": _("tool calls as text"),
            "llamafactory": _("for LLaMA-Factory"),
        }
        items = [Item(name, name, told[name]) for name in FORMATS if name in told]
        form = await self.app.push_screen_wait(Picker(_("Export the completed rows as"), items))
        return await self.acts.export(folder, form) if form else ""
