"""What goes on in a run at this moment: its rows in flight, how many may be, how long things take.

Written on the run's loop, read from any thread: what is read as a whole is replaced as a whole. Costs a few
assignments an event, for nobody may look. Knows no file and no screen.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol

from hermes_engine.batch.job import Row
from hermes_engine.events import (
    ApprovalAsked,
    Emitter,
    Event,
    QuestionAsked,
    RequestSettled,
    Sink,
    StepRetried,
    StepStarted,
    ToolFinished,
    ToolStarted,
    UsageReported,
)
from hermes_engine.messages import Message
from hermes_engine.requests import ASKS


class Voice(Protocol):
    """What a row speaks through; see `events.Emitter`."""

    deltas: bool


class Talk(Protocol):
    """A row's conversation so far."""

    @property
    def messages(self) -> Sequence[Message]:
        """From the system message on."""
        ...


RowName = tuple[int, int]
"""Place of a row's line in the dataset, from 0, and which of its samples."""

_KEPT_TIMES = 5000
_WORDS = 200


class RowAtWork:
    """A row in flight; the sink of its events.

    Attributes:
        index, sample, prompt: which row; the first line of what is asked.
        began, heard: seconds since the epoch: its start, its last event.
        turns, tools, tokens, cost: requests, calls, tokens, US dollars so far.
        counted: whether what it used is in the run's account already.
        asks: what it asks a person and waits for, None when it does not.
        retries: how often requests were sent again.
        words: what it does now, one line.
    """

    __slots__ = (
        "_floor", "_next", "_recent", "_speak", "_talk", "_watcher", "asks", "began", "cost", "counted", "heard",
        "index", "prompt", "retries", "sample", "tokens", "tools", "turns", "words",
    )  # fmt: skip

    def __init__(self, row: Row, prompt: str, floor: Floor, hear: Sink) -> None:
        self.index, self.sample, self.prompt = row.index, row.sample, prompt
        self.began = self.heard = Emitter.clock()
        self.turns = self.tools = self.tokens = self.retries = 0
        self.cost, self.counted = 0.0, False
        self.words = ""
        self.asks: ApprovalAsked | QuestionAsked | None = None
        self._floor, self._next = floor, hear
        self._talk: Talk | None = None
        self._speak: Voice | None = None
        self._watcher: Sink | None = None
        self._recent: list[Event] = []

    @property
    def name(self) -> RowName:
        """Which row of the run it is."""
        return self.index, self.sample

    def begun(self, speak: Voice, talk: Talk) -> None:
        """The row's agent is there; `speak` is what it speaks through."""
        self._speak, self._talk = speak, talk
        speak.deltas = self._watcher is not None

    def ended(self) -> None:
        """The row has ended. What it speaks through leads back to here: nothing of it may wait for the collector."""
        self._speak = None

    def watch(self, sink: Sink | None) -> tuple[tuple[Message, ...], list[Event]]:
        """Lets somebody hear every event of it from now on, pieces of replies among them, or nobody any more.

        Returns:
            the conversation so far, and the events of the step under way.
        """
        self._watcher = sink
        if self._speak is not None:
            self._speak.deltas = sink is not None
        messages = tuple(self._talk.messages) if self._talk is not None else ()
        return tuple(message for message in messages if message.role != "system"), list(self._recent)

    def __call__(self, event: Event) -> None:
        self.heard = event.time
        kind = type(event)
        if kind is StepStarted:
            self.turns += 1
            self.words = "thinking"
            self._recent.clear()
        elif isinstance(event, ToolStarted):
            self.tools += 1
            self.words = f"{event.display.verb} {event.display.title}".strip()[:_WORDS]
        elif isinstance(event, ToolFinished):
            self._floor.note_tool(event.name, event.seconds)
        elif isinstance(event, UsageReported):
            self.tokens += event.usage.total_tokens
            self.cost += event.usage.cost_usd
        elif isinstance(event, ApprovalAsked | QuestionAsked):
            self.asks = event
        elif kind is RequestSettled:
            self.asks = None
        elif isinstance(event, StepRetried):
            self.retries += 1
            self.words = f"tried {event.attempt}×: {event.reason}"[:_WORDS]
        if self._watcher is not None:
            self._watcher(event)
        if kind in _OF_A_STEP:
            self._recent.append(event)
        self._next(event)


