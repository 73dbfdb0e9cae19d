"""One batch run as the screen shows it: rows by need, counters that add up, rate and end, curves. Pure data.

Fed with looks at the run's folder (`RunWatch`) and, for a run at work here, with its `Floor`. Knows no widget and
calls no engine.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hermes_engine.events import ApprovalAsked
from hermes_tui.presenter.batch_counts import Counters, counters, counters_now, run_word

if TYPE_CHECKING:
    from hermes_engine.batch.floor import Floor, RowAtWork
    from hermes_engine.batch.overview import RunState
    from hermes_engine.batch.watching import Look, RowLine

QUIET_SECONDS = 90.0
RATE_SECONDS = 300.0
"""The end of a run is foretold from its last five minutes."""

FILTERS = ("all", "running", "failed", "rejected", "kept")
SORTS = ("need", "row", "time", "turns", "tokens")
OUTCOMES = ("failed", "rejected", "kept")
BINS = 9
"""Points of a curve."""

RowName = tuple[int, int]


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row of the table.

    Attributes:
        name: place of its line and its sample.
        state: needs | running | quiet | failed | rejected | kept.
        seconds: how long it has worked or took; None where nobody knows.
        quiet: seconds since something came from it, while that is long.
        words: what it does now, why it ended so.
        line: where it is recorded, None while it is in flight.
        request: what it asks a person, "" when it does not.
    """

    name: RowName
    state: str
    seconds: float | None
    turns: int
    tools: int
    tokens: int | None
    retries: int
    words: str
    prompt: str
    quiet: float = 0.0
    line: RowLine | None = None
    request: str = ""

    @property
    def live(self) -> bool:
        """Whether it is in flight."""
        return self.line is None


@dataclass(frozen=True, slots=True)
class Curves:
    """Shares from 0 to 1 over the time of the run, oldest first; empty while there is nothing to draw."""

    passed: tuple[float, ...] = ()
    rate: tuple[float, ...] = ()
    reasoning: tuple[float, ...] = ()


