"""A board in a SQLite file: what SQLite spells its own way. Knows no card.

One writer at a time (`BEGIN IMMEDIATE`), so that no further lock is needed; other processes' changes are seen by
`data_version`, which costs some microseconds to ask.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hermes_engine.board.dialect import Lock, Transaction
from hermes_engine.board.schema import CHANGES, statements
from hermes_engine.board.values import BoardGone
from hermes_engine.errors import StateError
from hermes_engine.store.database import Database, Migration

_SERIAL = "INTEGER PRIMARY KEY AUTOINCREMENT"
_LOOK_SECONDS = 0.1


def _apply(text: str, connection: sqlite3.Connection) -> None:
    for statement in statements(text, _SERIAL):
        connection.execute(statement)


MIGRATIONS: tuple[Migration, ...] = tuple((name, partial(_apply, text)) for name, text in CHANGES)


class SqliteBoard:
    """One board's file. Created private when missing.

    Args:
        path: the file; None: one that vanishes when it is closed.

    Raises:
        StateError: cannot be opened, is not ours, or was written by a newer version.
    """

    locked = ""
    skip_locked = ""
    clock = "SELECT (julianday('now') - 2440587.5) * 86400.0 AS now"

    def __init__(self, path: Path | None) -> None:
        self._database = Database.temporary(MIGRATIONS) if path is None else Database(path, MIGRATIONS)
        self._still_there = _same_file(self._database.path)

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[Transaction]:
        """See `Dialect.snapshot`."""
        self._still_there()
        with self._database.snapshot() as connection:
            yield self._transaction(connection)

    @contextlib.contextmanager
    def write(self, lock: Lock = "board") -> Iterator[Transaction]:
        """See `Dialect.write`; the file's one write lock is all there is."""
        self._still_there()
        with self._database.write() as connection:
            transaction = self._transaction(connection)
            yield transaction
            transaction.write_events()

    def gone(self) -> bool:
        """See `Dialect.gone`."""
        try:
            self._still_there()
        except BoardGone:
            return True
        return False

    def changes(self) -> SqliteChanges:
        """See `Dialect.changes`."""
        return SqliteChanges(self._database.path)

    def close(self) -> None:
        """Closes every connection."""
        self._database.close()

    def _transaction(self, connection: sqlite3.Connection) -> Transaction:
        def execute(sql: str, values: Sequence[Any]) -> sqlite3.Cursor:
            return connection.execute(sql, values)

        return Transaction(execute, float(connection.execute(self.clock).fetchone()[0]), self)


def _same_file(path: Path) -> Callable[[], None]:
    """A check that the path still leads to the file it leads to now; else what is written would be lost unseen."""

    def identity() -> tuple[int, int]:
        with _told(path.parent.name):
            found = path.stat()
            return found.st_dev, found.st_ino

    opened = identity()

    def check() -> None:
        if not path.exists() or identity() != opened:
            raise BoardGone(f"{path} is no longer the board it was", hint="it was renamed or deleted; open it anew")

    return check


class SqliteShelf:
    """The boards of a folder: `kanban.db` for `default`, `boards/SLUG/kanban.db` for others."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def names(self) -> list[str]:
        """Boards that exist."""
        found = ["default"] if self._path("default").exists() else []
        return found + sorted(path.parent.name for path in self._root.glob("boards/[a-z0-9]*/kanban.db"))

    def place(self, slug: str) -> str:
        """Where the board is, for people."""
        return str(self._path(slug))

    def open(self, slug: str) -> SqliteBoard:
        """The board, made when it does not exist. Raises StateError."""
        return SqliteBoard(self._path(slug))

    def rename(self, old: str, new: str) -> None:
        """Moves a board with all that lies beside it. Raises StateError."""
        with _told(old):
            self._path(old).parent.rename(self._path(new).parent)

    def delete(self, slug: str) -> None:
        """Removes a board with all that lies beside it. Raises StateError."""
        with _told(slug):
            shutil.rmtree(self._path(slug).parent)

    def _path(self, slug: str) -> Path:
        return self._root / "kanban.db" if slug == "default" else self._root / "boards" / slug / "kanban.db"


@contextlib.contextmanager
def _told(slug: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StateError(f"board {slug}: {error.strerror or error}") from error


class SqliteChanges:
    """Connections that never write, since SQLite tells a connection only of the changes of others."""

    def __init__(self, path: Path) -> None:
        self._still_there = _same_file(path)
        self._database = Database(path, MIGRATIONS)
        self._seen: int | None = None

    def changed(self) -> bool:
        """See `Changes.changed`."""
        self._still_there()
        version = self._database.data_version()
        changed = version != self._seen
        self._seen = version
        return changed

    def wait(self, seconds: float) -> bool:
        """See `Changes.wait`."""
        deadline = time.monotonic() + seconds
        while not self.changed():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(_LOOK_SECONDS, left))
        return True

    def close(self) -> None:
        """Ends the watch."""
        self._database.close()
