"""Shows a batch run that is at work: one live line on a terminal, plain lines elsewhere, or one event a line.

A sink of the run's events. Knows the events, not the run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, Protocol

from hermes_engine.events import BatchFinished, BatchStarted, Event, Notice, RowFinished, RowStarted, to_json
from hermes_tui.cleaning import one_line
from hermes_tui.printing.records import out_json_line
from hermes_tui.printing.streams import Style, colour, err, is_terminal, out
from hermes_tui.texts import _, ngettext

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

Form = Literal["live", "plain", "json", "quiet"]

PLAIN_EVERY = 5.0
"""Seconds between two plain lines, at least."""

_LIVE_PER_SECOND = 4
_BAR = 20
_BAR_FROM = 60
"""Columns of a terminal from which on a bar stands before the line."""

_MATTERS = {"kept": 7, "failed": 5, "rejected": 4, "invalid": 2, "pending": 0}
"""What is pending follows from the first figure."""

_STYLES: Mapping[str, Style] = {"warning": "yellow", "error": "red"}


def form_for(*, plain: bool, as_json: bool, quiet: bool) -> Form:
    """How a run is shown on this standard output."""
    if as_json:
        return "json"
    if quiet:
        return "quiet"
    return "plain" if plain or not (is_terminal(sys.stdout) and colour(sys.stdout)) else "live"


class Shown(Protocol):
    """A sink with an end."""

    def __call__(self, event: Event) -> None:
        """Shows what there is to show of an event."""
        ...

    def close(self) -> None:
        """Gives the screen back."""
        ...


def shown(form: Form, clock: Callable[[], float] = time.monotonic) -> Shown:
    """The sink for a form."""
    match form:
        case "json":
            return JsonLines()
        case "quiet":
            return Quiet()
        case "plain":
            return PlainLines(clock)
        case "live":
            return LiveLine(clock)


class Pace:
    """How far a run is, by what this invocation has done: earlier ones say nothing about the speed now.

    What it has cost is of all invocations, as its cap is.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.total = self.before = self.ended = self.in_flight = 0
        self.counts: Mapping[str, int] = {}
        self.cost = 0.0
        self.cap: float | None = None
        self._over = False
        self._begun = clock()

    def take(self, event: Event) -> None:
        """Takes in an event."""
        match event:
            case BatchStarted():
                self.total, self.before, self.counts = event.total, event.done, event.counts
                self.cost, self.cap = event.cost_usd, event.max_cost_usd
                self._begun = self._clock()
            case RowStarted():
                self.in_flight += 1
            case RowFinished():
                self.in_flight -= 1
                self.ended += event.outcome != "cancelled"
                self.counts = event.counts
                self.cost += event.usage.cost_usd
            case BatchFinished():
                self._over = True

    @property
    def done(self) -> int:
        """Rows that need nothing more, those of earlier invocations included.

        What ended may be taken back (a refusal of all rows), and `retry` leaves pending rows alone: the counts know.
        """
        settled = self.total - self.counts.get("pending", 0)
        return min(self.before + self.ended, settled)

    @property
    def seconds_left(self) -> float | None:
        """Estimate; None while nothing has ended."""
        if not self.ended:
            return None
        return (self._clock() - self._begun) / self.ended * max(0, self.total - self.done)

    def line(self, room: int | None = None) -> str:
        """Counts, speed and time left on one line; in so much `room` what matters least is left out."""
        parts = self._parts()
        while room is not None and len(parts) > 1 and len(_joined(parts)) > room:
            parts.remove(min(parts, key=lambda part: part[0]))
        return _joined(parts)

    def _parts(self) -> list[tuple[int, str]]:
        """What there is to tell, each with how much it matters."""
        parts = [(9, f"{self.done}/{self.total}")]
        parts += [(_MATTERS[name], words) for name, words in named_counts(self.counts)]
        if self.in_flight:
            parts.append((1, _("{n} in flight").format(n=self.in_flight)))
        elapsed = self._clock() - self._begun
        if self.ended and elapsed > 0:
            parts.append((3, _("{n:.1f} a minute").format(n=60 * self.ended / elapsed)))
        left = self.seconds_left
        if left and not self._over and self.done < self.total:
            parts.append((8, _("{time} left").format(time=duration(left))))
        if self.cap is not None:
            parts.append((6, _("${cost:.4f} of ${cap:g}").format(cost=self.cost, cap=self.cap)))
        elif self.cost:
            parts.append((6, f"${self.cost:.4f}"))
        return parts