class RunModel:
    """One run. `here` tells whether this process works it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.state: RunState | None = None
        self.floor: Floor | None = None
        self.reading = True
        """Whether earlier rows are still being read."""
        self._seconds: Mapping[RowName, float] = {}
        """How long rows took in the last invocation here; no line tells it, and lines are read again after its end."""
        self._here = ""
        self._rows: dict[str, TableRow] = {}
        self._groups: dict[str, list[TableRow]] = {outcome: [] for outcome in OUTCOMES}
        self._whens: list[float] = []
        self._ordered = True

    # Fed

    def take(self, look: Look, floor: Floor | None) -> None:
        """Takes in what a look has found, and what goes on here, if it does."""
        self.state, self.floor, self.reading = look.state, floor, look.more
        if floor is not None:
            self._seconds, self._here = floor.seconds, look.state.holder
        elif look.state.holder not in ("", self._here):  # another program works it since
            self._seconds = {}
        gone: set[int] = set()
        if look.void:
            gone = {id(row) for row in self._rows.values() if row.line and row.line.file in look.void}
            self._rows = {key: row for key, row in self._rows.items() if id(row) not in gone}
        for line in look.rows:
            key = line.ident or f"{line.file.name}:{line.offset}"
            before = self._rows.get(key)
            if before is None or before.state == "failed":
                if before is not None:
                    gone.add(id(before))
                row = _settled(line, self._seconds.get((line.index, line.sample)))
                self._rows[key] = row
                self._groups[line.outcome].append(row)
                self._ordered = False
        if gone:
            self._groups = {name: [row for row in group if id(row) not in gone] for name, group in self._groups.items()}
            self._ordered = False

    @property
    def here(self) -> bool:
        """Whether this process works it."""
        return self.floor is not None

    @property
    def at_work(self) -> bool:
        """Whether somebody works it."""
        return self.floor is not None or bool(self.state and self.state.holder)

    @property
    def paused(self) -> bool:
        """Whether it begins no further rows."""
        return self.floor.paused if self.floor is not None else bool(self.at_work and self._point("paused"))

    @property
    def warning(self) -> str:
        """What the run at work warned of last, while that holds."""
        if self.floor is not None:
            return self.floor.warning
        return str(self._point("notice") or "") if self.at_work else ""

    @property
    def workers(self) -> int:
        """Rows that may be in flight; 0 where nobody knows."""
        return self.floor.workers if self.floor is not None else int(self._point("workers") or 0)

    @property
    def removed(self) -> int:
        """Rows in the files that are no longer in the dataset, and in no counter."""
        return int(self._point("removed") or 0)

    def _point(self, name: str) -> Any:
        return self.state.checkpoint.get(name) if self.state is not None else None

    def setting(self, name: str) -> Any:
        """An option of the run."""
        return self.state.settings.get("options", {}).get(name) if self.state is not None else None

    def figure(self, *path: str) -> Any:
        """A figure of its statistics, None where there is none."""
        value: Any = self.state.statistics if self.state is not None else {}
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    @property
    def word(self) -> str:
        """running | paused | queued | done | nothing | open | interrupted | stopped | failed | killed | new."""
        if self.floor is not None and not self.floor.begun:
            return "queued"
        if self.at_work:
            return "paused" if self.paused else "running"
        return run_word(self.state.state, self.counters()) if self.state is not None else "new"

    @property
    def spent(self) -> Mapping[str, Any]:
        """What the run has used."""
        told = self._point("spent")
        return told if isinstance(told, dict) else {}

    # Counted

    def counters(self) -> Counters:
        """The rows by state, now."""
        if self.floor is not None and self.floor.counts:
            return counters_now(self.floor, {})
        running = int(self._point("running") or 0) if self.at_work else 0
        return counters(self._counted() if self.state is not None else {}, running)

    def _counted(self) -> Mapping[str, int]:
        """The rows by state as the index has them; as the files have them, where the run died before it wrote that."""
        assert self.state is not None
        if self.at_work or self.reading or self.removed or self.state.state != "killed":
            return self.state.rows
        return {**self.state.rows, **{outcome: len(group) for outcome, group in self._groups.items()}}

    def began(self) -> float:
        """When this invocation began, in seconds since the epoch; 0 when nobody works it."""
        return self.state.since if self.state is not None and self.at_work else 0.0

    def elapsed(self, now: float) -> float:
        """Seconds of this invocation; of all of them when nobody works it."""
        began = self.began()
        return max(0.0, now - began) if began else float(self._point("seconds") or 0.0)

    def rate(self, now: float) -> float:
        """Rows settled a minute, over the last five minutes of this invocation; over all its time when it is over."""
        if not self.at_work or self.word == "queued":
            return float(self.figure("throughput", "rows_per_minute") or 0.0)
        self._grouped()
        start = max(now - RATE_SECONDS, self.began())
        count = len(self._whens) - bisect.bisect_left(self._whens, start)
        span = now - start
        return 60 * count / span if count and span >= 1 else 0.0

    def seconds_left(self, now: float) -> float | None:
        """Until its end at the present rate; None when that cannot be told."""
        told, rate = self.counters(), self.rate(now)
        pending = told.running + told.needs + told.waiting
        return 60 * pending / rate if rate and pending and self.word == "running" else None

    # Rows

    def rows(self, now: float, *, only: str = "all", text: str = "", sort: str = "need") -> list[TableRow]:
        """The rows that are wanted, in the order that is wanted. `only` ∈ FILTERS, `sort` ∈ SORTS."""
        groups = self._grouped()
        live = [_live(row, now) for row in (self.floor.rows if self.floor is not None else ())]
        again = {row.name for row in live}
        found: list[TableRow] = []
        if only in ("all", "running"):
            found += sorted(live, key=lambda row: (not row.request, row.state == "quiet", -(row.seconds or 0)))
        for outcome in OUTCOMES:
            if only in ("all", outcome):
                found += reversed(groups[outcome])
        if again:
            found = [row for row in found if row.live or row.name not in again]
        if text:
            wanted = text.casefold()
            found = [row for row in found if wanted in f"{row.name[0]} {row.words} {row.prompt}".casefold()]
        if sort != "need":
            found.sort(key=_KEYS[sort])
        return found

    def _grouped(self) -> dict[str, list[TableRow]]:
        """The settled rows by outcome, oldest first: mostly in order already, which makes sorting cheap."""
        if not self._ordered:
            self._ordered = True
            for group in self._groups.values():
                group.sort(key=_ended)
            self._whens = sorted(_ended(row) for group in self._groups.values() for row in group)
        return self._groups

    def find(self, name: RowName, now: float) -> TableRow | None:
        """One row."""
        at_work = self.floor.row(name) if self.floor is not None else None
        if at_work is not None:
            return _live(at_work, now)
        groups = self._grouped()
        return next((row for outcome in OUTCOMES for row in groups[outcome] if row.name == name), None)

    def spread(self, of: Callable[[TableRow], float]) -> tuple[float, float] | None:
        """p50 and p90 of something over the settled rows that were judged."""
        groups = self._grouped()
        values = sorted(of(row) for name in ("kept", "rejected") for row in groups[name])
        if not values:
            return None
        return values[len(values) // 2], values[min(len(values) - 1, int(len(values) * 0.9))]

    def curves(self, now: float) -> Curves:
        """How it went over the time of this invocation, or of all its rows when nobody works it."""
        began = self.began()
        told = (row.line for row in self._rows.values())
        lines = [line for line in told if line is not None and line.when and line.when >= began]
        if len(lines) < 2:
            return Curves()
        first = began or min(line.when for line in lines)
        last = now if began else max(line.when for line in lines)
        width = max(1e-6, (last - first) / BINS)
        counts, kept, turns, reasoned = ([0] * BINS for _ in range(4))
        for line in lines:
            place = min(BINS - 1, max(0, int((line.when - first) / width)))
            counts[place] += 1
            kept[place] += line.outcome == "kept"
            if line.outcome != "failed":
                turns[place] += line.turns
                reasoned[place] += line.reasoned
        most = max(counts)
        return Curves(_shares(kept, counts), tuple(count / most for count in counts), _shares(reasoned, turns))


def _ended(row: TableRow) -> float:
    return row.line.when if row.line is not None else 0.0


_KEYS: Mapping[str, Callable[[TableRow], Any]] = {
    "row": lambda row: row.name,
    "time": lambda row: -(row.seconds or 0.0),
    "turns": lambda row: -row.turns,
    "tokens": lambda row: -(row.tokens or 0),
}


def _shares(parts: Sequence[int], wholes: Sequence[int]) -> tuple[float, ...]:
    """Part of whole, point by point; where there is nothing, what was before."""
    shares: list[float] = []
    for part, whole in zip(parts, wholes, strict=True):
        shares.append(part / whole if whole else (shares[-1] if shares else 0.0))
    return tuple(shares)


def _live(row: RowAtWork, now: float) -> TableRow:
    silent = now - row.heard
    asks = row.asks
    quiet = silent if silent >= QUIET_SECONDS and asks is None else 0.0
    state = "needs" if asks is not None else "quiet" if quiet else "running"
    words = row.words if asks is None else asks.title if isinstance(asks, ApprovalAsked) else asks.question
    return TableRow(
        row.name, state, max(0.0, now - row.began), row.turns, row.tools, row.tokens, row.retries, words, row.prompt,
        quiet, request=asks.request if asks is not None else "",
    )  # fmt: skip


def _settled(line: RowLine, seconds: float | None) -> TableRow:
    words = line.reason if line.outcome != "kept" or line.reason != "done" else ""
    return TableRow(
        (line.index, line.sample), line.outcome, seconds, line.turns, line.tools, line.tokens, line.retries, words,
        line.prompt, line=line,
    )  # fmt: skip
