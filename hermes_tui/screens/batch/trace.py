"""One row of a run: its conversation, live while it is in flight here, else as it is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from hermes_engine.errors import HermesError, UsageError
from hermes_engine.events import Notice
from hermes_tui.cleaning import one_line
from hermes_tui.presenter.batch import TableRow
from hermes_tui.presenter.batch_counts import state_word
from hermes_tui.presenter.chat import ChatPresenter
from hermes_tui.presenter.history import blocks_of
from hermes_tui.screens.agents.steps import left_of
from hermes_tui.screens.batch.base import BatchBase
from hermes_tui.screens.batch.drawing import sign_of
from hermes_tui.texts import _
from hermes_tui.widgets.bar import Part
from hermes_tui.widgets.blocks import AnswerBlock, NoticeBlock, ToolBlock, UserBlock
from hermes_tui.widgets.look import look_of
from hermes_tui.widgets.times import count_short, seconds_short
from hermes_tui.widgets.transcript import Transcript

if TYPE_CHECKING:
    from hermes_engine.events import Event
    from hermes_engine.messages import Message
    from hermes_tui.screens.batch.run import RunScreen

LETTERS = {
    "a": "answer",
    "r": "retry",
    "R": "retry_all",
    "x": "stop",
    "X": "stop",
    "p": "pause",
    "e": "export",
    "q": "back",
    "?": "keys",
    "1": "app.screen('chat')",
    "2": "app.screen('agents')",
    "3": "app.screen('kanban')",
    "4": "app.screen('batch')",
}
"""What letters mean while the transcript has the keys."""


class RowTranscript(Transcript):
    """A transcript whose brackets go to the rows beside this one, and whose `y` copies the answer."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "screen.sibling(-1)", _("Row before"), show=False, id="trace.previous"),
        Binding("right_square_bracket", "screen.sibling(1)", _("Row after"), show=False, id="trace.next"),
        Binding("y", "screen.copy", _("Copy the answer"), show=False, id="trace.copy"),
    ]


