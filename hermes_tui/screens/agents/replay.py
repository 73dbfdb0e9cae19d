"""A recorded run once more: which of its events are due as time goes by. Pure; knows events, no screen."""

from __future__ import annotations

from collections.abc import Iterable

from hermes_engine.events import AgentFinished, AgentStarted, Event
from hermes_tui.screens.agents.items import AgentItem

LONGEST_GAP = 1.0
"""Seconds; a longer silence is cut to this."""

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0)


class Replay:
    """Events with the moments at which they are shown, in seconds from the beginning."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._due: list[tuple[float, Event]] = []
        at, before = 0.0, None
        for event in sorted(events, key=lambda event: event.time):
            at += min(LONGEST_GAP, event.time - before) if before is not None else 0.0
            before = event.time
            self._due.append((at, event))
        self.length = at
        self.position = 0.0
        self.paused = False
        self._next = 0
        self._speed = SPEEDS.index(1.0)

    @property
    def speed(self) -> float:
        """How many times faster than it was."""
        return SPEEDS[self._speed]

    def hasten(self, step: int) -> None:
        """Faster, or slower."""
        self._speed = max(0, min(len(SPEEDS) - 1, self._speed + step))

    @property
    def ended(self) -> bool:
        """Whether everything was shown."""
        return self._next >= len(self._due)

    def advance(self, seconds: float) -> list[Event]:
        """So much time went by: the events that are due now."""
        if self.paused:
            return []
        self.position = min(self.length, self.position + seconds * self.speed)
        first = self._next
        while not self.ended and self._due[self._next][0] <= self.position:
            self._next += 1
        return [event for _at, event in self._due[first : self._next]]


def began_and_ended(item: AgentItem) -> list[Event]:
    """What its record tells of an agent's beginning and end, as events."""
    began = AgentStarted(
        session=item.session, agent=item.id, time=item.started, parent=item.parent, name=item.name, title=item.title,
        kind=item.kind,
    )  # fmt: skip
    if not item.ended:
        return [began]
    ended = AgentFinished(
        session=item.session, agent=item.id, time=item.ended, state=item.state, name=item.name, kind=item.kind
    )
    return [began, ended]
