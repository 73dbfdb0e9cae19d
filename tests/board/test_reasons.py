"""Why a card waits: one line on every card that does, also on one at work that has fallen silent."""

from __future__ import annotations

import time

import pytest

from hermes_engine.board import Board, reasons, this_owner
from hermes_engine.board.reasons import Attendance, Facts, Parent, reason
from hermes_engine.settings.values import KanbanSettings
from tests.board.support import HERE, Open, dead_owner, draft, take


def test_every_waiting_card_says_why(open_board: Open) -> None:
    board = open_board(max_workers=1, retry_seconds=500)
    lost = board.create(draft(assignee="nobody")).id
    ready = board.create(draft()).id
    sorted_out = board.create(draft(triage=True)).id
    assert board.card(lost).reason == "no profile nobody here"
    assert board.card(ready).reason == "nobody works this board: hermes kanban run"
    assert board.card(sorted_out).reason.startswith("not sorted yet")
    me = this_owner()
    board.attend(me)
    assert board.attended() == (me,)
    assert board.card(ready).reason == "waits for a worker"
    second = board.create(draft()).id
    _, hold = take(board)
    assert board.card(ready).reason == ""
    assert board.card(second).reason == "waits for a free worker: 1 of 1 are at work"
    board.rules = KanbanSettings(max_workers=3)
    assert board.card(second).reason == "waits for a worker: 1 at work", "who works it may have a smaller limit"
    board.rules = KanbanSettings(max_workers=1, retry_seconds=500)
    hold.end("provider_error", "503 from the server")
    assert board.card(ready).reason in (f"retry in {n} s: provider error: 503 from the server" for n in (499, 500))
    board.leave(me)
    board.attend(dead_owner())
    assert board.card(second).reason.startswith("nobody works this board"), "a dead dispatcher is none"


def test_who_works_only_some_cards_is_no_reason_to_hope_for_the_others(board: Board) -> None:
    plain, other = board.create(draft()).id, board.create(draft(assignee="researcher")).id
    me, second = this_owner(), this_owner()
    board.attend(me, takes="researcher")
    assert board.card(plain).reason == "nobody works cards of default: hermes kanban run"
    assert board.card(other).reason == "waits for a worker"
    board.attend(me, takes="researcher", paused={"researcher": "connection refused"})
    assert board.card(other).reason == "waits for the model's server: connection refused"
    board.attend(second)
    assert (board.card(plain).reason, board.card(other).reason) == ("waits for a worker", "waits for a worker")
    board.attend(me)
    board.attend(second, paused={"default": "no\nway"})
    assert board.card(plain).reason == "waits for a worker", "one of them can take it"
    board.leave(me)
    assert board.card(plain).reason == "waits for the model's server: no way"


def test_a_running_card_whose_process_is_dead_says_so_and_no_read_changes_it(board: Board) -> None:
    card = board.create(draft()).id
    take(board, dead_owner())
    assert board.card(card).status == "running"
    assert board.card(card).reason == ("the process that worked it is gone; nobody works this board: hermes kanban run")
    board.attend(this_owner())
    assert board.card(card).reason == "the process that worked it is gone, it is taken over at once"
    assert board.card(card).status == "running"
    board.reclaim_expired()
    assert (board.card(card).status, board.runs(card)[0].state) == ("ready", "lost")
    take(board)
    assert board.card(card).reason == "", "its owner lives"


def test_a_running_card_without_a_sign_of_life_says_so(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    worked, claimed = board.create(draft()).id, board.create(draft()).id
    _, hold = take(board)
    hold.record(session="s1")
    take(board)
    assert [board.card(card).reason for card in (worked, claimed)] == ["", ""]
    monkeypatch.setattr(reasons, "QUIET_SECONDS", 0.1)
    time.sleep(0.3)
    assert board.card(worked).reason == "no sign of life for 0 s: reclaim takes it back"
    assert board.card(claimed).reason == "", "a chat that claimed a card says by a call that it goes on"
    board.rules = KanbanSettings(claim_ttl_seconds=0.1)
    assert board.card(claimed).reason.startswith("no sign of life")


def test_a_reason_is_one_line_however_odd_the_text() -> None:
    odd = Facts("blocked", said="a\nb\x1b[31m\u202e" + "x" * 900)
    assert "\n" not in reason(odd)
    assert len(reason(odd)) <= 300
    assert reason(Facts("blocked")) == "blocked"
    many = tuple(Parent(f"k{n}", "ready", False, "") for n in range(9))
    assert reason(Facts("todo", parents=many)) == "waits for k0, k1, k2, k3, k4 and 4 more"
    here = Facts("ready", worker="a", profiles=HERE | {"a"}, attended=(Attendance(),), cap=None)
    assert reason(here) == "waits for a worker"
    assert reason(Facts("done", said="old")) == ""
