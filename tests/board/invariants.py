"""What must hold of a board at any moment, whatever was done to it and by how many."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping

from hermes_engine.board import WAITING, Board, Card, lives
from hermes_engine.board.moves import legal
from hermes_engine.board.reasons import silence
from tests.board.support import state


def right(board: Board) -> None:
    """Asserts everything below of a board that nobody writes to now."""
    now = state(board)
    what_runs_has_exactly_one_owner(board, now)
    who_waits_says_why_and_rests_where_it_should(now, board.rules.claim_ttl_seconds)
    every_move_is_in_the_table(board, now)


def what_runs_has_exactly_one_owner(board: Board, now: Mapping[str, Card]) -> None:
    """Running cards and open runs are the same cards, one to one."""
    running = sorted(card.id for card in now.values() if card.status == "running")
    assert sorted(run.card for run in board.open_runs()) == running


def who_waits_says_why_and_rests_where_it_should(now: Mapping[str, Card], lease: float) -> None:
    """Who does not wait, nor gives no sign of life, says nothing; `todo` and `ready` follow from the parents; nothing
    waits for itself.
    """
    for card in now.values():
        lost = card.run is not None and (lives(card.run.owner, 0) is False or silence(card.run, time.time(), lease))
        assert bool(card.reason) is bool(card.status in WAITING or lost), card
        waits = any(now[parent].finished is None for parent in card.parents)
        if card.status in ("todo", "ready"):
            assert card.status == ("todo" if waits else "ready"), card
        if card.status != "archived":
            assert (card.finished is not None) is (card.status == "done"), card
        assert card.id not in above(now, card.id)


def every_move_is_in_the_table(board: Board, now: Mapping[str, Card]) -> None:
    """The events of each card tell an unbroken way of legal moves to where it stands."""
    events = board.events(limit=1_000_000)
    assert [event.id for event in events] == sorted(event.id for event in events)
    for card, steps in itertools.groupby(sorted(events, key=lambda e: (e.card, e.id)), key=lambda e: e.card):
        at = ""
        for event in steps:
            assert event.source == at or (event.source == event.target == at), (event, at)
            if event.source != event.target:
                assert legal(event.verb, event.source, event.target), event
            at = event.target
        assert at == now[card].status


def above(cards: Mapping[str, Card], card: str) -> set[str]:
    """Every card that a card waits for, directly or not."""
    found: set[str] = set()
    waiting = list(cards[card].parents)
    while waiting:
        parent = waiting.pop()
        if parent not in found:
            found.add(parent)
            waiting += cards[parent].parents
    return found
