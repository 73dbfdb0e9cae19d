"""The kept rows of a run as its files have them, also of one that was killed or is at work. Changes nothing."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from hermes_engine.batch.files import object_of
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


def kept_rows(folder: RunFolder) -> Iterator[Kept]:
    """The kept rows: as merged, then what was written since. A merge meanwhile changes nothing of it."""
    with _merged(folder) as merged:
        yield from _kept(folder, merged)


def kept_by_prompt(folder: RunFolder) -> Iterator[list[Record]]:
    """The kept samples of each prompt together, in the order of the samples. In memory are those of one prompt."""
    with _merged(folder) as merged:
        prompts: dict[str, list[Standing]] = {}
        for path, offset, line, record in _kept(folder, merged):
            key = identity(record).rpartition("/")[0]
            prompts.setdefault(key, []).append(Standing(record.get("sample", 0), path, offset, len(line)))
        for standings in prompts.values():
            yield [_read(standing, folder, merged) for standing in sorted(standings)]


def _read(standing: Standing, folder: RunFolder, merged: BinaryIO | None) -> Record:
    with contextlib.ExitStack() as stack:
        if merged is not None and standing.path == folder.trajectories:
            stream = merged  # the file of that name may be another by now, with its rows at other places
        else:
            stream = stack.enter_context(standing.path.open("rb"))
        stream.seek(standing.offset)
        record: Record = json.loads(stream.read(standing.length))
        return record


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


@contextlib.contextmanager
def _merged(folder: RunFolder) -> Iterator[BinaryIO | None]:
    with contextlib.ExitStack() as stack:
        stream = None
        with contextlib.suppress(FileNotFoundError):
            stream = stack.enter_context(folder.trajectories.open("rb"))
        yield stream


def _kept(folder: RunFolder, merged: BinaryIO | None) -> Iterator[Kept]:
    seen: set[str] = set()
    for kept in _lines(folder, merged):
        row = identity(kept.record)
        if row not in seen:
            seen.add(row)
            yield kept


def _lines(folder: RunFolder, merged: BinaryIO | None) -> Iterator[Kept]:
    since = -1
    if merged is not None:
        since = os.fstat(merged.fileno()).st_mtime_ns
        yield from _whole(folder.trajectories, merged)
    for path in map(folder.batch, folder.batches()):
        # older ones hold no row that is not merged: rows taken out of the dataset stay in theirs
        if path.stat().st_mtime_ns > since:
            yield from lines_of(path)


def lines_of(path: Path) -> Iterator[Kept]:
    """The whole lines of a file that may be being written."""
    if path.exists():
        with path.open("rb") as stream:
            yield from _whole(path, stream)


def _whole(path: Path, stream: BinaryIO) -> Iterator[Kept]:
    offset = 0
    for line in stream:
        start, offset = offset, offset + len(line)
        if line.endswith(b"\n") and (record := object_of(line)) is not None:
            yield Kept(path, start, line, record)