class TraceScreen(BatchBase):
    """One row of the run that the screen below shows."""

    AUTO_FOCUS = "RowTranscript"

    def __init__(self, below: RunScreen, row: TableRow) -> None:
        super().__init__(below.host, below.book, below.runs_book)
        self.below, self.row = below, row
        self.transcript = RowTranscript(id="transcript")
        self.presenter = ChatPresenter(self.transcript, self.desk.work.name_of)
        self._live = self._opened = False
        self._frame = 0

    def compose(self) -> ComposeResult:
        yield self.header
        yield self.transcript
        yield self.status

    @property
    def run_folder(self) -> Path | None:
        return self.below.run_folder

    def at_work(self) -> str:
        return self.below.at_work()

    def paused(self) -> bool:
        return self.below.paused()

    def on_mount(self) -> None:
        """The first picture; the conversation follows."""
        self._show(self.row)

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self._let_go()

    def _let_go(self) -> None:
        if self._live and self.desk.engine is not None:
            self.desk.engine.runs.close_row(self.below.model.name, self.row.name)
        self._live = False

    def _show(self, row: TableRow) -> None:
        self._let_go()
        self.row, self._opened = row, False
        self.run_worker(self._open(row), exclusive=True, group="open", exit_on_error=False)
        self.draw()

    async def _open(self, row: TableRow) -> None:
        name, engine = self.below.model.name, self.desk.engine
        self.transcript.empty()
        self.presenter.show(name, f"row-{row.name[0]}.{row.name[1]}")
        self.presenter.own_name = _("row {row}").format(row=row.name[0])
        messages: tuple[Message, ...] = ()
        recent: list[Event] | None = None
        opened: tuple[tuple[Message, ...], list[Event]] | None = None
        fault = ""
        try:
            if row.live and engine is not None:
                with suppress(UsageError):  # the run has just ended: it is recorded
                    opened = await self.desk.off_loop(lambda: engine.runs.open_row(name, row.name))
                if opened is not None:
                    messages, recent = opened
                    self._live = True
            if recent is None:
                found = self.below.model.find(row.name, self.runs_book.now())
                if found is None or found.live:  # it has just ended, and its line is not read yet
                    await self.below.follow.read()
                    found = self.below.model.find(row.name, self.runs_book.now())
                self.row = found or row
                messages = await self.acts.recorded(self.row)
        except HermesError as error:
            fault = error.line
        blocks = blocks_of(messages)
        first = next((block for block in blocks if isinstance(block, UserBlock)), None)
        if first is not None:
            first.mark = _("the prompt")
        self.transcript.extend(blocks)
        if recent is not None:
            self.presenter.adopt(blocks)
            begun = {call.call_id for block in blocks if isinstance(block, ToolBlock) for call in block.calls}
            done = {call.call_id for b in blocks if isinstance(b, ToolBlock) for call in b.calls if call.status}
            for event in left_of(recent, messages, begun, done):
                self.presenter.take(event)
        elif fault or not blocks:
            self.transcript.add(NoticeBlock(fault or _("Nothing was kept of this row."), "error" if fault else "info"))
        if recent is None and self.row.state in ("failed", "rejected"):
            words = f"{state_word(self.row.state)}: {one_line(self.row.words, 2000)}"
            self.transcript.add(NoticeBlock(words, "error" if self.row.state == "failed" else "warning"))
        self._opened = True
        self.draw()

    def hear(self, events: Sequence[Event]) -> None:
        if not (self._live and self._opened):
            return
        for event in events:
            if event.session == self.presenter.session and event.agent == self.presenter.agent:
                self.presenter.take(event)
            elif isinstance(event, Notice) and event.session == self.presenter.session and event.level != "info":
                self.remark(one_line(event.text, 400))

    def recolour(self) -> None:
        self.transcript.recolour()

    # Drawing

    def beat(self) -> None:
        self._frame += 1
        self.below.follow.look()
        self.row = self.below.model.find(self.row.name, self.runs_book.now()) or self.row
        self.transcript.tick(self._frame)
        self.draw()

    def draw(self) -> None:
        if not self.is_attached:
            return
        look, row = look_of(self), self.row
        sign, _style = sign_of(row.state, look)
        role = {"needs": "warning", "running": "accent", "quiet": "warning", "kept": "good", "failed": "bad"}.get(
            row.state, "soft"
        )
        word = _("quiet {time}").format(time=seconds_short(int(row.quiet))) if row.quiet else state_word(row.state)
        left = [
            Part(_("‹ {run}").format(run=one_line(self.below.model.name)), "soft", "back", weight=5, gap=1, shrinks=6),
            Part(_("row {row}").format(row=row.name[0]), "strong", weight=9),
            Part(one_line(row.prompt, 200), "soft", weight=2, shrinks=10),
        ]
        right = [Part(f"{sign} {word}", role, weight=8)]
        if row.seconds is not None:
            right.append(Part(seconds_short(int(row.seconds) if row.live else row.seconds), "soft", weight=4))
        if row.tokens:
            right.append(Part(_("{count} tok").format(count=count_short(row.tokens)), "soft", weight=3))
        self.header.show(left, [*right, Part("", gap=1, weight=10)])
        keys = [(_("[ ] row beside"), "", 5), (_("Space fold"), "", 2), (_("y copy answer"), "copy", 4)]
        if row.request:
            keys.append((_("a answer"), "answer", 9))
        if row.state == "failed" and self.at_work() != "elsewhere":
            keys.append((_("r retry"), "retry", 6))
        self.show_status(self.key_parts([*keys, (_("Esc back"), "back", 7)]), [])

    # Keys

    async def on_transcript_typed(self, message: Transcript.Typed) -> None:
        """A letter that the transcript has no use for."""
        if action := LETTERS.get(message.character):
            await self.run_action(action)

    def on_transcript_copied(self, message: Transcript.Copied) -> None:
        """A block was copied."""
        self.remark(self.host.copy(message.text))

    def on_text_selected(self) -> None:
        """The mouse marked text: it is copied at once."""
        text = self.get_selected_text()
        if text and text.strip():
            self.remark(self.host.copy(text))

    def action_sibling(self, step: int) -> None:
        """The row before or after this one, in the order of the table."""
        rows = self.below.rows
        place = next((place for place, row in enumerate(rows) if row.name == self.row.name), None)
        if place is not None and 0 <= place + step < len(rows):
            self.below.table.choose(rows[place + step].name)
            self._show(rows[place + step])
        else:
            self.remark(_("There is no other row beside it"))

    def action_answer(self) -> None:
        """Answers it, when it asks."""
        if self.row.request:
            self.answer(self.row, self.below.model.name)
        else:
            self.remark(_("It asks nothing"))

    def action_next_request(self) -> None:
        """Its own question, else whatever else needs the person."""
        if self.row.request:
            self.action_answer()
        else:
            self.below.action_next_request()

    def action_retry(self) -> None:
        """Runs it again, if it failed."""
        if self.row.state != "failed":
            self.remark(_("Only failed rows run again"))
        elif (folder := self._ours()) is not None:
            self.doing(self.acts.retry(folder, {self.row.name}))

    def action_copy(self) -> None:
        """Copies its answer."""
        answers = (block for block in reversed(self.transcript.blocks) if isinstance(block, AnswerBlock))
        text = next((block.copy_text() for block in answers), "")
        self.remark(self.host.copy(text) if text else _("It has not answered"))
