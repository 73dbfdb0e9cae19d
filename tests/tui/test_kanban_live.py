"""The board's screen, driven as a person does: real engine, real board, a scripted server at the network."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from hermes_engine.board import Boards, CardDraft
from hermes_engine.paths import Home
from hermes_tui.screens.agents.agent import AgentScreen
from hermes_tui.screens.kanban.card import CardScreen
from hermes_tui.screens.kanban.screen import KanbanScreen
from hermes_tui.widgets.cards import column_name
from tests.conftest import Serve
from tests.server.answers import Answer, Seen, call, say
from tests.tui.boards import board_of, enable, made, opened, stands, typed
from tests.tui.drawing import CONTROLS, MARKUP, has_control
from tests.tui.live import live, settings
from tests.work.support import Heard

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def home(isolated_home: Path) -> Path:
    """A home where the toolset is enabled."""
    enable(isolated_home)
    return isolated_home


def finishing(seen: Seen) -> Answer:
    """A worker that writes a file, for which it asks, and completes its card."""
    names = [
        message.get("name") or message.get("tool_call_id") for message in seen.messages if message["role"] == "tool"
    ]
    if not names:
        return call("write_file", {"path": "x.txt", "content": "one\n"})
    return call("kanban_complete", {"summary": "written"}) if len(names) == 1 else say("over")


def watchers() -> list[str]:
    """Threads that watch a board for somebody who looks."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("hermes-board-view")]


async def test_a_worker_runs_asks_and_is_answered_on_the_board(serve: Serve, tmp_path: Path) -> None:
    server = serve(finishing)
    async with live(settings(server), tmp_path, width=120, height=36) as app:
        (card,) = await made(app, "write it")
        screen = await opened(app)
        await app.shows("nobody works this board")
        assert await asyncio.to_thread(board_of(app).recall, "dispatched") is None, "looking starts nothing"
        await app.pilot.press("s")
        await app.until(lambda: "NEEDS YOU  1" in app.screen)
        await app.shows("3 Kanban·1")
        await app.shows("asks: Write x.txt")
        await app.until(lambda: screen.asked.takes_keys())
        await app.pilot.press("1")
        await stands(app, card, "done")
        await app.until(lambda: "DONE  1" in app.screen and "NEEDS YOU  0" in app.screen)
        await app.shows("written")
        await app.pilot.press("enter")
        await app.until(lambda: isinstance(app.app.screen, CardScreen))
        await app.shows("RUNS")
        await app.until(lambda: isinstance(app.app.screen, CardScreen) and app.app.screen.page.chosen.startswith("run"))
        await app.pilot.press("enter")
        await app.until(lambda: isinstance(app.app.screen, AgentScreen))
        await app.shows("x.txt")
        await app.pilot.press("escape")
        await app.pilot.press("escape")
        await app.until(lambda: app.app.screen is screen)
        await app.pilot.press("s")
        await app.shows("no longer worked here")
        assert app.desk.engine is not None
        assert app.desk.engine.kanban.dispatched() == ()


async def test_cards_are_moved_blocked_answered_sent_back_and_accepted(serve: Serve, tmp_path: Path) -> None:
    async with live(settings(serve([say("unused")])), tmp_path, width=120, height=36) as app:
        one, two = await made(app, "first", "second")
        screen = await opened(app)
        await app.until(lambda: screen.view.chosen == one)
        await app.pilot.press("H")
        await app.shows(f"{one} stands in the first column")
        await app.pilot.press("x")
        await app.shows("Why it must wait")
        await typed(app, "no key")
        await stands(app, one, "blocked")
        await app.until(lambda: "NEEDS YOU  1" in app.screen and "no key" in app.screen)
        assert screen.view.chosen == one, "the choice follows its card"
        await app.pilot.press("a")
        await app.shows("Your answer")
        await typed(app, "the key is in the drawer")
        await stands(app, one, "ready")
        details = await asyncio.to_thread(board_of(app).show, one)
        assert [comment.text for comment in details.comments] == ["the key is in the drawer"]
        await app.pilot.press("L")
        await app.shows(f"Move {one}")
        await app.shows("Only a worker makes a card run")
        await app.pilot.press("2")
        await app.shows("A note, or nothing")
        await app.pilot.press("enter")
        await stands(app, one, "review")
        await app.pilot.press("b")
        await app.shows("What is missing")
        await typed(app, "tests")
        await stands(app, one, "ready")
        await asyncio.to_thread(board_of(app).review, one)
        await app.until(lambda: "REVIEW  1" in app.screen)
        await app.until(lambda: screen.chosen_card is not None and screen.chosen_card.status == "review")
        await app.pilot.press("A")
        await stands(app, one, "done")
        await app.pilot.press("A")
        await app.shows(f"{one} is done: accept needs review or running")
        await app.pilot.press("r")
        await stands(app, one, "ready")
        await app.pilot.press("home", "down", "p")
        await app.shows("Priority, higher")
        await app.pilot.press("backspace")
        await typed(app, "7")
        await app.until(lambda: screen.deck.cards[0].id == two and screen.deck.cards[0].priority == 7)


