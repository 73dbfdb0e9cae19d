"""Agents of other running programs: seen, stopped, told and answered by orders. The other program is another engine on
the same home.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes_tui.screens.agents.agent import AgentScreen
from hermes_tui.screens.agents.screen import AgentsScreen
from tests.server.answers import Seen
from tests.server.scripted import ScriptedServer, call, say
from tests.tui.live import Live, live, settings
from tests.work.support import Heard, by_prompt

pytestmark = pytest.mark.slow

WRITE = call("write_file", {"path": "x.txt", "content": "one\n"})
WAIT = call("terminal", {"command": "until test -e go; do sleep 0.05; done"})


@asynccontextmanager
async def beside(script: object, cwd: Path, **flags: str) -> AsyncIterator[tuple[Live, Heard]]:
    """The app, with another program that has a task at work."""
    with ScriptedServer(by_prompt({"work": script})) as server:  # type: ignore[dict-item]
        other = Heard(server, cwd, attended=True, **flags)  # type: ignore[arg-type]
        try:
            await asyncio.to_thread(other.engine.tasks.start, other.session, "work on it", kind="background")
            async with live(settings(server), cwd, width=120) as app:
                await app.ready()
                await app.pilot.press("alt+2")
                await app.until(lambda: isinstance(app.app.screen, AgentsScreen))
                await app.shows("IN OTHER PROGRAMS")
                yield app, other
        finally:
            await asyncio.to_thread(other.engine.close)


async def test_it_is_followed_told_and_stopped(tmp_path: Path) -> None:
    def answer(seen: Seen) -> object:
        if len(seen.messages) == 2:
            return WAIT
        return say(f"heard {seen.messages[-1]['content']}") if "mind" in str(seen.messages[-1]) else WAIT

    async with beside(answer, tmp_path, mode="auto") as (app, other):
        await app.shows("pid ")
        await app.pilot.press("enter")
        await app.until(lambda: isinstance(app.app.screen, AgentScreen))
        await app.shows("until test -e go")
        assert "cancelled" not in app.screen
        await app.pilot.press("r")
        await app.shows("it works in another program")
        await app.pilot.press("o")
        await app.shows("open it there")
        await app.pilot.press("m", *"mind the gap", "enter")
        await app.shows("it hears it at its next step")
        await app.until(lambda: other.engine.agents()[-1].session and _inbox(other))
        (tmp_path / "go").touch()
        await app.shows("heard mind the gap")


def _inbox(other: Heard) -> bool:
    """Whether what was sent has come to the other program's agent."""
    row = other.engine.agents()[-1]
    talk = other.engine._open.get(row.session)
    return talk is not None and talk._agent is not None and bool(talk._agent.inbox)


async def test_it_is_stopped_by_an_order(tmp_path: Path) -> None:
    async with beside(WAIT, tmp_path, mode="auto") as (app, other):
        await app.until(lambda: other.engine.agents()[-1].tools)
        await app.pilot.press("x")
        await app.shows("was asked to stop")
        await app.until(lambda: other.engine.agents()[-1].state == "cancelled")
        await app.until(lambda: "IN OTHER PROGRAMS" not in app.screen and "■ work" in app.screen)
        await app.pilot.press("x")
        await app.shows("does nothing that could be stopped")


async def test_what_it_asks_is_answered_by_an_order(tmp_path: Path) -> None:
    async with beside([WRITE, say("written")], tmp_path) as (app, _other):
        await app.shows("asks: Write x.txt")
        await app.pilot.press("a")
        await app.until(lambda: isinstance(app.app.screen, AgentScreen))
        screen = app.app.screen
        assert isinstance(screen, AgentScreen)
        await app.until(lambda: screen.asking.focused)
        block = screen.asking.focused
        assert block is not None
        await app.until(lambda: block.takes_keys(time.monotonic()))
        await app.pilot.press("1")
        await app.until(lambda: (tmp_path / "x.txt").exists())
        await app.shows("written")
        await app.shows("✓ done")