_OF_A_STEP = frozenset({StepStarted, ToolStarted, ToolFinished, *ASKS})


class Floor:
    """See the module's docstring.

    Attributes:
        begun: whether the run has begun; a front end has others wait for it.
        counts: of the run's rows, see `Counts.as_dict`; {} before they are known.
        workers: rows that may be in flight.
        paused: whether no further row is begun.
        notice: level and words of what the run said last of itself; ("", "") when a row was kept since.
        seconds: how long the rows took that ended in this invocation.
        replicas: what became of each server in this invocation, where there are several.
    """

    def __init__(self) -> None:
        self.begun = False
        self.counts: Mapping[str, int] = {}
        self.workers = 0
        self.paused = False
        self.notice = ("", "")
        self.replicas: Callable[[], list[dict[str, Any]]] = list
        self.seconds: dict[RowName, float] = {}
        self._rows: dict[RowName, RowAtWork] = {}
        self._tools: dict[str, deque[float]] = {}

    @property
    def warning(self) -> str:
        """What the run warned of last; "" when that no longer holds."""
        level, text = self.notice
        return text if level in ("warning", "error") else ""

    @property
    def rows(self) -> tuple[RowAtWork, ...]:
        """The rows in flight, in the order of their beginning."""
        return tuple(self._rows.values())

    @property
    def spending(self) -> tuple[float, int]:
        """US dollars and tokens of the rows in flight that are in no account yet."""
        rows = [row for row in self.rows if not row.counted]
        return sum(row.cost for row in rows), sum(row.tokens for row in rows)

    def row(self, name: RowName) -> RowAtWork | None:
        """A row in flight."""
        return self._rows.get(name)

    def begin(self, row: Row, prompt: str, hear: Sink) -> RowAtWork:
        """A row is in flight; its events go on to `hear`."""
        at_work = self._rows[row.index, row.sample] = RowAtWork(row, prompt, self, hear)
        return at_work

    def end(self, name: RowName) -> None:
        """A row is in flight no more."""
        if row := self._rows.pop(name, None):
            row.ended()

    def note_tool(self, name: str, seconds: float) -> None:
        """A call took so long."""
        times = self._tools.get(name)
        if times is None:
            times = self._tools[name] = deque(maxlen=_KEPT_TIMES)
        times.append(seconds)

    def times(self) -> dict[str, Any]:
        """How long rows and calls of this invocation took, in seconds; for `statistics.json`."""
        rows = sorted(self.seconds.values())
        tools = {name: at(sorted(times), 0.5) for name, times in self._tools.items()}
        if not rows:
            return {"rows": {}, "tools": tools}
        told = {"p50": at(rows, 0.5), "p90": at(rows, 0.9), "max": round(rows[-1], 3), "histogram": spread(rows)}
        return {"rows": told, "tools": tools}


EDGES = (0.1, 0.3, 1, 3, 10, 30, 60, 120, 300, 600, 1800)
"""Upper edges of the columns of `spread`, in seconds."""


def spread(ordered: Sequence[float]) -> list[tuple[float | None, int]]:
    """How many values lie up to each edge, from the first column that has one to the last; None: above all edges."""
    places = [bisect_right(ordered, edge) for edge in EDGES] + [len(ordered)]
    columns = list(zip((*EDGES, None), (b - a for a, b in pairwise((0, *places))), strict=True))
    used = [place for place, (_, number) in enumerate(columns) if number]
    return columns[used[0] : used[-1] + 1] if used else []


def at(ordered: Sequence[float], share: float) -> float:
    """The value that `share` of the ordered values do not pass."""
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))], 3)
