"""Two workers that take cards off a board until all are done, as a process; and the floor of the same.

`python -m bench.board_workers ours|floor PLACE CARDS` waits for a line on stdin, works, and prints JSON: the cards it
did, seconds of processor time of the work alone, most memory, claims that found nothing. PLACE is a home folder for
`ours` on SQLite, a file for its floor, and the URL of a PostgreSQL for both of those. The floor takes a row by one
UPDATE in a transaction and ends it by another, at the same durability: no runs, events, parents, leases or counts.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes_engine.board import Board

PROFILE = "worker"
WORKERS = 2
"""Threads of a process."""

Work = Callable[[list[Any]], None]
_looks: list[None] = []
"""One for each claim that found nothing."""


def board_at(place: str) -> Board:
    """The board of a home folder, or of a server when `place` is its URL."""
    from hermes_engine.board import Boards  # the floor is a process without it
    from hermes_engine.paths import Home
    from hermes_engine.settings.values import KanbanSettings

    url = place if "://" in place else None
    rules = KanbanSettings(max_workers=1000, database_url=url)
    return Boards(Home(Path("unused" if url else place)), rules, lambda: {PROFILE}).open()


def ours(place: str, cards: int) -> Work:
    """Claims and completes through the board."""
    from hermes_engine.board import Hold, this_owner

    board = board_at(place)

    def work(done: list[Any]) -> None:
        owner = this_owner()
        with contextlib.closing(board.changes()) as changes:
            while True:
                claim = board.claim(owner, profiles={PROFILE})
                if claim is not None:
                    Hold(board, claim.token).complete("done")
                    done.append(claim.card.id)
                    continue
                _looks.append(None)
                if not changes.changed():
                    if board.counts()["done"] >= cards:
                        return
                    changes.wait(0.2)

    return work


TAKE = (
    "UPDATE cards SET status = 'running' WHERE number ="
    " (SELECT number FROM cards WHERE status = 'ready' ORDER BY number LIMIT 1{}) RETURNING number"
)
END = "UPDATE cards SET status = 'done' WHERE number = {}"
TABLE = "CREATE TABLE cards (number INTEGER PRIMARY KEY, status TEXT NOT NULL)"


def sqlite_floor(place: str, cards: int) -> Work:
    """Two transactions a row with the module alone, in WAL with synchronous=NORMAL, as the board has it."""

    def work(done: list[Any]) -> None:
        with contextlib.closing(sqlite3.connect(place, timeout=60, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous=NORMAL")
            while True:
                connection.execute("BEGIN IMMEDIATE")
                found = connection.execute(TAKE.format("")).fetchall()
                connection.execute("COMMIT")
                if not found:
                    return
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(END.format("?"), found[0])
                connection.execute("COMMIT")
                done.append(found[0][0])

    return work


def postgres_floor(place: str, cards: int) -> Work:
    """Two transactions a row with the driver alone."""
    import psycopg

    def work(done: list[Any]) -> None:
        with psycopg.connect(place) as connection:
            while True:
                found = connection.execute(TAKE.format(" FOR UPDATE SKIP LOCKED")).fetchone()
                connection.commit()
                if found is None:
                    return
                connection.execute(END.format("%s"), found)
                connection.commit()
                done.append(found[0])

    return work


def main() -> None:
    """Reads the command line and works."""
    kind, place, cards = sys.argv[1], sys.argv[2], int(sys.argv[3])
    floor = postgres_floor if "://" in place else sqlite_floor
    work = (ours if kind == "ours" else floor)(place, cards)
    done: list[Any] = []
    threads = [threading.Thread(target=work, args=(done,)) for _ in range(WORKERS)]
    print("ready", flush=True)
    sys.stdin.readline()
    before = time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cpu = time.process_time() - before
    print(json.dumps({"done": done, "cpu": cpu, "rss": _peak(), "looks": len(_looks)}))


def _peak() -> int:
    """Bytes of memory this process has had at most; the kernel's `ru_maxrss` would begin with its parent's."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    main()
