"""A field of one line whose keys act in the order they were typed in. Knows no screen."""

from __future__ import annotations

from textual import events
from textual.widgets import Input


class Field(Input):
    """An `Input` that obeys its editing keys at once: the toolkit would after the next letters had been typed, so that
    keys which arrive together (a slow line, a fast hand) would cut what came after them."""

    async def _on_key(self, event: events.Key) -> None:
        # its own, not the screen's active ones: those follow a change of focus only after a while
        bound = None if event.is_printable else self._bindings.key_to_bindings.get(event.key)
        if bound:
            event.stop()
            event.prevent_default()
            await self.app.run_action(bound[0].action, self)
