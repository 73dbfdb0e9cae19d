"""Recorded runs: reading them back as events, and letting go of old ones."""

from __future__ import annotations

import json
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hermes_engine.events import Event, UsageReported, from_json
from hermes_engine.messages import NO_USAGE, Usage
from hermes_engine.store.database import Database

_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One turn of one agent.

    Attributes:
        id, session, agent, parent: as in the run's events.
        model, prompt: what it was asked.
        status: as in `events.TurnFinished`, `interrupted` when its program ended first, "" while it runs.
        error: one line, or "".
        started, ended: seconds since the epoch; `ended` None while it runs.
    """

    id: str
    session: str
    agent: str
    parent: str
    model: str
    prompt: str
    status: str
    error: str
    started: float
    ended: float | None


def insert_chunk(
    connection: sqlite3.Connection, session: str, run: str, seqs: tuple[int, int], lines: Sequence[str]
) -> None:
    """Within a transaction: adds recorded events of a run."""
    data = zlib.compress("\n".join(lines).encode(), 1)
    connection.execute(
        "INSERT INTO events (session, run, first_seq, last_seq, created, data) VALUES (?,?,?,?,?,?)",
        (session, run, *seqs, time.time(), data),
    )


class Recordings:
    """What the recorder wrote."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def runs(self, session: str) -> tuple[RunRecord, ...]:
        """The runs of a session, oldest first."""
        columns = ", ".join(RunRecord.__slots__)
        rows = self._database.read(f"SELECT {columns} FROM runs WHERE session = ? ORDER BY started, rowid", (session,))
        return tuple(RunRecord(*row) for row in rows)

    def events(self, run: str, after_seq: int = 0) -> Iterator[Event]:
        """Recorded events of a run, in order; deltas are joined, so `seq` has gaps. Unknown kinds are passed over."""
        return (event for event in self._events(run, lambda line: True, after_seq) if event.seq > after_seq)

    def _events(self, run: str, wanted: Callable[[str], bool], after_seq: int = 0) -> Iterator[Event]:
        rows = self._database.read(
            "SELECT data FROM events WHERE run = ? AND last_seq > ? ORDER BY id", (run, after_seq)
        )
        for row in rows:
            for line in filter(wanted, zlib.decompress(row["data"]).decode().split("\n")):
                try:
                    yield from_json(json.loads(line))
                except (ValueError, TypeError):
                    continue

    def of_chat(self, session: str, kinds: Sequence[type[Event]]) -> Iterator[Event]:
        """Recorded events of these kinds in a conversation's own turns, oldest first, whoever had them: a task that
        was opened as a chat, a chat that was left working. What it started has conversations of its own.
        """
        beginnings = tuple(f'{{"type":"{kind.__name__}",' for kind in kinds)
        for run in self.runs(session):
            yield from self._events(run.id, lambda line: line.startswith(beginnings))

    def spent(self, agent: str) -> Usage:
        """What the replies of an agent have cost that were whole."""
        total = NO_USAGE
        for run in self._database.read("SELECT id FROM runs WHERE agent = ?", (agent,)):
            for event in self._events(run["id"], lambda line: line.startswith('{"type":"UsageReported",')):
                if isinstance(event, UsageReported):
                    total += event.usage
        return total

    def prune(self, keep_days: int) -> int:
        """Deletes recordings, ended agents and taken orders older than so many days; 0 keeps everything.

        Conversations are never deleted by age. Returns the number of recordings deleted.
        """
        if keep_days <= 0:
            return 0
        before = (time.time() - keep_days * _DAY,)
        with self._database.write() as connection:
            gone = connection.execute("DELETE FROM events WHERE created < ?", before).rowcount
            connection.execute("DELETE FROM runs WHERE ended < ?", before)
            connection.execute("DELETE FROM agents WHERE ended < ?", before)
            connection.execute("DELETE FROM orders WHERE created < ?", before)
            connection.execute("DELETE FROM instances WHERE ended < ?", before)
        return gone
