"""Notices a model that goes round in circles: the same calls with the same results, or two in turn.

Calls with new arguments, or the same call with a new result (polling something that moves), are progress.
"""

from __future__ import annotations

from collections.abc import Sequence

from hermes_engine.messages import ToolCall

NOTE_AFTER = 3
STOP_AFTER = 6
NOTE = (
    "\n\n[note: {count} rounds in a row brought nothing new: the same calls gave the same results. "
    "Do something else, or answer with what you have.]"
)

Signature = tuple[tuple[str, str, str], ...]


class Repetition:
    """Counts rounds in which nothing new happened."""

    def __init__(self) -> None:
        self._seen: list[Signature] = []
        self.count = 1

    def note(self, calls: Sequence[ToolCall], texts: Sequence[str]) -> str:
        """Takes in one round; returns what is to be added to its last result ("" when all is well)."""
        mark: Signature = tuple((c.name, c.arguments, t) for c, t in zip(calls, texts, strict=True))
        repeated = mark in self._seen[-2:]
        self.count = self.count + 1 if repeated else 1
        self._seen = [*self._seen[-1:], mark]
        return NOTE.format(count=self.count) if self.count >= NOTE_AFTER else ""

    @property
    def hopeless(self) -> bool:
        """Whether the turn should end."""
        return self.count >= STOP_AFTER
