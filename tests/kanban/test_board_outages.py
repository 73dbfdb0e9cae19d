"""The board's database goes away while cards are worked, and comes back: no request and no try is lost by that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_engine.board import CardDraft
from hermes_engine.events import Notice
from tests.board.support import NoServer
from tests.kanban.shop import OpenShop, Shop, calls_made, run_board, told, until
from tests.server.answers import Answer, Seen, call

pytest.importorskip("psycopg", reason="no PostgreSQL driver (the extra `postgres`)")
from tests.board.server import Server, running  # the driver is looked for first


@pytest.fixture
def server(home: Path) -> Iterator[Server]:
    """A PostgreSQL of this test alone, with the home's boards in it."""
    try:
        with running() as made:
            (home / "config.yaml").write_text(
                f"toolsets: [terminal, kanban]\nkanban: {{retry_seconds: 0.05, database_url: '{made.url}'}}\n"
            )
            yield made
    except NoServer as why:
        pytest.skip(f"no PostgreSQL here: {why}")


def script(seen: Seen) -> Answer:
    """A worker with some way to go."""
    if calls_made(seen) < 2:
        return call("terminal", {"command": f"echo {calls_made(seen)} >> steps"}, first_delay=0.3)
    return call("kanban_complete", {"summary": "done"}, first_delay=0.3)


def said(shop: Shop, words: str) -> int:
    """How often it was told."""
    return sum(isinstance(event, Notice) and words in event.text for event in shop.events)


def test_a_server_that_is_stopped_in_mid_run_and_started_again_costs_nothing(
    server: Server, shop: OpenShop, work: Path
) -> None:
    one = shop(script)
    one.board.create(CardDraft("a", workspace=f"dir:{work}"))
    one.board.create(CardDraft("b", parents=("k1",), workspace=f"dir:{work}"))
    working = one.working()
    until(lambda: one.server.open_requests == 1)
    server.stop()
    until(lambda: said(one, "cannot be worked now"))
    until(lambda: one.server.open_requests == 0)
    asked, steps = len(one.server.requests), (work / "steps").exists()
    assert (asked, steps) == (1, False), "who cannot know whose the card is does nothing and asks nobody"
    server.start()
    working.join(60)
    assert not working.is_alive()
    assert [(card.status, card.runs) for card in one.board.cards()] == [("done", 1), ("done", 1)]
    assert len(one.server.requests) == 6
    assert (work / "steps").read_text().split() == ["0", "1", "0", "1"]
    assert (said(one, "cannot be worked now"), said(one, "is worked again")) == (1, 1)


def test_a_worker_process_waits_for_the_board_too(server: Server, shop: OpenShop, work: Path) -> None:
    one = shop(script)
    one.board.create(CardDraft("a", workspace=f"dir:{work}"))
    program = run_board(one.server, work, "--once", "--isolation", "process")
    until(lambda: one.server.open_requests == 1, 60)
    server.stop()
    until(lambda: one.server.open_requests == 0)
    server.start()
    code, complaint = told(program)
    assert code == 0, complaint
    assert [(card.status, card.runs) for card in one.board.cards()] == [("done", 1)]
    assert len(one.server.requests) == 3
