"""What tests of the board's screen share: the board behind it, cards on it, waiting for what becomes of them."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from hermes_engine.board import Board, CardDraft
from hermes_tui.screens.kanban.screen import KanbanScreen
from tests.tui.live import Live


def enable(home: Path) -> None:
    """Makes a home where the toolset is enabled."""
    home.mkdir(parents=True)
    (home / "config.yaml").write_text("toolsets: [file, kanban]\nkanban: {retry_seconds: 0.05}\n")


def board_of(app: Live) -> Board:
    """The board itself."""
    assert app.desk.engine is not None
    return app.desk.engine.kanban.board()


async def made(app: Live, *titles: str) -> list[str]:
    """Cards made behind the screen's back; their ids."""
    await app.ready()
    return [card.id for card in await asyncio.to_thread(lambda: board_of(app).create_all(map(CardDraft, titles)))]


async def opened(app: Live) -> KanbanScreen:
    """The board in view."""
    await app.pilot.press("alt+3")
    await app.until(lambda: isinstance(app.app.screen, KanbanScreen) and app.app.screen.deck.ready)
    screen = app.app.screen
    assert isinstance(screen, KanbanScreen)
    return screen


async def stands(app: Live, card: str, state: str) -> None:
    """Waits until a card is in a state."""
    end = time.monotonic() + 15
    while (await asyncio.to_thread(board_of(app).card, card)).status != state:
        assert time.monotonic() < end, app.screen
        await asyncio.sleep(0.02)


async def typed(app: Live, text: str) -> None:
    """A line typed into what is open."""
    await app.pilot.press(*text)
    await app.pilot.press("enter")
