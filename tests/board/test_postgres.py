"""What only a server can do to a board: cut its connections, refuse a password, hold rows for somebody else."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest

from hermes_engine.board import Board, claims
from hermes_engine.board.dialect import marks
from hermes_engine.errors import ConfigError, StateError
from tests.board.support import Place, draft, take

pytestmark = pytest.mark.parametrize("place", ["postgres"], indirect=True)


def cut(url: str) -> None:
    """Ends every other connection to the database."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")


def test_a_board_goes_on_after_its_connections_were_cut(place: Place) -> None:
    with closing(place.open()) as board, closing(board.changes()) as changes:
        board.create(draft())
        while changes.changed():
            pass
        assert place.url
        cut(place.url)
        assert changes.wait(5), "who knows what was missed"
        assert board.card("k1").status == "ready"
        assert board.block("k1", "why").status == "blocked"
        assert changes.wait(5)


def test_a_claim_passes_over_a_card_that_another_holds(place: Place) -> None:
    import psycopg

    with closing(place.open()) as board:
        for _ in range(2):
            board.create(draft())
        assert place.url
        with psycopg.connect(place.url) as other:
            other.execute('SELECT * FROM "hermes_board_default".cards WHERE number = 1 FOR UPDATE')
            assert take(board)[0].card.id == "k2", "it does not wait for k1"
        assert take(board)[0].card.id == "k1"


def test_a_claim_begins_after_what_it_saw_done(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(place.open()) as board, closing(place.open()) as other:
        board.create_all([draft(), draft(parents=("@0",))])
        hold = take(board)[1]

        def meanwhile(values: Sequence[Any]) -> str:
            if board.card("k1").status == "running":
                hold.complete("done")
            return marks(values)

        monkeypatch.setattr(
            claims, "marks", meanwhile
        )  # after the claim looked at the clock, before it looks for cards
        claim = take(other)[0]
        ended = next(one.runs[0].ended for one in board.details() if one.card.id == "k1")
        assert claim.card.id == "k2"
        assert ended is not None
        assert claim.run.started >= ended


def test_closed_is_closed(place: Place) -> None:
    board: Board = place.open()
    board.close()
    with pytest.raises(StateError, match="closed"):
        board.cards()


def test_its_place_is_shown_without_a_password(place: Place) -> None:
    from hermes_engine.board.postgres import PostgresShelf

    assert place.url
    assert PostgresShelf("postgresql://ana:secret@db.example/boards").place("web") == "db.example/boards#web"


def test_without_the_driver_it_is_said_how_to_get_it(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigError) as caught:
        place.boards()
    assert "hermes-tui[postgres]" in caught.value.hint
    assert caught.value.exit_code == 2
