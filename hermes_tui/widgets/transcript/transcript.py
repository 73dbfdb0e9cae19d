"""The transcript a person reads in: keys, mouse and selection on top of the view. Knows blocks, no events."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.selection import Selection
from textual.strip import Strip

from hermes_tui.texts import _
from hermes_tui.widgets.blocks import Option, RequestBlock, ResultBlock, UserBlock, WelcomeBlock
from hermes_tui.widgets.transcript.view import TranscriptView

BREATH_SECONDS = 0.01
"""Between two parts of a long block: keys come first."""


class Transcript(TranscriptView, can_focus=True):
    """Blocks in order, one of which may be the current one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "cursor(-1)", _("Block above"), show=False, id="transcript.up"),
        Binding("down,j", "cursor(1)", _("Block below"), show=False, id="transcript.down"),
        Binding("left_square_bracket", "turn(-1)", _("Message before"), show=False, id="transcript.previous"),
        Binding("right_square_bracket", "turn(1)", _("Message after"), show=False, id="transcript.next"),
        Binding("space", "fold", _("Open or close"), show=False, id="transcript.fold"),
        Binding("enter", "open", _("Open"), show=False, id="transcript.open"),
        Binding("y", "copy", _("Copy the block"), show=False, id="transcript.copy"),
        Binding("pageup", "page(-1)", _("Page up"), show=False, id="transcript.page_up"),
        Binding("pagedown", "page(1)", _("Page down"), show=False, id="transcript.page_down"),
        Binding("home", "top", _("Oldest"), show=False, id="transcript.top"),
        Binding("end", "newest", _("Newest"), show=False, id="transcript.newest"),
    ]
    ALLOW_SELECT = True

    class Chosen(Message):
        """A choice of a waiting request was clicked."""

        def __init__(self, block: RequestBlock, option: Option) -> None:
            super().__init__()
            self.block, self.option = block, option

    class Suggested(Message):
        """A suggestion was clicked."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Opened(Message):
        """The person wants to see the agent a result came from."""

        def __init__(self, agent: str) -> None:
            super().__init__()
            self.agent = agent

    class Copied(Message):
        """The person asked for a block's text."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Typed(Message):
        """A printable key nobody here has a use for: it belongs to the prompt."""

        def __init__(self, character: str) -> None:
            super().__init__()
            self.character = character

    intercept: Callable[[str, str | None], bool] = staticmethod(lambda key, character: False)
    """Asked first about each key; True when it was meant for the request under the cursor."""

    def settle(self) -> None:
        """Also goes on, a moment later, with long blocks in view of which only a part is drawn."""
        super().settle()
        if any(block.unfinished for block in self.in_view()):
            self.set_timer(BREATH_SECONDS, self._draw_on)

    def _draw_on(self) -> None:
        self._ticking = True  # nothing new came
        for block in self.in_view():
            if block.unfinished:
                block.touch()
        self._ticking = False

    def action_cursor(self, step: int) -> None:
        """Moves to the next or previous block."""
        blocks = self.sheet.blocks
        if not blocks:
            return
        current = self.sheet.place(self._cursor) if self._cursor is not None else None
        if current is None:
            visible = self.in_view()
            target = visible[-1] if step < 0 and visible else blocks[-1]
        else:
            target = blocks[max(0, min(len(blocks) - 1, current + step))]
        self.select(target)

    def action_turn(self, step: int) -> None:
        """Moves to the previous or next message of the person."""
        blocks = self.sheet.blocks
        current = self.sheet.place(self._cursor) if self._cursor is not None else None
        if current is None:
            current = len(blocks) if step < 0 else -1
        places = range(current - 1, -1, -1) if step < 0 else range(current + 1, len(blocks))
        found = next((place for place in places if isinstance(blocks[place], UserBlock)), None)
        if found is not None:
            self.select(blocks[found])

    def action_fold(self) -> None:
        """Opens or closes the block."""
        if self._cursor is not None:
            self._cursor.toggle()

    def action_open(self) -> None:
        """Opens what stands behind the block, or its details."""
        if isinstance(self._cursor, ResultBlock):
            self.post_message(self.Opened(self._cursor.agent))
        else:
            self.action_fold()

    def toggle_last(self) -> bool:
        """Opens or closes the newest block that has details; whether there is one."""
        block = next((block for block in reversed(self.sheet.blocks) if block.openable), None)
        return block is not None and block.toggle()

    def action_copy(self) -> None:
        """Copies the block's logical text."""
        block = self._cursor or (self.sheet.blocks[-1] if self.sheet.blocks else None)
        if block is not None:
            self.post_message(self.Copied(block.copy_text()))

    def action_page(self, step: int) -> None:
        """One view up or down, with two lines in common."""
        page = max(1, self.scrollable_content_region.height - 2)
        self.scroll_to(y=self.scroll_offset.y + step * page, animate=False)

    def action_top(self) -> None:
        """The oldest line."""
        self.scroll_to(y=0, animate=False)

    def action_newest(self) -> None:
        """The newest line, and follows it from now on."""
        self.follow, self.unseen = True, 0
        self._waiting.meet()
        self._changed(max(0, len(self.sheet) - 1))

    def action_edge(self, newest: bool) -> None:
        """The oldest or the newest line."""
        self.action_newest() if newest else self.action_top()

    def on_blur(self) -> None:
        """The mark of the current block goes with the focus."""
        self.refresh()

    def on_key(self, event: events.Key) -> None:
        """Keys for a request, then those of the transcript; other typing is handed on to the prompt."""
        if self.intercept(event.key, event.character):
            event.stop()
            event.prevent_default()
            return
        bound = {"k", "j", "y", "left_square_bracket", "right_square_bracket", "space"}
        if event.is_printable and event.character and event.key not in bound:
            event.stop()
            self.post_message(self.Typed(event.character))

    def on_click(self, event: events.Click) -> None:
        """Opens what was clicked, or takes the choice."""
        place_clicked, sheet = event.get_content_offset(self), self.sheet
        if place_clicked is None or self.text_selection:
            return
        line = self.scroll_offset.y + place_clicked.y
        if line >= sheet.total:
            return
        place, offset = sheet.at(line)
        block, row = sheet.blocks[place], offset - sheet.gap(place)
        if isinstance(block, RequestBlock):
            option = block.option_at(row, place_clicked.x)
            if option is not None:
                self.post_message(self.Chosen(block, option))
        elif isinstance(block, WelcomeBlock):
            if text := block.suggestion_at(row):
                self.post_message(self.Suggested(text))
        elif isinstance(block, ResultBlock) and row == 0:
            self.post_message(self.Opened(block.agent))
        elif row == 0 and block.openable:
            block.toggle()

    @property
    def allow_select(self) -> bool:
        return True

    def marked(self, strip: Strip, span: tuple[int, int]) -> Strip:
        start, end = span
        text = strip.text
        stop = len(text) if end < 0 else end
        style = self.screen.get_component_rich_style("screen--selection")
        before, chosen, after = _divide(list(strip), start, stop)
        marked = [Segment(part, (old or Style()) + style) for part, old, _control in chosen]
        return Strip([*before, *marked, *after], strip.cell_length)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected words as they were written: folds joined again, edges and signs left out."""
        sheet = self.sheet
        if not len(sheet):
            return None
        first = selection.start.y if selection.start is not None else 0
        last = selection.end.y if selection.end is not None else sheet.total - 1
        out = ""
        for line in range(max(0, first), min(last, sheet.total - 1) + 1):
            span = selection.get_span(line)
            if span is None:
                continue
            place, offset = sheet.at(line)
            row = sheet.row(place, offset)
            text = row.text
            stop = len(text) - row.drawn if span[1] < 0 else min(span[1], len(text) - row.drawn)
            words = text[max(span[0], row.inset) : max(stop, row.inset)].rstrip()
            if line == max(0, first):
                out = words
            elif row.joint is None:
                out += "\n" + words
            else:
                out += row.joint + words
        return out, "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()


def _divide(segments: list[Segment], start: int, stop: int) -> tuple[list[Segment], list[Segment], list[Segment]]:
    """The segments before, within and after a span of characters."""
    parts: tuple[list[Segment], list[Segment], list[Segment]] = ([], [], [])
    position = 0
    for text, style, _control in segments:
        for number, (low, high) in enumerate(((0, start), (start, stop), (stop, position + len(text)))):
            piece = text[max(0, low - position) : max(0, high - position)]
            if piece:
                parts[number].append(Segment(piece, style))
        position += len(text)
    return parts
