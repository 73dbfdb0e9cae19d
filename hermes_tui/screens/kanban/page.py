"""A page of lines, some of which can be chosen. Keeps the place; knows no card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from hermes_tui.texts import _
from hermes_tui.widgets.look import look_of
from hermes_tui.widgets.rows import list_row


@dataclass(frozen=True, slots=True)
class PageLine:
    """A line; `item` is what Enter opens on it, "" for nothing."""

    text: Text
    item: str = ""


class Page(Widget, can_focus=True):
    """Lines to read; arrows go from one that can be opened to the next, and scroll where there is none."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "step(-1)", _("Up"), show=False, id="page.up"),
        Binding("down,j", "step(1)", _("Down"), show=False, id="page.down"),
        Binding("pageup", "turn(-1)", _("Page up"), show=False, id="page.page_up"),
        Binding("pagedown", "turn(1)", _("Page down"), show=False, id="page.page_down"),
        Binding("home", "turn(-999)", _("Beginning"), show=False, id="page.first"),
        Binding("end", "turn(999)", _("End"), show=False, id="page.last"),
    ]

    class Opened(Message):
        """A line is to be opened."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: Sequence[PageLine] = ()
        self._top = 0
        self._chosen = ""

    @property
    def chosen(self) -> str:
        """What Enter opens."""
        return self._chosen

    def show(self, lines: Sequence[PageLine]) -> None:
        """Shows these lines; nothing is drawn when they look the same."""
        same = len(lines) == len(self._lines) and all(
            new.item == old.item and new.text.plain == old.text.plain and new.text.spans == old.text.spans
            for new, old in zip(lines, self._lines, strict=True)
        )
        if same:
            return
        self._lines = lines
        items = [line.item for line in lines if line.item]
        if self._chosen not in items:
            self._chosen = items[-1] if items else ""
        self._bound()
        self.refresh()

    def _bound(self) -> None:
        self._top = max(0, min(self._top, len(self._lines) - max(1, self.size.height)))

    def on_resize(self) -> None:
        """Another size."""
        self._bound()

    def action_step(self, step: int) -> None:
        """The next line that can be opened, if it is in view or near; else scrolls."""
        places = [place for place, line in enumerate(self._lines) if line.item]
        height = max(1, self.size.height)
        at = next((place for place in places if self._lines[place].item == self._chosen), -1)
        if at >= 0 and not self._top <= at < self._top + height:
            at = self._top - 1 if step > 0 else self._top + height
        later = [place for place in places if (place > at if step > 0 else place < at)]
        following = (later[0] if step > 0 else later[-1]) if later else None
        if following is not None and self._top - 1 <= following <= self._top + height:
            self._chosen = self._lines[following].item
            self._top = max(min(self._top, following), following - height + 1)
        else:
            self._top += step
        self._bound()
        self.refresh()

    def action_turn(self, step: int) -> None:
        """Pages up or down."""
        self._top += step * max(1, self.size.height - 1)
        self._bound()
        self.refresh()

    def on_mouse_scroll_down(self) -> None:
        """The wheel."""
        self._top += 2
        self._bound()
        self.refresh()

    def on_mouse_scroll_up(self) -> None:
        """The wheel."""
        self._top -= 2
        self._bound()
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Chooses a line; opens it when it is chosen already."""
        place = self._top + event.y
        item = self._lines[place].item if place < len(self._lines) else ""
        if item and item == self._chosen:
            self.post_message(self.Opened())
        elif item:
            self._chosen = item
            self.refresh()

    def render_line(self, y: int) -> Strip:
        width, look = self.size.width, look_of(self)
        place = self._top + y
        if place >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        line = self._lines[place]
        return list_row(line.text, width, self.rich_style, look, chosen=bool(line.item) and line.item == self._chosen)

    @property
    def plain(self) -> list[str]:
        """All lines."""
        return [line.text.plain.rstrip() for line in self._lines]
