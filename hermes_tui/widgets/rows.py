"""Rows: what blocks of the transcript are drawn as, and how styled text is folded into them by cell width.

Knows terminal cells and grapheme clusters; knows no block and no screen.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.cells import cell_len, split_graphemes
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.strip import Strip

if TYPE_CHECKING:
    from hermes_tui.widgets.look import Look

CONSOLE = Console(file=io.StringIO(), color_system="truecolor", force_terminal=True, legacy_windows=False, markup=False)
"""Only renders `Text` into segments; nothing is ever printed to it."""

TAB = 4


class Row:
    """One drawn line. Its strip is made when it is first drawn: most rows of a long answer never are.

    Attributes:
        segments: what is drawn, `width` cells wide.
        inset: characters at its left that are decoration and no part of the text.
        joint: None where a line of the source begins; else what stood between this row and the one above
            before it was folded (" " or "").
        drawn: characters at its right that are decoration.
    """

    __slots__ = ("_strip", "drawn", "inset", "joint", "segments", "width")

    def __init__(
        self, segments: list[Segment], width: int, inset: int = 0, joint: str | None = None, drawn: int = 0
    ) -> None:
        self.segments, self.width = segments, width
        self.inset, self.joint, self.drawn = inset, joint, drawn
        self._strip: Strip | None = None

    @property
    def strip(self) -> Strip:
        """The row as the toolkit draws it."""
        if self._strip is None:
            self._strip = Strip(self.segments, self.width)
        return self._strip

    @property
    def text(self) -> str:
        """Its characters, decoration included."""
        return "".join(segment.text for segment in self.segments)

    def behind(self, edge: list[Segment], width: int, inset: int) -> Row:
        """The same row right of an edge of `width` cells; `inset` characters of it are decoration."""
        return Row([*edge, *self.segments], self.width + width, inset, self.joint, self.drawn)


BLANK = Row([], 0)


def row_of(text: Text, inset: int = 0, joint: str | None = None, drawn: int = 0) -> Row:
    """The text as a row."""
    return Row(segments_of(text), text.cell_len, inset, joint, drawn)


def segments_of(text: Text) -> list[Segment]:
    """The text in pieces of one style."""
    if not text.spans:
        # a text without spans would lose its own style here
        return [Segment(text.plain, text.style if isinstance(text.style, Style) else None)]
    return [segment for segment in text.render(CONSOLE) if segment.text != "\n"]


def fold(text: Text, width: int) -> list[tuple[Text, str | None]]:
    """The text in lines of at most `width` cells, with the joint that each folded line had to the one before.

    Breaks at blanks, inside words only where a word is wider than a line, never inside a grapheme cluster.
    """
    width = max(1, width)
    text.expand_tabs(TAB)
    if "\n" not in text.plain and text.cell_len <= width:
        return [(text, None)]
    lines: list[tuple[Text, str | None]] = []
    for line in text.split("\n", allow_blank=True):
        if line.cell_len <= width:
            lines.append((line, None))
            continue
        offsets = _break_offsets(line.plain, width)
        joint: str | None = None
        for piece in line.divide(offsets):
            bare = piece.plain.rstrip(" ")
            trailing = len(piece.plain) - len(bare)
            if trailing and piece.cell_len > width:
                piece.right_crop(trailing)
            lines.append((piece, joint))
            joint = " " if trailing else ""
    return lines


def _break_offsets(line: str, width: int) -> list[int]:
    """Where to cut `line`, in characters."""
    offsets: list[int] = []
    start_width = 0
    position = 0
    for word, gap in _words(line):
        word_width = cell_len(word)
        if start_width and start_width + word_width > width:
            offsets.append(position)
            start_width = 0
        if word_width > width:
            start_width = _cut_word(word, width, position, offsets)
        else:
            start_width += word_width
        start_width += gap
        position += len(word) + gap
    return offsets


def _words(line: str) -> list[tuple[str, int]]:
    """(word, number of blanks after it); leading blanks belong to the first word."""
    found: list[tuple[str, int]] = []
    start = 0
    length = len(line)
    position = length - len(line.lstrip(" "))
    while position < length:
        end = line.find(" ", position)
        if end < 0:
            found.append((line[start:], 0))
            return found
        after = end
        while after < length and line[after] == " ":
            after += 1
        found.append((line[start:end], after - end))
        start = position = after
    if start < length:
        found.append((line[start:], 0))
    return found


def _cut_word(word: str, width: int, position: int, offsets: list[int]) -> int:
    """Adds the cuts inside a word wider than a line; returns the width of its last part."""
    used = 0
    if word.isascii():
        offsets.extend(range(position + width, position + len(word), width))
        return len(word) % width or width
    for start, _end, cells in split_graphemes(word)[0]:
        if used and used + cells > width:
            offsets.append(position + start)
            used = 0
        used += cells
    return used


def cut(text: str, width: int, mark: str = "…") -> str:
    """The text in at most `width` cells, never cut within a cluster; ends with `mark` when something is missing."""
    if cell_len(text) <= width:
        return text
    if width <= cell_len(mark):
        return mark[: max(0, width)]
    room = width - cell_len(mark)
    end = 0
    for _start, stop, cells in split_graphemes(text)[0]:
        if cells > room:
            break
        room -= cells
        end = stop
    return text[:end].rstrip() + mark


def spread(left: Text, right: Text, width: int) -> Text:
    """Left and right on one line of `width` cells; the left part is cut when both do not fit."""
    room = width - right.cell_len - (1 if right.plain else 0)
    if left.cell_len > room:
        left = shorten(left, room)
    gap = width - left.cell_len - right.cell_len
    line = left.copy()
    line.append(" " * max(0, gap))
    line.append_text(right)
    return line


def shorten(text: Text, width: int, mark: str = "…") -> Text:
    """A styled text in at most `width` cells, its end cut with `mark`."""
    if text.cell_len <= width:
        return text
    kept = cut(text.plain, width, mark)
    line = text[: max(0, len(kept) - len(mark))]
    line.append(mark[: max(0, width)])
    return line


def list_row(line: Text, width: int, base: Style, look: Look, *, chosen: bool) -> Strip:
    """A row of a list in exactly `width` cells; the chosen one is marked as the theme can."""
    strip = row_of(shorten(line, width)).strip
    if not chosen:
        return strip.apply_style(base).adjust_cell_length(width, base)
    if look.palette.native:
        text = strip.text
        return Strip([Segment(text + " " * (width - strip.cell_length), base + look.picked)], width)
    # the raised ground before the plain one: what is applied later lies below
    return strip.adjust_cell_length(width, Style.null()).apply_style(look.picked).apply_style(base)


def blank(width: int, style: Style | None = None) -> Segment:
    """Empty cells."""
    return Segment(" " * max(0, width), style)
