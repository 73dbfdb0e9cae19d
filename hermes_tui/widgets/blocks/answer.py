"""An answer of the model: Markdown that grows by pieces and is drawn once a closed piece.

While it streams only its open end is drawn again at each change, so that the cost grows with the length and not
with its square.
"""

from __future__ import annotations

import re

from rich.text import Text

from hermes_tui.cleaning import clean
from hermes_tui.widgets.blocks.base import INSET, Block, estimate_text, indented
from hermes_tui.widgets.look import Look
from hermes_tui.widgets.markdown.drawing import draw, draw_code
from hermes_tui.widgets.markdown.splitting import Piece, Splitter
from hermes_tui.widgets.rows import BLANK, Row, blank

_REFERENCE = re.compile(r"^ {0,3}\[[^\]\n]+\]: *\S", re.MULTILINE)
_WHOLE_LIMIT = 60_000
"""Up to this length an answer with link definitions is read as one piece when it is complete."""


class AnswerBlock(Block):
    """Markdown, growing or whole. `note` is a faint line under it ("stopped")."""

    def __init__(self, source: str = "", *, live: bool = False) -> None:
        super().__init__()
        self.live = live
        self.note = ""
        self._source: list[str] = []
        self._length = 0
        self._pieces: list[Piece] = []
        self._splitter = Splitter()
        self._drawn: list[Row] = []
        self._drawn_pieces = 0
        self._drawn_for: tuple[int, Look] | None = None
        if source:
            self._take(source)
        if not live:
            self._pieces.extend(self._splitter.finish())

    @property
    def source(self) -> str:
        """The Markdown so far."""
        if len(self._source) > 1:
            self._source = ["".join(self._source)]
        return self._source[0] if self._source else ""

    @property
    def has_code(self) -> bool:
        """Whether there is code that may be coloured later."""
        return any(piece.fence is not None or "```" in piece.source for piece in self._pieces)

    def feed(self, text: str) -> None:
        """Adds what the model wrote."""
        self._take(text)
        self.touch()

    def finish(self, text: str | None = None, note: str = "") -> None:
        """The answer is whole: `text` replaces what was heard where it differs."""
        heard = self.source
        self.live, self.note = False, note
        if text is not None and text != heard:
            self._reset()
            self._take(text)
        self._pieces.extend(self._splitter.finish())
        if len(self._pieces) > 1 and self._length <= _WHOLE_LIMIT:
            glued = any(piece.glued for piece in self._pieces)
            if glued or _REFERENCE.search(self.source):
                self._pieces = [Piece(self.source.strip("\n"))]
                self._drawn_for = None
        self.touch()

    def recolour(self) -> None:
        """Colours of code became known: draws again."""
        self._drawn_for = None
        self.touch()

    def rows(self, width: int, look: Look) -> list[Row]:
        if self._drawn_for != (width, look):
            self._drawn, self._drawn_pieces, self._drawn_for = [], 0, (width, look)
        while self._drawn_pieces < len(self._pieces):
            self._add_piece(self._drawn, self._pieces[self._drawn_pieces], width, look)
            self._drawn_pieces += 1
        rows = list(self._drawn)
        if not self.live:
            # the transcript keeps what it shows; an old answer holds its words only
            self._drawn_for = None
            self._drawn = []
        elif (opened := self._splitter.open) is not None:
            self._add_piece(rows, opened, width, look)
        if self.note:
            rows.extend(indented(Text(clean(self.note), look.faint), width, Text(" " * INSET)))
        return rows or [BLANK]

    def estimate(self, width: int) -> int:
        return estimate_text(self.source, width - INSET)

    def copy_text(self) -> str:
        return self.source

    def _take(self, text: str) -> None:
        self._source.append(text)
        self._length += len(text)
        self._pieces.extend(self._splitter.feed(text))

    def _reset(self) -> None:
        self._source, self._length = [], 0
        self._pieces, self._splitter, self._drawn_for = [], Splitter(), None

    def _add_piece(self, rows: list[Row], piece: Piece, width: int, look: Look) -> None:
        if rows and not piece.glued:
            rows.append(BLANK)
        source = clean(piece.head + piece.source)
        if piece.fence is not None:
            drawn = draw_code(source, clean(piece.fence), width - INSET, look)
        else:
            drawn = draw(source, width - INSET, look)
        rows.extend(_shift(drawn))


def _shift(rows: list[Row]) -> list[Row]:
    """The rows moved right by the inset."""
    air = blank(INSET)
    return [row.behind([air], INSET, row.inset + INSET) for row in rows]
