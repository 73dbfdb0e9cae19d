"""What an empty chat shows: a few things to try, each a line that can be clicked. Gone with the first message."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from hermes_tui.cleaning import one_line
from hermes_tui.texts import _
from hermes_tui.widgets.blocks.base import INSET, Block
from hermes_tui.widgets.look import Look
from hermes_tui.widgets.rows import Row, row_of, shorten


class WelcomeBlock(Block):
    """Suggestions: (what to type, what it shows)."""

    def __init__(self, suggestions: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self.suggestions = tuple(suggestions)

    def suggestion_at(self, row: int) -> str:
        """The text of the line drawn at a row, or ""."""
        return self.suggestions[row - 1][0] if 1 <= row <= len(self.suggestions) else ""

    def rows(self, width: int, look: Look) -> list[Row]:
        air = " " * INSET
        rows = [row_of(Text().append(air).append(_("Try"), look.faint), INSET)]
        column = max(len(text) for text, _words in self.suggestions) + 3
        for text, words in self.suggestions:
            line = Text().append(air).append(one_line(text).ljust(column), look.text).append(words, look.faint)
            rows.append(row_of(shorten(line, width, look.glyphs.ellipsis), INSET))
        return rows

    def estimate(self, width: int) -> int:
        return len(self.suggestions) + 1

    def copy_text(self) -> str:
        return "\n".join(text for text, _words in self.suggestions)
