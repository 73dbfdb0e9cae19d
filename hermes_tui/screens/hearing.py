"""Passes on to the screens what the engine says, at a pace that leaves room for keys; beats while anything runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hermes_tui.desk import Pace

if TYPE_CHECKING:
    from textual.app import App
    from textual.timer import Timer

    from hermes_tui.desk import Desk
    from hermes_tui.screens.chat import ChatScreen
    from hermes_tui.screens.switching import Switching

FRAME_SECONDS = 0.25


class Hearing:
    """The app's ear. `at_rest` is called when nothing runs any more."""

    def __init__(
        self, app: App[Any], desk: Desk, chat: ChatScreen, switching: Switching, at_rest: Callable[[], None]
    ) -> None:
        self._app, self._desk, self._chat, self._switching, self._at_rest = app, desk, chat, switching, at_rest
        self._frame, self._pace = 0, Pace()
        self._pulse: Timer | None = None

    def begin(self) -> None:
        """Listens from now on."""
        if self._pulse is None:
            self._pulse = self._app.set_interval(FRAME_SECONDS, self._beat, pause=True)
        self._desk.bridge.connect(lambda: self._app.call_later(self.drain))

    def drain(self) -> None:
        """Shows what was said; comes again as long as the engine speaks."""
        wait = self._pace.wait()
        if wait > 0:
            self._app.set_timer(wait, self.drain)
        elif self.deliver():
            typed = max(self._chat.edited, self._switching.edited)
            self._app.set_timer(self._pace.pause(self._chat.transcript.cost, typed=typed), self.drain)

    def deliver(self) -> bool:
        """Shows at once what was said; whether anything was."""
        desk = self._desk
        events = desk.bridge.take()
        if not events:
            return False
        for event in events:
            desk.work.take(event)
        self._chat.take(events)
        self._switching.hear(events)
        if desk.alive and self._pulse is not None:
            self._pulse.resume()
        return True

    def _beat(self) -> None:
        """Four times a second while anything runs."""
        self._frame += 1
        self._chat.tick(self._frame)
        if not self._desk.alive and self._pulse is not None:
            self._pulse.pause()
            self._at_rest()

    def recolour(self) -> None:
        """Colours of code have arrived."""
        self._chat.transcript.recolour()
        self._switching.recolour()
