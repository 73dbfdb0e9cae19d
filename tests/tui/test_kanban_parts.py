"""What the board's screen is made of: columns and their order, legal moves, plans without a card, any size."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest
from rich.cells import cell_len

from hermes_engine.board import STATES, CardDraft
from hermes_engine.board.moves import BY_VERB
from hermes_tui.screens.agents.book import AgentsBook
from hermes_tui.screens.agents.steps import OpenSteps
from hermes_tui.screens.kanban.base import last_work
from hermes_tui.screens.kanban.deck import deck, face, in_short
from hermes_tui.screens.kanban.moves import again, no_step, step, steps
from hermes_tui.screens.kanban.planning import without
from hermes_tui.screens.kanban.screen import KanbanScreen
from hermes_tui.widgets.cards import CardFace, card_lines, column_name, ghosts, head
from hermes_tui.widgets.facts import WorkFacts
from hermes_tui.widgets.glyphs import ASCII
from hermes_tui.widgets.times import age_short
from tests.tui.cards import NOW, card, run
from tests.tui.drawing import CONTROLS, LOOK, MARKUP, WIDE, has_control, look
from tests.tui.stage import screen_lines, settle, stage
from tests.tui.test_kanban_pictures import CARDS, ToldAgents, ToldBoard


def ids(name: str, *asking: str, typed: str = "") -> list[str]:
    return [found.id for found in deck(CARDS, asking, typed).columns[name]]


def test_every_card_stands_in_one_column_those_that_need_the_person_first() -> None:
    assert ids("needs", "s-k8") == ["k8", "k4"], "who asks comes before who is blocked"
    assert ids("running", "s-k8") == ["k9", "k10"]
    assert ids("running") == ["k9", "k10", "k8"]
    assert ids("todo") == ["k14", "k12", "k13"], "what a person must sort comes first"
    assert ids("done") == ["k6", "k5"], "the newest first"
    whole = deck(CARDS, ("s-k8",))
    assert sum(map(len, whole.columns.values())) == len(CARDS)
    assert whole.count("running", 3) == "2/3"


def test_a_filter_finds_title_profile_and_reason() -> None:
    assert ids("todo", typed="RATE") == ["k12"]
    assert ids("todo", typed="writer no") == ["k13"]
    assert ids("needs", typed="tracker") == ["k4"]
    assert deck(CARDS, (), "nothing like it").total == len(CARDS)


def test_the_board_in_short_counts_and_names() -> None:
    fact = in_short("auth", deck(CARDS, ("s-k8",)))
    assert (fact.running, fact.needs, fact.review, fact.open) == (2, 2, 1, 8)
    assert fact.cards[0] == ("k8", "needs", "signature of login")


def test_a_running_card_shows_what_its_worker_does() -> None:
    alone = face(CARDS[4], None, NOW)
    assert (alone.sign, alone.told, alone.tokens, alone.seconds) == ("running", "Run pytest -q", 9_000, 160)
    silent = face(CARDS[3], dataclasses.replace(ToldAgents.items(None)[0], heard=NOW - 95), NOW)  # type: ignore[arg-type]
    assert silent.told == "quiet 95 s"
    assert face(card("k1", "x", "done", result="it works"), None, NOW).told == "it works"
    dead = face(dataclasses.replace(CARDS[4], reason="the process that worked it is gone"), None, NOW)
    assert (dead.sign, dead.told) == ("", "the process that worked it is gone"), "nothing runs, nothing turns"


@pytest.mark.parametrize("status", [state for state in STATES if state != "archived"])
@pytest.mark.parametrize("way", [-1, 1])
def test_only_legal_moves_are_offered_and_where_there_is_none_it_says_why(status: str, way: int) -> None:
    found = card("k1", "x", status, run=run(1, "k1", "p", 5) if status == "running" else None)
    offered = steps(found, way)
    for one in offered:
        assert status in BY_VERB[one.verb].sources
    assert offered or no_step(found, way)


def test_what_the_moves_are() -> None:
    def verbs(status: str, way: int) -> list[str]:
        return [one.verb for one in steps(card("k1", "x", status), way)]

    assert verbs("ready", 1) == ["block", "review", "complete", "archive"]
    assert verbs("triage", 1) == ["sort", "block", "complete", "archive"]
    assert verbs("blocked", -1) == ["unblock"]
    assert verbs("blocked", 1) == ["archive"]
    assert verbs("review", -1) == ["send_back", "block"]
    assert verbs("review", 1) == ["accept", "archive"]
    assert verbs("running", -1) == ["reclaim"]
    assert verbs("done", -1) == ["reopen"]
    assert again(card("k1", "x", "blocked"), NOW)[0] == step("unblock")
    assert again(card("k1", "x", "ready", retry_at=NOW + 9), NOW)[0] == step("assign")
    assert again(card("k1", "x", "todo", "waits for k9"), NOW) == (None, "waits for k9")


def test_a_plan_without_a_card_keeps_the_order_of_the_others() -> None:
    plan = (
        CardDraft("a"),
        CardDraft("b", parents=("@0",)),
        CardDraft("c", parents=("@1",)),
        CardDraft("d", parents=("@0", "@1", "@2")),
    )
    assert [(one.title, one.parents) for one in without(plan, 1)] == [("a", ()), ("c", ("@0",)), ("d", ("@0", "@1"))]
    assert without(without(without(without(plan, 0), 0), 0), 0) == ()


def test_what_its_worker_changed_is_of_the_newest_run_that_worked_the_card() -> None:
    first, second = run(1, "k1", "coder", 90), run(2, "k1", "coder", 60)
    judged, unbegun = run(3, "k1", "reviewer", 30, role="review"), run(4, "k1", "coder", 5, session="")
    assert last_work([first, second, judged, unbegun]) is second
    assert last_work([unbegun]) is unbegun


def test_the_time_of_a_card_is_never_cut_for_its_tokens() -> None:
    busy = CardFace("k1", "x", "running", "researcher", 0, 3723, "", 12_000)
    lines = [card_lines(busy, width, LOOK, chosen=False, framed=True)[2].plain for width in (24, 28, 40)]
    assert [line.strip("│ ").split()[2:] for line in lines] == [["1h02"], ["1h02", "12k"], ["1h02", "12k", "tok"]]


def test_the_time_of_a_card_is_never_cut_for_a_name_or_a_priority() -> None:
    def second(width: int, seconds: float) -> list[str]:
        face = CardFace("k1", "x", "running", "researcher", 2, seconds)
        return card_lines(face, width, LOOK, chosen=False, framed=True)[2].plain.strip("│ ").split()

    assert second(17, 7) == ["rese…", "●", "7", "s"]
    assert second(17, 242) == ["rese…", "●", "4m02"], "the name does not move while the time runs on"
    assert second(23, 9) == ["researcher", "●", "9", "s"]
    assert second(25, 9) == ["researcher", "●", "9", "s", "p2"]


@pytest.mark.parametrize("width", [8, 19, 23, 60])
@pytest.mark.parametrize("title", [WIDE, *MARKUP, *CONTROLS, "", "x" * 200])
@pytest.mark.parametrize("framed", [True, False])
def test_a_card_fills_its_width_whatever_it_says(width: int, title: str, framed: bool) -> None:
    shown = CardFace("k1", title, "running", title, 3, 61, title, 12_000, ("k2", "k3"))
    for drawn in (LOOK, look(glyphs=ASCII)):
        for chosen in (True, False):
            lines = card_lines(shown, width, drawn, chosen=chosen, framed=framed)
            assert [cell_len(line.plain) for line in lines] == [width] * len(lines)
            assert not has_control("".join(line.plain for line in lines))
    assert cell_len(head("needs", "3", width, LOOK, chosen=True).plain) == width
    assert {cell_len(line.plain) for line in ghosts("todo", width, LOOK)} == {width}


def test_ages_say_no_seconds() -> None:
    assert [age_short(n) for n in (5, 65, 3700, 50 * 3600)] == ["<1m", "1m", "1h", "2d"]


async def test_every_size_is_survived_and_the_columns_fit() -> None:
    async with stage(120, 36) as (app, pilot):
        book = ToldBoard(app.desk, ToldAgents(app.desk, OpenSteps(), lambda: None), lambda: None)
        book.now = lambda: NOW
        app.push_screen(screen := KanbanScreen(app.host, book))
        await settle(pilot)
        for width, height in ((20, 5), (1, 1), (40, 12), (80, 24), (61, 16), (200, 50), (120, 36)):
            await pilot.resize_terminal(width, height)
            await settle(pilot)
            screen.draw()
            for key in ("home", "right", "down", "left", "end", "pageup"):
                await pilot.press(key)
            assert width == 1 or all(cell_len(line) <= width for line in screen.view.plain)
        assert "NEEDS YOU  2" in "\n".join(screen_lines(app))


async def test_columns_out_of_view_are_counted_at_their_sides() -> None:
    async with stage(40, 14) as (app, pilot):
        book = ToldBoard(app.desk, ToldAgents(app.desk, OpenSteps(), lambda: None), lambda: None)
        book.now = lambda: NOW
        app.push_screen(screen := KanbanScreen(app.host, book))
        await settle(pilot)
        screen.draw()
        assert screen.view.chosen == "k8"
        await pilot.press("h")
        assert screen.view.plain[0].startswith(f" < {column_name('todo')} 3")
        assert screen.view.plain[0].endswith(">")
        assert screen.view.plain[1].strip() == "RUNNING  2/3"


async def test_the_mouse_chooses_and_opens() -> None:
    async with stage(120, 36) as (app, pilot):
        book = ToldBoard(app.desk, ToldAgents(app.desk, OpenSteps(), lambda: None), lambda: None)
        book.now = lambda: NOW
        app.push_screen(screen := KanbanScreen(app.host, book))
        await settle(pilot)
        screen.draw()
        await settle(pilot)
        lines = screen.view.plain
        row = next(place for place, line in enumerate(lines) if "k12 rate limits" in line)
        await pilot.click("BoardView", offset=(5, row))
        assert screen.view.chosen == "k12"
        await pilot.click("BoardView", offset=(110, 4))
        assert screen.view.chosen == "k6"


async def test_nothing_watches_without_somebody_who_looks() -> None:
    async with stage(80, 24) as (app, _pilot):
        agents = AgentsBook(app.desk, OpenSteps(), lambda: None)
        from hermes_tui.screens.kanban.book import BoardBook

        book = BoardBook(app.desk, agents, lambda: None)
        book.look_at("a", True)
        book.look_at("b", True)
        book.look_at("a", False)
        await asyncio.sleep(0)
        assert any(task.get_name() == "watch of the board in view" for task in asyncio.all_tasks())
        book.look_at("b", False)
        await asyncio.sleep(0)
        assert not any(task.get_name() == "watch of the board in view" for task in asyncio.all_tasks())
        assert book.fact() is None
        assert app.desk.work_facts(None) == WorkFacts(context=app.desk.work.context, usage=app.desk.work.usage())


async def test_a_question_that_is_not_in_view_is_not_answered_by_a_digit() -> None:
    from hermes_tui.screens.kanban.about import Asked
    from tests.tui.test_kanban_pictures import ASKED, WORKERS

    asked = Asked()
    asked.follow(WORKERS[1], [ASKED])
    assert asked.option("1") is not None
    assert asked.option("9") is None
    assert len(asked.lines(80, 3, LOOK)) == 2, "where it has no room, its title and where to read it"
    assert not asked.takes_keys()
    assert len(asked.lines(80, 12, LOOK)) > 3
    assert asked.block is not None
    asked.block.shown_at = 0.0
    assert asked.takes_keys()
    asked.lines(80, 0, LOOK)
    assert not asked.takes_keys()
    asked.follow(WORKERS[0], [ASKED])
    assert asked.block is None
