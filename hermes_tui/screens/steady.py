"""A screen that never argues about its size, and is not drawn while another one covers it.

The toolkit lets a screen hear of its own layout's size as of a resize. When two sizes are on their way at once (a
terminal that is dragged), each layout answers the other for ever; here only the terminal's size of now counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.await_complete import AwaitComplete
from textual.geometry import Size
from textual.screen import ModalScreen, Screen, ScreenResultType

if TYPE_CHECKING:
    from hermes_engine.events import Event


class SteadyScreen(Screen[ScreenResultType]):
    """A screen of the app. It hears what the engine says, whether it is in view or not."""

    edited = 0.0
    """When the person typed here last, in monotonic seconds."""

    def hear(self, events: Sequence[Event]) -> None:
        """Events of all agents, as they come."""

    def remark(self, words: str) -> None:
        """A passing word."""

    def recolour(self) -> None:
        """Colours of code have arrived, or the theme is another one: what keeps the old ones is drawn again."""

    def _screen_resized(self, size: Size) -> None:
        super()._screen_resized(self.app.size)

    def _compositor_refresh(self) -> None:
        stack = self.app.screen_stack
        above = stack[stack.index(self) + 1 :] if self in stack else ()
        if any(isinstance(screen, SteadyScreen) for screen in above):
            # the toolkit takes every screen for see-through: each change under another one would paint all of that
            self._compositor._dirty_regions.clear()
            self._dirty_widgets.clear()
        else:
            super()._compositor_refresh()


class SteadyModal(ModalScreen[ScreenResultType]):
    """An overlay of the app. It is closed once, whatever keys follow the one that closed it."""

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        return super().dismiss(result) if self.is_current else AwaitComplete()

    def _screen_resized(self, size: Size) -> None:
        super()._screen_resized(self.app.size)
