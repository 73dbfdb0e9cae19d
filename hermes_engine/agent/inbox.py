"""What is said to an agent while its turn runs: text for its next step, and whether it is to end before that."""

from __future__ import annotations

from collections import deque


class Inbox:
    """Before its next request the turn ends: `leaving`, for somebody else goes on with it; `done`, for all is said."""

    def __init__(self) -> None:
        self.leaving = self.done = False
        self._texts: deque[str] = deque()

    def put(self, text: str) -> None:
        """Text for the next step."""
        self._texts.append(text)

    def take(self) -> list[str]:
        """Removes and returns what waits; after the turn that is what came too late."""
        texts, self._texts = list(self._texts), deque()
        return texts

    def __bool__(self) -> bool:
        return bool(self._texts)
