"""Every test that asks for `place` runs twice: on SQLite files, and on a PostgreSQL the tests start themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hermes_engine.board import Board
from hermes_engine.paths import Home
from tests.board.support import NoServer, Open, Place


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """URL of a running server."""
    pytest.importorskip("psycopg", reason="no PostgreSQL driver (the extra `postgres`)")
    from tests.board.server import running

    with ExitStack() as stack:
        try:
            url = stack.enter_context(running()).url
        except NoServer as why:
            pytest.skip(f"no PostgreSQL here: {why}")
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A home with boards of its own, in either database."""
    home = Home(tmp_path / "home")
    if request.param == "sqlite":
        yield Place(home, None)
        return
    url = request.getfixturevalue("postgres")
    import psycopg
    from psycopg import sql

    yield Place(home, url)
    with psycopg.connect(url, autocommit=True) as connection:
        for (name,) in connection.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'hermes%'").fetchall():
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))


@pytest.fixture
def open_board(place: Place) -> Iterator[Open]:
    """`open_board(**rules)` opens the default board; closed at the end."""
    opened: list[Board] = []

    def make(slug: str = "", **rules: object) -> Board:
        opened.append(place.open(slug, **rules))
        return opened[-1]

    yield make
    for board in opened:
        board.close()


@pytest.fixture
def board(open_board: Open) -> Board:
    """The default board, with tries that wait for nothing."""
    return open_board()
