"""Which rows of a run are settled, and where their lines stand: an index over the files, which are the truth.

Holds no texts. Built by reading the files once, then kept up by the writer.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hermes_engine.batch.files import read_lines
from hermes_engine.batch.folder import RunFolder
from hermes_engine.batch.job import Record, ident
from hermes_engine.batch.statistics import Tally
from hermes_engine.errors import Interrupted

_OF_FAILURE = ("error_kind", "toolsets_used", "api_calls", "retries", "usage")


class Spot(NamedTuple):
    """Where a kept row's line stands, and what the merge would have to change in it."""

    batch: int
    offset: int
    length: int
    place: int
    """The `prompt_index` in it."""
    shape: int
    """Which set of tools its counters name, see `Ledger.shapes`."""
    extra: int
    """Hash of what it carries of the dataset's line."""


class Failure(NamedTuple):
    """A row that is failed now."""

    offset: int
    length: int
    attempts: int
    figures: dict[str, Any]
    """What the statistics took from its record."""


@dataclass(slots=True)
class Ledger:
    """The state of every row of the run that has a line.

    Attributes:
        kept, rejected, failed: by identity of the row; a row is in one of them at most.
        removed: lines of rows that are no longer in the dataset.
        shapes: each set of tool names met, in order.
        tally: sums over the rows that are in the dataset.
        damaged: whole lines that could not be read.
        last_batch: highest batch number that some record names, −1 for none.
        stale: whether `failed.jsonl` holds lines of rows that are not failed now.
    """

    kept: dict[str, Spot] = field(default_factory=dict)
    rejected: set[str] = field(default_factory=set)
    failed: dict[str, Failure] = field(default_factory=dict)
    removed: int = 0
    shapes: dict[tuple[str, ...], int] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)
    damaged: int = 0
    last_batch: int = -1
    stale: bool = False

    def tools(self) -> tuple[str, ...]:
        """Every tool that some record names, in the order of their first mention."""
        return tuple(dict.fromkeys(name for shape in self.shapes for name in shape))

    def shape(self, names: tuple[str, ...]) -> int:
        """The number of this set of names."""
        return self.shapes.setdefault(names, len(self.shapes))

    def settled(self, row: str) -> bool:
        """Whether the row is never to be run again."""
        return row in self.kept or row in self.rejected

    def keep(self, row: str, spot: Spot, record: Record) -> None:
        """A kept row's line is written."""
        self.succeed(row)
        self.kept[row] = spot
        self.tally.kept(record)

    def reject(self, row: str, record: Record) -> None:
        """A rejected row's line is written."""
        self.succeed(row)
        self.rejected.add(row)
        self.tally.rejected(record)

    def fail(self, row: str, offset: int, length: int, record: Record) -> None:
        """A failed row's line is written."""
        self.succeed(row)
        figures = {name: record.get(name) for name in _OF_FAILURE}
        self.failed[row] = Failure(offset, length, int(record.get("attempts", 1)), figures)
        self.tally.failed(figures)

    def succeed(self, row: str) -> Failure | None:
        """The row is failed no more; returns what it was."""
        before = self.failed.pop(row, None)
        if before is not None:
            self.stale = True
            self.tally.failed(before.figures, -1)
        return before

    def restore(self, row: str, failure: Failure | None) -> None:
        """Takes a failure back: the row is as it was before it."""
        self.succeed(row)
        if failure is not None:
            self.failed[row] = failure
            self.tally.failed(failure.figures)


def identity(record: Record) -> str:
    """Which row a record is of; "" when it does not say."""
    metadata = record.get("metadata")
    key = metadata.get("row_id") if isinstance(metadata, dict) else None
    return ident(key, record.get("sample", 0)) if isinstance(key, str) else ""


def extra_of(record: Record) -> int:
    """Hash of what a record carries of its line; comparable within a process."""
    return hash(record["metadata"].get("extra"))


def _batch_of(record: Record) -> int:
    metadata = record.get("metadata")
    number = metadata.get("batch_num") if isinstance(metadata, dict) else None
    return number if isinstance(number, int) else -1


def read_ledger(folder: RunFolder, rows: Container[str], *, stopped: Callable[[], bool] = lambda: False) -> Ledger:
    """Reads all row files of a run, mending them; rows that are not among `rows` count as removed.

    Raises:
        Interrupted: `stopped` said so; the files are as true as before.
        StateError: a file cannot be read.
    """
    ledger = Ledger()

    def bad(number: int) -> None:
        ledger.damaged += number

    for number in folder.batches():
        if number % 100 == 99 and stopped():
            raise Interrupted("stopped while the run's files were read; no row was begun")
        for offset, length, record in read_lines(folder.batch(number), bad):
            row = identity(record)
            if row in ledger.kept:
                continue
            if row in rows:
                shape = ledger.shape(tuple(record.get("tool_stats", {})))
                place = record.get("prompt_index", -1)
                ledger.keep(row, Spot(number, offset, length, place, shape, extra_of(record)), record)
            else:
                ledger.removed += 1
    for _offset, _length, record in read_lines(folder.rejected, bad):
        row = identity(record)
        ledger.last_batch = max(ledger.last_batch, _batch_of(record))
        if row not in rows:
            ledger.removed += 1
        elif not ledger.settled(row):
            ledger.reject(row, record)
    for offset, length, record in read_lines(folder.failed, bad):
        row = identity(record)
        ledger.last_batch = max(ledger.last_batch, _batch_of(record))
        if row in rows and not ledger.settled(row):
            ledger.fail(row, offset, length, record)
        else:
            ledger.stale = True
    return ledger
