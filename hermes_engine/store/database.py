"""One SQLite file, used by many threads and processes at once. Knows nothing of what the tables mean.

Every write is `BEGIN IMMEDIATE` (a transaction that reads first and writes later fails at once when another
writer was between, whatever the timeout), waits for the lock, and is tried again a bounded number of times.
One connection a thread. WAL on local disks; on network file systems, where its shared memory does not work,
DELETE. A file in a form we don't know is left as it is.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import sqlite3
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hermes_engine.errors import StateError
from hermes_engine.paths import open_private, private_dir
from hermes_engine.store.filesystem import is_network

Migration = tuple[str, Callable[[sqlite3.Connection], None]]
"""Name, and the function that makes the change; it runs inside a transaction and commits nothing itself."""

APPLICATION_ID = 0x4845524D
"""Marks a database file as ours ("HERM")."""

OLDEST_SQLITE = (3, 35, 0)
"""First version with RETURNING."""

_BUSY_MILLISECONDS = 5000
_CLOSING_SECONDS = 8.0
"""How long a close waits for what is at work."""

_TRIES = 4
_SLOW_DISK = (
    "{} is on a disk that several machines share: state is kept there the slow way "
    "(HERMES_STATE_DIR can name a local folder)"
)
_HELD: Counter[tuple[int, int] | None] = Counter()
"""How many databases of this process hold a file, by device and inode.

Such a file is never opened past SQLite: closing any descriptor of it drops every lock the process has on it, and then
another process that closes it takes itself for the last one and removes the log the others still write to.
"""

_HOLDING = threading.Lock()
"""Held while a file is opened past SQLite, and while the count changes."""

_SURROGATE = re.compile(r"[\ud800-\udfff]")


def clean(text: str) -> str:
    """The text as SQLite can hold it: a lone surrogate becomes U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


