"""The real model works cards. Its words vary, so only the course of things is told: no card is ever lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.program import hermes

pytestmark = [pytest.mark.real, pytest.mark.timeout(500)]

RESEARCHER = "Capaz de leer código fuente y documentación externa, y producir informes de investigación"
GOALS = ("Say hello", "Write a poem about the sea", "Add 2 and 2", "Find out what day it is", "Make a list of fruits")
LOCAL = ("--model", "local", "--max-turns", "4")


def test_the_mission_with_the_real_model_ends_each_card_with_a_result_or_a_reason(tmp_path: Path) -> None:
    assert hermes("tools", "enable", "kanban").code == 0
    assert hermes("profile", "create", "researcher", "--description", RESEARCHER).code == 0
    titles = {
        "Say hello": ("default",),
        "Complete this card with the summary 4, which is 2 + 2": ("researcher",),
        "Write down the result of the card before": ("researcher", "--parent", "k2"),
    }
    for title, (assignee, *more) in titles.items():
        made = hermes("kanban", "create", title, "--assignee", assignee, "--max-retries", "1", *more, "--json")
        assert made.json["status"] == ("todo" if more else "ready")
    done = hermes(*LOCAL, "kanban", "run", "--once", cwd=tmp_path, timeout=480)
    cards = {card["id"]: card for card in hermes("kanban", "list", "--json").json}
    stuck = [card for card in cards.values() if card["status"] != "done"]
    assert done.code == int(any(card["status"] == "blocked" for card in stuck)), done.err
    assert all(card["reason"] for card in stuck), json.dumps(stuck)
    before, after = cards["k2"], cards["k3"]
    assert (after["status"] == "todo") == (before["status"] == "blocked"), "it goes on when the card before is done"
    for card in cards.values():
        assert card["status"] in ("done", "blocked", "todo"), done.err
        assert bool(card["runs"]) == (card["status"] != "todo"), json.dumps(card)
        assert all(run["profile"] == card["assignee"] and run["ended"] for run in card["runs"])
        assert bool(card["result"]) == (card["status"] == "done")


def test_a_goal_is_planned_worked_reviewed_and_done_with_the_real_model(tmp_path: Path) -> None:
    assert hermes("tools", "enable", "kanban").code == 0
    assert hermes("profile", "create", "researcher", "--description", RESEARCHER).code == 0
    for goal in GOALS:  # the day and the folder stand in its prompt, and it is small: not every plan is one
        planned = hermes("--model", "local", "kanban", "plan", goal, "--yes", cwd=tmp_path, timeout=280)
        if planned.code == 0:
            break
    assert planned.code == 0, planned.err
    cards = hermes("kanban", "list", "--json").json
    assert [card["id"] for card in cards] == planned.out.splitlines()[-1].removeprefix("created ").split(", ")
    assert {card["assignee"] for card in cards} <= {"default", "researcher"}
    assert all(card["title"] and card["body"] for card in cards)
    for card in cards:
        assert hermes("kanban", "edit", card["id"], "--max-retries", "0").code == 0
    hermes("--model", "local", "--max-turns", "2", "kanban", "run", "--once", cwd=tmp_path, timeout=480)
    for card in hermes("kanban", "list", "--json").json:
        if card["status"] == "review":
            assert hermes("kanban", "review", card["id"], "--accept").code == 0
    ended = hermes("kanban", "list", "--json").json
    assert {card["status"] for card in ended} <= {"done", "blocked", "todo"}
    assert all(card["result"] for card in ended if card["status"] == "done")
    assert all(card["reason"] for card in ended if card["status"] != "done"), json.dumps(ended)
