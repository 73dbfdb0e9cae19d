"""The question asked when the person leaves while something runs; it follows what runs until it is answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from hermes_tui.cleaning import one_line
from hermes_tui.leaving_behind import goes_on, left_words
from hermes_tui.screens.overlays.card import Card, Choice
from hermes_tui.texts import _, ngettext
from hermes_tui.widgets.look import Look, look_of
from hermes_tui.widgets.rows import cut, shorten, spread

if TYPE_CHECKING:
    from hermes_engine.session import AgentRow

LOOK_SECONDS = 0.25
MAX_LISTED = 6
OTHER_ROWS = 10
"""Rows of the card besides what is listed, its notes left out."""

NAME = 16


class QuitDialog(Card):
    """What still runs, and what shall become of it: stop | wait | leave | "" (stay). Ctrl+C or Ctrl+D once more stops
    it. `keeps`: whether a conversation is kept, so that it can go on without this program.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c,ctrl+d", "leave", _("Stop it and quit"), show=False, id="quit.leave", priority=True),
    ]

    def __init__(self, running: Callable[[], Sequence[AgentRow]], *, keeps: bool) -> None:
        self._at_work, self._keeps = running, keeps
        self._rows = tuple(running())
        super().__init__("", [], self._choices())
        self._heading, self._working, self._told = (
            Static("", id="title", markup=False),
            Static("", classes="line", markup=False),
            Static("", classes="note", markup=False),
        )

    def compose(self) -> ComposeResult:
        with Vertical(id="card"):
            yield self._heading
            yield self._working
            yield self.choices
            yield self._told

    def on_mount(self) -> None:
        """Begins to look."""
        self.set_interval(LOOK_SECONDS, self._look)
        self.call_after_refresh(self._draw)

    def on_resize(self) -> None:
        """Another size."""
        self.call_after_refresh(self._draw)

    @property
    def _may_leave(self) -> bool:
        return self._keeps and any(goes_on(row) for row in self._rows)

    def _choices(self) -> list[Choice]:
        if not self._rows:
            return [Choice("stop", _("Quit")), Choice("", _("Stay"))]
        leave = Choice("leave", _("Leave it working and quit"), _("`hermes tasks` shows it"))
        return [
            Choice("stop", _("Stop and quit"), _("what was done so far is kept")),
            Choice("wait", _("Quit when it is done"), _("this screen stays open until then")),
            *([leave] if self._may_leave else []),
            Choice("", _("Stay")),
        ]

    def _look(self) -> None:
        rows = tuple(self._at_work())
        if rows == self._rows:
            return
        self._rows = rows
        choices = self._choices()
        if [choice.id for choice in choices] != [choice.id for choice in self.choices.choices]:
            self.choices.show(choices)
        self._draw()

    def _draw(self) -> None:
        count, look = len(self._rows), look_of(self)
        heading = ngettext("{count} thing still runs", "{count} things still run", count).format(count=count)
        self._heading.update(Text(heading if count else _("Nothing runs any more")))
        self._working.display = bool(count)
        room = max(1, min(MAX_LISTED, self.app.size.height - OTHER_ROWS))
        shown = self._rows if count <= room else self._rows[: max(1, room - 1)]
        width = max(10, self.choices.size.width)
        lines = [_line(row, width, look, tells=self._may_leave) for row in shown]
        if count > len(shown):
            lines.append(Text(_("and {count} more").format(count=count - len(shown)), look.faint))
        self._working.update(Text("\n").join(lines))
        notes = left_words(self._rows) if self._may_leave else []
        last = _("Ctrl+C again stops and quits · Esc stays") if count else _("Ctrl+C quits · Esc stays")
        self._told.update(Text("\n".join([*notes, last])))

    def action_leave(self) -> None:
        """Stops what runs and quits."""
        self.dismiss("stop")


def _line(row: AgentRow, width: int, look: Look, *, tells: bool) -> Text:
    """Name, title and activity in columns; at the right that it cannot be left working, where others can."""
    right = Text(_("cannot be left") if tells and not goes_on(row) else "", look.warning)
    name = cut(one_line(row.name), min(NAME, width // 3), look.glyphs.ellipsis)
    left = Text(name.ljust(min(NAME, width // 3) + 2), look.text)
    room = width - left.cell_len - right.cell_len - 1
    title, doing = one_line(row.title), one_line(row.activity)
    if row.kind == "batch" and title == name:
        title = _("batch run")
    column = room if room < 30 or not doing else room * 3 // 5
    first = shorten(Text(title or doing, look.soft), column, look.glyphs.ellipsis)
    left.append_text(first)
    if title and column < room:
        left.append(" " * (column - first.cell_len) + "  ")
        left.append_text(shorten(Text(doing, look.faint), room - column - 2, look.glyphs.ellipsis))
    return spread(left, right, width)
