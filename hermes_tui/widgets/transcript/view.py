"""The view of a transcript: one scrolled sheet of blocks, of which only what is in view is measured and drawn.

It follows the newest line until the person scrolls up, and then stays where they read. Knows no keys.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from hermes_tui.widgets.blocks import AnswerBlock, Block, RequestBlock
from hermes_tui.widgets.look import look_of
from hermes_tui.widgets.sheet import Sheet
from hermes_tui.widgets.transcript.waiting import Waiting

MAX_TEXT = 110
"""Columns of text on a very wide screen: longer lines are hard to read."""


class TranscriptView(ScrollView):
    """Blocks in order. `follow` is whether the view stays at the end; `unseen` counts blocks that came or changed
    below it since the person read on from there.
    """

    unseen: reactive[int] = reactive(0, init=False)

    class Unseen(Message):
        """How many blocks below the view say something new."""

        def __init__(self, count: int) -> None:
            super().__init__()
            self.count = count

    class EndShown(Message):
        """The end of a waiting request came into view."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.follow = True
        self._sheet: Sheet | None = None
        self._cursor: Block | None = None
        self._anchor: tuple[Block, int] | None = None
        self._settling = False
        self._pending = False
        self._dirty_from: int | None = None
        self._animated: set[Block] = set()
        self._fresh: set[Block] = set()
        """Came or changed while the view stood still, and their ends have not been seen since."""
        self._ticking = False
        self._waiting = Waiting()
        self._base = Style()
        self._marked: Selection | None = None
        self.cost = 0.0
        """Seconds the last settling took."""

    # What the presenter does

    @property
    def blocks(self) -> list[Block]:
        """The blocks, oldest first; not to be changed here."""
        return self.sheet.blocks

    @property
    def sheet(self) -> Sheet:
        """The layout, made with the look of the first moment it is needed."""
        if self._sheet is None:
            self._sheet = Sheet(look_of(self))
        return self._sheet

    def add(self, block: Block) -> None:
        """Adds a block at the end."""
        self._insert(len(self.sheet), block)

    def add_before(self, block: Block, other: Block) -> None:
        """Adds a block before another one, or at the end where that is gone."""
        place = self.sheet.place(other)
        self._insert(len(self.sheet) if place is None else place, block)

    def extend(self, blocks: Iterable[Block]) -> None:
        """Adds many blocks, as when a saved chat is opened."""
        for block in blocks:
            block.changed = self._block_changed
            self.sheet.append(block)
            self._waiting.add(block)
        self._changed(0)

    def take_out(self, block: Block) -> None:
        """Takes a block out."""
        place = self.sheet.place(block)
        if place is None:
            return
        block.changed = None
        self._animated.discard(block)
        if self._cursor is block:
            self._cursor = None
        if self._anchor is not None and self._anchor[0] is block:
            self._anchor = None
        self.sheet.remove(block)
        self._changed(place)

    def empty(self) -> None:
        """Takes all blocks out and follows again."""
        for block in self.sheet.blocks:
            block.changed = None
        self.sheet.clear()
        self._animated.clear()
        self._fresh.clear()
        self._waiting.clear()
        self._cursor = self._anchor = None
        self.follow, self.unseen = True, 0
        self._changed(0)

    def detailed(self) -> Block | None:
        """The current block, or the newest that has details."""
        return self._cursor or next((block for block in reversed(self.sheet.blocks) if block.openable), None)

    def recolour(self) -> None:
        """Colours of code arrived: blocks in view that hold code are drawn again."""
        for block in self.in_view():
            if isinstance(block, AnswerBlock) and block.has_code and not block.live:
                block.recolour()

    def tick(self, frame: int) -> bool:
        """One step of what moves; whether anything did."""
        now = time.monotonic()
        self._animated = {block for block in self._animated if block.animated}
        self._ticking = True
        for block in self._animated:
            block.tick(frame, now)
        self._ticking = False
        return bool(self._animated)

    def _insert(self, place: int, block: Block) -> None:
        block.changed = self._block_changed
        self.sheet.insert(place, block)
        if block.animated:
            self._animated.add(block)
        self._fresh.add(block)
        self._waiting.add(block)
        self._changed(place)

    def _block_changed(self, block: Block) -> None:
        place = self.sheet.place(block)
        if place is None:
            return
        if block.animated:
            self._animated.add(block)
        if not self._ticking:
            self._fresh.add(block)
        self._changed(place)

    def _changed(self, place: int) -> None:
        """Something at that place looks different; the view is put right once, after this round of changes."""
        self._dirty_from = place if self._dirty_from is None else min(self._dirty_from, place)
        if not self._pending and self.is_attached:
            self._pending = True
            self.call_next(self.settle)

    # Where the view stands

    def settle(self) -> None:
        """Measures what is in view and puts the view where it belongs."""
        began = time.monotonic()
        self._pending = False
        dirty, self._dirty_from = self._dirty_from, None
        sheet, view = self.sheet, self.scrollable_content_region.height
        if self.text_width <= 0 or view <= 0:
            self._dirty_from = dirty
            return
        reshaped = sheet.shape(self.text_width, look_of(self))
        before = (self.scroll_offset.y, sheet.total)
        self._waiting.fit(view)
        self.follow = self._waiting.left(self.in_view) or self.follow
        target = self._target(sheet, view)
        self._settling = True
        try:
            size = Size(self.size.width, sheet.total)
            if size != self.virtual_size:
                # not the public way, which lays the whole screen out again: nothing but the scroll bar depends on it
                self.set_reactive(Widget.virtual_size, size)
                self._scroll_update(size)
            if round(self.scroll_y) != target:
                self.scroll_y = self.scroll_target_y = target
        finally:
            self._settling = False
        self._remember()
        self._mark_seen()
        self._count_unseen()
        if reshaped or dirty is None or before[0] != self.scroll_offset.y:
            self.refresh()
        else:
            self._refresh_from(dirty)
        self.cost = time.monotonic() - began

    @property
    def text_width(self) -> int:
        """Columns blocks are drawn in."""
        return min(self.scrollable_content_region.width - 1, MAX_TEXT)

    def _target(self, sheet: Sheet, view: int) -> int:
        """The line at the top of the view, everything in view measured."""
        if not len(sheet):
            return 0
        if self.follow:
            sheet.measure_end(view)
            line = max(0, sheet.total - view)
            if not self._stops_before(line, sheet, view):
                return line
            self.follow = False
        place = sheet.place(self._anchor[0]) if self._anchor is not None else None
        if place is None or self._anchor is None:
            place, offset = sheet.at(min(self.scroll_offset.y, sheet.total - 1))
        else:
            offset = self._anchor[1]
        sheet.measure(place)
        line = sheet.top(place) + min(offset, max(0, sheet.height(place) - 1))
        sheet.measure_down(place, line + view)
        if line + view > sheet.total:
            sheet.measure_end(view)
            line = max(0, sheet.total - view)
        return line

    def _stops_before(self, line: int, sheet: Sheet, view: int) -> bool:
        """Whether the view, about to go on to a line, stops at the beginning of a request that is longer than it."""
        block = self._waiting.next()
        place = sheet.place(block) if block is not None else None
        if block is None or place is None:
            return False
        sheet.measure(place)
        gap = sheet.gap(place)
        seen = block.shown_at is not None and sheet.height(place) - gap <= view
        if seen or sheet.top(place) + gap >= line:
            return False
        self._waiting.stop_at(block)
        self._anchor = (block, gap)
        self._fresh.add(block)
        return True

    def _remember(self) -> None:
        """Keeps which line of which block is at the top of the view."""
        sheet = self.sheet
        if len(sheet):
            place, offset = sheet.at(min(self.scroll_offset.y, max(0, sheet.total - 1)))
            self._anchor = (sheet.blocks[place], offset)

    def _mark_seen(self) -> None:
        """Tells waiting requests that their end is on the screen."""
        sheet, now = self.sheet, time.monotonic()
        bottom = self.scroll_offset.y + self.scrollable_content_region.height
        for block in self.in_view():
            if isinstance(block, RequestBlock) and block.waiting:
                place = sheet.place(block)
                if place is not None and sheet.top(place) + sheet.height(place) <= bottom:
                    if block.shown_at is None:
                        self.post_message(self.EndShown())
                    block.end_shown(now)

    def _count_unseen(self) -> None:
        """Forgets what is in view by now; the rest is below and new."""
        sheet, bottom = self.sheet, self.scroll_offset.y + self.scrollable_content_region.height
        places = {block: sheet.place(block) for block in self._fresh} if not self.follow else {}
        self._fresh = {
            block for block, at in places.items() if at is not None and sheet.top(at) + sheet.height(at) > bottom
        }
        self.unseen = len(self._fresh)

    def in_view(self) -> list[Block]:
        """The blocks of which something is on the screen."""
        sheet = self.sheet
        if not len(sheet):
            return []
        first, _offset = sheet.at(self.scroll_offset.y)
        bottom = self.scroll_offset.y + self.scrollable_content_region.height
        found: list[Block] = []
        for index in range(first, len(sheet)):
            if sheet.top(index) >= bottom:
                break
            found.append(sheet.blocks[index])
        return found

    def _refresh_from(self, place: int) -> None:
        sheet = self.sheet
        top = sheet.top(place) if place < len(sheet) else sheet.total
        first = max(0, top - self.scroll_offset.y - 1)
        height = self.size.height
        if first < height:
            self.refresh(Region(0, first, self.size.width, height - first))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self._settling or round(old_value) == round(new_value) or not len(self.sheet):
            return
        self._scrolled(round(old_value), round(new_value))

    def _scrolled(self, old: int, new: int) -> None:
        """The person moved the view: what comes into view is measured, without a jump of what was there."""
        sheet, view = self.sheet, self.scrollable_content_region.height
        if old - 3 * view <= new < old:
            index, _offset = sheet.at(old)
            while index > 0 and sheet.top(index) > new:
                index -= 1
                new += sheet.measure(index)
        place, offset = sheet.at(max(0, min(new, sheet.total - 1)))
        self._anchor = (sheet.blocks[place], max(0, offset))
        self.follow = new + view >= sheet.total
        if self.follow:
            self._waiting.meet()
        self._changed(place)

    def on_resize(self, event: events.Resize) -> None:
        """Another width: all heights are estimates again, what is in view is measured at once."""
        self.settle()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        if self.is_attached and self._sheet is not None:
            self._changed(0)

    def watch_unseen(self, count: int) -> None:
        """Passes the number of new blocks on."""
        self.post_message(self.Unseen(count))

    # Drawing

    def render_lines(self, crop: Region) -> list[Strip]:
        # both are looked up through the whole tree of widgets: once a picture, not once a line
        self._base, self._marked = self.rich_style, self.text_selection
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        sheet, width = self.sheet, self.size.width
        base = self._base
        line = self.scroll_offset.y + y
        if sheet.width <= 0 or line >= sheet.total or not len(sheet):
            return Strip.blank(width, base)
        place, offset = sheet.at(line)
        strip = sheet.row(place, offset).strip
        strip = strip.apply_style(base).adjust_cell_length(width, base)
        if self._cursor is sheet.blocks[place] and self.has_focus and offset >= sheet.gap(place):
            strip = self._with_cursor(strip)
        if self._marked is not None and (span := self._marked.get_span(line)) is not None:
            strip = self.marked(strip, span)
        return strip.apply_offsets(0, line)

    def marked(self, strip: Strip, span: tuple[int, int]) -> Strip:
        """The line with a span of it marked."""
        return strip

    def _with_cursor(self, strip: Strip) -> Strip:
        look = look_of(self)
        bar = Segment(look.glyphs.user, self._base + look.accent)
        return Strip([bar, *strip.crop(1)], strip.cell_length)

    @property
    def cursor_block(self) -> Block | None:
        """The block the keys act on."""
        return self._cursor

    def select(self, block: Block | None, *, show: bool = True) -> None:
        """Makes a block the one the keys act on."""
        self._cursor = block
        if block is not None and show:
            self.reveal(block)
        self.refresh()

    def reveal(self, block: Block) -> None:
        """Scrolls so that the block's beginning is in view, and its end where both fit."""
        sheet, view = self.sheet, self.scrollable_content_region.height
        place = sheet.place(block)
        if place is None:
            return
        self._waiting.meet(block)
        sheet.measure(place)
        top, height = sheet.top(place), sheet.height(place)
        line = self.scroll_offset.y
        if top < line or height > view:
            line = top
        elif top + height > line + view:
            line = top + height - view
        at_end = line + view >= sheet.total
        self.follow = at_end
        if not at_end:
            at, offset = sheet.at(line)
            self._anchor = (sheet.blocks[at], offset)
        self._changed(place)
