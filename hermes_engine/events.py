"""What the engine says while it works: frozen values, JSON there and back. Knows no sink and no screen.

Order within a run: `TurnStarted` first, `TurnFinished` last and nothing after it; every Started has exactly
one Finished; `seq` grows by one. Deltas of a step come between its `StepStarted` and its `ReplyFinished`;
after a `StepRetried` the deltas of that step so far are void and it begins again.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeVar

from hermes_engine.messages import Display, Usage

RunStatus = Literal["ok", "error", "timeout", "cancelled", "max_turns"]
AgentState = Literal[
    "waiting", "running", "done", "failed", "cancelled", "timeout", "max_turns", "interrupted", "handed over"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Fields common to all events."""

    session: str = ""
    """Session the run belongs to; a batch run's name for rows."""
    run: str = ""
    """One turn of one agent."""
    parent_run: str = ""
    """Run that started this one, "" at the top."""
    agent: str = ""
    """Id of the speaking agent."""
    seq: int = 0
    """Grows by one within a run."""
    time: float = 0.0
    """Seconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted(Event):
    """First event of a run."""

    prompt: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted(Event):
    """A request to the model is about to leave. Steps count from 1."""

    step: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRetried(Event):
    """The step's request failed and will be sent again after `delay` seconds; its deltas so far are void.

    `attempt` of `tries` (0 = not told) has failed.
    """

    step: int = 0
    attempt: int = 0
    tries: int = 0
    delay: float = 0.0
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThoughtDelta(Event):
    """A piece of reasoning."""

    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta(Event):
    """A piece of the answer."""

    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyFinished(Event):
    """The step's reply as a whole; `partial` when it was cut off and kept."""

    step: int = 0
    text: str = ""
    reasoning: str = ""
    calls: int = 0
    finish_reason: str = ""
    partial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReported(Event):
    """Figures after a reply: of that reply, and how full the context is (0 = size unknown)."""

    usage: Usage = field(default_factory=Usage)
    context_tokens: int = 0
    context_window: int = 0
    estimated: bool = False
    """Whether `context_tokens` is our estimate because the server reported none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(Event):
    """A call is about to run (or to ask)."""

    call_id: str = ""
    name: str = ""
    display: Display = field(default_factory=lambda: Display("Tool"))
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProgress(Event):
    """The latest line or two of a running call."""

    call_id: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished(Event):
    """The call's one result."""

    call_id: str = ""
    name: str = ""
    status: str = "ok"
    seconds: float = 0.0
    display: Display = field(default_factory=lambda: Display("Tool"))
    text: str = ""
    """The result as the model sees it."""
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAsked(Event):
    """A call waits for a yes; answered by `request` through the broker."""

    request: str = ""
    call_id: str = ""
    name: str = ""
    title: str = ""
    """One line: what wants to run."""
    detail: str = ""
    """The whole of it: full command, diff, address."""
    reason: str = ""
    """Why it asks."""
    rule: str = ""
    """What "for this session" and "always" would allow, in words; "" when only once is on offer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAsked(Event):
    """The agent asks the person something (tool `clarify`)."""

    request: str = ""
    call_id: str = ""
    question: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSettled(Event):
    """An approval or question is answered or withdrawn; every Asked has exactly one of these."""

    request: str = ""
    choice: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCompacted(Event):
    """The conversation was shortened."""

    before_tokens: int = 0
    after_tokens: int = 0
    dropped: int = 0
    """Messages replaced by the summary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStarted(Event):
    """An agent exists now; `agent` names it, `parent` the one that started it."""

    parent: str = ""
    owner: str = ""
    """Session its result is for; "" for a chat of its own."""
    name: str = ""
    title: str = ""
    kind: str = "chat"
    """chat | child | background | worker | batch."""
    model: str = ""
    profile: str = ""
    state: str = "waiting"
    prompt: str = ""
    """Its task."""
    bound: bool = False
    """Whether a model's call started it, which gets its result; else a person did."""
    follows: str = ""
    """Agent whose task it goes on with or runs again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentChanged(Event):
    """State or last action of an agent changed."""

    state: str = "running"
    activity: str = ""
    """What it does now, one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFinished(Event):
    """An agent reached its end state. What it was is told again, since its result may be shown much later."""

    state: str = "done"
    answer: str = ""
    error: str = ""
    usage: Usage = field(default_factory=Usage)
    """Its own and that of the agents below it."""
    owner: str = ""
    name: str = ""
    kind: str = "chat"
    prompt: str = ""
    seconds: float = 0.0
    files_changed: tuple[str, ...] = ()
    note: str = ""
    """Where its work lies (branch, diffstat), one line."""
    bound: bool = False
    """As in `AgentStarted`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardChanged(Event):
    """A card of a board changed: by which `verb`, to which state, and what was said of it."""

    board: str = ""
    card: str = ""
    status: str = ""
    verb: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStarted(Event):
    """A batch run begins; `done` counts rows settled by earlier invocations, `cost_usd` is what those used."""

    name: str = ""
    folder: str = ""
    total: int = 0
    done: int = 0
    workers: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    cost_usd: float = 0.0
    max_cost_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowStarted(Event):
    """A row is in flight."""

    index: int = 0
    sample: int = 0
    prompt: str = ""
    """First line, cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFinished(Event):
    """A row is settled: `outcome` ∈ kept | rejected | failed | invalid | cancelled; `counts` are the run's now."""

    index: int = 0
    sample: int = 0
    outcome: str = ""
    reason: str = ""
    seconds: float = 0.0
    turns: int = 0
    tool_calls: int = 0
    usage: Usage = field(default_factory=Usage)
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchChanged(Event):
    """A person paused a run or let it go on, or changed how many rows may be in flight."""

    name: str = ""
    paused: bool = False
    workers: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFinished(Event):
    """A batch run ended: `state` ∈ done | interrupted | stopped | failed; `reason` when not done."""

    name: str = ""
    state: str = "done"
    reason: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice(Event):
    """Something a person should read. `level` ∈ info | warning | error."""

    level: str = "info"
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFinished(Event):
    """Last event of a run."""

    status: str = "ok"
    """ok | error | timeout | cancelled | max_turns."""
    answer: str = ""
    error: str = ""
    turns: int = 0
    tool_calls: int = 0
    usage: Usage = field(default_factory=Usage)


