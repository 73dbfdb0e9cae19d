"""The small protocol of everything in the transcript: draw, estimate, copy, open. Knows no transcript."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text

from hermes_tui.widgets.look import Look
from hermes_tui.widgets.rows import Row, fold, row_of

INSET = 2
"""Columns of air left of what is not the person's."""


class Block:
    """One thing said or done.

    Attributes:
        version: grows with each change; what was drawn of an older one is void.
        open: whether the details are shown.
        changed: told after each change; set by the transcript.
    """

    def __init__(self) -> None:
        self.version = 0
        self.open = False
        self.changed: Callable[[Block], None] | None = None

    def touch(self) -> None:
        """Says that the block looks different now."""
        self.version += 1
        if self.changed is not None:
            self.changed(self)

    @property
    def dense(self) -> bool:
        """Whether it stands without a blank row beside its like (cards, folded thoughts)."""
        return False

    @property
    def openable(self) -> bool:
        """Whether it has details to show."""
        return False

    @property
    def unfinished(self) -> bool:
        """Whether only a part of it was drawn and blanks stand for the rest, which the next drawing goes on with."""
        return False

    @property
    def animated(self) -> bool:
        """Whether it looks different as time goes by."""
        return False

    def tick(self, frame: int, now: float) -> None:
        """Four times a second while it is animated; `now` in monotonic seconds."""

    def toggle(self) -> bool:
        """Opens or closes the details; whether there are any."""
        if not self.openable:
            return False
        self.open = not self.open
        self.touch()
        return True

    def rows(self, width: int, look: Look) -> list[Row]:
        """The block in `width` cells."""
        raise TypeError(f"{type(self).__name__} does not draw itself")

    def estimate(self, width: int) -> int:
        """About how many rows it takes, without drawing it."""
        return 1

    def copy_text(self) -> str:
        """The logical text: no folds, no edges, no signs."""
        return ""


def estimate_text(text: str, width: int) -> int:
    """About how many rows a text takes."""
    return max(1, text.count("\n") + 1 + len(text) // max(8, width))


def indented(text: Text, width: int, left: Text, rest: Text | None = None) -> list[Row]:
    """The text folded beside an edge: `left` on the first row, `rest` (blanks) on the others."""
    after = rest if rest is not None else Text(" " * left.cell_len)
    rows: list[Row] = []
    for number, (line, joint) in enumerate(fold(text, width - left.cell_len)):
        edge = (left if number == 0 else after).copy()
        inset = len(edge.plain)
        edge.append_text(line)
        rows.append(row_of(edge, inset, joint))
    return rows
