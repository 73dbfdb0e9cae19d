"""The kept rows of a run as its files have them, also of one that was killed or is at work. Changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from hermes_engine.batch.folder import RunFolder
from hermes_engine.batch.job import Record
from hermes_engine.batch.ledger import identity


class Kept(NamedTuple):
    """A kept row, and where its line stands."""

    path: Path
    offset: int
    line: bytes
    record: Record


class Standing(NamedTuple):
    """Where a kept row's line stands."""

    sample: int
    path: Path
    offset: int
    length: int

    def read(self) -> Record:
        """The row."""
        with self.path.open("rb") as stream:
            stream.seek(self.offset)
            record: Record = json.loads(stream.read(self.length))
            return record


def kept_rows(folder: RunFolder) -> Iterator[Kept]:
    """The kept rows: as merged, then what was written since."""
    seen: set[str] = set()
    batches: Iterable[Path] = (folder.batch(number) for number in folder.batches())
    for path in (folder.trajectories, *batches):
        for kept in lines_of(path):
            row = identity(kept.record)
            if row not in seen and (path == folder.trajectories or _newer(path, folder)):
                seen.add(row)
                yield kept


def kept_by_prompt(folder: RunFolder) -> Iterator[list[Record]]:
    """The kept samples of each prompt together, in the order of the samples. In memory are those of one prompt."""
    prompts: dict[str, list[Standing]] = {}
    for path, offset, line, record in kept_rows(folder):
        key = identity(record).rpartition("/")[0]
        prompts.setdefault(key, []).append(Standing(record.get("sample", 0), path, offset, len(line)))
    for standings in prompts.values():
        yield [standing.read() for standing in sorted(standings)]


def settled_rows(folder: RunFolder) -> Iterator[tuple[str, Record]]:
    """Every settled row with its outcome; of a row that failed more than once the last failure."""
    settled: set[str] = set()
    for kept in kept_rows(folder):
        settled.add(identity(kept.record))
        yield "kept", kept.record
    for kept in lines_of(folder.rejected):
        if (row := identity(kept.record)) not in settled:
            settled.add(row)
            yield "rejected", kept.record
    last = {identity(kept.record): kept.record for kept in lines_of(folder.failed)}
    for row, record in last.items():
        if row not in settled:
            yield "failed", record


def _newer(path: Path, folder: RunFolder) -> bool:
    """Whether a batch may hold rows that are not merged: rows taken out of the dataset stay in theirs."""
    merged = folder.trajectories
    return not merged.exists() or path.stat().st_mtime_ns > merged.stat().st_mtime_ns


def lines_of(path: Path) -> Iterator[Kept]:
    """The whole lines of a file that may be being written."""
    if not path.exists():
        return
    offset = 0
    with path.open("rb") as stream:
        for line in stream:
            start, offset = offset, offset + len(line)
            if line.endswith(b"\n"):
                try:
                    yield Kept(path, start, line, json.loads(line))
                except ValueError:
                    continue
