"""A goal becomes drafts of cards: what the board would refuse is asked for again, not found out when they are made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes_engine.errors import HermesError
from tests.conftest import Serve
from tests.e2e.program import hermes
from tests.kanban.shop import OpenShop
from tests.server.answers import say


def planned(title: str) -> str:
    """A plan of one card."""
    return json.dumps({"cards": [{"title": title, "body": "all of it", "assignee": "default"}]})


def test_a_title_that_is_no_title_is_asked_for_again(shop: OpenShop, work: Path) -> None:
    one = shop([say(planned("x" * 600)), say(planned("A short one"))])
    drafts = one.engine.kanban.plan("goal", cwd=work)
    assert [card.title for card in one.board.create_all(drafts)] == ["A short one"]
    assert len(one.server.requests) == 2


def test_a_model_that_gives_no_plan_costs_few_requests_and_makes_nothing(shop: OpenShop, work: Path) -> None:
    one = shop([say(planned("x" * 600))])
    with pytest.raises(HermesError):
        one.engine.kanban.plan("goal", cwd=work)
    assert (len(one.server.requests) <= 4, one.board.cards()) == (True, ())


def test_a_plan_that_goes_in_a_circle_is_asked_for_again(shop: OpenShop, work: Path) -> None:
    def plan(*after: list[int]) -> str:
        cards = [{"title": f"part {n}", "body": "b", "assignee": "default", "after": on} for n, on in enumerate(after)]
        return json.dumps({"cards": cards})

    one = shop([say(plan([], [3], [2])), say(plan([], [1], [2]))])
    drafts = one.engine.kanban.plan("goal", cwd=work)
    assert [card.parents for card in one.board.create_all(drafts)] == [(), ("k1",), ("k2",)]
    asked = str(one.server.requests[1].messages[-1]["content"])
    assert "in a circle (2 → 3 → 2)" in asked or "in a circle (3 → 2 → 3)" in asked


def test_a_plan_for_a_board_that_is_not_there_costs_no_request(serve: Serve, work: Path) -> None:
    server = serve([say(planned("one"))])
    assert hermes("tools", "enable", "kanban").code == 0
    done = hermes("-m", "m", "kanban", "plan", "goal", "-y", "--board", "nosuch", cwd=work,
                  OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="k")  # fmt: skip
    assert (done.code, done.out) == (2, "")
    assert "unknown board 'nosuch'" in done.err
    assert server.requests == []
