"""What is not the worker's fault: its model's server, a board that cannot be written; and the worker's own limits."""

from __future__ import annotations

import contextlib
import itertools
import socket
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_engine.board import Board, BoardGone, CardDraft
from hermes_engine.errors import EndpointDown, StateError
from hermes_engine.events import Notice
from hermes_engine.store import database
from hermes_engine.work import dispatcher
from tests.conftest import Serve
from tests.kanban.shop import OpenShop, Shop, finishing, until
from tests.server.answers import Answer, Seen, call, hang, say, status

QUICK = "toolsets: [terminal, kanban]\nkanban: {retry_seconds: 0.05}\nprovider: {max_retries: 0}\n"


@pytest.mark.parametrize("code", [429, 500])
def test_f5_2_an_outage_is_the_servers_and_is_tried_again_with_waits(shop: OpenShop, home: Path, code: int) -> None:
    (home / "config.yaml").write_text(QUICK.replace("0.05", "0.4"))
    one = shop(lambda seen: status(code, "no", {"Retry-After": "0"}))
    one.board.create(CardDraft("x"))
    assert one.work() == 1
    runs = one.board.runs("k1")
    assert [run.state for run in runs] == ["provider_error"] * 3
    assert one.board.card("k1").reason.startswith("provider error after 3 tries: ")
    assert str(code) in one.board.card("k1").reason
    assert len(one.server.requests) == 3
    waits = [later.started - (earlier.ended or 0) for earlier, later in itertools.pairwise(runs)]
    assert waits[0] >= 0.4
    assert waits[1] >= 0.8


def test_f5_2_an_outage_that_ends_leaves_no_mark(shop: OpenShop, home: Path) -> None:
    (home / "config.yaml").write_text(QUICK)
    one = shop(lambda seen: status(500, "no") if seen.index < 2 else finishing(seen))
    one.board.create(CardDraft("x"))
    assert one.work() == 0
    assert [run.state for run in one.board.runs("k1")] == ["provider_error", "provider_error", "done"]


def notices(one: Shop) -> list[str]:
    """What a person was told, in order."""
    return [event.text for event in one.events if isinstance(event, Notice)]


def test_a_server_that_is_down_pauses_the_board_and_costs_no_try(shop: OpenShop, home: Path, serve: Serve) -> None:
    (home / "config.yaml").write_text(QUICK)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    one = shop([], base_url=f"http://127.0.0.1:{port}/v1")
    for number in range(4):
        one.board.create(CardDraft(f"card {number}", max_retries=0))
    working = one.working()
    until(lambda: any("wait until it is back" in text for text in notices(one)))
    until(lambda: all(c.status == "ready" and "waits for the model's server" in c.reason for c in one.board.cards()))
    back = serve(lambda seen: finishing(seen) if "kanban_complete" in seen.tools else say("."), port=port)
    working.join(30)
    assert not working.is_alive()
    assert [card.status for card in one.board.cards()] == ["done"] * 4
    states = [run.state for number in range(1, 5) for run in one.board.runs(f"k{number}")]
    assert set(states) == {"stopped", "done"}
    assert states.count("stopped") <= 3, "those that were at work; none was begun in the pause"
    assert [text for text in notices(one) if "back;" in text] == [
        "the model's server is back; cards of default are worked again"
    ]
    assert sum("wait until" in text for text in notices(one)) == 1
    assert len(back.requests) == 5, "one probe, and one request a card"


def test_once_does_not_wait_for_ever_for_a_server_that_is_down(
    shop: OpenShop, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "config.yaml").write_text(QUICK)
    monkeypatch.setattr(dispatcher, "SERVER_PATIENCE", 0.5)
    one = shop([], base_url="http://127.0.0.1:9/v1")
    one.board.create(CardDraft("x", max_retries=0))
    with pytest.raises(EndpointDown, match=r"127\.0\.0\.1"):
        one.work()
    card = one.board.show("k1")
    assert card.card.status == "ready"
    assert [run.state for run in card.runs] == ["stopped"]


def test_a_server_that_is_down_for_one_card_only_is_held_against_it_in_the_end(shop: OpenShop, home: Path) -> None:
    (home / "config.yaml").write_text(QUICK)

    def script(seen: Seen) -> Answer:
        return status(503, "overloaded") if "poison" in str(seen.messages) else finishing(seen)

    one = shop(script)
    one.board.create(CardDraft("poison"))
    one.board.create(CardDraft("good"))
    assert one.work() == 1
    assert [run.state for run in one.board.runs("k1")] == ["stopped", *["provider_error"] * 3]
    assert one.board.card("k2").status == "done"
    assert sum("poison" in str(seen.messages) for seen in one.server.requests) == 4


@pytest.mark.parametrize(("setting", "script", "words"), [
    ("limits: {max_turns: 2}", lambda seen: call("terminal", {"command": f"echo {len(seen.messages)}"}), "turn limit"),
    ("provider: {prices: {m: {input: 1000000, output: 1000000}}}\nlimits: {max_cost_usd: 0.5}",
     lambda seen: call("terminal", {"command": f"echo {len(seen.messages)}"}), "cost cap"),
])  # fmt: skip
def test_a_workers_own_limits_are_told_as_such(
    shop: OpenShop, home: Path, setting: str, script: object, words: str
) -> None:
    (home / "config.yaml").write_text(f"toolsets: [terminal, kanban]\nkanban: {{retry_seconds: 0.05}}\n{setting}\n")
    one = shop(script)
    one.board.create(CardDraft("x", max_retries=1))
    assert one.work() == 1
    assert [run.state for run in one.board.runs("k1")] == ["gave_up", "gave_up"]
    assert one.board.card("k1").reason.startswith("limit reached after 2 tries: ")
    assert words in one.board.card("k1").reason


