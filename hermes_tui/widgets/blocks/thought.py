"""The model's reasoning: one folded line with its time; the words when opened."""

from __future__ import annotations

from rich.text import Text

from hermes_tui.cleaning import clean
from hermes_tui.texts import _
from hermes_tui.widgets.blocks.base import INSET, Block, estimate_text, indented
from hermes_tui.widgets.look import Look
from hermes_tui.widgets.rows import Row, row_of, shorten
from hermes_tui.widgets.times import seconds_short


class ThoughtBlock(Block):
    """Reasoning, growing or whole; `seconds` is how long it took, None when nobody measured it."""

    def __init__(self, text: str = "", *, seconds: float | None = None, live: bool = False) -> None:
        super().__init__()
        self._parts = [text] if text else []
        self.seconds = seconds
        self.live = live

    @property
    def text(self) -> str:
        """The words so far."""
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    def feed(self, text: str, seconds: float) -> None:
        """Adds words; `seconds` since the first of them."""
        self._parts.append(text)
        self.seconds = seconds
        self.touch()

    def finish(self, text: str | None = None) -> None:
        """The thought is whole."""
        if text:
            self._parts = [text]
        if self.live or text:
            self.live = False
            self.touch()

    @property
    def dense(self) -> bool:
        return True

    @property
    def openable(self) -> bool:
        return True

    def rows(self, width: int, look: Look) -> list[Row]:
        mark = look.glyphs.unfolded if self.open else look.glyphs.folded
        line = Text(" " * INSET)
        line.append(f"{mark} ", look.accent if self.live else look.faint)
        line.append(_("Thinking") if self.live else _("Thought"), look.soft)
        if self.seconds is not None and self.seconds >= 0.05:
            line.append(f"  {seconds_short(self.seconds)}", look.faint)
        if self.live and not self.open:
            last = clean(self.text).rstrip().rsplit("\n", 1)[-1].strip()
            line.append(f"  {last}", look.faint)
        rows = [row_of(shorten(line, width, look.glyphs.ellipsis), INSET + 2)]
        if self.open:
            body = Text(clean(self.text).strip("\n"), look.faint)
            rows.extend(indented(body, width, Text(" " * (INSET + 2))))
        return rows

    def details(self, width: int, look: Look) -> list[Row]:
        """The words, without an inset."""
        return indented(Text(clean(self.text).strip("\n"), look.faint), width, Text())

    def estimate(self, width: int) -> int:
        return 1 + (estimate_text(self.text, width - 4) if self.open else 0)

    def copy_text(self) -> str:
        return self.text