async def test_a_card_made_by_another_program_appears_within_a_second(serve: Serve, tmp_path: Path) -> None:
    async with live(settings(serve([say("unused")])), tmp_path, width=120, height=36) as app:
        await made(app, "first")
        await opened(app)
        command = [sys.executable, "-m", "hermes_tui.cli", "kanban", "create", "from elsewhere"]
        other = await asyncio.create_subprocess_exec(*command, env=dict(os.environ), stdout=asyncio.subprocess.PIPE)
        await other.communicate()
        assert other.returncode == 0
        await app.shows("from elsewhere", timeout=3.0)  # the slow look comes after five
        assert len(watchers()) == 1
        await app.pilot.press("escape")
        await app.until(lambda: not isinstance(app.app.screen, KanbanScreen))
        await app.shows("BOARD  default")
        await asyncio.to_thread(board_of(app).block, "k1", "by somebody")
        await app.shows("◆ k1 first", timeout=3.0)
        await app.pilot.resize_terminal(80, 24)
        await app.until(lambda: not watchers(), timeout=3)


async def test_nothing_is_drawn_while_nothing_changes(serve: Serve, tmp_path: Path) -> None:
    async with live(settings(serve([say("unused")])), tmp_path, width=120, height=36) as app:
        await made(app, "first", "second")
        screen = await opened(app)
        await app.shows("second")
        await asyncio.sleep(0.6)
        drawn: list[object] = []
        original = screen.view.refresh

        def refresh(*regions: object, **options: object) -> object:
            drawn.append(regions)
            return original(*regions, **options)  # type: ignore[arg-type]

        screen.view.refresh = refresh  # type: ignore[method-assign, assignment]
        await asyncio.sleep(1.2)
        assert drawn == []
        await asyncio.to_thread(board_of(app).comment, "k1", "a note")
        await asyncio.to_thread(lambda: board_of(app).edit("k2", title="another"))
        await app.shows("another")
        rows = {region.y for regions in drawn for region in regions}  # type: ignore[attr-defined]
        assert len(rows) == 1, "only the line that changed is drawn"


async def test_a_card_that_vanishes_while_it_is_chosen_is_no_fault(serve: Serve, tmp_path: Path) -> None:
    async with live(settings(serve([say("unused")])), tmp_path, width=90, height=24) as app:
        one, two = await made(app, "first", "second")
        screen = await opened(app)
        await app.until(lambda: screen.view.chosen == one)
        await asyncio.to_thread(board_of(app).archive, one)
        await app.until(lambda: screen.view.chosen == two)
        await asyncio.to_thread(board_of(app).archive, two)
        await app.until(lambda: screen.view.chosen == "")
        await app.shows("/kanban GOAL")
        await app.pilot.press("enter", "x", "H", "r", "d")
        await app.shows("No card is chosen")


async def test_foreign_text_is_shown_as_it_is(serve: Serve, tmp_path: Path) -> None:
    async with live(settings(serve([say("unused")])), tmp_path, width=120, height=50) as app:
        await app.ready()
        titles = [f"t {text}" for text in (*MARKUP, *CONTROLS)]
        await asyncio.to_thread(lambda: board_of(app).create_all(CardDraft(t, body=t) for t in titles))
        screen = await opened(app)
        await app.shows("[@click")
        for _card in titles:
            assert not has_control(app.screen)
            await app.pilot.press("down")
        await app.pilot.press("home", "enter")
        await app.until(lambda: isinstance(app.app.screen, CardScreen))
        await app.shows("t [/]")
        await app.pilot.press("escape")
        assert app.app.screen is screen


