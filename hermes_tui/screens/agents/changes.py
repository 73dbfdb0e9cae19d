"""What an agent changed, over its screen: each difference as the chat draws it, and where its work lies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from hermes_tui.cleaning import one_line
from hermes_tui.screens.agents.talk import Change
from hermes_tui.screens.steady import SteadyModal
from hermes_tui.texts import _
from hermes_tui.widgets.blocks import NoticeBlock, ToolBlock
from hermes_tui.widgets.transcript import Transcript


class Changes(SteadyModal[None]):
    """The differences of one agent."""

    CSS_PATH = Path(__file__).with_name("agents.tcss")
    AUTO_FOCUS = "Transcript"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,d", "close", _("Close"), show=False, id="changes.close", priority=True),
    ]

    def __init__(self, name: str, changes: Sequence[Change], note: str, copy: Callable[[str], object]) -> None:
        super().__init__()
        self._title, self._changes, self._note = one_line(name), changes, note
        self._copy = copy
        self.transcript = Transcript(id="changes")

    def compose(self) -> ComposeResult:
        with Vertical(id="changes-card"):
            yield Static(Text(_("What {name} changed").format(name=self._title)), id="title", markup=False)
            yield self.transcript
            yield Static(Text(_("↑↓ Space folds · y copies · Esc closes")), id="foot", markup=False)

    def on_mount(self) -> None:
        """Shows each difference, opened."""
        transcript = self.transcript
        if self._note:
            transcript.add(NoticeBlock(self._note))
        for number, change in enumerate(self._changes):
            block = ToolBlock(str(number), _("Changed"), change.title)
            block.open = True
            block.finish(
                str(number), verb=_("Changed"), title=change.title, summary=change.summary, kind="diff",
                body=change.body, status="ok", seconds=0.0,
            )  # fmt: skip
            transcript.add(block)
        if not self._changes:
            transcript.add(NoticeBlock(_("No file was changed by its tools.")))
        self.call_after_refresh(transcript.action_top)

    def on_transcript_copied(self, message: Transcript.Copied) -> None:
        """A difference is wanted."""
        self._copy(message.text)

    def action_close(self) -> None:
        """Closes it."""
        self.dismiss()
