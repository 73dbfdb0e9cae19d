"""Where each block of a transcript stands: heights, tops and rows at one width, measured only where someone looks.

Blocks nobody has looked at since the width changed have an estimated height. Pure; knows no screen.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict

from hermes_tui.widgets.blocks.base import Block
from hermes_tui.widgets.look import Look
from hermes_tui.widgets.rows import BLANK, Row

KEEP_ROWS = 300
"""Blocks whose rows are kept; others are drawn again when they come back into view."""


class Sheet:
    """The blocks in order. Lines count from 0 at the top of the first block."""

    def __init__(self, look: Look) -> None:
        self.blocks: list[Block] = []
        self.look = look
        self.width = 0
        self._heights: list[int] = []
        self._exact: list[int] = []
        self._tops: list[int] = []
        self._valid = 0
        self._index: dict[Block, int] = {}
        self._rows: OrderedDict[Block, tuple[int, list[Row]]] = OrderedDict()

    def __len__(self) -> int:
        return len(self.blocks)

    @property
    def total(self) -> int:
        """Lines of all blocks."""
        if not self.blocks:
            return 0
        last = len(self.blocks) - 1
        return self.top(last) + self._heights[last]

    def shape(self, width: int, look: Look) -> bool:
        """Sets width and look; whether anything must be measured again."""
        if (width, look) == (self.width, self.look):
            return False
        if width != self.width:
            self._heights = [block.estimate(max(8, width)) + self._gap(i) for i, block in enumerate(self.blocks)]
        self.width, self.look = width, look
        self._exact = [-1] * len(self.blocks)
        self._rows.clear()
        self._valid = 0
        return True

    def append(self, block: Block) -> int:
        """Adds a block at the end; returns its place."""
        return self.insert(len(self.blocks), block)

    def insert(self, at: int, block: Block) -> int:
        """Adds a block before place `at`; returns its place."""
        self.blocks.insert(at, block)
        self._heights.insert(at, 0)
        self._exact.insert(at, -1)
        self._heights[at] = block.estimate(max(8, self.width)) + self._gap(at)
        self._reindex(at)
        return at

    def remove(self, block: Block) -> None:
        """Takes a block out."""
        at = self._index.pop(block, None)
        if at is None:
            return
        for values in (self.blocks, self._heights, self._exact):
            del values[at]
        self._rows.pop(block, None)
        self._reindex(at)

    def clear(self) -> None:
        """Takes all blocks out."""
        for values in (self.blocks, self._heights, self._exact, self._tops):
            values.clear()
        self._index.clear()
        self._rows.clear()
        self._valid = 0

    def place(self, block: Block) -> int | None:
        """Where a block stands in the list."""
        return self._index.get(block)

    def top(self, index: int) -> int:
        """First line of a block, its gap included."""
        while self._valid <= index:
            at = self._valid
            above = self._tops[at - 1] + self._heights[at - 1] if at else 0
            if at < len(self._tops):
                self._tops[at] = above
            else:
                self._tops.append(above)
            self._valid += 1
        return self._tops[index]

    def height(self, index: int) -> int:
        """Lines of a block, as far as known."""
        return self._heights[index]

    def at(self, line: int) -> tuple[int, int]:
        """The block at a line and the line within it. The list must not be empty."""
        self.top(len(self.blocks) - 1)
        index = max(0, bisect_right(self._tops, line, 0, self._valid) - 1)
        return index, line - self._tops[index]

    def exact(self, index: int) -> bool:
        """Whether the height is that of what would be drawn now."""
        return self._exact[index] == self.blocks[index].version

    def measure(self, index: int) -> int:
        """Makes a height exact; returns by how much it changed."""
        if self.exact(index):
            return 0
        block = self.blocks[index]
        height = len(self.rows(index)) + self._gap(index)
        change = height - self._heights[index]
        self._exact[index] = block.version
        if change:
            self._heights[index] = height
            self._valid = min(self._valid, index + 1)
        if index + 1 < len(self.blocks) and self._exact[index + 1] >= 0:
            self._mend_gap(index + 1)
        return change

    def measure_end(self, rows: int) -> None:
        """Makes the heights of the last blocks exact, as many as fill so many rows."""
        seen = 0
        for index in range(len(self) - 1, -1, -1):
            self.measure(index)
            seen += self.height(index)
            if seen >= rows:
                return

    def measure_down(self, index: int, until: int) -> None:
        """Makes the heights of a block and those below it exact, as far as a line."""
        for at in range(index, len(self)):
            self.measure(at)
            if self.top(at) + self.height(at) >= until:
                return

    def rows(self, index: int) -> list[Row]:
        """The rows of a block, without its gap."""
        block = self.blocks[index]
        kept = self._rows.get(block)
        if kept is not None and kept[0] == block.version:
            self._rows.move_to_end(block)
            return kept[1]
        rows = block.rows(self.width, self.look)
        self._rows[block] = (block.version, rows)
        if len(self._rows) > KEEP_ROWS:
            self._rows.popitem(last=False)
        return rows

    def row(self, index: int, offset: int) -> Row:
        """One line of a block; the gap before it is blank."""
        gap = self._gap(index)
        rows = self.rows(index)
        place = offset - gap
        return rows[place] if 0 <= place < len(rows) else BLANK

    def gap(self, index: int) -> int:
        """Blank lines before a block."""
        return self._gap(index)

    def _gap(self, index: int) -> int:
        if index == 0:
            return 0
        return 0 if self.blocks[index].dense and self.blocks[index - 1].dense else 1

    def _mend_gap(self, index: int) -> None:
        """The block above became dense, or no longer is."""
        kept = self._rows.get(self.blocks[index])
        if kept is None or kept[0] != self.blocks[index].version:
            self._exact[index] = -1
            return
        height = len(kept[1]) + self._gap(index)
        if height != self._heights[index]:
            self._heights[index] = height
            self._valid = min(self._valid, index + 1)

    def _reindex(self, at: int) -> None:
        for index in range(at, len(self.blocks)):
            self._index[self.blocks[index]] = index
        if at + 1 < len(self.blocks):
            self._exact[at + 1] = -1
        elif at < len(self.blocks):
            self._exact[at] = -1
        self._valid = min(self._valid, at)
        del self._tops[at:]
