"""Whose turn it is in one conversation: messages that wait, and the claim on the one turn that may run. Any thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Sequence


class Turns:
    """The queue of a conversation. A turn is claimed before it begins and given back when it has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[str] = deque()
        self.busy = False
        """A turn runs or is about to."""

    def enqueue(self, text: str) -> str | None:
        """Takes a message in. Returns the text to begin with now, or None when a turn runs already."""
        with self._lock:
            self._waiting.append(text)
            return self._next()

    def claim_next(self) -> str | None:
        """The first message that waits, to begin with now; None when nothing waits or a turn runs."""
        with self._lock:
            return self._next()

    def claim(self) -> bool:
        """Takes the turn for something else than a message; False when one runs."""
        with self._lock:
            free, self.busy = not self.busy, True
            return free

    def ended(self, unheard: Iterable[str], *, goes_on: bool) -> str | None:
        """The turn has ended; `unheard` was said too late for it. Returns what to begin with next, if it `goes_on`."""
        with self._lock:
            self._waiting.extendleft(reversed(list(unheard)))
            self.busy = False
            return self._next() if goes_on else None

    def pop(self) -> str | None:
        """Takes the first message out."""
        with self._lock:
            return self._waiting.popleft() if self._waiting else None

    def take(self) -> list[str]:
        """Takes all messages out."""
        with self._lock:
            texts, self._waiting = list(self._waiting), deque()
            return texts

    def waiting(self) -> tuple[str, ...]:
        """What waits, first first."""
        with self._lock:
            return tuple(self._waiting)

    def replace(self, items: Sequence[str]) -> None:
        """Makes these the waiting messages."""
        with self._lock:
            self._waiting = deque(items)

    def _next(self) -> str | None:
        if self.busy or not self._waiting:
            return None
        self.busy = True
        return self._waiting.popleft()
