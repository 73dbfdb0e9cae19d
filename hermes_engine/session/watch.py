"""Watches a loop from a thread of its own, and logs the stack of what holds it up.

A loop that is held up makes keys lag, streams stall and Esc late; the stack names the culprit while it is at it.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import traceback

log = logging.getLogger(__name__)

LAG_SECONDS = 0.25
"""Lag that is worth a line in the log."""

EVERY_SECONDS = 1.0


class LoopWatch:
    """Asks the running loop for a sign of life once a second. Made on that loop; `close` ends it."""

    def __init__(self, name: str, *, lag: float = LAG_SECONDS, every: float = EVERY_SECONDS) -> None:
        self._name, self._lag, self._every = name, lag, every
        self._loop = asyncio.get_running_loop()
        self._watched = threading.get_ident()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._main, name="hermes-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the watching."""
        self._done.set()

    def _main(self) -> None:
        while not self._done.wait(self._every):
            sign = threading.Event()
            try:
                self._loop.call_soon_threadsafe(sign.set)
            except RuntimeError:  # the loop is closed
                return
            if sign.wait(self._lag):
                continue
            frame = sys._current_frames().get(self._watched)
            stack = "".join(traceback.format_stack(frame)) if frame else "(gone)"
            log.warning("the loop of %s is held up for over %.0f ms by:\n%s", self._name, self._lag * 1000, stack)
            while not self._done.is_set() and not sign.wait(self._every):
                pass
