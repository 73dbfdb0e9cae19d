"""The table of moves, the document drawn from it, and what each verb does by it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_engine.board import STATES, Board, Card, IllegalMove, State
from hermes_engine.board.moves import MOVES, as_markdown, legal
from hermes_engine.errors import UsageError
from tests.board.support import draft, tables, take

DOCUMENT = Path(__file__).parents[2] / "docs" / "kanban.md"
BEGIN, END = "<!-- the table of moves, written by tests/board/test_moves.py -->\n", "\n<!-- end -->"


def test_the_document_draws_the_table() -> None:
    text = DOCUMENT.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    drawn, _, after = rest.partition(END)
    if os.environ.get("UPDATE_DOCS"):
        DOCUMENT.write_text(before + BEGIN + as_markdown() + END + after, "utf-8")
        return
    assert drawn == as_markdown(), "UPDATE_DOCS=1 writes it anew"


def test_every_state_can_be_reached_and_left() -> None:
    assert {target for move in MOVES for target in move.targets} == set(STATES)
    assert {source for move in MOVES for source in move.sources} == set(STATES)
    assert len({move.verb for move in MOVES}) == len(MOVES)


def test_blocked_leaves_only_by_unblock_or_is_put_away() -> None:
    assert [move.verb for move in MOVES if "blocked" in move.sources] == ["unblock", "archive"]
    assert legal("unblock", "blocked", "ready")
    assert not legal("settle", "blocked", "ready")


def in_state(board: Board, state: State) -> str:
    """A new card, brought to a state."""
    if state == "todo":
        return board.create(draft(parents=(board.create(draft(triage=True)).id,))).id
    card = board.create(draft(triage=state == "triage")).id
    if state == "running":
        assert take(board)[0].card.id == card
    elif state == "blocked":
        board.block(card, "why")
    elif state == "review":
        board.review(card)
    elif state == "done":
        board.complete(card)
    elif state == "archived":
        board.archive(card)
    assert board.card(card).status == state
    return card


VERBS: dict[str, Callable[[Board, str], Card]] = {
    "sort": lambda board, card: board.sort(card),
    "complete": lambda board, card: board.complete(card, "r"),
    "review": lambda board, card: board.review(card),
    "accept": lambda board, card: board.accept(card),
    "send_back": lambda board, card: board.send_back(card, "more"),
    "block": lambda board, card: board.block(card, "why"),
    "unblock": lambda board, card: board.unblock(card),
    "reclaim": lambda board, card: board.reclaim(card),
    "archive": lambda board, card: board.archive(card),
    "reopen": lambda board, card: board.reopen(card),
}


@pytest.mark.parametrize("state", STATES)
def test_a_persons_verbs_move_as_the_table_says_or_are_refused(board: Board, state: State) -> None:
    for verb, act in VERBS.items():
        card = in_state(board, state)
        sources = next(move.sources for move in MOVES if move.verb == verb)
        handed_in = not (verb in ("accept", "send_back") and state == "running")
        if state in sources and handed_in:
            assert legal(verb, state, act(board, card).status), (verb, state)
        else:
            before = tables(board)
            with pytest.raises(IllegalMove, match=card):
                act(board, card)
            assert tables(board) == before, (verb, state)
        if board.card(card).status in ("ready", "running", "review"):
            board.archive(card)


def test_a_refusal_says_what_is_and_what_to_do(board: Board) -> None:
    card = board.create(draft()).id
    board.block(card, "no key")
    with pytest.raises(IllegalMove) as caught:
        board.block(card, "again")
    assert (
        caught.value.line
        == f"{card} is blocked: block needs triage or todo or ready or running or review — unblock it first"
    )
    assert caught.value.exit_code == 2


def test_a_review_is_asked_for_and_passed_or_sent_back(board: Board) -> None:
    card = board.create(draft()).id
    _, hold = take(board)
    handed_in = hold.request_review("did it")
    assert (handed_in.status, handed_in.reason, handed_in.result) == ("review", "waits for a person's review", "did it")
    back = board.send_back(card, "tests are missing", by="ana")
    assert (back.status, board.show(card).comments[-1].text) == ("ready", "tests are missing")
    take(board)[1].request_review("with tests")
    done = board.accept(card, "good", by="ana")
    assert (done.status, done.result) == ("done", "with tests")
    assert [run.state for run in board.runs(card)] == ["review", "review"]


def test_the_words_that_come_with_a_review_are_comments_for_whoever_has_it_next(board: Board) -> None:
    card = board.create(draft()).id
    board.review(card, "look at the dates", by="ana")
    board.accept(card, "good", by="ben")
    assert [(note.author, note.text) for note in board.show(card).comments] == [
        ("ana", "look at the dates"),
        ("ben", "good"),
    ]
    board.reopen(card)
    board.review(card, by="ana")
    board.accept(card)
    assert len(board.show(card).comments) == 2, "no words, no comment"


def test_a_reviewer_profile_claims_the_review_and_judges_it(board: Board) -> None:
    card = board.create(draft(reviewer="reviewer")).id
    take(board)[1].request_review("did it")
    claim, judge = take(board, profiles={"reviewer"})
    assert (claim.card.id, claim.run.role, claim.run.profile) == (card, "review", "reviewer")
    with pytest.raises(IllegalMove, match="reviews"):
        judge.request_review("no")
    judge.send_back("not yet")
    work, hold = take(board)
    assert work.run.role == "work"
    with pytest.raises(IllegalMove, match="does not review"):
        hold.send_back("me")
    hold.request_review("now")
    _, judge = take(board)
    assert judge.complete("fine").result == "now"
    assert [(run.role, run.state) for run in board.runs(card)] == [
        ("work", "review"),
        ("review", "sent_back"),
        ("work", "review"),
        ("review", "done"),
    ]


def test_a_reviewer_who_is_never_content_is_not_asked_for_ever(board: Board) -> None:
    card = board.create(draft(reviewer="reviewer", max_retries=1)).id
    for note in ("first", "second"):
        take(board, profiles={"default"})[1].request_review("did it")
        take(board, profiles={"reviewer"})[1].send_back(note)
    assert board.card(card).reason == "sent back after 2 tries: second"
    assert board.card(card).status == "blocked"


def test_a_failed_review_is_reviewed_again_and_an_unblocked_one_too(board: Board) -> None:
    card = board.create(draft(reviewer="reviewer", max_retries=0)).id
    take(board)[1].request_review("did it")
    take(board)[1].end("failed", "no idea")
    assert board.card(card).status == "blocked"
    assert board.unblock(card).status == "review"
    assert take(board)[0].run.role == "review"


def test_a_blocking_needs_a_reason(board: Board) -> None:
    card = board.create(draft()).id
    _, hold = take(board)
    with pytest.raises(UsageError, match="reason"):
        board.block(card, " ")
    with pytest.raises(UsageError, match="reason"):
        hold.block("")
    assert board.card(card).status == "running"