async def test_a_board_of_500_cards_draws_what_is_in_view(serve: Serve, tmp_path: Path) -> None:
    async with live(settings(serve([say("unused")])), tmp_path, width=200, height=50) as app:
        await app.ready()
        await asyncio.to_thread(lambda: board_of(app).create_all(CardDraft(f"card {n}") for n in range(500)))
        screen = await opened(app)
        await app.shows(f"{column_name('todo')}  500")
        before = screen.view.made
        screen.draw()
        assert screen.view.made - before <= 10
        await app.pilot.press("end")
        await app.shows("card 499")
        assert "more" not in app.screen


async def test_a_database_that_cannot_be_read_is_one_line(serve: Serve, tmp_path: Path, home: Path) -> None:
    (home / "kanban.db").write_bytes(b"this is no database, whatever its name says" * 50)
    async with live(settings(serve([say("unused")])), tmp_path, width=120, height=30) as app:
        await app.ready()
        await app.pilot.press("alt+3")
        await app.until(lambda: isinstance(app.app.screen, KanbanScreen) and app.app.screen.deck.fault)
        await app.shows("kanban.db")
        await app.pilot.press("n", "escape", "s", "B", "escape", "escape")
        await app.until(lambda: not isinstance(app.app.screen, KanbanScreen))


async def test_a_board_that_is_deleted_while_it_is_shown_comes_back(serve: Serve, tmp_path: Path, home: Path) -> None:
    def delete() -> None:
        for file in home.glob("kanban.db*"):
            file.unlink()

    async with live(settings(serve([say("unused")])), tmp_path, width=120, height=30) as app:
        await made(app, "the first")
        await opened(app)
        await app.shows("the first")
        delete()
        await app.shows("no longer the board it was")
        assert not (home / "kanban.db").exists(), "looking makes none: the old one may be on its way back"
        with closing(Boards(Home(home)).open()) as anew:
            anew.create(CardDraft("from another program"))
        await app.shows("from another program")
        delete()
        await app.shows("no longer the board it was")
        await app.pilot.press("B")
        await app.shows("Boards")
        await app.pilot.press("enter")
        await app.shows("/kanban GOAL")
        await made(app, "the second")
        await app.shows("the second")


async def test_a_worker_of_another_program_is_seen_and_answered_here(serve: Serve, tmp_path: Path) -> None:
    server = serve(finishing)
    other = Heard(server, tmp_path, attended=True)
    try:
        card = (await asyncio.to_thread(other.engine.kanban.board().create, CardDraft("write it"))).id
        await asyncio.to_thread(lambda: other.engine.kanban.start(cwd=tmp_path))
        async with live(settings(server), tmp_path, width=120, height=36) as app:
            await app.ready()
            screen = await opened(app)
            await app.until(lambda: "NEEDS YOU  1" in app.screen)
            assert not screen.deck.worked
            await app.until(lambda: screen.asked.takes_keys())
            await app.pilot.press("1")
            await stands(app, card, "done")
            await app.until(lambda: "DONE  1" in app.screen)
    finally:
        await asyncio.to_thread(other.engine.close)


async def test_ctrl_n_goes_round_the_cards_that_need_the_person(serve: Serve, tmp_path: Path) -> None:
    async with live(settings(serve([say("unused")])), tmp_path, width=120, height=36) as app:
        one, two, three = await made(app, "first", "second", "third")
        for card in (one, three):
            await asyncio.to_thread(board_of(app).block, card, "a reason")
        screen = await opened(app)
        await app.until(lambda: screen.view.chosen == one)
        await app.pilot.press("ctrl+n")
        assert screen.view.chosen == three
        await app.pilot.press("ctrl+n")
        assert screen.view.chosen == one
        await app.pilot.press("h")
        assert screen.view.chosen == two
        await app.pilot.press("ctrl+n")
        assert screen.view.chosen == one
