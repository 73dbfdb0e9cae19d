"""One key after the other: the next goes out when the one before it has been dealt with. Knows no screen.

The toolkit hands keys on as they come, and what a key is bound to is done later. Of keys that arrive together (a slow
line, a busy machine) the second would still mean what it meant before the first: in `/fix` the `x` would stop an agent.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from textual import events
from textual.app import App
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input, TextArea

ReturnT = TypeVar("ReturnT")
LONGEST_SECONDS = 0.5
"""Whoever had the key may have gone without a word."""


class Passed(Message):
    """Follows a key on its way up; where it arrives, the key has been dealt with."""

    bubble = True

    def __init__(self, turn: int) -> None:
        super().__init__()
        self.turn = turn


class Keystrokes:
    """The keys of an app. `hand_on` is the toolkit's own way; text fields take their keys in order by themselves."""

    def __init__(self, app: App[Any], hand_on: Callable[[events.Event], Awaitable[None]]) -> None:
        self._app, self._hand_on = app, hand_on
        self._held: deque[events.Event] = deque()
        self._turn = 0
        self._screen: Screen[Any] | None = None
        self._waiting: asyncio.TimerHandle | None = None

    async def take(self, event: events.Event) -> None:
        """A key or a paste from the terminal."""
        self._held.append(event)
        if self._waiting is None:
            await self._next()

    async def passed(self, message: Passed) -> None:
        """A key has been dealt with; one that opened a screen, when that has the keys."""
        if self._waiting is None or message.turn != self._turn:
            return
        self._waiting.cancel()
        self._waiting = None
        if self._app.screen is not self._screen:
            self._follow(self._app.screen)
        if self._waiting is None:
            await self._next()

    async def _next(self) -> None:
        while self._held and self._waiting is None:
            target = self._app.focused or self._app.screen
            self._screen = self._app.screen
            await self._hand_on(self._held.popleft())
            if not isinstance(target, (Input, TextArea)):
                self._follow(target)

    def _follow(self, target: Any) -> None:
        self._turn += 1
        self._screen = self._app.screen
        if target.post_message(Passed(self._turn)):
            loop = asyncio.get_running_loop()
            self._waiting = loop.call_later(LONGEST_SECONDS, self._app.post_message, Passed(self._turn))


class KeyByKey(App[ReturnT]):
    """An app that deals with one key after the other."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._keystrokes = Keystrokes(self, super().on_event)

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, (events.Key, events.Paste)) and not event.is_forwarded:
            await self._keystrokes.take(event)
        else:
            await super().on_event(event)

    async def on_passed(self, message: Passed) -> None:
        """A key has been dealt with."""
        await self._keystrokes.passed(message)
