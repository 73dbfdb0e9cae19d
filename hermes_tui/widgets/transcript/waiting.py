"""The requests of a transcript that wait for an answer, and which of them the view has yet to go to. Knows no view."""

from __future__ import annotations

from collections.abc import Callable

from hermes_tui.widgets.blocks import Block, RequestBlock


class Waiting:
    """Requests, oldest first. `opened` is the one at whose beginning the view stopped, since it is longer."""

    def __init__(self) -> None:
        self._requests: list[RequestBlock] = []
        self._met: set[RequestBlock] = set()
        self.opened: RequestBlock | None = None

    def add(self, block: Block) -> None:
        """Takes a block in where it is a request."""
        if isinstance(block, RequestBlock):
            self._requests.append(block)

    def clear(self) -> None:
        """There are none any more."""
        self._requests.clear()
        self._met.clear()
        self.opened = None

    def fit(self, rows: int) -> None:
        """Lets go of what is settled; tells the others through how many rows they are seen."""
        self._requests = [block for block in self._requests if block.waiting]
        self._met &= set(self._requests)
        for block in self._requests:
            block.fit(rows)

    def meet(self, block: Block | None = None) -> None:
        """The person went to that request, or past all of them."""
        self._met.update(self._requests if block is None else [one for one in self._requests if one is block])

    def next(self) -> RequestBlock | None:
        """The oldest request nobody has gone to."""
        return next((block for block in self._requests if block not in self._met), None)

    def stop_at(self, block: RequestBlock) -> None:
        """The view stops at its beginning; its end is still to be seen, whatever was there for a moment."""
        self.opened, block.shown_at = block, None
        self._met.add(block)

    def left(self, in_view: Callable[[], list[Block]]) -> bool:
        """Whether the request the view stopped at is settled, and was looked at to the last."""
        if self.opened is None or self.opened.waiting:
            return False
        block, self.opened = self.opened, None
        return block in in_view()
