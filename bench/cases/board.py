"""The board at work: eight workers in four processes over 500 cards that wait for each other, beside bare databases.

On a SQLite file, and on a PostgreSQL that is started for it where one is installed. Each card must have had one run,
begun after its parents were done.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.board_workers import PROFILE, TABLE, board_at
from bench.figures import Figure, median, spread
from bench.place import Place
from bench.processes import MB
from bench.rounds import Rounds, interleaved
from hermes_engine.board import CardDraft

CARDS, PROCESSES = 500, 4


@dataclass(frozen=True, slots=True)
class _Done:
    """How long 500 cards took by the clock, the largest memory of a process, claims that found nothing."""

    wall: float
    rss: float
    looks: int


def run(rounds: int) -> Iterator[Figure]:
    """Both databases, as far as they are here."""
    rounds = max(3, rounds // 2)
    with Place() as place:
        yield from _figures("SQLite", partial(_sqlite, place), partial(_sqlite_floor, place), rounds)
    yield from _postgres(rounds)


def _postgres(rounds: int) -> Iterator[Figure]:
    try:
        import psycopg

        from tests.board.server import running
        from tests.board.support import NoServer
    except ImportError as error:
        yield Figure("board", "PostgreSQL", None, "", None, str(error))
        return
    with contextlib.ExitStack() as stack:
        try:
            url = stack.enter_context(running()).url
        except NoServer as why:
            yield Figure("board", "PostgreSQL", None, "", None, str(why))
            return

        def clear(statement: str) -> str:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("DROP SCHEMA IF EXISTS hermes_board_default CASCADE")
                connection.execute("DROP TABLE IF EXISTS cards")
                if statement:
                    connection.execute(statement)
                    connection.execute("INSERT INTO cards SELECT n, 'ready' FROM generate_series(1, %s) AS n", [CARDS])
            return url

        yield from _figures("PostgreSQL", partial(clear, ""), partial(clear, TABLE), rounds)


def _sqlite(place: Place) -> str:
    return str(place.folder("board"))


def _sqlite_floor(place: Place) -> str:
    file = str(place.folder("floor") / "floor.db")
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(TABLE)
        connection.executemany("INSERT INTO cards VALUES (?, 'ready')", ((number,) for number in range(1, CARDS + 1)))
        connection.commit()
    return file


def _figures(name: str, fresh: Callable[[], str], fresh_floor: Callable[[], str], rounds: int) -> Iterator[Figure]:
    done: dict[str, list[_Done]] = {"ours": [], "floor": []}

    def ours() -> float:
        place = fresh()
        _plan(place)
        cpu, cards = _worked("ours", place, done["ours"])
        _right(place, cards)
        return cpu

    def floor() -> float:
        cpu, cards = _worked("floor", fresh_floor(), done["floor"])
        if sorted(cards) != list(range(1, CARDS + 1)):
            raise RuntimeError("the floor did not take each row once")
        return cpu

    costs = interleaved({"ours": ours, "floor": floor}, rounds, f"board, {name}")
    yield _cost(name, costs)
    rates = {kind: median(CARDS / one.wall for one in each) for kind, each in done.items()}
    memory = {kind: max(one.rss for one in each) / MB for kind, each in done.items()}
    note = f"by the clock, {PROCESSES} processes of two workers; floor {rates['floor']:.0f}"
    note += f"; {median(one.looks / CARDS for one in done['ours']):.1f} claims a card found nothing"
    yield Figure("board", "…claims a second, each with its end", rates["ours"], "", None, note)
    yield Figure("board", "…largest process", memory["ours"], "MB", None, f"floor {memory['floor']:.0f} MB")


def _cost(name: str, costs: Rounds) -> Figure:
    each = f"{costs.median('ours'):.2f} / {costs.median('floor'):.2f} ms of the workers' processor time a card"
    note = f"{each}; {spread(costs.ratios('ours', 'floor'), '×')}"
    return Figure(
        "board", f"{name}: a claim and its end, ours / two bare UPDATEs", costs.ratio("ours", "floor"), "×", None, note
    )


def _plan(place: str) -> None:
    """Cards of which two in three wait for up to three before them."""
    plan = [
        CardDraft(f"{n}", assignee=PROFILE, parents=tuple(f"@{n - step}" for step in (1, 7, 30) if n % 3 and n >= step))
        for n in range(CARDS)
    ]
    with contextlib.closing(board_at(place)) as board:
        board.create_all(plan)


def _worked(kind: str, place: str, done: list[_Done]) -> tuple[float, list[Any]]:
    """Milliseconds of processor time a card, and the cards in the order of their processes."""
    command = [sys.executable, "-m", "bench.board_workers", kind, place, str(CARDS)]
    pipe = subprocess.PIPE
    processes = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(PROCESSES)]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    began = time.monotonic()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    told = [json.loads(process.communicate(timeout=300)[0]) for process in processes]
    wall = time.monotonic() - began
    done.append(_Done(wall, max(one["rss"] for one in told), sum(one["looks"] for one in told)))
    return 1000 * sum(one["cpu"] for one in told) / CARDS, [card for one in told for card in one["done"]]


def _right(place: str, cards: list[Any]) -> None:
    """Each card was done once, in one run, after its parents."""
    with contextlib.closing(board_at(place)) as board:
        details = {one.card.id: one for one in board.details()}
    if sorted(cards) != sorted(details) or any(len(one.runs) != 1 for one in details.values()):
        raise RuntimeError(f"{len(cards)} cards were done of {len(details)}, or one of them twice")
    for one in details.values():
        for parent in one.card.parents:
            if (details[parent].runs[0].ended or 1e99) > one.runs[0].started:
                raise RuntimeError(f"{one.card.id} began before {parent} was done")
