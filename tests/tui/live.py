"""The whole app in this process: real engine, real store, a scripted server at the network."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from hermes_engine.profiles import Resolved, resolve
from hermes_engine.settings import Overrides
from hermes_tui.app import HermesApp
from hermes_tui.desk import Desk, Start
from tests.server.scripted import ScriptedServer
from tests.tui.stage import screen_text


class Live:
    """A running app and what a test asks of it."""

    def __init__(self, app: HermesApp, pilot: Pilot[int]) -> None:
        self.app, self.pilot, self.desk, self.chat = app, pilot, app.desk, app.chat

    @property
    def screen(self) -> str:
        """What is on the screen."""
        return screen_text(self.app)

    async def until(self, condition: Callable[[], object], timeout: float = 15.0) -> None:
        """Waits until something holds."""
        end = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"waited {timeout:g} s in vain; the screen is\n{self.screen}")
            await asyncio.sleep(0.01)
            await self.pilot.pause()

    async def shows(self, words: str, timeout: float = 15.0) -> None:
        """Waits until the words are on the screen."""
        await self.until(lambda: words in self.screen, timeout)

    async def ready(self) -> None:
        """Waits until a chat is open."""
        await self.until(lambda: self.desk.session)

    async def say(self, text: str) -> None:
        """Types a line and sends it."""
        self.chat.prompt.set_draft("")
        await self.pilot.press(*text)
        await self.pilot.press("enter")

    async def idle(self) -> None:
        """Waits until no turn runs and everything is shown."""
        await self.until(lambda: not self.desk.busy)
        await asyncio.sleep(0.1)
        await self.pilot.pause()


def settings(server: ScriptedServer | None = None, **values: Any) -> Callable[[], Resolved]:
    """Reads the settings for a scripted server, or for the demo model."""
    given = {"model": "scripted", "base_url": server.base_url} if server is not None else {"model": "demo"}
    return lambda: resolve(Overrides(**{**given, **values}))


@asynccontextmanager
async def live(
    load: Callable[[], Resolved], cwd: Path, *, width: int = 100, height: int = 30, **start: Any
) -> AsyncIterator[Live]:
    """The app, from its first picture to its end."""
    desk = Desk(Start(load, cwd, **start))
    app = HermesApp(desk, theme="hermes-dark")
    try:
        async with app.run_test(size=(width, height)) as pilot:
            yield Live(app, pilot)
    finally:
        await asyncio.to_thread(desk.close, 1.0)
        desk.pool.shutdown(wait=True)
        desk.commands.shutdown(wait=True)
