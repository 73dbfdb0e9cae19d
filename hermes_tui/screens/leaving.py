"""The way out: what Ctrl+C means, the question asked while something runs, and the last resort when leaving hangs."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, Any

from hermes_tui import running
from hermes_tui.texts import _

if TYPE_CHECKING:
    from textual.app import App

    from hermes_tui.desk import Desk
    from hermes_tui.screens.chat import ChatScreen

AGAIN_SECONDS = 3.0
"""A second press within this time means: leave."""


class Leaving:
    """Leaves the app, never by accident."""

    def __init__(self, app: App[Any], desk: Desk, chat: ChatScreen) -> None:
        self._app, self._desk, self._chat = app, desk, chat
        self._pressed = 0.0
        self._asking = False

    def interrupt(self) -> None:
        """Ctrl+C: stops the turn, else clears the draft; again within three seconds: leaves."""
        now = time.monotonic()
        again = now - self._pressed < AGAIN_SECONDS
        self._pressed = now
        sending = self._chat.sending
        if again:
            self.leave_or_ask()
        elif sending.stop():
            sending.remark(_("Stopping. Ctrl+C again to quit"))
        elif sending.set_aside():
            sending.remark(_("Draft cleared, ↑ brings it back. Ctrl+C again to quit"))
        else:
            count = len(self._desk.running())
            words = _("Ctrl+C again to quit, stopping {count}") if count else _("Ctrl+C again to quit")
            sending.remark(words.format(count=count))

    def closed_by(self, how: str) -> None:
        """What stood before everything else was closed by Ctrl+D ("quit"), or by a first Ctrl+C ("interrupt")."""
        if how == "quit":
            self.leave_or_ask()
        elif how == "interrupt":
            self._pressed = time.monotonic()
            self._chat.sending.remark(_("Ctrl+C again to quit"))

    def leave_or_ask(self) -> None:
        """Leaves; while something runs, after the question what shall become of it."""
        if not self._desk.running():
            self.leave()
        elif not self._asking:
            self._asking = True
            self._app.run_worker(self._ask(), group="leave", exit_on_error=False)

    async def _ask(self) -> None:
        from hermes_tui.screens.overlays.quitting import QuitDialog

        try:
            answer = await self._app.push_screen_wait(
                QuitDialog(self._desk.running, keeps=not self._desk.start.ephemeral)
            )
        finally:
            self._asking = False
        if answer in ("stop", "leave"):
            self._desk.leave_behind = answer == "leave"
            self.leave()
            return
        self._chat.sending.stay_open = self._stay if answer == "wait" else None
        self._chat.refresh_facts()
        self.done()

    def _stay(self) -> None:
        """The person thought better of leaving when everything is done."""
        self._chat.sending.stay_open = None
        self._chat.refresh_facts()

    def done(self) -> None:
        """Nothing may run any more: leaves if the person waited for that."""
        if self._chat.sending.stay_open is not None and not self._desk.running():
            self.leave()

    def signalled(self, number: int) -> None:
        """The system wants us gone, or the terminal has gone."""
        ui = self._desk.resolved.settings.ui if self._desk.resolved is not None else None
        self._desk.leave_behind = number == signal.SIGHUP and ui is not None and ui.on_hangup == "leave"
        self.leave(128 + number)

    def leave(self, code: int = 0) -> None:
        """Leaves now; whatever hangs, the process is gone soon."""
        if not self._app.is_headless:
            running.last_resort(code, running.HANDOVER_SECONDS if self._desk.leave_behind else running.LAST_SECONDS)
        self._app.exit(code, return_code=code)
