"""What goes on, as facts for the bars and the sidebar: agents, batch runs, context, usage, what waits for a person.

Agents come from the engine's own rows (`forest`); everything else is kept from events. Knows no widget but their facts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hermes_engine.events import (
    AgentStarted,
    BatchChanged,
    BatchFinished,
    BatchStarted,
    Event,
    RowFinished,
    ToolFinished,
    TurnStarted,
    UsageReported,
)
from hermes_engine.messages import NO_USAGE, Message, Usage
from hermes_tui.presenter.forest import Forest
from hermes_tui.presenter.tails import Tails
from hermes_tui.texts import _
from hermes_tui.widgets.facts import BatchFact, ContextFact, StepFact, UsageFact

if TYPE_CHECKING:
    pass

RATE_SECONDS = 300.0
"""The end of a run is foretold from its last five minutes."""

_STEPS = {"[ ]": "open", "[>]": "active", "[x]": "done"}


@dataclass(slots=True)
class _Run:
    """A batch run as far as its events tell."""

    name: str
    total: int = 0
    state: str = "running"
    reason: str = ""
    paused: bool = False
    counts: Mapping[str, int] = field(default_factory=dict)
    marks: list[tuple[float, int]] = field(default_factory=list)
    """When how many rows were settled, of the last minutes."""

    def fact(self, now: float = 0.0) -> BatchFact:
        counts = {name: int(self.counts.get(name, 0)) for name in ("kept", "rejected", "failed", "invalid")}
        total = int(self.counts.get("total", self.total)) or self.total
        pending = max(0, total - sum(counts.values()))
        return BatchFact(
            self.name,
            "paused" if self.paused and self.state == "running" else self.state,
            total,
            **counts,
            pending=pending,
            seconds_left=self._left(pending, now),
            reason=self.reason,
        )

    def _left(self, pending: int, now: float) -> float | None:
        """Seconds to its end. Time in which nothing ended counts too: else a server that hangs would promise one."""
        if len(self.marks) < 2 or self.state != "running" or self.paused:
            return None
        (first, before), (last, settled) = self.marks[0], self.marks[-1]
        span = max(last, now) - first
        return pending * span / (settled - before) if settled > before and span >= 1 else None

    def mark(self, when: float) -> None:
        settled = self.fact().settled
        if not self.marks or when - self.marks[-1][0] >= 1:
            self.marks.append((when, settled))
        while len(self.marks) > 2 and when - self.marks[0][0] > RATE_SECONDS:
            del self.marks[0]


class Work:
    """The state of everything that runs. `session` is the chat on the screen."""

    def __init__(self) -> None:
        self.session = ""
        self.agent = ""
        self.context = ContextFact()
        self.plan: tuple[StepFact, ...] = ()
        self.forest, self.tails = Forest(), Tails()
        self._usage: dict[str, Usage] = {}
        """By agent of a chat; what others used by the session of the chat they work for."""
        self._owners: dict[str, str] = {}
        """Of every agent but chats: the session of the chat it works for."""
        self._names: dict[str, str] = {}
        self._runs: dict[str, _Run] = {}

    def show(
        self,
        session: str,
        agent: str,
        *,
        usage: Usage = NO_USAGE,
        context: ContextFact | None = None,
        messages: Sequence[Message] = (),
    ) -> None:
        """Another chat is on the screen now."""
        self.session, self.agent = session, agent
        self.context = context or ContextFact()
        self._usage.setdefault(agent, usage)  # what was heard of it counts already
        self.forest.show(session)
        plans = (message.content for message in reversed(messages) if message.role == "tool" and message.name == "todo")
        self.plan = _plan(next(plans, ""))

    def take(self, event: Event) -> None:
        """Takes one event in."""
        if event.agent in self._owners:
            self.tails.take(event)
        match event:
            case UsageReported():
                self._used(event)
            case AgentStarted():
                self._names[event.agent] = event.name or event.title
                if event.kind not in ("chat", "batch"):
                    self._owners[event.agent] = event.owner
            case TurnStarted(session=session):
                self.forest.began(session, event.time)
            case ToolFinished(name="todo", display=display) if event.agent == self.agent:
                self.plan = _plan(display.body)
            case BatchStarted(name=name, total=total, counts=counts):
                self._runs[name] = run = _Run(name, total, counts=counts)
                run.mark(event.time)
            case RowFinished(session=name, counts=counts):
                run = self._runs.setdefault(name, _Run(name))
                run.counts = counts
                run.mark(event.time)
            case BatchChanged(name=name, paused=paused):
                self._runs.setdefault(name, _Run(name)).paused = paused
            case BatchFinished(name=name):
                run = self._runs.setdefault(name, _Run(name))
                run.state, run.reason = event.state, event.reason
                run.counts = event.counts or run.counts
            case _:
                pass

    def _used(self, event: UsageReported) -> None:
        key = self._owners.get(event.agent) or event.agent
        self._usage[key] = self._usage.get(key, NO_USAGE) + event.usage
        if event.agent == self.agent:
            window = event.context_window or self.context.window  # not told yet: as it was known before
            self.context = ContextFact(event.context_tokens, window, event.estimated)

    def name_of(self, agent: str) -> str:
        """An agent's name for people."""
        return self._names.get(agent) or _("an agent")

    def batches(self, now: float = 0.0) -> tuple[BatchFact, ...]:
        """The runs of this process, those at work first, then the newest; `now` in seconds since the epoch."""
        facts = [run.fact(now) for run in reversed(self._runs.values())]
        return tuple(sorted(facts, key=lambda fact: not fact.at_work))

    def usage(self, cap: float | None = None) -> UsageFact:
        """What this chat and the agents it started have used."""
        own, others = self._usage.get(self.agent, NO_USAGE), self._usage.get(self.session, NO_USAGE)
        both = own + others
        return UsageFact(both.total_tokens, both.tokens_known, both.cost_usd, both.cost_known, others.cost_usd, cap)


def _plan(text: str) -> tuple[StepFact, ...]:
    """The steps of a plan as the tool writes it, a line each."""
    lines = [line for line in text.splitlines() if line[:3] in _STEPS]
    return tuple(StepFact(line[4:], _STEPS[line[:3]]) for line in lines)
