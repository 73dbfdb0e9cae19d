"""A card with a question and a few numbered answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from hermes_tui.cleaning import one_line
from hermes_tui.screens.steady import SteadyModal
from hermes_tui.texts import _
from hermes_tui.widgets.look import look_of
from hermes_tui.widgets.rows import list_row, spread


@dataclass(frozen=True, slots=True)
class Choice:
    """A numbered answer: `id` is returned, `detail` explains, `right` stands at the end."""

    id: str
    label: str
    detail: str = ""
    right: str = ""


class Choices(Widget, can_focus=True):
    """Numbered answers, one a line."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", _("Up"), show=False, id="choices.up"),
        Binding("down,j", "move(1)", _("Down"), show=False, id="choices.down"),
        Binding("enter", "take", _("Choose"), show=False, id="choices.take"),
    ]

    class Taken(Message):
        """An answer was chosen."""

        def __init__(self, choice: Choice) -> None:
            super().__init__()
            self.choice = choice

    def __init__(self, choices: Sequence[Choice]) -> None:
        super().__init__()
        self.choices = tuple(choices)
        self._chosen = 0

    def show(self, choices: Sequence[Choice]) -> None:
        """Other answers; the chosen one stays chosen."""
        current = self.choices[self._chosen].id if self.choices else ""
        self.choices = tuple(choices)
        self._chosen = next((place for place, choice in enumerate(self.choices) if choice.id == current), 0)
        self.refresh(layout=True)

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        return len(self.choices)

    def render_line(self, y: int) -> Strip:
        width, look = self.size.width, look_of(self)
        if y >= len(self.choices):
            return Strip.blank(width, self.rich_style)
        choice, chosen = self.choices[y], y == self._chosen
        left = Text().append(f" {look.glyphs.prompt} " if chosen else "   ", look.accent)
        left.append(f"{y + 1}  ", look.soft).append(one_line(choice.label), look.text)
        column = max(len(one_line(item.label)) for item in self.choices) + 9
        if choice.detail and column + 8 < width:
            left.append(" " * max(2, column - left.cell_len)).append(one_line(choice.detail), look.faint)
        line = spread(left, Text(one_line(choice.right), look.good), width - 1)
        return list_row(line, width, self.rich_style, look, chosen=chosen)

    def action_move(self, step: int) -> None:
        """Another answer."""
        self._chosen = (self._chosen + step) % len(self.choices)
        self.refresh()

    def action_take(self) -> None:
        """Takes the answer."""
        self.post_message(self.Taken(self.choices[self._chosen]))

    def on_key(self, event: events.Key) -> None:
        """Numbers."""
        if event.character and event.character.isdecimal() and 1 <= int(event.character) <= len(self.choices):
            event.stop()
            self._chosen = int(event.character) - 1
            self.refresh()
            self.action_take()

    def on_click(self, event: events.Click) -> None:
        """Takes the answer under the mouse."""
        if 0 <= event.y < len(self.choices):
            self._chosen = event.y
            self.refresh()
            self.action_take()


class Card(SteadyModal[str]):
    """Returns the id of the answer, "" when it was closed without one."""

    CSS_PATH = Path(__file__).with_name("overlays.tcss")
    AUTO_FOCUS = "Choices"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", _("Close"), show=False, id="card.close"),
        Binding("ctrl+c", "close", _("Close"), show=False, id="card.away", priority=True),
    ]

    def __init__(self, title: str, lines: Sequence[str], choices: Sequence[Choice], note: str = "") -> None:
        super().__init__()
        self._title, self._body, self._note = title, list(lines), note
        self.choices = Choices(choices)

    def compose(self) -> ComposeResult:
        with Vertical(id="card"):
            yield Static(Text(self._title), id="title", markup=False)
            for line in self._body:
                yield Static(Text(one_line(line)), classes="line", markup=False)
            yield self.choices
            if self._note:
                yield Static(Text(self._note), classes="note", markup=False)

    def on_choices_taken(self, message: Choices.Taken) -> None:
        """An answer was chosen."""
        message.stop()
        self.take(message.choice.id)

    def take(self, chosen: str) -> None:
        """What follows from an answer: the card returns it."""
        self.dismiss(chosen)

    def action_close(self) -> None:
        """Closes the card."""
        self.dismiss("")
