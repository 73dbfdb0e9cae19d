"""A file that one process has open twice: the second opening takes nothing away from the first."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

from hermes_engine.store.database import Database, Migration


def lines(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE lines (text TEXT NOT NULL)")


LINES: tuple[Migration, ...] = (("0001 lines", lines),)

OTHER = """
import sys
from pathlib import Path
from hermes_engine.store.database import Database
from tests.store.test_database_locks import LINES, add
other = Database(Path(sys.argv[1]), LINES)
add(other, "other")
other.close()
"""


def add(database: Database, text: str) -> None:
    with database.write() as connection:
        connection.execute("INSERT INTO lines VALUES (?)", (text,))


def other_program(path: Path) -> None:
    """Another process opens the file, writes and closes it: it must not take itself for the last one."""
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", OTHER, str(path)], cwd=root, check=True, timeout=60)


def test_opening_it_once_more_keeps_the_locks_of_the_first(tmp_path: Path) -> None:
    # closing any descriptor of a file drops every lock the process has on it; without them another program that
    # closes the file removes the write-ahead log under us
    path = tmp_path / "state.db"
    first = Database(path, LINES)
    add(first, "first")
    second = Database(path, LINES)
    other_program(path)
    assert path.with_name("state.db-wal").exists()
    add(first, "first again")
    add(second, "second")
    second.close()
    other_program(path)
    add(first, "first at last")
    found = [row["text"] for row in first.read("SELECT text FROM lines")]
    first.close()
    assert found == ["first", "other", "first again", "second", "other", "first at last"]
    again = Database(path, LINES)
    assert again.read("PRAGMA integrity_check")[0][0] == "ok"
    assert len(again.read("SELECT text FROM lines")) == 6
    again.close()


def test_many_threads_open_and_close_it_while_one_writes(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    kept = Database(path, LINES)
    faults: list[BaseException] = []

    def come_and_go() -> None:
        try:
            for _turn in range(20):
                short = Database(path, LINES)
                short.data_version()
                short.close()
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=come_and_go) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(40):
        add(kept, str(number))
    for thread in threads:
        thread.join()
    other_program(path)
    assert path.with_name("state.db-wal").exists()
    assert faults == []
    assert len(kept.read("SELECT text FROM lines")) == 41
    kept.close()


CLOSING = """
import sys, threading, time
from pathlib import Path
from hermes_engine.errors import StateError
from hermes_engine.store.database import Database
from tests.store.test_database_locks import LINES, add
for turn in range(60):
    database = Database(Path(sys.argv[1]) / str(turn), LINES)
    told = []
    def work():
        try:
            while True:
                add(database, "x" * 200)
                database.read("SELECT count(*), max(text) FROM lines")
                with database.snapshot() as connection:
                    connection.execute("SELECT * FROM lines ORDER BY text").fetchall()
        except StateError as error:
            told.append(str(error))
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.003 * (turn % 7))
    database.close()
    for thread in threads:
        thread.join(20)
    assert len(told) == 3 and all("is closed" in line for line in told), told
"""


def test_it_can_be_closed_while_threads_are_at_work_in_it(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", CLOSING, str(tmp_path)], cwd=root, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr[-2000:]
