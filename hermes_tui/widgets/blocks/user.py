"""What the person said: a bar and their words, exactly."""

from __future__ import annotations

from rich.text import Text

from hermes_tui.cleaning import clean
from hermes_tui.widgets.blocks.base import Block, estimate_text, indented
from hermes_tui.widgets.look import Look
from hermes_tui.widgets.rows import Row, row_of

MAX_SHOWN = 40
"""Lines shown of a long message before it is opened."""


class UserBlock(Block):
    """A message of the person. `mark` says how it was sent ("sent while it works"), "" for an ordinary one."""

    def __init__(self, text: str, mark: str = "") -> None:
        super().__init__()
        self.text = text
        self.mark = mark

    def settle(self, mark: str = "") -> None:
        """Changes the mark."""
        if mark != self.mark:
            self.mark = mark
            self.touch()

    @property
    def openable(self) -> bool:
        return self.text.count("\n") >= MAX_SHOWN

    def rows(self, width: int, look: Look) -> list[Row]:
        lines = clean(self.text).split("\n")
        hidden = 0 if self.open else max(0, len(lines) - MAX_SHOWN)
        shown = "\n".join(lines[: len(lines) - hidden])
        bar = Text(f"{look.glyphs.user} ", look.soft)
        rows = indented(Text(shown, look.strong), width, bar, bar)
        if hidden:
            more = bar.copy().append(f"{look.glyphs.ellipsis} {hidden:,} more lines", look.faint)
            rows.append(row_of(more, len(more.plain)))
        if self.mark:
            mark = bar.copy().append(clean(self.mark), look.faint)
            rows.append(row_of(mark, len(mark.plain)))
        return rows

    def estimate(self, width: int) -> int:
        lines = estimate_text(self.text, width - 2)
        return (lines if self.open else min(lines, MAX_SHOWN + 1)) + bool(self.mark)

    def copy_text(self) -> str:
        return self.text