def test_a_try_may_take_only_so_long(shop: OpenShop, home: Path) -> None:
    (home / "config.yaml").write_text("toolsets: [terminal, kanban]\nkanban: {timeout_seconds: 1.5}\n")
    one = shop(lambda seen: call("terminal", {"command": "sleep 30"}))
    one.board.create(CardDraft("x", max_retries=0))
    assert one.work() == 1
    assert [run.state for run in one.board.runs("k1")] == ["gave_up"]
    assert "stopped after 1.5 s" in one.board.card("k1").reason


def test_a_try_whose_time_its_server_let_pass_is_the_servers(shop: OpenShop, home: Path) -> None:
    (home / "config.yaml").write_text("toolsets: [kanban]\nkanban: {timeout_seconds: 0.5}\n")
    one = shop(lambda seen: hang(30))
    one.board.create(CardDraft("x", max_retries=0))
    assert one.work() == 1
    assert [run.state for run in one.board.runs("k1")] == ["provider_error"]
    told = "provider error after 1 try: no reply of the model's server, stopped after 0.5 s"
    assert one.board.card("k1").reason == told


@contextlib.contextmanager
def locked(board: Board) -> Iterator[None]:
    """Nobody else can write to the board meanwhile."""
    connection = sqlite3.connect(board._database._database.path, isolation_level=None)  # type: ignore[attr-defined]
    connection.execute("BEGIN IMMEDIATE")
    yield
    connection.execute("ROLLBACK")
    connection.close()


def test_a_board_that_is_locked_for_a_while_is_worked_again(shop: OpenShop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_BUSY_MILLISECONDS", 20)
    one = shop(lambda seen: call("kanban_complete", {"summary": "x"}, first_delay=0.3))
    one.board.create(CardDraft("a"))
    one.board.create(CardDraft("b", parents=("k1",)))
    working = one.working()
    until(lambda: one.server.open_requests == 1)
    with locked(one.board):
        until(lambda: any("cannot be worked now" in text for text in notices(one)))
    working.join(30)
    assert not working.is_alive()
    assert [card.status for card in one.board.cards()] == ["done", "done"]
    assert sum("cannot be worked now" in text for text in notices(one)) == 1


def test_a_state_that_cannot_be_written_costs_no_try_and_nothing_is_begun_meanwhile(
    shop: OpenShop, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk of the home is full, the board is on a server: else every card would be blocked within seconds."""
    monkeypatch.setattr(database, "_BUSY_MILLISECONDS", 20)
    one = shop(lambda seen: call("kanban_complete", {"summary": "x"}, first_delay=0.3))
    for title in ("a", "b"):
        one.board.create(CardDraft(title, max_retries=0))
    working = one.working()
    until(lambda: one.server.open_requests == 2)
    connection = sqlite3.connect(home / "state.db", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    for title in ("c", "d"):
        one.board.create(CardDraft(title, max_retries=0))
    until(lambda: any("cannot be worked now" in text for text in notices(one)))
    begun = len(one.server.requests)
    connection.execute("ROLLBACK")
    connection.close()
    working.join(60)
    assert not working.is_alive()
    assert [card.status for card in one.board.cards()] == ["done"] * 4
    assert begun == 2
    assert {run.state for card in one.board.cards() for run in one.board.runs(card.id)} == {"stopped", "done"}


def test_how_a_run_ended_is_written_when_the_board_can_be_written_again(
    shop: OpenShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its owner lives, so that nothing else would ever end it."""
    monkeypatch.setattr(database, "_BUSY_MILLISECONDS", 20)
    one = shop(lambda seen: say("no card for me", first_delay=0.2))
    one.board.create(CardDraft("x", max_retries=0))
    working = one.working()
    until(lambda: one.server.open_requests == 1)
    with locked(one.board):
        until(lambda: [row.state for row in one.engine.agents()] == ["done"])
        assert one.board.card("k1").status == "running"
    working.join(30)
    assert not working.is_alive()
    assert [run.state for run in one.board.runs("k1")] == ["failed"]


def test_a_board_that_stays_unusable_or_is_deleted_ends_the_work_with_an_error(
    shop: OpenShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_BUSY_MILLISECONDS", 20)
    monkeypatch.setattr(dispatcher, "BOARD_PATIENCE", 0.2)
    one = shop(finishing)
    one.board.create(CardDraft("x"))
    with locked(one.board), pytest.raises(StateError, match="locked"):
        one.work()
    assert one.work() == 0
    one.engine.kanban.boards.create("other")
    board = one.engine.kanban.board("other")
    one.engine.kanban.start("other", cwd=one.cwd)
    one.engine.kanban.boards.delete("other")
    until(lambda: any("other is not worked any more" in text for text in notices(one)))
    assert one.engine.kanban.dispatched() == ()
    with pytest.raises(BoardGone):
        board.cards()


def test_a_claim_that_cannot_be_renewed_ends_its_worker_in_time(
    shop: OpenShop, home: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "config.yaml").write_text("toolsets: [terminal, kanban]\nkanban: {claim_ttl_seconds: 1.5}\n")
    one = shop(lambda seen: call("terminal", {"command": "sleep 60; touch late"}))
    one.board.create(CardDraft("x", max_retries=0, workspace=f"dir:{work}"))
    working = one.working()
    until(lambda: one.engine.agents() and one.engine.agents()[0].tools == 1)
    with locked(one.board):
        began = time.monotonic()
        until(lambda: one.engine.agents()[0].state == "failed", 10)
        assert time.monotonic() - began < 4, "the lock itself is waited for much longer"
    working.join(60)
    assert one.board.runs("k1")[0].state == "lost"
    assert one.board.card("k1").status == "blocked"
