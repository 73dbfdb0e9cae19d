"""One line of small parts at its left and right ends, some of which can be clicked; the least important go first
when the line is too short. Header, status line and the like are such bars.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from hermes_tui.cleaning import one_line
from hermes_tui.widgets.look import Look, look_of
from hermes_tui.widgets.rows import cut

ROLES = ("text", "soft", "faint", "accent", "warning", "good", "bad", "strong", "line")


@dataclass(frozen=True, slots=True)
class Part:
    """A word or two of a bar.

    Attributes:
        text: what stands there; cleaned when drawn.
        role: style, one of `ROLES`.
        action: what a click asks for, "" for nothing.
        weight: parts of less weight are dropped first.
        gap: blanks before it.
        shrinks: it is cut rather than dropped, down to this many cells (0 = dropped whole).
    """

    text: str
    role: str = "soft"
    action: str = ""
    weight: int = 5
    gap: int = 2
    shrinks: int = 0


class Bar(Widget):
    """A line of parts."""

    DEFAULT_CSS = "Bar { height: 1; width: 1fr; }"

    class Clicked(Message):
        """A part with an action was clicked."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._left: tuple[Part, ...] = ()
        self._right: tuple[Part, ...] = ()
        self._zones: list[tuple[int, int, str]] = []

    def show(self, left: Sequence[Part] = (), right: Sequence[Part] = ()) -> None:
        """Shows these parts; nothing is drawn when they are the same."""
        parts = (tuple(left), tuple(right))
        if parts != (self._left, self._right):
            self._left, self._right = parts
            self.refresh()

    @property
    def plain(self) -> str:
        """The line as it is drawn now."""
        return self._draw(self.size.width, look_of(self))[0].text

    def render_line(self, y: int) -> Strip:
        if y:
            return Strip.blank(self.size.width, self.rich_style)
        strip, self._zones = self._draw(self.size.width, look_of(self))
        return strip.apply_style(self.rich_style).adjust_cell_length(self.size.width, self.rich_style)

    def _draw(self, width: int, look: Look) -> tuple[Strip, list[tuple[int, int, str]]]:
        left, right = self._fit(width)
        zones: list[tuple[int, int, str]] = []
        segments: list[Segment] = []
        position = _place(left, 0, look, segments, zones)
        right_width = sum(_cells(part) for part in right)
        filler = max(0, width - position - right_width)
        segments.append(Segment(" " * filler))
        _place(right, position + filler, look, segments, zones)
        return Strip(segments), zones

    def _fit(self, width: int) -> tuple[list[Part], list[Part]]:
        """The parts that have room."""
        left, right = list(self._left), list(self._right)
        while True:
            excess = sum(map(_cells, [*left, *right])) - width
            candidates = [*left, *right]
            if excess <= 0 or not candidates:
                return left, right
            weakest = min(candidates, key=lambda part: part.weight)
            side = left if weakest in left else right
            place = side.index(weakest)
            kept = _cells(weakest) - excess - weakest.gap
            if weakest.shrinks and kept >= weakest.shrinks:
                short = cut(one_line(weakest.text), kept)
                side[place] = Part(short, weakest.role, weakest.action, weakest.weight, weakest.gap)
                return left, right
            del side[place]

    def on_click(self, event: events.Click) -> None:
        """Passes the action of the part under the mouse on."""
        action = next((action for start, end, action in self._zones if start <= event.x < end), "")
        if action:
            event.stop()
            self.post_message(self.Clicked(action))


def _cells(part: Part) -> int:
    from rich.cells import cell_len

    return part.gap + cell_len(one_line(part.text))


def _place(
    parts: Sequence[Part], start: int, look: Look, segments: list[Segment], zones: list[tuple[int, int, str]]
) -> int:
    for part in parts:
        style: Style = getattr(look, part.role)
        cells = _cells(part)
        segments.append(Segment(" " * part.gap))
        segments.append(Segment(one_line(part.text), style))
        if part.action:
            zones.append((start + part.gap, start + cells, part.action))
        start += cells
    return start