def _joined(parts: list[tuple[int, str]]) -> str:
    return " · ".join(words for _weight, words in parts)


def counted(counts: Mapping[str, int]) -> list[str]:
    """Counts in words, those of nothing left out."""
    return [words for _name, words in named_counts(counts)]


def named_counts(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    """The same, each with its name."""
    names = {
        "kept": _("kept"),
        "rejected": _("rejected"),
        "failed": _("failed"),
        "invalid": _("invalid"),
        "pending": _("pending"),
    }
    return [(name, f"{word} {counts[name]}") for name, word in names.items() if name == "kept" or counts.get(name)]


def duration(seconds: float) -> str:
    """A time in words: 12 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def opening(event: BatchStarted) -> str:
    """What a run begins with."""
    rows = ngettext("{n} row", "{n} rows", event.total).format(n=event.total)
    finished = event.counts.get("kept", 0) + event.counts.get("rejected", 0)
    before = _(", {n} done before").format(n=finished) if finished else ""
    if invalid := event.counts.get("invalid", 0):
        before += _(", {n} invalid").format(n=invalid)
    workers = ngettext("{n} at once", "{n} at once", event.workers).format(n=event.workers)
    return f"{one_line(event.name)}: {rows}{before}, {workers} → {one_line(event.folder)}"


def say(notice: Notice) -> None:
    """A notice, on standard error."""
    err(one_line(notice.text, 2000), style=_STYLES.get(notice.level, ""))


class JsonLines:
    """Each event of the run as a line of JSON on standard output."""

    def __call__(self, event: Event) -> None:
        out_json_line(to_json(event))

    def close(self) -> None:
        return


class Quiet:
    """Warnings and errors only."""

    def __call__(self, event: Event) -> None:
        if isinstance(event, Notice) and event.level != "info":
            say(event)

    def close(self) -> None:
        return


class PlainLines:
    """A line now and then: for pipes, files and dumb terminals."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._pace = clock, Pace(clock)
        self._last = clock()

    def __call__(self, event: Event) -> None:
        self._pace.take(event)
        if isinstance(event, Notice):
            say(event)
        elif isinstance(event, BatchStarted):
            out(opening(event))
        elif isinstance(event, RowFinished) and self._clock() - self._last >= PLAIN_EVERY:
            self._last = self._clock()
            out(self._pace.line())
        elif isinstance(event, BatchFinished):
            out(self._pace.line())

    def close(self) -> None:
        return


class LiveLine:
    """A bar that is redrawn a few times a second, whatever the speed of the rows."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._pace = Pace(clock)
        self._bar: Progress | None = None
        self._left = 0
        self._task: TaskID | None = None

    def __call__(self, event: Event) -> None:
        self._pace.take(event)
        if isinstance(event, Notice):
            self._above(event)
        elif isinstance(event, BatchStarted):
            out(opening(event))
            self._open()
        if self._bar is not None and self._task is not None and not isinstance(event, Notice):
            room = self._bar.console.width - self._left
            self._bar.update(self._task, completed=self._pace.done, line=self._pace.line(room))
        if isinstance(event, BatchFinished):
            self.close()

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        console = Console()
        bar = [BarColumn(bar_width=_BAR)] if console.width >= _BAR_FROM else []
        self._left = _BAR + 1 if bar else 0
        line = TextColumn("{task.fields[line]}", markup=False)
        self._bar = Progress(*bar, line, console=console, refresh_per_second=_LIVE_PER_SECOND)
        self._task = self._bar.add_task("", total=max(1, self._pace.total), completed=self._pace.done, line="")
        self._bar.start()

    def _above(self, notice: Notice) -> None:
        if self._bar is None:
            say(notice)
        else:
            self._bar.console.print(
                one_line(notice.text, 2000), style=_STYLES.get(notice.level, ""), markup=False, highlight=False
            )

    def close(self) -> None:
        """Stops the bar; it stays on the screen as it is."""
        if self._bar is not None:
            bar, self._bar = self._bar, None
            bar.stop()
