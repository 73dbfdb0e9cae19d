"""What goes on, as facts for the bars and the sidebar: agents, batch runs, context, usage, what waits for a person.

Rows of agents come from the engine's own list, so that they cannot disagree with it; everything else is kept from
events. Knows no widget but their facts.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hermes_engine.events import (
    AgentStarted,
    BatchFinished,
    BatchStarted,
    Event,
    RowFinished,
    UsageReported,
)
from hermes_engine.messages import NO_USAGE, Usage
from hermes_tui.texts import _
from hermes_tui.widgets.facts import AgentFact, BatchFact, ContextFact, UsageFact

if TYPE_CHECKING:
    from hermes_engine.work.supervisor import AgentRow

QUIET_SECONDS = 90.0
"""Silence that is worth a word."""

RATE_SECONDS = 300.0
"""The end of a run is foretold from its last five minutes."""

_SIGNS = {
    "running": "running",
    "waiting": "waiting",
    "done": "good",
    "failed": "bad",
    "timeout": "bad",
    "max_turns": "bad",
    "cancelled": "stopped",
    "interrupted": "stopped",
    "handed over": "good",
}


@dataclass(slots=True)
class _Run:
    """A batch run as far as its events tell."""

    name: str
    total: int = 0
    state: str = "running"
    reason: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    marks: list[tuple[float, int]] = field(default_factory=list)
    """When how many rows were settled, of the last minutes."""

    def fact(self) -> BatchFact:
        counts = {name: int(self.counts.get(name, 0)) for name in ("kept", "rejected", "failed", "invalid")}
        total = int(self.counts.get("total", self.total)) or self.total
        pending = max(0, total - sum(counts.values()))
        return BatchFact(
            self.name,
            self.state,
            total,
            **counts,
            pending=pending,
            seconds_left=self._left(pending),
            reason=self.reason,
        )

    def _left(self, pending: int) -> float | None:
        if len(self.marks) < 2 or self.state != "running":
            return None
        (first, before), (last, now) = self.marks[0], self.marks[-1]
        if now <= before or last - first < 1:
            return None
        return pending * (last - first) / (now - before)

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
        self._usage: dict[str, Usage] = {}
        self._names: dict[str, str] = {}
        self._runs: dict[str, _Run] = {}

    def show(self, session: str, agent: str, *, usage: Usage = NO_USAGE, context: ContextFact | None = None) -> None:
        """Another chat is on the screen now."""
        self.session, self.agent = session, agent
        self.context = context or ContextFact()
        self._usage[agent] = usage

    def take(self, event: Event) -> None:
        """Takes one event in."""
        match event:
            case UsageReported():
                self._used(event)
            case AgentStarted():
                self._names[event.agent] = event.name or event.title
            case BatchStarted(name=name, total=total, counts=counts):
                self._runs[name] = run = _Run(name, total, counts=counts)
                run.mark(event.time)
            case RowFinished(session=name, counts=counts):
                run = self._runs.setdefault(name, _Run(name))
                run.counts = counts
                run.mark(event.time)
            case BatchFinished(name=name):
                run = self._runs.setdefault(name, _Run(name))
                run.state, run.reason = event.state, event.reason
                run.counts = event.counts or run.counts
            case _:
                pass

    def _used(self, event: UsageReported) -> None:
        self._usage[event.agent] = self._usage.get(event.agent, NO_USAGE) + event.usage
        if event.agent == self.agent:
            self.context = ContextFact(event.context_tokens, event.context_window, event.estimated)

    def name_of(self, agent: str) -> str:
        """An agent's name for people."""
        return self._names.get(agent) or _("an agent")

    def batches(self) -> tuple[BatchFact, ...]:
        """The runs of this process, running ones first, then the newest."""
        facts = [run.fact() for run in reversed(self._runs.values())]
        return tuple(sorted(facts, key=lambda fact: fact.state != "running"))

    def usage(self, rows: Iterable[AgentRow], cap: float | None = None) -> UsageFact:
        """What this chat and the agents it started have used."""
        own = self._usage.get(self.agent, NO_USAGE)
        others = NO_USAGE
        for row in rows:
            if row.id != self.agent and row.session == self.session and row.kind != "batch":
                others = others + self._usage.get(row.id, NO_USAGE)
        both = own + others
        return UsageFact(both.total_tokens, both.tokens_known, both.cost_usd, both.cost_known, others.cost_usd, cap)

    def agents(self, rows: Iterable[AgentRow], now: float | None = None) -> tuple[AgentFact, ...]:
        """Every agent but this chat's own and batch runs, which have a section of their own: what needs the person
        first, then what runs, then what ended last.
        """
        moment = time.time() if now is None else now
        facts = [self._fact(row, moment) for row in rows if row.kind not in ("chat", "batch")]
        order = {"needs": 0, "running": 1, "waiting": 2}
        return tuple(sorted(facts, key=lambda fact: order.get(fact.sign, 3)))

    def _fact(self, row: AgentRow, now: float) -> AgentFact:
        sign = "needs" if row.needs else _SIGNS.get(row.state, "waiting")
        live = row.state in ("running", "waiting")
        silent = now - row.heard if live and row.state == "running" and row.heard else 0.0
        end = row.ended or now
        return AgentFact(
            id=row.id,
            name=row.name,
            title=row.title,
            sign=sign,
            activity=row.activity,
            seconds=max(0.0, end - row.started) if row.started else 0.0,
            quiet=silent if silent >= QUIET_SECONDS else 0.0,
            tokens=row.usage.total_tokens if row.usage.tokens_known else None,
            cost=row.usage.cost_usd if row.usage.cost_known else None,
        )
