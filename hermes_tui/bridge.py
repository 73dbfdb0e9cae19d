"""Carries events from the engine's threads to the app's loop: a queue with a bound, drained by the app's own timer.

Neighbouring pieces of a run are joined as they enter, a state that a newer one makes void is replaced, so that a
flood of events costs a few entries. Knows events; knows no app and no widget.
"""

from __future__ import annotations

import dataclasses
import threading
from collections import deque
from collections.abc import Callable

from hermes_engine.events import (
    AgentChanged,
    Event,
    RowFinished,
    RowStarted,
    TextDelta,
    ThoughtDelta,
    ToolProgress,
)

LIMIT = 20_000
"""Entries held at most. Above it pieces and progress are left out; beginnings and ends never are."""

_REPLACED = (ToolProgress, AgentChanged, RowFinished)
"""Events of which only the latest of its kind and source matters while nobody has looked."""

_OPTIONAL = (TextDelta, ThoughtDelta, ToolProgress, AgentChanged, RowStarted, RowFinished)


class _Entry:
    """An event in the queue; `texts` are the pieces it stands for."""

    __slots__ = ("event", "texts")

    def __init__(self, event: Event, texts: list[str] | None) -> None:
        self.event, self.texts = event, texts

    def joined(self) -> Event:
        if self.texts is None or len(self.texts) == 1:
            return self.event
        assert isinstance(self.event, (TextDelta, ThoughtDelta))
        return dataclasses.replace(self.event, text="".join(self.texts))


class Bridge:
    """A sink for the engine, a source for the app. `put` may be called on any thread, the rest on the app's."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._lock = threading.Lock()
        self._entries: deque[_Entry] = deque()
        self._last: dict[str, _Entry] = {}
        self._latest: dict[tuple[type[Event], str, str], _Entry] = {}
        self._limit = limit
        self._wake: Callable[[], object] | None = None
        self._asleep = True
        self.left_out = 0

    def connect(self, wake: Callable[[], object]) -> None:
        """`wake` is called, on the thread that put it, when something new came after the app had taken all."""
        with self._lock:
            self._wake = wake
            waiting = bool(self._entries)
            self._asleep = not waiting
        if waiting:
            wake()

    def disconnect(self) -> None:
        """Nobody is woken any more."""
        with self._lock:
            self._wake = None

    def put(self, event: Event) -> None:
        """Takes an event in; returns at once."""
        wake: Callable[[], object] | None = None
        with self._lock:
            if self._join(event):
                return
            if len(self._entries) >= self._limit and isinstance(event, _OPTIONAL):
                self.left_out += 1
                return
            self._append(event)
            if self._asleep and self._wake is not None:
                self._asleep, wake = False, self._wake
        if wake is not None:
            wake()

    def take(self) -> list[Event]:
        """All that came, oldest first. When nothing did, the next `put` wakes the app."""
        with self._lock:
            entries, self._entries = self._entries, deque()
            self._last.clear()
            self._latest.clear()
            if not entries:
                self._asleep = True
        return [entry.joined() for entry in entries]

    def _join(self, event: Event) -> bool:
        """Whether the event went into an entry that is there."""
        if isinstance(event, (TextDelta, ThoughtDelta)):
            last = self._last.get(event.run)
            if last is None or type(last.event) is not type(event) or last.texts is None:
                return False
            last.texts.append(event.text)
            return True
        if isinstance(event, _REPLACED):
            entry = self._latest.get(_key(event))
            if entry is not None:
                entry.event = event
                return True
        return False

    def _append(self, event: Event) -> None:
        entry = _Entry(event, [event.text] if isinstance(event, (TextDelta, ThoughtDelta)) else None)
        self._entries.append(entry)
        self._last[event.run] = entry
        if isinstance(event, _REPLACED):
            self._latest[_key(event)] = entry


def _key(event: Event) -> tuple[type[Event], str, str]:
    source = event.call_id if isinstance(event, ToolProgress) else event.agent or event.session
    return type(event), event.run, source