class Database:
    """A migrated SQLite file.

    Args:
        path: the file; created private, with its folder, when missing.
        migrations: in order; those not applied yet are applied at once.
        on_notice: hears, at most once, a line a person should read about how the file is kept.

    Raises:
        StateError: cannot be opened, is not ours, or was written by a newer version.
    """

    def __init__(
        self, path: Path, migrations: Sequence[Migration], *, on_notice: Callable[[str], None] | None = None
    ) -> None:
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            needed = ".".join(map(str, OLDEST_SQLITE))
            raise StateError(f"SQLite {needed} or newer is needed, this Python has {sqlite3.sqlite_version}")
        self.path = path
        self._local = threading.local()
        self._lock = threading.Lock()
        self._open: dict[int, sqlite3.Connection] = {}
        self._temporary: Path | None = None
        self._closed = False
        self._working = 0
        self._rest = threading.Condition()
        """Guards `_working`: SQLite crashes when a connection is closed while another thread is in it."""
        self._file: tuple[int, int] | None = None
        self._synchronous = "NORMAL"
        try:
            with _readable_faults(path):
                self._set_up(migrations, on_notice)
        except BaseException:
            self.close()  # nobody else holds what could be closed
            raise

    def _set_up(self, migrations: Sequence[Migration], on_notice: Callable[[str], None] | None) -> None:
        private_dir(self.path.parent)
        with _HOLDING:
            if not _HELD[_identity(self.path)]:
                _refuse_foreign(self.path)
                os.close(open_private(self.path, os.O_RDWR | os.O_CREAT))
            self._file = _identity(self.path)
            _HELD[self._file] += 1
        self._migrate(migrations)
        if self._journal() != "wal":
            self.connection().execute("PRAGMA synchronous=FULL")
            self._synchronous = "FULL"
            if on_notice is not None:
                on_notice(_SLOW_DISK.format(self.path.parent))

    @classmethod
    def temporary(cls, migrations: Sequence[Migration]) -> Database:
        """A database that vanishes when it is closed, for runs that keep nothing."""
        folder = Path(tempfile.mkdtemp(prefix="hermes-state-"))
        database = cls(folder / "state.db", migrations)
        database._temporary = folder
        return database

    def connection(self) -> sqlite3.Connection:
        """This thread's connection, opened at its first use. Raises StateError."""
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is not None and not self._closed:
            return found
        with _readable_faults(self.path), self._lock:
            if self._closed:
                raise StateError(f"{self.path} is closed")
            self._drop_dead_threads()
            made = sqlite3.connect(
                self.path, timeout=_BUSY_MILLISECONDS / 1000, isolation_level=None, check_same_thread=False
            )
            self._open[threading.get_ident()] = made  # before the file is read: a damaged one raises here
            made.row_factory = sqlite3.Row
            made.execute(f"PRAGMA busy_timeout={_BUSY_MILLISECONDS}")
            made.execute("PRAGMA foreign_keys=ON")
            made.execute(f"PRAGMA synchronous={self._synchronous}")
            made.execute("PRAGMA journal_size_limit=16777216")
            self._local.connection = made
            return made

    @contextlib.contextmanager
    def _at_work(self) -> Iterator[sqlite3.Connection]:
        """This thread's connection, which nobody closes meanwhile. Raises StateError."""
        with self._rest:
            if self._closed:
                raise StateError(f"{self.path} is closed")
            self._working += 1
        try:
            yield self.connection()
        finally:
            with self._rest:
                self._working -= 1
                self._rest.notify_all()

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """All rows of a query; no transaction stays open behind it. Raises StateError."""
        with _readable_faults(self.path), self._at_work() as connection:
            return connection.execute(sql, values).fetchall()

    @contextlib.contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A transaction: committed at the end of the block, undone when the block raises.

        Raises:
            StateError: the lock was not to be had, the disk is full, the file is damaged, …
        """
        with _readable_faults(self.path), self._at_work() as connection:
            _again_while_busy(lambda: connection.execute("BEGIN IMMEDIATE"))
            try:
                yield connection
                _again_while_busy(lambda: connection.execute("COMMIT"))
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Reads that see one state of the file; nothing is written in it. Raises StateError."""
        with _readable_faults(self.path), self._at_work() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def data_version(self) -> int:
        """A number that changes when another connection changed the file; ask on a thread that does not write."""
        return int(self.read("PRAGMA data_version")[0][0])

    def close(self) -> None:
        """Closes every thread's connection, after what is at work in one. Later use raises StateError."""
        with self._rest:
            self._closed = True
            if not self._rest.wait_for(lambda: not self._working, _CLOSING_SECONDS):
                return  # it stays open rather than crash whoever is in it
        with self._lock:
            for connection in self._open.values():
                connection.close()
            self._open.clear()
        with _HOLDING:
            if self._file is not None:
                _HELD[self._file] -= 1
                self._file = None
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _drop_dead_threads(self) -> None:
        alive = {thread.ident for thread in threading.enumerate()} - {threading.get_ident()}
        for ident in [ident for ident in self._open if ident not in alive]:
            self._open.pop(ident).close()

    def _migrate(self, migrations: Sequence[Migration]) -> None:
        known = [name for name, _ in migrations]
        if self._applied() == known:
            return
        with self.write() as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied REAL NOT NULL)")
            applied = self._applied()
            if applied[: len(known)] != known[: len(applied)] or len(applied) > len(known):
                raise StateError(f"{self.path} was written by a newer version", hint="update, or move the file away")
            for name, change in migrations[len(applied) :]:
                change(connection)
                connection.execute("INSERT INTO migrations (name, applied) VALUES (?, ?)", (name, time.time()))
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")

    def _applied(self) -> list[str]:
        if not self.read("SELECT 1 FROM sqlite_master WHERE name = 'migrations'"):
            return []
        return [row[0] for row in self.read("SELECT name FROM migrations ORDER BY rowid")]

    def _journal(self) -> str:
        """Sets the journal mode and returns the one in effect.

        The change wants the file alone and does not wait for it: another process that opens the file at the
        same moment makes it fail, and then has often made the change itself.
        """
        connection = self.connection()
        wanted = "delete" if is_network(self.path) else "wal"
        deadline = time.monotonic() + _BUSY_MILLISECONDS / 1000
        while True:
            mode = str(connection.execute("PRAGMA journal_mode").fetchone()[0])
            if mode == wanted:
                return mode
            try:
                return str(connection.execute(f"PRAGMA journal_mode={wanted}").fetchone()[0])
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() > deadline:
                    return mode
            time.sleep(random.uniform(0.01, 0.05))


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _refuse_foreign(path: Path) -> None:
    """Raises StateError when the file is neither empty nor marked as ours. Only reads: SQLite itself would write.

    Ours bear the mark from their first transaction on, which is made before they are in WAL.
    """
    if not path.exists():
        return
    if not path.is_file():
        raise StateError(f"{path} is not a file")
    with path.open("rb") as stream:
        header = stream.read(100)
    ours = header.startswith(b"SQLite format 3\0") and header[68:72] == APPLICATION_ID.to_bytes(4, "big")
    if header and not ours:
        raise StateError(
            f"{path} belongs to another program; it is left as it is", hint="move it away, or set HERMES_STATE_DIR"
        )


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _again_while_busy(action: Callable[[], sqlite3.Cursor]) -> sqlite3.Cursor:
    for attempt in range(1, _TRIES + 1):
        try:
            return action()
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or attempt == _TRIES:
                raise
        time.sleep(random.uniform(0.01, 0.05) * attempt)
    raise AssertionError("unreachable")


@contextlib.contextmanager
def _readable_faults(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
        raise
    except sqlite3.OperationalError as error:
        hint = "another program holds it; try again when it is done" if _is_busy(error) else ""
        raise StateError(f"{path}: {error}", hint=hint) from error
    except sqlite3.DatabaseError as error:
        raise StateError(f"{path}: {error}", hint="the file is damaged; it is left as it is") from error
    except OSError as error:
        raise StateError(f"{path}: {error.strerror or error}") from error
