"""What the tests of the board share: a place for boards in either database, workers in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hermes_engine.board import Board, Boards, Card, CardDraft, Claim, Hold, Owner, this_owner
from hermes_engine.paths import Home
from hermes_engine.settings.values import KanbanSettings

ROOT = Path(__file__).parents[2]
HERE = frozenset({"default", "researcher", "reviewer"})


class NoServer(Exception):
    """Why no PostgreSQL can be had on this machine."""


@dataclass
class Place:
    """Where the boards of one test are."""

    home: Home
    url: str | None

    def rules(self, **changed: Any) -> KanbanSettings:
        """Limits for the test: no waits unless it wants some."""
        values = {"retry_seconds": 1e-9, "max_workers": 1000, "database_url": self.url, **changed}
        return KanbanSettings(**values)

    def boards(self, **changed: Any) -> Boards:
        """The boards of the place."""
        return Boards(self.home, self.rules(**changed), lambda: HERE)

    def open(self, slug: str = "", **changed: Any) -> Board:
        """A board of the place, to be closed."""
        return self.boards(**changed).open(slug)

    def spawn(self, script: str, *args: str, count: int = 1) -> list[subprocess.Popen[str]]:
        """Starts processes that run `script` with `board` open; each prints one JSON value to be read by `harvest`."""
        code = f"{_PRELUDE}\n{script}"
        env = {**os.environ, "PYTHONPATH": str(ROOT), "BOARD_URL": self.url or "", "HERMES_HOME": str(self.home.root)}
        return [
            subprocess.Popen(
                [sys.executable, "-c", code, str(number), *args],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=env,
            )
            for number in range(count)
        ]


_PRELUDE = """
import json, os, sys
from hermes_engine.board import CardDraft, Hold, this_owner
from hermes_engine.paths import Home
from tests.board.support import HERE, Place
number, args = int(sys.argv[1]), sys.argv[2:]
place = Place(Home.from_env(), os.environ["BOARD_URL"] or None)
board = place.open()
def say(value):
    print(json.dumps(value), flush=True)
"""


def harvest(processes: Sequence[subprocess.Popen[str]], stdin: str = "") -> list[Any]:
    """Waits for the processes and returns what each said last."""
    said = []
    for process in processes:
        out, complaint = process.communicate(stdin, timeout=100)
        assert process.returncode == 0, complaint
        said.append(json.loads(out.splitlines()[-1]))
    return said


def draft(title: str = "work", **values: Any) -> CardDraft:
    """A card to be made."""
    return CardDraft(title, **values)


def take(board: Board, owner: Owner | None = None, **limits: Any) -> tuple[Claim, Hold]:
    """Claims the next card, which there must be."""
    claim = board.claim(owner or this_owner(), **{"profiles": HERE, **limits})
    assert claim is not None
    return claim, Hold(board, claim.token)


def nothing(board: Board, **limits: Any) -> bool:
    """Whether there is nothing to claim."""
    return board.claim(this_owner(), **{"profiles": HERE, **limits}) is None


def dead_owner() -> Owner:
    """A process of this machine and boot that ended."""
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    return replace(this_owner(), pid=process.pid)


def foreign_owner() -> Owner:
    """A process of another machine, which nobody here can look up."""
    return replace(this_owner(), machine="elsewhere", boot="another-boot ns")


def shift(board: Board, seconds: float) -> None:
    """Moves all open runs into the past: they were claimed, and last heard of, so much earlier."""
    with board._database.write() as transaction:
        for column in ("started", "heartbeat", "expires"):
            transaction.change(f"UPDATE runs SET {column} = {column} - ? WHERE ended IS NULL", seconds)


def state(board: Board) -> Mapping[str, Card]:
    """Every card by id."""
    return {card.id: card for card in board.cards(archived=True)}


def tables(board: Board) -> dict[str, list[dict[str, Any]]]:
    """Every row of the board, to be compared."""
    names = ("cards", "links", "runs", "comments", "attachments", "events", "attendants", "memory")
    with board._database.snapshot() as view:
        return {
            name: sorted(({key: row[key] for key in dict(row)} for row in view.all(f"SELECT * FROM {name}")), key=str)
            for name in names
        }


Open = Callable[..., Board]
Act = Callable[[], object]
