"""`/kanban` where there is no screen, and what it asks of one: real engine, real board, a scripted server."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes_engine.board import CardDraft
from hermes_engine.profiles import resolve
from hermes_engine.settings import Overrides
from hermes_tui.cli.kanban import kanban
from hermes_tui.commands import complete
from hermes_tui.commands.kanban import SHELL_VERBS, left_off
from tests.conftest import Serve
from tests.server.answers import call, hang, say
from tests.tui.command_desk import Desk

pytestmark = pytest.mark.slow

Open = Callable[..., Desk]


@pytest.fixture
def desk(serve: Serve, tmp_path: Path, isolated_home: Path) -> Iterator[Open]:
    """Opens front ends on one home, its toolset enabled unless told otherwise."""
    opened: list[Desk] = []

    def start(*answers: object, enabled: bool = True, settings: str = "") -> Desk:
        isolated_home.mkdir(parents=True, exist_ok=True)
        (isolated_home / "config.yaml").write_text(f"toolsets: [file{', kanban' if enabled else ''}]\n{settings}")
        server = serve(list(answers) or [say("unused")])
        opened.append(Desk(resolve(Overrides(base_url=server.base_url, model="m")), tmp_path))
        return opened[-1]

    yield start
    for one in opened:
        one.engine.close()


def test_the_board_is_printed_where_there_is_no_screen(desk: Open) -> None:
    one = desk()
    assert "No cards on the board default" in one.do("/kanban").text
    assert "k1 is on the board: nobody works this board" in one.do("/kanban add \x1b[2Jread [all] of it").text
    told = one.do("/kanban")
    assert told.kind == "table"
    assert told.rows[0][:5] == ("k1", "ready", "default", "", "\\x1b[2Jread [all] of it")
    assert one.screens["kanban"] == {}


def test_a_screen_is_opened_where_there_is_one(desk: Open) -> None:
    one = desk()
    one.has_screens = True
    assert one.do("/kanban").text == ""
    one.do("/kanban a report on start and stop")
    assert one.screens["kanban"] == {"goal": "a report on start and stop"}
    assert one.engine.kanban.board().cards() == ()


def test_a_goal_is_planned_shown_and_created_when_accepted(desk: Open) -> None:
    plan = {"cards": [{"title": "read", "body": "", "assignee": "default"},
                      {"title": "write", "body": "", "assignee": "default", "after": [1]}]}  # fmt: skip
    one = desk(say(json.dumps(plan)))
    told = one.do("/kanban a report")
    assert told.rows == (("1", "read", "default", ""), ("2", "write", "default", "1"))
    assert "Nothing is created yet" in told.text
    assert one.engine.kanban.board().cards() == ()
    assert one.do("/kanban accept").text == "Created k1, k2."
    assert one.engine.kanban.board().card("k2").parents == ("k1",)
    assert "no plan was shown" in one.do("/kanban accept").text


def test_verbs_of_the_command_line_are_no_goals_and_cost_no_plan(desk: Open) -> None:
    one = desk(say("no plan"))
    for words in ("list", "show k3", "block k3 no key", "create --body x", "watch"):
        told = one.do(f"/kanban {words}")
        assert told.kind == "error"
        assert f"hermes kanban {words}" in told.text
    one.has_screens = True
    for goal in ("list all that is unfinished", "review the parser", "show"):
        one.screens.clear()
        one.do(f"/kanban {goal}")
        assert one.screens.get("kanban") == (None if goal == "show" else {"goal": goal})


def test_the_tools_of_a_chat_are_those_that_its_requests_offer(desk: Open) -> None:
    one = desk()
    shown = [row[0] for row in one.do("/tools").rows]
    assert "kanban_create" in shown
    assert "kanban_complete" not in shown


def test_starting_is_refused_with_the_way_to_enable_it(desk: Open) -> None:
    one = desk(enabled=False)
    told = one.do("/kanban start")
    assert told.kind == "error"
    assert "hermes tools enable kanban" in told.text
    assert "hermes tools enable kanban" in one.do("/kanban a report").text
    assert "k1 is on the board" in one.do("/kanban add still possible").text
    assert left_off(one.engine) == []


def test_a_board_is_worked_from_start_to_stop_and_what_was_left_is_remembered(desk: Open, isolated_home: Path) -> None:
    one = desk(hang(60))
    assert left_off(one.engine) == []
    assert not (isolated_home / "kanban.db").exists(), "looking makes no file"
    one.do("/kanban start")
    assert one.engine.kanban.dispatched() == ("default",)
    assert "worked already" in one.do("/kanban start").text
    one.engine.kanban.board().create(CardDraft("work"))
    one.until(lambda: one.engine.kanban.board().card("k1").status == "running")
    assert left_off(one.engine) == [], "it is worked right now"
    one.engine.close()
    two = desk()
    assert left_off(two.engine) == ["default"]
    assert two.engine.kanban.dispatched() == ()
    two.do("/kanban stop")
    assert left_off(two.engine) == []
    assert two.engine.kanban.board().card("k1").status == "ready"


def test_workers_are_processes_of_their_own_where_the_settings_want_it(desk: Open, isolated_home: Path) -> None:
    one = desk(call("kanban_complete", {"summary": "x"}), settings="kanban: {isolation: process}\n")
    one.engine.kanban.board().create(CardDraft("work"))
    one.do("/kanban start")
    one.until(lambda: one.engine.kanban.board().card("k1").status == "done", 60)
    [run] = one.engine.kanban.board().runs("k1")
    assert run.owner.pid != os.getpid()
    log = isolated_home / "logs" / "tasks.log"
    assert "default-k1" in log.read_text(), "nothing of it goes to the screen"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_another_board_is_chosen_by_name(desk: Open) -> None:
    one = desk()
    one.engine.kanban.boards.create("auth")
    one.do("/kanban board auth")
    assert one.engine.kanban.boards.chosen() == "auth"
    told = one.do("/kanban board aut")
    assert told.kind == "error"
    assert "hermes kanban boards create aut" in told.text
    assert [found.text for found in complete("/kanban board a", one)] == ["auth"]
    assert [found.text for found in complete("/kanban st", one)] == ["start", "stop"]


def test_the_verbs_that_cost_no_plan_are_those_of_the_command_line() -> None:
    assert {name for name, verb in kanban.commands.items() if not verb.hidden} == SHELL_VERBS
