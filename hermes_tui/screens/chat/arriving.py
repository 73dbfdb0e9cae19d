"""Results of this chat's tasks that do not come as events: what ended while it was closed, and what ends in another
program, since tasks can be left working. Looked for now and then, off the loop. Knows the desk and the presenter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.timer import Timer

    from hermes_tui.screens.chat.screen import ChatScreen

LOOK_SECONDS = 2.0
"""Between two looks: one read of an index that is nearly always empty."""


class Arriving:
    """See the module's docstring."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen
        self._timer: Timer | None = None

    async def look(self) -> None:
        """Shows what is there, once each; looks again from time to time."""
        screen, desk = self._screen, self._screen.desk
        session = desk.session
        for outcome in await desk.off_loop(lambda: desk.results(session)):
            if session == desk.session:
                screen.presenter.result(outcome)
        if self._timer is None:
            self._timer = screen.set_interval(LOOK_SECONDS, self._again)

    def _again(self) -> None:
        self._screen.run_worker(self.look(), group="results", exclusive=True, exit_on_error=False)
