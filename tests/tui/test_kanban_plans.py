"""New cards, plans, other boards, boards that were left: real engine, real board, a scripted server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_engine.board import CardDraft
from hermes_tui.screens.kanban.screen import KanbanScreen
from hermes_tui.widgets.cards import column_name
from tests.conftest import Serve
from tests.server.answers import hang, say
from tests.tui.boards import board_of, enable, made, opened, typed
from tests.tui.live import live, settings

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def home(isolated_home: Path) -> Path:
    """A home where the toolset is enabled."""
    enable(isolated_home)
    return isolated_home


PLAN = json.dumps(
    {
        "cards": [
            {"title": "collect", "body": "find three", "assignee": "default"},
            {"title": "write", "body": "two pages", "assignee": "default", "after": [1]},
            {"title": "check", "body": "numbers", "assignee": "default", "after": [2]},
        ]
    }
)


async def test_a_goal_becomes_cards_only_when_the_person_says_yes(serve: Serve, tmp_path: Path) -> None:
    async with live(settings(serve([say(PLAN)])), tmp_path, width=100, height=30) as app:
        await app.ready()
        await app.say("/kanban a report on caching")
        await app.shows("3 cards for the board")
        assert board_of(app).cards() == ()
        await app.pilot.press("down", "x")
        await app.shows("2 cards for the board")
        await app.pilot.press("e")
        await app.shows("Card of the plan")
        await app.pilot.press(*" twice", "ctrl+s")
        await app.shows("check twice")
        await app.pilot.press("enter")
        await app.shows("2 cards are on the board")
        cards = board_of(app).cards()
        assert [(card.title, card.parents) for card in cards] == [("collect", ()), ("check twice", ("k1",))]


async def test_esc_gives_up_a_plan_that_takes_long(serve: Serve, tmp_path: Path) -> None:
    server = serve([hang(60)])
    async with live(settings(server), tmp_path, width=100, height=30) as app:
        await app.ready()
        await app.say("/kanban a report on caching")
        await app.shows("Esc gives up")
        await app.until(lambda: server.open_requests == 1)
        await app.pilot.press("escape")
        await app.until(lambda: server.open_requests == 0)
        await app.shows("Nothing was created")
        assert board_of(app).cards() == ()


async def test_a_new_card_is_written_in_a_form(serve: Serve, tmp_path: Path) -> None:
    async with live(settings(serve([say("unused")])), tmp_path, width=100, height=30) as app:
        (one,) = await made(app, "first")
        screen = await opened(app)
        await app.pilot.press("n")
        await app.shows("New card")
        await app.pilot.press(*"second", "tab", *"line one", "enter", *"line two", "tab", *"nobody", "tab", *"x", "tab")
        await app.pilot.press(*one, "ctrl+s")
        await app.shows("the priority is a whole number")
        await app.pilot.press("tab", "tab", "tab", "backspace", "4", "ctrl+s")
        await app.until(lambda: screen.view.chosen == "k2")
        card = await asyncio.to_thread(board_of(app).card, "k2")
        assert (card.title, card.body, card.assignee, card.priority) == ("second", "line one\nline two", "nobody", 4)
        assert card.parents == (one,)


async def test_why_a_form_was_not_taken_is_seen_in_a_short_window(serve: Serve, tmp_path: Path) -> None:
    async with live(settings(serve([say("unused")])), tmp_path, width=60, height=16) as app:
        await made(app, "first")
        await opened(app)
        await app.pilot.press("n")
        await app.shows("New card")
        await app.pilot.press("t", "tab", *["x", "enter"] * 10, "tab", "tab", "p", "ctrl+s")
        await app.shows("the priority is a whole number")
        assert "New card" in app.screen


async def test_what_enter_opens_is_said(serve: Serve, tmp_path: Path) -> None:
    async with live(settings(serve([say("unused")])), tmp_path, width=80, height=24) as app:
        (one,) = await made(app, "first")
        await asyncio.to_thread(board_of(app).create, CardDraft("second", parents=(one,)))
        await opened(app)
        await app.pilot.press("enter")
        await app.shows("Enter opens the card")


async def test_the_app_asks_once_whether_to_go_on_and_starts_nothing(serve: Serve, tmp_path: Path) -> None:
    load: Callable[..., object] = settings(serve([say("unused")]))
    async with live(load, tmp_path, width=100) as app:  # type: ignore[arg-type]
        await app.ready()
        await app.say("/kanban start")
        await app.shows("is worked; /kanban stop")
    async with live(load, tmp_path, width=100) as app:  # type: ignore[arg-type]
        await app.shows("The board default was worked here. Go on?")
        assert app.desk.engine is not None
        assert app.desk.engine.kanban.dispatched() == ()
        await app.say("/kanban stop default")
        await app.shows("is not worked here")
    async with live(load, tmp_path, width=100) as app:  # type: ignore[arg-type]
        await app.ready()
        await app.say("/kanban board nowhere")
        await app.shows("nowhere")
        assert "Go on?" not in app.screen


async def test_another_board_is_made_and_gone_to(serve: Serve, tmp_path: Path) -> None:
    async with live(settings(serve([say("unused")])), tmp_path, width=120, height=36) as app:
        await made(app, "first")
        screen = await opened(app)
        await app.shows("k1 first")
        await app.pilot.press("B")
        await app.shows("a new name makes a board")
        await typed(app, "auth")
        await app.until(lambda: screen.deck.slug == "auth" and f"{column_name('todo')}  0" in app.screen)
        assert board_of(app).slug == "auth"
        await app.pilot.press("slash", *"fir", "enter")
        await app.shows("Esc clears /fir")
        await app.pilot.press("escape", "escape")
        await app.until(lambda: not isinstance(app.app.screen, KanbanScreen))
        await app.say("/kanban board default")
        await app.until(lambda: isinstance(app.app.screen, KanbanScreen) and "k1 first" in app.screen)


async def test_what_keys_do_is_in_the_palette_too(serve: Serve, tmp_path: Path) -> None:
    async with live(settings(serve([say("unused")])), tmp_path, width=120, height=36) as app:
        (one,) = await made(app, "first")
        screen = await opened(app)
        await app.until(lambda: screen.view.chosen == one)
        await app.pilot.press("ctrl+p", *"give it to another")
        await app.shows("give it to another profile")
        await app.pilot.press("enter")
        await app.shows(f"Who works {one}?")
        await typed(app, "writer")
        await app.shows("no profile writer here")
