"""The list of agents: one line each, one of them chosen. Knows lines and keys, no engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from hermes_tui.screens.agents.drawing import list_line, name_width
from hermes_tui.screens.agents.items import AgentItem, Line
from hermes_tui.texts import _
from hermes_tui.widgets.look import look_of
from hermes_tui.widgets.rows import list_row


class AgentList(Widget, can_focus=True):
    """The lines in view. What is chosen stays chosen by its id, wherever it moves to."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", _("Agent above"), show=False, id="agents.up"),
        Binding("down,j", "move(1)", _("Agent below"), show=False, id="agents.down"),
        Binding("pageup", "page(-1)", _("Page up"), show=False, id="agents.page_up"),
        Binding("pagedown", "page(1)", _("Page down"), show=False, id="agents.page_down"),
        Binding("home", "edge(0)", _("First"), show=False, id="agents.first"),
        Binding("end", "edge(-1)", _("Last"), show=False, id="agents.last"),
    ]

    class Chosen(Message):
        """Another agent is chosen."""

    class Opened(Message):
        """The chosen agent was clicked once more."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[Line] = []
        self._drawn: list[Text] = []
        self._chosen = ""
        self._moved = False
        self._place = 0
        self._top = 0
        self._empty = Text()

    @property
    def chosen(self) -> AgentItem | None:
        """The agent the keys act on."""
        return next((line.item for line in self._lines if line.item and line.item.id == self._chosen), None)

    def show(self, lines: Sequence[Line], now: float, empty: Text) -> None:
        """Shows these lines, or the words for none; nothing is drawn when they look the same."""
        self._lines, look = list(lines), look_of(self)
        width = self.size.width
        names = name_width(lines, width, look)
        drawn = [list_line(line, width, now, look, names) for line in lines]
        before = self._chosen
        places = self._places()
        at = next((place for place in places if self._agent_at(place) == self._chosen), None)
        if not self._moved and places and (at is None or not self._lives(at)):
            # nobody has chosen yet: what is live stands first
            at = places[0]
        if at is None and places:
            # what was chosen has gone: what has taken its place is next
            at = min(places, key=lambda place: abs(place - self._place))
        self._place, self._chosen = at or 0, self._agent_at(at) if at is not None else ""
        same = len(drawn) == len(self._drawn) and all(
            one.plain == other.plain and one.spans == other.spans for one, other in zip(drawn, self._drawn, strict=True)
        )
        if not same or before != self._chosen or empty.plain != self._empty.plain:
            self._drawn, self._empty = drawn, empty
            self._reveal()
            self.refresh()
        if before != self._chosen:
            self.post_message(self.Chosen())

    def choose(self, agent: str) -> None:
        """Makes an agent the chosen one."""
        place = next((place for place in self._places() if self._agent_at(place) == agent), None)
        self._chosen, self._moved = agent, True
        if place is not None:
            self._go(place)

    def _places(self) -> list[int]:
        return [place for place, line in enumerate(self._lines) if line.item is not None]

    def _agent_at(self, place: int) -> str:
        item = self._lines[place].item
        return item.id if item else ""

    def _lives(self, place: int) -> bool:
        item = self._lines[place].item
        return item is not None and item.live

    def _go(self, place: int) -> None:
        self._place, self._chosen, self._moved = place, self._agent_at(place), True
        self._reveal()
        self.refresh()
        self.post_message(self.Chosen())

    def _reveal(self) -> None:
        height = max(1, self.size.height)
        first = self._place - 1 if self._place and self._lines[self._place - 1].item is None else self._place
        self._top = max(0, min(self._top, first), self._place - height + 1)
        self._top = min(self._top, max(0, len(self._lines) - height))

    def action_move(self, step: int) -> None:
        """The agent above or below."""
        places = self._places()
        if places:
            at = places.index(self._place) if self._place in places else 0
            self._go(places[max(0, min(len(places) - 1, at + step))])

    def action_page(self, step: int) -> None:
        """A view up or down."""
        self.action_move(step * max(1, self.size.height - 1))

    def action_edge(self, which: int) -> None:
        """The first or the last agent."""
        if places := self._places():
            self._go(places[which])

    def on_resize(self) -> None:
        """Another size: drawn with the next look."""
        self._drawn = []

    def on_click(self, event: events.Click) -> None:
        """Chooses the line under the mouse; opens it when it is chosen already."""
        place = self._top + event.y
        if place >= len(self._lines) or self._lines[place].item is None:
            return
        if self._agent_at(place) == self._chosen:
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
        place = self._top + y
        if not self._lines and y < 3:
            words = self._empty.split("\n")
            line = Text("  ").append_text(words[y - 1]) if 0 < y <= len(words) else Text()
            return list_row(line, width, self.rich_style, look, chosen=False)
        if place >= len(self._drawn):
            return Strip.blank(width, self.rich_style)
        chosen = bool(self._chosen) and self._agent_at(place) == self._chosen
        return list_row(self._drawn[place], width, self.rich_style, look, chosen=chosen)

    @property
    def plain(self) -> list[str]:
        """The lines as they are drawn."""
        return [text.plain.rstrip() for text in self._drawn]
