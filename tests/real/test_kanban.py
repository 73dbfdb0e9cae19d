"""The real model works cards. Its words vary, so only the course of things is told: no card is ever lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.program import hermes

pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]


def test_cards_worked_by_the_real_model_end_with_a_result_or_a_reason(tmp_path: Path) -> None:
    assert hermes("tools", "enable", "kanban").code == 0
    for title in ("Say hello", "Complete this card with the summary 4, which is 2 + 2"):
        made = hermes("kanban", "create", title, "--max-retries", "1", "--json")
        assert made.json["status"] == "ready"
    words = ["--model", "local", "--max-turns", "4", "kanban", "run", "--once"]
    done = hermes(*words, cwd=tmp_path, timeout=380)
    cards = hermes("kanban", "list", "--json").json
    assert {card["status"] for card in cards} <= {"done", "blocked"}, done.err
    assert done.code == int(any(card["status"] == "blocked" for card in cards)), done.err
    for card in cards:
        assert card["runs"], json.dumps(card)
        assert all(run["state"] != "running" and run["ended"] for run in card["runs"])
        assert card["result"] if card["status"] == "done" else card["reason"]
