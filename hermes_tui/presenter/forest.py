"""The agents a person is shown, as a tree in the order of urgency: what needs them first, then what runs, what waits,
what has ended. From the engine's own rows, so that they cannot disagree with it. Knows no widget but their facts.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hermes_tui.texts import _
from hermes_tui.widgets.facts import AgentFact

if TYPE_CHECKING:
    from hermes_engine.work.supervisor import AgentRow

QUIET_SECONDS = 90.0
"""Silence that is worth a word."""

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
_ORDER = {"needs": 0, "running": 1, "waiting": 2}
_OVER = 3


class Forest:
    """The agents of the chat `session` and of what runs beside it; of other chats those that need the person.

    An agent that has ended is shown until the person opened it or put it away, or, when it was bound to a turn of the
    chat or its result stands there, until they have begun another turn.
    """

    def __init__(self) -> None:
        self.session = ""
        self._seen: set[str] = set()
        self._told: set[str] = set()
        self._began: dict[str, float] = {}
        self._rows: Sequence[AgentRow] = ()
        self._second = 0
        self._facts: tuple[AgentFact, ...] | None = None

    def show(self, session: str) -> None:
        """Another chat is on the screen now."""
        self.session, self._facts = session, None

    def see(self, agents: Iterable[str]) -> None:
        """The person has seen these agents' results."""
        self._seen.update(agents)
        self._facts = None

    def tell(self, agents: Iterable[str]) -> set[str]:
        """The results of these agents stand in the chat in view; those of which that is new."""
        new = set(agents) - self._told
        self._told |= new
        return new

    def began(self, session: str, moment: float) -> None:
        """The person sent something in a chat: what ended in its earlier turns is past."""
        self._began[session] = moment
        self._facts = None

    def seen(self, rows: Iterable[AgentRow]) -> list[str]:
        """The ended agents that are shown no more."""
        return [row.id for row in rows if self._past(row)]

    def facts(self, rows: Sequence[AgentRow], now: float | None = None) -> tuple[AgentFact, ...]:
        """Each agent after the one it belongs to; computed anew only when a row or the second has changed."""
        moment = time.time() if now is None else now
        if self._facts is None or int(moment) != self._second or rows != self._rows:
            self._rows, self._second = rows, int(moment)
            self._facts = self._grow(rows, moment)
        return self._facts

    def _past(self, row: AgentRow) -> bool:
        if row.live or row.kind in ("chat", "batch"):
            return False
        told = row.bound or row.id in self._told
        return row.id in self._seen or (told and row.ended < self._began.get(row.owner, 0.0))

    def _belongs(self, row: AgentRow) -> bool:
        if row.kind in ("chat", "batch"):
            return False
        return bool(row.needs) or row.kind == "background" or row.owner in ("", self.session)

    def _grow(self, rows: Sequence[AgentRow], now: float) -> tuple[AgentFact, ...]:
        shown = {row.id: row for row in rows if self._belongs(row)}
        below: dict[str, list[str]] = {}
        for row in shown.values():
            below.setdefault(row.parent if row.parent in shown else "", []).append(row.id)
        facts: list[AgentFact] = []
        order: dict[str, tuple[int, float]] = {}

        def look(agent: str) -> None:
            row, kids = shown[agent], below.get(agent, ())
            for kid in kids:
                look(kid)
            own = 0 if row.needs else _ORDER.get(row.state, _OVER)
            order[agent] = (min([own, *(order[kid][0] for kid in kids)]), -row.ended)

        def lay(agent: str, depth: int, beside: bool) -> None:
            row, over = shown[agent], order[agent][0] == _OVER
            if not (over and self._past(row)):
                facts.append(_fact(row, now, depth, beside, over))
            for kid in sorted(below.get(agent, ()), key=order.__getitem__):
                lay(kid, depth + 1, beside)

        for root in below.get("", ()):
            look(root)
        for root in sorted(below.get("", ()), key=order.__getitem__):
            lay(root, 0, shown[root].kind == "background")
        return tuple(facts)


def _fact(row: AgentRow, now: float, depth: int, beside: bool, over: bool) -> AgentFact:
    sign = "needs" if row.needs else _SIGNS.get(row.state, "waiting")
    silent = now - row.heard if sign == "running" and row.heard else 0.0
    return AgentFact(
        id=row.id,
        name=row.name,
        title=row.title,
        sign=sign,
        activity=_("waits for a place") if sign == "waiting" else row.activity,
        seconds=max(0.0, (row.ended or now) - row.started) if row.started else 0.0,
        quiet=silent if silent >= QUIET_SECONDS else 0.0,
        tokens=row.usage.total_tokens if row.usage.tokens_known else None,
        cost=row.usage.cost_usd if row.usage.cost_known else None,
        depth=depth,
        beside=beside,
        over=over,
        needs=row.needs,
        steps=row.steps,
        tools=row.tools,
    )
