"""What the board asks of a database, and the transaction in which its rules run. Knows no card and no driver.

The board's SQL is written once, with `?` for values; `sqlite.py` and `postgres.py` hold what differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Row = Mapping[str, Any]
"""A row: columns by name."""

Lock = Literal["board", "claims", ""]
"""What a write keeps others from, where the database has more than one writer: every change of cards and links |
other claims (they count the workers) | nothing but the rows it touches."""


class Cursor(Protocol):
    """What a driver gives back for a statement."""

    @property
    def rowcount(self) -> int:
        """Rows the statement changed."""
        ...

    def fetchall(self) -> list[Any]:
        """Rows it returned."""
        ...


class Dialect(Protocol):
    """One board's tables in one database. Every method raises StateError when the database cannot be used."""

    locked: str
    """Ends a SELECT whose row this transaction is going to change."""
    skip_locked: str
    """The same, passing over rows that others hold."""
    clock: str
    """SELECT of the database's clock, as `now`."""

    def snapshot(self) -> AbstractContextManager[Transaction]:
        """Reads that see one state of the board and change nothing."""
        ...

    def write(self, lock: Lock = "board") -> AbstractContextManager[Transaction]:
        """A transaction: committed at the end of the block, with its events; undone when the block raises."""
        ...

    def changes(self) -> Changes:
        """A watch on the board; see `Changes`."""
        ...

    def gone(self) -> bool:
        """Whether the board is known to have been renamed or deleted; every use of it raises BoardGone then."""
        ...

    def close(self) -> None:
        """Closes every connection."""
        ...


class Changes(Protocol):
    """Learns that the board changed, whoever changed it. For one thread; to be closed."""

    def changed(self) -> bool:
        """Whether anything was written since the last look; True at the first."""
        ...

    def wait(self, seconds: float) -> bool:
        """Blocks until something is written, at most so long; whether it was."""
        ...

    def close(self) -> None:
        """Ends the watch."""
        ...


@dataclass
class Transaction:
    """One transaction at work.

    Attributes:
        execute: runs one statement of the dialect's own spelling.
        now: seconds since the epoch by the database's clock, the same until it is looked at again.
        dialect: whose it is.
        wrote: whether anything was changed; who changed nothing wakes nobody.
    """

    execute: Callable[[str, Sequence[Any]], Cursor]
    now: float
    dialect: Dialect
    wrote: bool = False
    _events: list[tuple[Any, ...]] = field(default_factory=list)

    def all(self, sql: str, *values: Any) -> list[Row]:
        """Every row of a statement."""
        self.wrote = self.wrote or not sql.startswith(("SELECT", "WITH"))
        return self.execute(sql, values).fetchall()

    def one(self, sql: str, *values: Any) -> Row | None:
        """The first row, or None."""
        rows = self.all(sql, *values)
        return rows[0] if rows else None

    def look_at_clock(self) -> None:
        """Makes `now` the present: what was read since this began may have been written since it began."""
        found = self.one(self.dialect.clock)
        assert found is not None
        self.now = float(found["now"])

    def change(self, sql: str, *values: Any) -> int:
        """Runs a statement that changes rows; how many it changed."""
        count = self.execute(sql, values).rowcount
        self.wrote = self.wrote or count > 0
        return count

    def tell(
        self, card: int, verb: str, *, source: str, target: str, by: str, text: str = "", run: int | None = None
    ) -> None:
        """Records an event at the end of the transaction.

        Only there, because whoever adds one holds up all others who do until he commits: so the numbers of events
        grow in the order in which they can be seen, and a reader that goes on from the last one misses none.
        """
        self._events.append((card, run, verb, source, target, by, text))

    @property
    def told(self) -> bool:
        """Whether there are events to write."""
        return bool(self._events)

    def write_events(self) -> None:
        """For dialects, right before they commit: writes what was told."""
        for values in self._events:
            self.execute(
                "INSERT INTO events (card, run, verb, source, target, by_whom, text, at) VALUES (?,?,?,?,?,?,?,?)",
                (*values, self.now),
            )


def marks(values: Sequence[Any]) -> str:
    """As many `?` as there are values, for `IN (…)`."""
    return ",".join("?" * len(values)) or "NULL"
