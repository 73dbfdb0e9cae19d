"""A list to choose from, narrowed by typing: models, chats, themes, commands, keys. Returns the id of a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input, Static

from hermes_tui.cleaning import one_line
from hermes_tui.screens.steady import SteadyModal
from hermes_tui.texts import _
from hermes_tui.widgets.field import Field
from hermes_tui.widgets.look import look_of
from hermes_tui.widgets.rows import list_row, shorten, spread


@dataclass(frozen=True, slots=True)
class Item:
    """A row: `id` is returned, `label` and `detail` are searched, `right` stands at the end, `group` heads rows."""

    id: str
    label: str
    detail: str = ""
    right: str = ""
    group: str = ""


class PickList(ScrollView):
    """The rows."""

    class Clicked(Message):
        """A row was clicked."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[Item | str] = []
        self._chosen = 0
        self._column = 0

    def show(self, items: Sequence[Item], chosen: str = "") -> None:
        """Shows these rows, headed by their groups."""
        self._lines = []
        group = ""
        for item in items:
            if item.group and item.group != group:
                group = item.group
                self._lines.append(group)
            self._lines.append(item)
        places = [place for place, line in enumerate(self._lines) if isinstance(line, Item)]
        wanted = next((place for place in places if self._id_at(place) == chosen), None)
        self._chosen = wanted if wanted is not None else places[0] if places else 0
        self._column = min(34, max((len(one_line(item.label)) for item in items), default=0))
        self.virtual_size = Size(self.size.width, len(self._lines))
        self._reveal()
        self.refresh()

    def _id_at(self, place: int) -> str:
        line = self._lines[place]
        return line.id if isinstance(line, Item) else ""

    @property
    def chosen(self) -> Item | None:
        """The row that is chosen."""
        line = self._lines[self._chosen] if self._lines else None
        return line if isinstance(line, Item) else None

    def move(self, step: int) -> None:
        """Chooses another row."""
        places = [place for place, line in enumerate(self._lines) if isinstance(line, Item)]
        if not places:
            return
        at = places.index(self._chosen) if self._chosen in places else 0
        self._chosen = (
            places[(at + step) % len(places)] if abs(step) == 1 else places[max(0, min(len(places) - 1, at + step))]
        )
        self._reveal()
        self.refresh()

    def _reveal(self) -> None:
        first = self._chosen - 1 if self._chosen and isinstance(self._lines[self._chosen - 1], str) else self._chosen
        self.scroll_to_region(Region(0, first, 1, self._chosen - first + 1), animate=False, x_axis=False)

    def render_line(self, y: int) -> Strip:
        width, look = self.size.width, look_of(self)
        place = self.scroll_offset.y + y
        if place >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        line = self._lines[place]
        if isinstance(line, str):
            return list_row(Text(f"  {line}", look.faint), width, self.rich_style, look, chosen=False)
        chosen = place == self._chosen
        left = Text().append(f" {look.glyphs.prompt} " if chosen else "   ", look.accent)
        column = min(self._column, width // 2 - 4) if line.detail else width
        left.append_text(shorten(Text(one_line(line.label, 400), look.text), max(6, min(width - 4, column + 10))))
        if line.detail:
            left.append(" " * max(2, column + 5 - left.cell_len)).append(one_line(line.detail, 400), look.faint)
        text = spread(left, Text(one_line(line.right), look.faint), width - 1)
        return list_row(text, width, self.rich_style, look, chosen=chosen)

    def on_click(self, event: events.Click) -> None:
        """Takes the row."""
        place = self.scroll_offset.y + event.y
        if place < len(self._lines) and isinstance(self._lines[place], Item):
            self._chosen = place
            self.post_message(self.Clicked())


class Picker(SteadyModal[str | None]):
    """Returns the id of the chosen row, or None. `preview` is told of each row the arrows come to."""

    CSS_PATH = Path(__file__).with_name("overlays.tcss")
    AUTO_FOCUS = "Input"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "cancel", _("Close"), show=False, id="picker.close", priority=True),
        Binding("up", "move(-1)", _("Up"), show=False, id="picker.up", priority=True),
        Binding("down", "move(1)", _("Down"), show=False, id="picker.down", priority=True),
        Binding("pageup", "move(-8)", _("Page up"), show=False, id="picker.page_up", priority=True),
        Binding("pagedown", "move(8)", _("Page down"), show=False, id="picker.page_down", priority=True),
    ]

    def __init__(
        self,
        title: str,
        items: Sequence[Item],
        *,
        chosen: str = "",
        hint: str = "",
        typed: bool = False,
        preview: Callable[[str], None] | None = None,
    ) -> None:
        """Args:
        title: heading.
        items: rows.
        chosen: id of the row to begin with.
        hint: a line under the rows.
        typed: a text that matches no row may be chosen too (it is returned as it is).
        preview: hears the id of the row that is chosen now.
        """
        super().__init__()
        self._title, self._items, self._start = title, list(items), chosen
        self._hint, self._typed, self._preview = hint, typed, preview
        self._list = PickList()

    def compose(self) -> ComposeResult:
        with Vertical(id="card"):
            yield Static(Text(self._title), id="title", markup=False)
            narrow = Field(placeholder=_("type to narrow"), id="filter", compact=True)
            narrow.cursor_blink = False
            yield narrow
            yield self._list
            yield Static(Text(self._hint or _("↑↓ Enter · Esc closes")), id="foot", markup=False)

    def on_mount(self) -> None:
        """Shows all rows."""
        rows = len(self._items) + len({item.group for item in self._items if item.group})
        self._list.styles.height = max(1, min(rows, 22))
        self.call_after_refresh(self._list.show, self._items, self._start)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Narrows the rows."""
        words = event.value.lower().split()
        found = [item for item in self._items if all(word in f"{item.label} {item.detail}".lower() for word in words)]
        typed = event.value.strip()
        if self._typed and found and typed and typed not in [item.id for item in self._items]:
            found.append(Item(typed, typed, _("as you typed it")))
            self._list.styles.height = min(max(len(found), self._list.size.height), 22)
        self._list.show(found)
        none = _("0 of {count}. Esc closes.").format(count=len(self._items))
        taken = _("Enter takes what you typed") if self._typed else none
        self.query_one("#foot", Static).update(Text((self._hint or _("↑↓ Enter · Esc closes")) if found else taken))

    def action_move(self, step: int) -> None:
        """Another row."""
        self._list.move(step)
        if self._preview is not None and self._list.chosen is not None:
            self._preview(self._list.chosen.id)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Takes the row."""
        chosen = self._list.chosen
        if chosen is not None:
            self.dismiss(chosen.id)
        elif self._typed and event.value.strip():
            self.dismiss(event.value.strip())

    def on_pick_list_clicked(self) -> None:
        """Takes the row."""
        if self._list.chosen is not None:
            self.dismiss(self._list.chosen.id)

    def action_cancel(self) -> None:
        """Closes the list."""
        self.dismiss(None)
