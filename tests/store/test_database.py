"""The database file: private, ours alone, safe among threads and processes, brought up to date in order."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hermes_engine.errors import StateError
from hermes_engine.store import database as database_module
from hermes_engine.store.database import APPLICATION_ID, Database, Migration
from hermes_engine.store.filesystem import is_network
from hermes_engine.store.migrations import STATE_MIGRATIONS, open_state


def counter(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE counter (n INTEGER NOT NULL)")
    connection.execute("INSERT INTO counter VALUES (0)")


COUNTER: tuple[Migration, ...] = (("0001 counter", counter),)


def modes(folder: Path) -> dict[str, int]:
    return {item.name: stat.S_IMODE(item.stat().st_mode) for item in folder.iterdir()}


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_f10_4_the_file_and_its_companions_are_private_from_the_start(tmp_path: Path, mask: int) -> None:
    folder = tmp_path / "home"
    old = os.umask(mask)
    try:
        opened = open_state(folder / "state.db")
        with opened.write() as connection:
            connection.execute("INSERT INTO orders (kind, created) VALUES ('stop', 1)")
        assert modes(folder) == {"state.db": 0o600, "state.db-wal": 0o600, "state.db-shm": 0o600}
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    finally:
        os.umask(old)
    opened.close()


def test_it_is_kept_in_wal_and_marked_as_ours(database: Database) -> None:
    assert database.read("PRAGMA journal_mode")[0][0] == "wal"
    assert database.path.read_bytes()[68:72] == APPLICATION_ID.to_bytes(4, "big")


@pytest.mark.parametrize("kind", ["sqlite", "text", "marked", "folder"])
def test_a_file_of_another_program_is_left_as_it_is(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "state.db"
    if kind == "folder":
        path.mkdir()
    elif kind == "text":
        path.write_text("not a database, " * 100)
    else:
        other = sqlite3.connect(path)
        if kind == "marked":
            other.execute("PRAGMA application_id=7")
        other.execute("PRAGMA journal_mode=WAL")
        other.execute("CREATE TABLE sessions (id TEXT, foreign_column TEXT)")
        other.commit()
        other.close()
    if kind != "folder":
        path.chmod(0o644)
    before = path.read_bytes() if kind != "folder" else b""
    with pytest.raises(StateError) as caught:
        open_state(path)
    assert str(path) in str(caught.value)
    if kind != "folder":
        assert "another program" in str(caught.value)
        assert path.read_bytes() == before
        assert modes(tmp_path) == {"state.db": 0o644}


def test_an_empty_file_becomes_ours(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.touch(0o644)
    open_state(path).close()
    assert path.read_bytes()[68:72] == APPLICATION_ID.to_bytes(4, "big")
    assert modes(tmp_path) == {"state.db": 0o600}


def test_a_damaged_file_is_reported_and_left(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    open_state(path).close()
    data = bytearray(path.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(StateError, match=r"state\.db"), contextlib.closing(Database(path, STATE_MIGRATIONS)) as opened:
        opened.read("SELECT * FROM sessions")
    assert path.read_bytes() == bytes(data)


def test_a_file_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StateError):
        open_state(tmp_path / "file" / "state.db")


def test_migrations_run_once_in_order_from_the_first_form(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    old = Database(path, COUNTER)
    with old.write() as connection:
        connection.execute("UPDATE counter SET n = 41")
    old.close()

    def add_one(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE counter SET n = n + 1")

    def add_column(connection: sqlite3.Connection) -> None:
        connection.execute("ALTER TABLE counter ADD COLUMN name TEXT NOT NULL DEFAULT 'x'")

    newer: tuple[Migration, ...] = (*COUNTER, ("0002 one", add_one), ("0003 name", add_column))
    for _ in range(2):
        opened = Database(path, newer)
        assert [tuple(row) for row in opened.read("SELECT n, name FROM counter")] == [(42, "x")]
        assert [row[0] for row in opened.read("SELECT name FROM migrations")] == [name for name, _ in newer]
        opened.close()
    data = path.read_bytes()
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(StateError, match="newer version") as kept:
        Database(path, COUNTER)
    assert kept.traceback
    assert len(list(Path("/proc/self/fd").iterdir())) == before, "what could not be set up leaves no file open"
    assert path.read_bytes() == data


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    Database(path, COUNTER).close()

    def half(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE counter SET n = 99")
        connection.execute("CREATE TABLE other (a)")
        raise StateError("no")

    with pytest.raises(StateError):
        Database(path, (*COUNTER, ("0002 half", half)))
    again = Database(path, COUNTER)
    assert again.read("SELECT n FROM counter")[0][0] == 0
    assert not again.read("SELECT 1 FROM sqlite_master WHERE name = 'other'")
    again.close()


def test_the_first_form_of_the_state_still_opens(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    connection = sqlite3.connect(path)
    connection.executescript((Path(__file__).parent / "first_form.sql").read_text())
    connection.close()
    opened = open_state(path)
    assert opened.read("SELECT title, updated FROM sessions")[0]["title"] == "from the first form"
    tables = {row[0] for row in opened.read("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert {"instances", "sessions", "messages", "agents", "runs", "events", "orders", "migrations"} <= tables
    opened.close()


def test_a_write_that_raises_is_undone(tmp_path: Path) -> None:
    opened = Database(tmp_path / "state.db", COUNTER)
    with pytest.raises(KeyError), opened.write() as connection:
        connection.execute("UPDATE counter SET n = 5")
        raise KeyError
    assert opened.read("SELECT n FROM counter")[0][0] == 0
    with pytest.raises(sqlite3.IntegrityError), opened.write() as connection:
        connection.execute("INSERT INTO counter VALUES (NULL)")
    with pytest.raises(StateError, match="no such table"):
        opened.read("SELECT * FROM nowhere")
    opened.close()
    with pytest.raises(StateError, match="is closed"):
        opened.read("SELECT 1")


def test_threads_have_connections_of_their_own_which_go_with_them(tmp_path: Path) -> None:
    opened = Database(tmp_path / "state.db", COUNTER)
    seen: list[sqlite3.Connection] = []
    before = len(list(Path("/proc/self/fd").iterdir()))

    def work() -> None:
        for _ in range(25):
            with opened.write() as connection:
                n = connection.execute("SELECT n FROM counter").fetchone()[0]
                connection.execute("UPDATE counter SET n = ?", (n + 1,))
        seen.append(opened.connection())

    for _ in range(3):
        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert opened.read("SELECT n FROM counter")[0][0] == 3 * 6 * 25
    assert len({id(connection) for connection in seen}) == len(seen)
    more = len(list(Path("/proc/self/fd").iterdir())) - before
    assert more < 6 * 3 * 2, "connections of ended threads are closed"
    opened.close()


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from hermes_engine.store.database import Database
from tests.store.test_database import COUNTER
opened = Database(Path(sys.argv[1]), COUNTER)
for _ in range(int(sys.argv[2])):
    with opened.write() as connection:
        n = connection.execute("SELECT n FROM counter").fetchone()[0]
        connection.execute("UPDATE counter SET n = ?", (n + 1,))
opened.close()
"""