Sink = Callable[[Event], None]
"""Takes an event and returns fast; may be called on any thread; what it raises is logged, never fatal."""

EventT = TypeVar("EventT", bound=Event)

EVENT_TYPES: dict[str, type[Event]] = {cls.__name__: cls for cls in Event.__subclasses__()}


def to_json(event: Event) -> dict[str, Any]:
    """The event as a JSON object; `type` is its class name."""
    return {"type": type(event).__name__, **dataclasses.asdict(event)}


def from_json(data: Mapping[str, Any]) -> Event:
    """The event back from `to_json`. Raises ValueError for an unknown type or field."""
    values = dict(data)
    kind = EVENT_TYPES.get(str(values.pop("type", "")))
    if kind is None:
        raise ValueError(f"no such event: {data.get('type')!r}")
    unknown = set(values) - {item.name for item in dataclasses.fields(kind)}
    if unknown:
        raise ValueError(f"{kind.__name__} has no field {sorted(unknown)}")
    if isinstance(values.get("usage"), Mapping):
        values["usage"] = Usage(**values["usage"])
    if isinstance(values.get("display"), Mapping):
        values["display"] = Display(**values["display"])
    for name in ("choices", "files_changed"):
        if isinstance(values.get(name), list):
            values[name] = tuple(values[name])
    return kind(**values)


class Emitter:
    """Fills in an event's common fields for one run and passes it on; a sink that raises does not stop the run."""

    clock: ClassVar[Callable[[], float]] = time.time

    def __init__(
        self,
        sink: Sink,
        *,
        session: str,
        run: str,
        agent: str,
        parent_run: str = "",
        on_fault: Callable[[Exception], None] | None = None,
    ) -> None:
        self.sink = sink
        self.session, self.run, self.agent, self.parent_run = session, run, agent, parent_run
        self._on_fault = on_fault
        self.deltas = False
        """Whether somebody wants the pieces of replies also where the rules leave them out."""
        self._seq = itertools.count(1)

    def __call__(self, kind: type[EventT], /, **values: Any) -> EventT:
        """Builds, sends and returns the event."""
        event = kind(
            session=self.session,
            run=self.run,
            parent_run=self.parent_run,
            agent=self.agent,
            seq=next(self._seq),
            time=Emitter.clock(),
            **values,
        )
        try:
            self.sink(event)
        except Exception as error:
            if self._on_fault:
                self._on_fault(error)
        return event
