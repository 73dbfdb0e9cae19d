"""What a person writes on cards: one line, or a whole card. Checks nothing: the board does, and the form comes back
with its words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from hermes_tui.screens.steady import SteadyModal
from hermes_tui.texts import _
from hermes_tui.widgets.cards import shown
from hermes_tui.widgets.field import Field
from hermes_tui.widgets.prompt.area import Area
from hermes_tui.widgets.prompt.prompt import NEWLINE_KEYS

STYLES = [Path(__file__).parents[1] / "overlays" / "overlays.tcss", Path(__file__).with_name("kanban.tcss")]


def field(value: str, name: str) -> Input:
    """A field of one line."""
    made = Field(value, id=name, classes="field", compact=True, select_on_focus=False)
    made.cursor_blink = False
    return made


def words(text: str, kind: str) -> Static:
    """A line that is only read."""
    return Static(Text(text), classes=kind, markup=False)


class OneLine(SteadyModal[str | None]):
    """Asks for one line; returns it, None when it was closed. With `must` an empty one is not taken."""

    CSS_PATH: ClassVar[Any] = STYLES
    AUTO_FOCUS = "Input"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "close", _("Close"), show=False, id="line.close", priority=True),
    ]

    def __init__(self, title: str, label: str, value: str = "", *, must: bool = False) -> None:
        super().__init__()
        self._title, self._label, self._value, self._must = title, label, value, must

    def compose(self) -> ComposeResult:
        with Vertical(id="card"):
            yield Static(Text(self._title), id="title", markup=False)
            yield words(self._label, "label")
            yield field(self._value, "line")
            yield words(_("Enter · Esc closes"), "note")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter."""
        value = event.value.strip()
        if value or not self._must:
            self.dismiss(value)

    def action_close(self) -> None:
        """Closes it."""
        self.dismiss(None)


@dataclass(frozen=True, slots=True)
class Written:
    """What stands in the form of a card, as it is shown there."""

    title: str = ""
    body: str = ""
    assignee: str = ""
    priority: str = ""
    parents: str = ""
    reviewer: str = ""

    def parent_ids(self) -> tuple[str, ...]:
        """The cards it waits for."""
        return tuple(self.parents.replace(",", " ").split())

    def number(self) -> int:
        """The priority. Raises UsageError."""
        return as_number(self.priority)


def as_number(text: str) -> int:
    """A priority, 0 for nothing. Raises UsageError."""
    from hermes_engine.errors import UsageError

    try:
        return int(text.strip() or "0")
    except ValueError:
        raise UsageError(_("the priority is a whole number; higher is worked first")) from None


class CardForm(SteadyModal[Written | None]):
    """A card to be written; returns what stands there, None when it was closed."""

    CSS_PATH: ClassVar[Any] = STYLES
    AUTO_FOCUS = "#title-field"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "close", _("Close"), show=False, id="form.close", priority=True),
        Binding("ctrl+s", "save", _("Save"), show=False, id="form.save"),
        # at once, so that what is typed right after it goes to the next field
        Binding("tab", "app.focus_next", _("Next field"), show=False, id="form.next", priority=True),
        Binding("shift+tab", "app.focus_previous", _("Field before"), show=False, id="form.previous", priority=True),
    ]

    def __init__(
        self,
        title: str,
        before: Written,
        *,
        profiles: Sequence[str] = (),
        fault: str = "",
        only: Sequence[str] = ("body", "assignee", "priority", "parents", "reviewer"),
    ) -> None:
        """Args:
        title: heading.
        before: what stands there at first.
        profiles: names that are known here.
        fault: why it was not taken the last time.
        only: fields there are besides the title.
        """
        super().__init__()
        self._title, self.before, self._fault, self._only = title, before, fault, only
        self._profiles = ", ".join(profiles)
        self.body = Area(id="body-field")
        self.body.take_paste = self._paste
        self.body.take_key = self._newline

    def compose(self) -> ComposeResult:
        labels = {
            "assignee": _("Profile that works it: {names}").format(names=self._profiles or "default"),
            "priority": _("Priority, higher first"),
            "parents": _("Cards it waits for: k1 k2"),
            "reviewer": _("Profile that reviews it, empty for you"),
        }
        with Vertical(id="card"):
            yield Static(Text(self._title), id="title", markup=False)
            if self._fault:  # on top: in a short window the end of the form is not in view
                yield words(self._fault, "fault")
            yield words(_("Title"), "label first")
            yield field(shown(self.before.title), "title-field")
            if "body" in self._only:
                yield words(_("The whole task"), "label")
                yield self.body
            for name, label in labels.items():
                if name in self._only:
                    yield words(label, "label")
                    yield field(getattr(self.before, name), f"{name}-field")
            yield words(_("Tab next · ^S saves · Esc closes"), "note")

    def on_mount(self) -> None:
        """The body as it is."""
        self.body.load_text(self.before.body)
        self.call_after_refresh(self.query_one("#card").scroll_home, animate=False)

    def _paste(self, text: str) -> None:
        self.body.insert(text.replace("\r\n", "\n").replace("\r", "\n"))

    def _newline(self, event: events.Key) -> bool:
        """The prompt's keys for a new line work here, too."""
        if event.key in NEWLINE_KEYS:
            self.body.insert("\n")
        return event.key in NEWLINE_KEYS

    def written(self) -> Written:
        """What stands there now; the title as it was where it was not touched."""

        def value(name: str) -> str:
            found = self.query(f"#{name}-field")
            return found.first(Input).value.strip() if found else str(getattr(self.before, name))

        title = value("title")
        return Written(
            self.before.title if title == shown(self.before.title) else title,
            self.body.text if "body" in self._only else self.before.body,
            value("assignee"), value("priority"), value("parents"), value("reviewer"),
        )  # fmt: skip

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter goes to the next field, from the last one it saves."""
        if event.input is list(self.query(Input))[-1]:
            self.action_save()
        else:
            self.focus_next()

    def action_save(self) -> None:
        """Takes it, when there is a title."""
        found = self.written()
        if found.title:
            self.dismiss(found)
        else:
            self.query_one("#title-field", Input).focus()

    def action_close(self) -> None:
        """Closes it; nothing is changed."""
        self.dismiss(None)