def test_processes_that_open_and_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "home" / "state.db"
    root = str(Path(__file__).parents[2])
    arguments = [sys.executable, "-c", WRITER, str(path), "60", root]
    writers = [subprocess.Popen(arguments, stderr=subprocess.PIPE) for _ in range(4)]
    for writer in writers:
        _, complaint = writer.communicate(timeout=100)
        assert writer.returncode == 0, complaint.decode()
    opened = Database(path, COUNTER)
    assert opened.read("SELECT n FROM counter")[0][0] == 240
    assert opened.read("PRAGMA journal_mode")[0][0] == "wal"
    opened.close()


def test_a_lock_held_for_too_long_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "_BUSY_MILLISECONDS", 50)
    opened = Database(tmp_path / "state.db", COUNTER)
    holder = sqlite3.connect(tmp_path / "state.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    started = time.monotonic()
    with pytest.raises(StateError, match="locked") as caught, opened.write():
        pass
    assert "another program holds it" in caught.value.hint
    assert time.monotonic() - started < 5
    assert opened.read("SELECT n FROM counter")[0][0] == 0, "readers go on"
    holder.execute("ROLLBACK")
    with opened.write() as connection:
        connection.execute("UPDATE counter SET n = 1")
    holder.close()
    opened.close()


def test_an_old_sqlite_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 31, 1))
    with pytest.raises(StateError, match=r"SQLite 3\.35\.0 or newer is needed"):
        open_state(tmp_path / "state.db")


MOUNTS = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
23 22 0:40 / /home rw shared:2 - nfs4 server:/home rw
24 23 0:41 / /home/me/local rw - xfs /dev/vdb rw
25 22 0:42 / /mnt/with\\040space rw - cifs //server/share rw
26 22 0:43 / /mnt/ssh rw - fuse.sshfs me@server: rw
27 22 0:44 / /mnt/overlay rw - fuse.fuse-overlayfs none rw
"""


@pytest.mark.parametrize(
    ("path", "network"),
    [
        ("/var/state.db", False),
        ("/home/me/.hermes/state.db", True),
        ("/homework/state.db", False),
        ("/home/me/local/state.db", False),
        ("/mnt/with space/state.db", True),
        ("/mnt/ssh/state.db", True),
        ("/mnt/overlay/state.db", False),
    ],
)
def test_network_disks_are_recognised(tmp_path: Path, path: str, network: bool) -> None:
    (tmp_path / "mountinfo").write_text(MOUNTS)
    assert is_network(Path(path), tmp_path / "mountinfo") is network
    assert is_network(Path(path), tmp_path / "none") is False


def test_on_a_network_disk_it_is_kept_without_wal_and_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.db"
    Database(path, COUNTER).close()
    monkeypatch.setattr(database_module, "is_network", lambda _: True)
    told: list[str] = []
    opened = Database(path, COUNTER, on_notice=told.append)
    assert opened.read("PRAGMA journal_mode")[0][0] == "delete"
    assert opened.read("PRAGMA synchronous")[0][0] == 2
    with opened.write() as connection:
        connection.execute("UPDATE counter SET n = 3")
    assert len(told) == 1
    assert "HERMES_STATE_DIR" in told[0]
    assert modes(tmp_path) == {"state.db": 0o600}
    opened.close()


def test_a_temporary_one_vanishes(tmp_path: Path) -> None:
    opened = Database.temporary(COUNTER)
    folder = opened.path.parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    opened.close()
    assert not folder.exists()
