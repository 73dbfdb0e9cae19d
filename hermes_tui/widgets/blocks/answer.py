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

DRAWN_AT_ONCE = 8_000
"""Characters that are drawn at once, about 15 ms: keys are answered between two such parts of a long answer."""

_REFERENCE = re.compile(r"^ {0,3}\[[^\]\n]+\]: *\S", re.MULTILINE)
_WHOLE_LIMIT = 40_000
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
        self._unfinished = False
        self._before: tuple[int, list[Row]] = (0, [])
        """Width and rows of a long answer as it was last drawn whole: they stand until it is drawn again."""
        self._uncut = ""
        """A whole answer that nobody has looked at yet: most of a long chat is never drawn."""
        if live:
            self._take(source)
        else:
            self._source, self._length, self._uncut = [source], len(source), source

    @property
    def source(self) -> str:
        """The Markdown so far."""
        if len(self._source) > 1:
            self._source = ["".join(self._source)]
        return self._source[0] if self._source else ""

    @property
    def has_code(self) -> bool:
        """Whether there is code that may be coloured later."""
        return any(piece.fence is not None or "```" in piece.source for piece in self._pieces) or "```" in self._uncut

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

    @property
    def unfinished(self) -> bool:
        return self._unfinished

    def rows(self, width: int, look: Look) -> list[Row]:
        rows, left = self.drawn(width, look)
        if left:
            rows += self._before[1][len(rows) :] if self._before[0] == width else [BLANK] * left
        elif self._length > DRAWN_AT_ONCE:
            self._before = (width, list(rows))
        if self.note:
            rows.extend(indented(Text(clean(self.note), look.faint), width, Text(" " * INSET)))
        return rows or [BLANK]

    def drawn(self, width: int, look: Look, most: int | None = None) -> tuple[list[Row], int]:
        """What is drawn of it by now, and about how many rows are not; `most`: so many rows are enough."""
        if self._uncut:
            self._pieces += [*self._splitter.feed(self._uncut), *self._splitter.finish()]
            self._uncut = ""
        if self._drawn_for != (width, look):
            self._drawn, self._drawn_pieces, self._drawn_for = [], 0, (width, look)
        room = DRAWN_AT_ONCE
        while self._drawn_pieces < len(self._pieces) and room > 0 and (most is None or len(self._drawn) <= most):
            piece = self._pieces[self._drawn_pieces]
            self._add_piece(self._drawn, piece, width, look)
            self._drawn_pieces += 1
            room -= len(piece.source)
        rows, rest = list(self._drawn), self._pieces[self._drawn_pieces :]
        self._unfinished = bool(rest) and (most is None or len(rows) <= most)
        if not self.live and not self._unfinished:
            # the transcript keeps what it shows; an old answer holds its words only
            self._drawn_for = None
            self._drawn = []
        elif not rest and (opened := self._splitter.open) is not None:
            self._add_piece(rows, opened, width, look)
        return rows, sum(estimate_text(piece.source, width - INSET) + (not piece.glued) for piece in rest)

    def estimate(self, width: int) -> int:
        return estimate_text(self.source, width - INSET)

    def copy_text(self) -> str:
        return self.source

    def _take(self, text: str) -> None:
        self._source.append(text)
        self._length += len(text)
        self._pieces.extend(self._splitter.feed(text))

    def _reset(self) -> None:
        self._source, self._length, self._uncut = [], 0, ""
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
