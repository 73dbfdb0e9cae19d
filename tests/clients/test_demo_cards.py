"""The demo model at a board: with it every screen of the board can be tried without a key or a network."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_engine.clients.demo_texts import LABEL
from tests.e2e.program import hermes

pytestmark = pytest.mark.e2e


def test_it_plans_a_goal_and_works_the_cards_to_their_end(tmp_path: Path) -> None:
    assert hermes("tools", "enable", "kanban").code == 0
    made = hermes("kanban", "plan", "Prepara las notas", "-m", "demo", "-y", "--json", cwd=tmp_path)
    assert [card["id"] for card in made.json] == ["k1", "k2", "k3"]
    assert all("Prepara las notas" in card["title"] for card in made.json)
    hermes("kanban", "create", "say hello")
    done = hermes("kanban", "run", "--once", "-m", "demo", cwd=tmp_path)
    assert done.code == 0, done.err
    cards = {card["id"]: card for card in hermes("kanban", "list", "--json").json}
    assert {card["status"] for card in cards.values()} == {"done"}
    assert cards["k3"]["parents"] == ["k2"]
    assert all(card["result"].startswith(LABEL) for card in cards.values())
    assert "hermes-demo.txt" in cards["k2"]["result"]
