"""Counts the signals that ask a program to stop: the first asks, a second one insists."""

from __future__ import annotations

import time

TOGETHER_SECONDS = 0.3
"""Signals this close are one: `timeout` and some shells send theirs twice, to the program and to its group."""


class Presses:
    """Tells a person's second wish from a signal that came twice. Safe within a signal handler."""

    def __init__(self) -> None:
        self.count = 0
        self._last = float("-inf")

    def press(self) -> int:
        """One more signal; how many wishes there are now."""
        now = time.monotonic()
        if now - self._last > TOGETHER_SECONDS:
            self.count += 1
            self._last = now  # of those that count: who presses again and again insists
        return self.count
