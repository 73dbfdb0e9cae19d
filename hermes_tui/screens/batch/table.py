"""A list of lines of which only those in view are drawn, one of them chosen by its key. Knows no run."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from hermes_tui.texts import _
from hermes_tui.widgets.look import look_of
from hermes_tui.widgets.rows import list_row


class Table(Widget, can_focus=True):
    """Lines under an optional heading. What is chosen stays chosen wherever it moves to."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", _("Row above"), show=False, id="table.up"),
        Binding("down,j", "move(1)", _("Row below"), show=False, id="table.down"),
        Binding("pageup", "page(-1)", _("Page up"), show=False, id="table.page_up"),
        Binding("pagedown", "page(1)", _("Page down"), show=False, id="table.page_down"),
        Binding("home", "edge(0)", _("First"), show=False, id="table.first"),
        Binding("end", "edge(-1)", _("Last"), show=False, id="table.last"),
    ]

    class Chosen(Message):
        """Another row is chosen."""

    class Opened(Message):
        """The chosen row was clicked once more."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._keys: Sequence[Hashable] = ()
        self._line: Callable[[int], Text] = lambda place: Text()
        self._head = self._empty = Text()
        self._place = self._top = 0
        self._held = False
        self._drawn: list[Text] = []
        self._marked = 0
        self._mark: tuple[object, ...] = ()

    @property
    def place(self) -> int | None:
        """Which row is chosen, None when there is none."""
        return self._place if self._place < len(self._keys) else None

    @property
    def chosen(self) -> Hashable | None:
        """Key of the chosen row."""
        return self._keys[self._place] if self._place < len(self._keys) else None

    def show(
        self, keys: Sequence[Hashable], line: Callable[[int], Text], *, head: Text | None = None, empty: Text
    ) -> None:
        """Shows these rows; `line` draws one by its place. Nothing is drawn anew when all in view look the same."""
        before = self.chosen
        self._keys, self._line, self._empty = keys, line, empty
        self._head = head or Text()
        if self._held and before is not None and (self._place >= len(keys) or keys[self._place] != before):
            self._place = next((place for place, key in enumerate(keys) if key == before), self._place)
        self._place = max(0, min(self._place, len(keys) - 1))
        self._reveal()
        if self.chosen != before:
            self.post_message(self.Chosen())

    def choose(self, key: Hashable) -> None:
        """Makes a row the chosen one, if it is there."""
        place = next((place for place, one in enumerate(self._keys) if one == key), None)
        if place is not None:
            self._go(place)

    @property
    def _height(self) -> int:
        return max(1, self.size.height - bool(self._head.plain))

    def _reveal(self) -> None:
        self._top = max(0, min(self._top, self._place), self._place - self._height + 1)
        self._top = max(0, min(self._top, len(self._keys) - self._height))
        in_view = range(self._top, min(len(self._keys), self._top + self._height))
        drawn = [self._line(place) for place in in_view]
        mark = (self._head.plain, self._empty.plain if not self._keys else "", self.size)
        marked, self._marked = self._marked, self._place - self._top
        same = mark == self._mark and len(drawn) == len(self._drawn)
        before, self._drawn, self._mark = self._drawn, drawn, mark
        if not same:
            self.refresh()
            return
        # Times tick in each row at a moment of its own: the whole table four times a second is too much for slow lines.
        changed = [
            Region(0, place + bool(self._head.plain), self.size.width, 1)
            for place, (one, other) in enumerate(zip(drawn, before, strict=True))
            if one.plain != other.plain
            or one.spans != other.spans
            or (marked != self._marked and place in (marked, self._marked))
        ]
        if changed:
            self.refresh(*changed)

    def _go(self, place: int) -> None:
        self._place = max(0, min(place, len(self._keys) - 1))
        self._held = bool(self._place)
        self._reveal()
        self.post_message(self.Chosen())

    def action_move(self, step: int) -> None:
        """The row above or below."""
        if self._keys:
            self._go(self._place + step)

    def action_page(self, step: int) -> None:
        """A view up or down."""
        self.action_move(step * max(1, self._height - 1))

    def action_edge(self, which: int) -> None:
        """The first or the last row. On the first one, what is chosen is whatever comes to stand there."""
        if self._keys:
            self._go(0 if which == 0 else len(self._keys) - 1)

    def on_resize(self) -> None:
        """Another size."""
        self._mark = ()
        self._reveal()

    def on_click(self, event: events.Click) -> None:
        """Chooses the row under the mouse; opens it when it is chosen already."""
        place = self._top + event.y - bool(self._head.plain)
        if self._top <= place < len(self._keys):
            if place == self._place:
                self.post_message(self.Opened())
            else:
                self._go(place)

    def on_mouse_scroll_down(self) -> None:
        """The wheel."""
        self.action_move(1)

    def on_mouse_scroll_up(self) -> None:
        """The wheel."""
        self.action_move(-1)

    def render_line(self, y: int) -> Strip:
        width, look = self.size.width, look_of(self)
        if not self._keys:
            words = [Text(), *self._empty.split("\n")]
            line = Text("  ").append_text(words[y]) if y < len(words) else Text()
            return list_row(line, width, self.rich_style, look, chosen=False)
        if self._head.plain:
            if not y:
                return list_row(self._head, width, self.rich_style, look, chosen=False)
            y -= 1
        if y >= len(self._drawn):
            return Strip.blank(width, self.rich_style)
        return list_row(self._drawn[y], width, self.rich_style, look, chosen=self._top + y == self._place)

    @property
    def plain(self) -> list[str]:
        """The lines in view as they are drawn."""
        return [text.plain.rstrip() for text in self._drawn]
