"""The list of proposals above the prompt: commands, arguments, files. Never takes the focus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from hermes_tui.cleaning import one_line
from hermes_tui.widgets.look import look_of
from hermes_tui.widgets.rows import list_row, shorten

MAX_ROWS = 8

MIN_HELP = 6
"""Cells of help that say anything; where there are fewer beside a name, there is none."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """One row: `text` replaces the input from character `start` of it to the cursor."""

    text: str
    help: str = ""
    start: int = 0


class Menu(Widget):
    """Proposals, one of them chosen."""

    DEFAULT_CSS = "Menu { height: auto; display: none; } Menu.-open { display: block; }"

    class Picked(Message):
        """A row was clicked."""

        def __init__(self, proposal: Proposal) -> None:
            super().__init__()
            self.proposal = proposal

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._items: tuple[Proposal, ...] = ()
        self._chosen = 0
        self._top = 0

    @property
    def is_open(self) -> bool:
        """Whether there is something to choose."""
        return bool(self._items)

    @property
    def chosen(self) -> Proposal | None:
        """The row that is chosen."""
        return self._items[self._chosen] if self._items else None

    def show(self, items: Sequence[Proposal]) -> None:
        """Shows these proposals; none closes the menu."""
        fresh = tuple(items)
        if fresh == self._items:
            return
        self._items, self._chosen, self._top = fresh, 0, 0
        self.set_class(bool(fresh), "-open")
        self.refresh(layout=True)

    def close(self) -> None:
        """Closes the menu."""
        self.show(())

    def move(self, step: int) -> None:
        """Chooses the next or previous row."""
        if self._items:
            self._chosen = (self._chosen + step) % len(self._items)
            self._top = min(max(self._top, self._chosen - self._rows + 1), self._chosen)
            self.refresh()

    @property
    def _rows(self) -> int:
        return min(MAX_ROWS, len(self._items))

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        return self._rows

    def render_line(self, y: int) -> Strip:
        width, look = self.size.width, look_of(self)
        place = self._top + y
        if place >= len(self._items):
            return Strip.blank(width, self.rich_style)
        item = self._items[place]
        column = min(max((len(one_line(entry.text)) for entry in self._items), default=0) + 2, max(12, width // 2))
        chosen = place == self._chosen
        line = Text().append(f" {look.glyphs.prompt} " if chosen else "   ", look.accent)
        line.append_text(shorten(Text(one_line(item.text), look.text), width - line.cell_len))
        if item.help and max(line.cell_len + 2, column + 3) + MIN_HELP <= width:
            line.append(" " * max(2, column + 3 - line.cell_len))
            line.append(one_line(item.help), look.soft if chosen else look.faint)
        if place == self._top + self._rows - 1 and len(self._items) > self._rows:
            more = f" {place + 1}/{len(self._items)} "
            line = shorten(line, width - len(more))
            line.append(" " * max(0, width - line.cell_len - len(more))).append(more, look.faint)
        return list_row(line, width, self.rich_style, look, chosen=chosen)

    def on_click(self, event: events.Click) -> None:
        """Takes the row."""
        place = self._top + event.y
        if place < len(self._items):
            event.stop()
            self._chosen = place
            self.post_message(self.Picked(self._items[place]))


__all__ = ["Menu", "Proposal"]
