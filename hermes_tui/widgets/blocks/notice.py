"""Lines that are nobody's turn: notices and errors of the engine, and what slash commands say."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from rich.text import Text

from hermes_tui.cleaning import clean, one_line
from hermes_tui.widgets.blocks.base import INSET, Block, estimate_text, indented
from hermes_tui.widgets.look import Look
from hermes_tui.widgets.markdown.drawing import draw, draw_code
from hermes_tui.widgets.markdown.tables import Table, draw_table
from hermes_tui.widgets.rows import Row, blank
from hermes_tui.widgets.times import seconds_short


class NoticeBlock(Block):
    """One notice. `level` ∈ info | warning | error | stopped."""

    def __init__(self, text: str, level: str = "info") -> None:
        super().__init__()
        self.text = text
        self.level = level

    def update(self, text: str, level: str | None = None) -> None:
        """Says something else instead."""
        if level is not None:
            self.level = level
        if text != self.text or level is not None:
            self.text = text
            self.touch()

    @property
    def dense(self) -> bool:
        return True

    def rows(self, width: int, look: Look) -> list[Row]:
        glyphs = look.glyphs
        sign, style = {
            "error": (glyphs.bad, look.bad),
            "warning": (glyphs.warning, look.soft),
            "stopped": (glyphs.stopped, look.faint),
        }.get(self.level, (glyphs.dot, look.faint))
        words = look.text if self.level == "error" else look.soft if self.level == "warning" else look.faint
        return indented(Text(clean(self.text), words), width, Text(" " * INSET).append(f"{sign} ", style))

    def estimate(self, width: int) -> int:
        return estimate_text(self.text, width - 4)

    def copy_text(self) -> str:
        return self.text


class WaitBlock(NoticeBlock):
    """A warning whose words tell how many seconds are left; they are counted down."""

    def __init__(self, words: Callable[[str], str], seconds: float) -> None:
        super().__init__(words(seconds_short(math.ceil(seconds))), "warning")
        self._words, self._left = words, seconds
        self._end: float | None = None

    @property
    def animated(self) -> bool:
        return self._left > 0

    def tick(self, frame: int, now: float) -> None:
        if self._end is None:
            self._end = now + self._left
        self._left = max(0.0, self._end - now)
        self.update(self._words(seconds_short(math.ceil(self._left))))


class OutputBlock(Block):
    """What a command says. `kind` ∈ text | table | error | markdown | code."""

    def __init__(
        self,
        kind: str,
        text: str = "",
        *,
        title: str = "",
        columns: Sequence[str] = (),
        rows: Sequence[Sequence[str]] = (),
    ) -> None:
        super().__init__()
        self.kind, self.text, self.title = kind, text, title
        self.columns, self.table = tuple(columns), tuple(tuple(row) for row in rows)

    def rows(self, width: int, look: Look) -> list[Row]:
        rows: list[Row] = []
        edge = Text(" " * INSET)
        if self.title:
            rows.extend(indented(Text(one_line(self.title), look.strong), width, edge))
        if self.kind == "error":
            left = edge + Text(f"{look.glyphs.bad} ", look.bad)
            return [*rows, *indented(Text(clean(self.text), look.text), width, left)]
        if self.kind == "markdown":
            rows.extend(_inset(draw(clean(self.text), width - INSET, look)))
        elif self.kind == "code":
            rows.extend(_inset(draw_code(clean(self.text), "", width - INSET, look)))
        else:
            if self.kind == "table":
                rows.extend(_inset(draw_table(self._cells(look), width - INSET, look)))
            if self.text:
                rows.extend(indented(Text(clean(self.text), look.soft), width, edge))
        return rows

    def _cells(self, look: Look) -> Table:
        heading = [Text(one_line(name), look.soft) for name in self.columns]
        body = [[Text(clean(cell), look.text) for cell in row] for row in self.table]
        return Table([heading, *body])

    def estimate(self, width: int) -> int:
        return bool(self.title) + len(self.table) + 2 + estimate_text(self.text, width - INSET)

    def copy_text(self) -> str:
        lines = ["\t".join(row) for row in ([self.columns, *self.table] if self.table else [])]
        return "\n".join([*lines, self.text] if self.text else lines)


def _inset(rows: list[Row]) -> list[Row]:
    air = blank(INSET)
    return [row.behind([air], INSET, row.inset + INSET) for row in rows]
