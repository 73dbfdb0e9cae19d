"""Boards worked by real engines over a scripted server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hermes_engine.board import CardDraft, Hold, this_owner
from hermes_engine.errors import ConfigError
from tests.conftest import Serve
from tests.kanban.shop import OpenShop, calls_made, finishing
from tests.server.answers import Answer, Seen, call, hang, say, status


def test_cards_are_worked_in_order_and_hand_on_their_results(shop: OpenShop) -> None:
    one = shop(finishing)
    first = one.board.create(CardDraft("first", body="count to 3"))
    second = one.board.create(CardDraft("second", parents=(first.id,)))
    assert one.work() == 0
    assert [card.status for card in one.board.cards()] == ["done", "done"]
    assert one.board.card(second.id).result == f"done: Card {second.id}: second"
    asked = [seen for seen in one.server.requests if seen.last["role"] == "user"]
    assert [message["role"] for message in asked[0].messages] == ["system", "user"]
    assert "count to 3" in asked[0].messages[1]["content"]
    assert f"done: Card {first.id}: first" in asked[1].messages[1]["content"], "a parent's result is handed on"
    assert {"kanban_complete", "kanban_block", "kanban_show"} <= set(asked[0].tools)
    run = one.board.runs(second.id)[0]
    assert run.state == "done"
    assert run.session
    assert Path(run.workspace).is_dir()


def test_f5_1_a_worker_that_never_ends_its_card_is_tried_so_often_and_then_blocked(shop: OpenShop) -> None:
    one = shop(lambda seen: say("ok, all fine"))
    card = one.board.create(CardDraft("x", max_retries=2))
    assert one.work() == 1
    blocked = one.board.card(card.id)
    assert blocked.status == "blocked"
    assert "ok, all fine" in blocked.reason
    assert [run.state for run in one.board.runs(card.id)] == ["failed"] * 3
    assert len(one.server.requests) == 6, "each try is reminded once"


def test_f5_2_a_provider_error_is_not_the_workers(shop: OpenShop) -> None:
    one = shop(lambda seen: status(401, "bad key"))
    card = one.board.create(CardDraft("x", max_retries=0))
    assert one.work() == 1
    assert [run.state for run in one.board.runs(card.id)] == ["provider_error"]
    assert "provider error" in one.board.card(card.id).reason
    assert "401" in one.board.card(card.id).reason


def test_f5_8_a_card_that_is_blocked_while_it_runs_stops_its_worker(shop: OpenShop) -> None:
    one = shop(lambda seen: hang(30))
    card = one.board.create(CardDraft("x"))
    working = threading.Thread(target=one.work)
    working.start()
    assert one.server.wait_until(lambda: one.server.open_requests == 1)
    began = time.monotonic()
    one.board.block(card.id, "a person says no")
    assert one.server.wait_until(lambda: one.server.open_requests == 0, 5)
    working.join(10)
    assert not working.is_alive()
    assert time.monotonic() - began < 8
    assert (one.board.card(card.id).status, one.board.card(card.id).reason) == ("blocked", "a person says no")
    assert len(one.server.requests) == 1


def test_cards_go_to_the_profile_they_name_and_a_reviewer_judges(shop: OpenShop, isolated_home: Path) -> None:
    for name in ("coder", "judge"):
        (isolated_home / "profiles" / name).mkdir(parents=True)
        (isolated_home / "profiles" / name / "profile.yaml").write_text(f"description: is a {name}\n")
        (isolated_home / "profiles" / name / "SOUL.md").write_text(f"You are the {name}.\n")

    def script(seen: Seen) -> Answer:
        if seen.last["role"] == "tool":
            return say("ok")
        if "You are the judge" in seen.messages[0]["content"]:
            assert "kanban_send_back" in seen.tools
            tried = str(seen.messages[1]["content"]).count("<attempt-")
            return (
                call("kanban_send_back", {"note": "add tests"})
                if tried == 1
                else call("kanban_complete", {"summary": "good"})
            )
        return call(
            "kanban_request_review",
            {"summary": "written" if "add tests" not in seen.messages[1]["content"] else "tested"},
        )

    one = shop(script)
    card = one.board.create(CardDraft("write it", assignee="coder", reviewer="judge"))
    unknown = one.board.create(CardDraft("nobody's", assignee="ghost"))
    assert one.work() == 0
    done = one.board.show(card.id)
    assert (done.card.status, done.card.result) == ("done", "tested")
    assert [(run.profile, run.state) for run in done.runs] == [
        ("coder", "review"), ("judge", "sent_back"), ("coder", "review"), ("judge", "done"),
    ]  # fmt: skip
    assert one.board.card(unknown.id).reason == "no profile ghost here"


def test_nothing_starts_where_the_toolset_is_not_enabled(shop: OpenShop, isolated_home: Path) -> None:
    (isolated_home / "config.yaml").write_text("toolsets: [terminal]\n")
    one = shop(finishing)
    one.board.create(CardDraft("x"))
    with pytest.raises(ConfigError, match="not enabled"):
        one.work()
    assert one.server.requests == []


def test_a_chat_has_an_orchestrators_tools_and_no_way_to_complete(shop: OpenShop, tmp_path: Path) -> None:
    one = shop([
        call("kanban_create", {"title": "a card", "assignee": "default", "priority": "3"}),
        call("kanban_show", {}), call("kanban_claim", {"id": "k1"}),
        call("kanban_request_review", {"id": "k1", "summary": "mine"}), say("ok"),
    ])  # fmt: skip
    session = one.engine.open_session(one.cwd).id
    one.engine.send(session, "plan it")
    assert one.server.wait_until(lambda: len(one.server.requests) == 5)
    offered = [tool for tool in one.server.requests[0].tools if tool.startswith("kanban_")]
    assert "kanban_complete" not in offered
    assert {"kanban_create", "kanban_list", "kanban_show", "kanban_profiles", "kanban_claim", "kanban_unblock"} <= set(
        offered
    )
    results = [m["content"] for m in one.server.requests[-1].messages if m["role"] == "tool"]
    assert json.loads(results[0])["id"] == "k1"
    assert "id is missing" in results[1]
    assert json.loads(results[3])["status"] == "review"
    assert one.board.card("k1").reason == "waits for a person's review"


def test_a_worker_may_write_in_its_own_folder_whatever_the_file_is_called(shop: OpenShop) -> None:
    def script(seen: Seen) -> Answer:
        done = calls_made(seen)
        steps: list[Answer] = [
            call("write_file", {"path": "test.db", "content": "x"}),
            call("terminal", {"command": "echo A=1 > .env && cat test.db .env"}),
            call("kanban_complete", {"summary": "made"}),
            say("ok"),
        ]
        return steps[done]

    one = shop(script)
    card = one.board.create(CardDraft("make files"))
    assert one.work() == 0
    results = [m["content"] for m in one.server.requests[-1].messages if m["role"] == "tool"]
    assert "A=1" in results[1], results
    workspace = Path(one.board.runs(card.id)[0].workspace)
    assert not workspace.is_relative_to(one.resolved.home.root)
    assert {path.name for path in workspace.iterdir()} == {"test.db", ".env"}
    assert workspace.stat().st_mode & 0o777 == 0o700


def test_an_old_run_cannot_write_and_names_its_fault(shop: OpenShop) -> None:
    one = shop(finishing)
    card = one.board.create(CardDraft("x"))
    claim = one.board.claim_card(card.id, this_owner())
    one.board.reclaim(card.id)
    with pytest.raises(Exception, match="is over"):
        Hold(one.board, claim.token).complete("late")
    assert one.work() == 0


def test_hermes_kanban_run_once_from_the_command_line(serve: Serve, tmp_path: Path, isolated_home: Path) -> None:
    server = serve(finishing)
    environment = {**os.environ, "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "k"}

    def hermes(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "hermes_tui.cli", *words]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
        )

    refused = hermes("kanban", "run", "--once")
    assert refused.returncode == 2
    assert "hermes tools enable kanban" in refused.stderr
    assert hermes("tools", "enable", "kanban").returncode == 0
    made = hermes("kanban", "create", "say hello", "--json")
    assert json.loads(made.stdout)["status"] == "ready"
    done = hermes("-m", "m", "kanban", "run", "--once")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    shown = json.loads(hermes("kanban", "show", "k1", "--json").stdout)
    assert (shown["status"], shown["result"]) == ("done", "done: Card k1: say hello")


def test_a_workers_child_sees_its_board_and_has_no_card_verb_that_the_worker_has_not(shop: OpenShop) -> None:
    def script(seen: Seen) -> Answer:
        first = str(seen.messages[1]["content"])
        if first.startswith("Card ") and "goal" not in first:
            return finishing(seen)
        if "help me" not in first:
            made = calls_made(seen)
            return [call("spawn_agent", {"prompt": "help me"}), call("kanban_complete", {"summary": "x"})][min(made, 1)]
        steps = [call("kanban_create", {"title": "found"}), call("kanban_list", {}), say("seen")]
        return steps[calls_made(seen)]

    one = shop(script, toolsets=["kanban", "delegation"])
    one.engine.kanban.boards.create("other")
    one.board.create(CardDraft("on the chosen one", triage=True))
    board = one.engine.kanban.board("other")
    board.create(CardDraft("goal"))
    board.create(CardDraft("later", triage=True))
    one.engine.kanban.work("other", cwd=one.cwd, workers=1, once=True)
    asked = [seen for seen in one.server.requests if str(seen.messages[1]["content"]).startswith("help me")]
    offered = {name for name in asked[0].tools if name.startswith("kanban_")}
    assert offered == {
        f"kanban_{verb}" for verb in ("create", "list", "show", "unblock", "comment", "link", "profiles")
    }
    listed = [card["title"] for card in json.loads(str(asked[2].last["content"]))]
    assert sorted(listed) == ["found", "goal", "later"], "its worker's board, not the chosen one"
    found = next(card for card in board.cards() if card.title == "found")
    assert found.created_run == board.runs("k1")[0].id, "the worker may report it as its own"


def test_cards_follow_a_profile_that_is_renamed_and_are_named_when_it_goes(tmp_path: Path) -> None:
    def hermes(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "hermes_tui.cli", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)

    assert hermes("profile", "create", "coder", "--description", "writes code").returncode == 0
    assert hermes("kanban", "create", "x", "--assignee", "coder").returncode == 0
    renamed = hermes("profile", "rename", "coder", "builder")
    assert "1 card goes to builder now" in renamed.stdout
    assert json.loads(hermes("kanban", "show", "k1", "--json").stdout)["assignee"] == "builder"
    gone = hermes("profile", "delete", "builder", "-y")
    assert gone.returncode == 0
    assert "board default: k1 wait for that profile" in gone.stderr
    assert json.loads(hermes("kanban", "show", "k1", "--json").stdout)["reason"] == "no profile builder here"
