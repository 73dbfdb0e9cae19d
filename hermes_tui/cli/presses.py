"""Hears the signals that ask a program to stop: the first asks, a second one insists."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

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


@contextlib.contextmanager
def listening(hear: Callable[[int], None], *, deaf_after: bool = False) -> Iterator[Presses]:
    """While it lasts Ctrl+C, TERM and HUP call `hear` in the main thread, with how many wishes there are now.

    What the program was started to ignore (`nohup`) stays ignored. `deaf_after`: once there was a wish, further
    signals do nothing when this is over; an impatient one finds the program leaving.
    """
    presses = Presses()

    def press(number: int, frame: object) -> None:
        before, now = presses.count, presses.press()
        if now > before:
            hear(now)

    before: dict[signal.Signals, Any] = {}
    for number in STOPS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, press)
    try:
        yield presses
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if deaf_after and presses.count else handler)


@contextlib.contextmanager
def stopping(ask: Callable[[], object]) -> Iterator[Presses]:
    """While it lasts a first such signal calls `ask`, in the main thread; a second wish ends the process at once."""

    def hear(count: int) -> None:
        if count > 1:
            _leave_at_once()
        ask()

    with listening(hear) as presses:
        yield presses


def _leave_at_once() -> None:
    """Ends the process without a further word to anybody; nothing its commands started lives on."""
    from hermes_engine.sandbox.orphans import end_instance

    end_instance()
    os._exit(130)
