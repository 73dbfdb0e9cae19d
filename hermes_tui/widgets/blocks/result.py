"""What a task brought: who it was, what it was asked, its answer as Markdown, and how to open it. Knows no engine."""

from __future__ import annotations

from collections.abc import Sequence

from rich.style import Style
from rich.text import Text

from hermes_tui.cleaning import clean, one_line
from hermes_tui.texts import _
from hermes_tui.widgets.blocks.answer import AnswerBlock
from hermes_tui.widgets.blocks.base import INSET, indented
from hermes_tui.widgets.look import Look
from hermes_tui.widgets.rows import BLANK, Row, blank

MAX_ROWS = 30
"""Rows of an answer shown before it is opened; a little more is shown whole."""


class ResultBlock(AnswerBlock):
    """The end of one task. `agent` is what opens, `task` the first lines of its prompt, `remains` further lines,
    `forked` whether it stood below the chat.
    """

    def __init__(
        self,
        agent: str,
        *,
        name: str,
        state: str,
        heading: str,
        task: str,
        answer: str,
        remains: Sequence[str] = (),
        forked: bool = False,
    ) -> None:
        super().__init__(answer)
        self.agent, self.name, self.state = agent, name, state
        self.heading, self.task, self.remains = heading, task, tuple(remains)
        self.forked = forked
        self._folded = False

    @property
    def openable(self) -> bool:
        return self._folded or self.open

    def rows(self, width: int, look: Look) -> list[Row]:
        sign, style = self._sign(look)
        kind = look.glyphs.forked if self.forked else look.glyphs.background
        edge = Text(" " * INSET).append(f"{kind} ", look.soft).append(f"{sign} ", style)
        head = Text().append(f"{one_line(self.name)} ", look.strong).append(self.heading, look.faint)
        rows = indented(head, width, edge)
        air = Text(" " * edge.cell_len)
        inset = edge.cell_len - INSET
        rows += indented(Text(clean(self.task), look.faint), width, air)
        answer, left = self._answer(width - inset, look)
        self._folded = len(answer) + left > MAX_ROWS + 3
        shown = answer if self.open or not self._folded else answer[:MAX_ROWS]
        if shown:
            rows += [BLANK, *(row.behind([blank(inset)], inset, row.inset + inset) for row in shown)]
        if len(shown) < len(answer) + left:
            words = _("about {count} more rows: Space") if left else _("{count} more rows: Space")
            more = words.format(count=len(answer) - len(shown) + left)
            rows += indented(Text(f"{look.glyphs.ellipsis} {more}", look.faint), width, air)
        rows += [BLANK] if shown else []
        for line in self.remains:
            rows += indented(Text(clean(line), look.soft), width, air)
        keys = _("Enter opens it · y copies the answer") if answer else _("Enter opens it")
        return [*rows, *indented(Text(keys, look.faint), width, air)]

    def _answer(self, width: int, look: Look) -> tuple[list[Row], int]:
        """Rows of the answer, and how many there are besides: only what is shown is drawn."""
        if not self.source.strip():
            return [], 0
        if self.open:
            return super().rows(width, look), 0
        return self.drawn(width, look, MAX_ROWS + 3)

    def _sign(self, look: Look) -> tuple[str, Style]:
        if self.state == "done":
            return look.glyphs.good, look.good
        if self.state in ("cancelled", "interrupted", "handed over"):
            return look.glyphs.stopped, look.faint
        return look.glyphs.bad, look.bad

    def estimate(self, width: int) -> int:
        rows = super().estimate(width - INSET)
        return (rows if self.open else min(rows, MAX_ROWS)) + 4 + len(self.remains)

    def copy_text(self) -> str:
        return self.source or "\n".join(self.remains)
