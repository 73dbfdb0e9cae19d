"""How many agents of one tree are at work at once. Whoever only waits for its own children gives its place up, so no
tree can block itself (contract, section 3).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Places:
    """A number of places. First come, first served, but those that come back from waiting go before new ones."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._new: deque[asyncio.Future[None]] = deque()
        self._back: deque[asyncio.Future[None]] = deque()

    def seat(self) -> Seat:
        """A seat, not taken yet."""
        return Seat(self)

    async def take(self, *, back: bool) -> None:
        """Waits for a place."""
        if self._free > 0:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        (self._back if back else self._new).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give()
            raise

    def give(self) -> None:
        """Hands a place to the next who waits."""
        for line in (self._back, self._new):
            while line:
                turn = line.popleft()
                if not turn.done():
                    turn.set_result(None)
                    return
        self._free += 1


class Seat:
    """One agent's claim on a place."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._taken = self._gave_up = False
        self._away = 0

    async def take(self) -> None:
        """Waits until the agent may work."""
        await self._places.take(back=False)
        self._taken = True

    def leave(self) -> None:
        """The agent has ended."""
        if self._taken:
            self._taken = False
            self._places.give()

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        """The agent only waits meanwhile; afterwards it has a place again, unless it was cancelled."""
        self._away += 1
        if self._away == 1:
            self._gave_up = self._taken
            self.leave()
        try:
            yield
        finally:
            self._away -= 1
        if not self._away and self._gave_up:
            await self._places.take(back=True)
            self._taken = True
