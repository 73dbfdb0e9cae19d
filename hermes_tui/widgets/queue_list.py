"""What waits to be sent, above the prompt: one line each, the oldest first."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.widgets import Static

from hermes_tui.cleaning import one_line
from hermes_tui.texts import _
from hermes_tui.widgets.look import look_of
from hermes_tui.widgets.rows import shorten

MAX_SHOWN = 3


class QueueList(Static):
    """The queued messages; hidden when none waits."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("", id=id, markup=False)
        self.items: tuple[str, ...] = ()
        self.display = False

    def show(self, items: Sequence[str], *, busy: bool) -> None:
        """Shows what waits, and how to send or take it back."""
        self.items = tuple(items)
        self.display = bool(self.items)
        look, width = look_of(self), max(20, self.app.size.width - 2)
        lines: list[Text] = []
        for number, item in enumerate(self.items[:MAX_SHOWN], 1):
            line = Text("  ").append(_("queued {number}").format(number=number), look.faint)
            line.append(f"  {one_line(item, 300)}", look.soft)
            lines.append(shorten(line, width, look.glyphs.ellipsis))
        hidden = len(self.items) - MAX_SHOWN
        words = _("Enter sends the first now") if busy else _("Enter sends the first")
        tail = f"+{hidden}  " if hidden > 0 else ""
        lines.append(Text("  ").append(f"{tail}{words} · " + _("↑ takes the last back"), look.faint))
        self.update(Text("\n").join(lines))
