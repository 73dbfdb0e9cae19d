"""A screen that never argues about its size.

The toolkit lets a screen hear of its own layout's size as of a resize. When two sizes are on their way at once (a
terminal that is dragged), each layout answers the other for ever; here only the terminal's size of now counts.
"""

from __future__ import annotations

from textual.geometry import Size
from textual.screen import ModalScreen, Screen, ScreenResultType


class SteadyScreen(Screen[ScreenResultType]):
    """A screen of the app."""

    def _screen_resized(self, size: Size) -> None:
        super()._screen_resized(self.app.size)


class SteadyModal(ModalScreen[ScreenResultType]):
    """An overlay of the app."""

    def _screen_resized(self, size: Size) -> None:
        super()._screen_resized(self.app.size)
