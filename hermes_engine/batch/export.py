"""Writes a run's kept rows in a form a trainer reads. So far `sharegpt`, the records as they are.

Reads the row files, so that a run that was killed exports what it has.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from hermes_engine.batch.files import replacing
from hermes_engine.batch.folder import RunFolder
from hermes_engine.batch.job import Record
from hermes_engine.batch.ledger import identity
from hermes_engine.errors import UnknownName, UsageError

Form = Callable[[Record, bytes], bytes]
"""Makes the exported line of a record and its own line."""

FORMATS: dict[str, Form] = {"sharegpt": lambda record, line: line}
"""Name → form. A further format is a further entry."""
_LATER = frozenset({"openai", "hermes-fc", "llamafactory", "atropos"})


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export wrote, and what it left out by reason."""

    written: int
    left_out: dict[str, int]


def form_of(name: str) -> Form:
    """The form of that name. Raises UnknownName, or UsageError for one of a later version."""
    if name in _LATER:
        raise UsageError(f"--format {name} is not in this version: it comes with a later one", hint="take sharegpt")
    if name not in FORMATS:
        raise UnknownName("format", name, FORMATS)
    return FORMATS[name]


def export(folder: RunFolder, form: Form, target: Path | BinaryIO, *, everything: bool = False) -> Exported:
    """Writes the run's rows.

    Args:
        folder: of the run.
        form: of the lines.
        target: a file, replaced whole; or an open stream.
        everything: also rows that ended before they were done.
    """
    left_out: Counter[str] = Counter()
    seen: set[str] = set()
    """Kept rows: an earlier failure of theirs may still stand in its file."""
    if isinstance(target, Path):
        with replacing(target) as stream:
            written = _write(folder, form, stream, left_out, seen, everything=everything)
    else:
        written = _write(folder, form, target, left_out, seen, everything=everything)
    others = {identity(record): f"failed: {record.get('error_kind')}" for _line, record in _lines(folder.failed)}
    for _line, record in _lines(folder.rejected):
        others[identity(record)] = f"rejected: {record.get('reject_reason')}"
    left_out.update(reason for row, reason in others.items() if row not in seen)
    return Exported(written, dict(left_out))


def _write(
    folder: RunFolder, form: Form, stream: BinaryIO, left_out: Counter[str], seen: set[str], *, everything: bool
) -> int:
    written = 0
    for line, record in kept_rows(folder):
        seen.add(identity(record))
        if everything or record.get("completed"):
            stream.write(form(record, line))
            written += 1
        else:
            left_out[f"not completed: {record.get('stop_reason')}"] += 1
    return written


def kept_rows(folder: RunFolder) -> Iterator[tuple[bytes, Record]]:
    """The kept rows with their lines: as merged, then what was written since."""
    seen: set[str] = set()
    batches: Iterable[Path] = (folder.batch(number) for number in folder.batches())
    for path in (folder.trajectories, *batches):
        for line, record in _lines(path):
            row = identity(record)
            if row not in seen and (path == folder.trajectories or _newer(path, folder)):
                seen.add(row)
                yield line, record


def _newer(path: Path, folder: RunFolder) -> bool:
    """Whether a batch may hold rows that are not merged: rows taken out of the dataset stay in theirs."""
    merged = folder.trajectories
    return not merged.exists() or path.stat().st_mtime_ns > merged.stat().st_mtime_ns


def _lines(path: Path) -> Iterator[tuple[bytes, Record]]:
    """The whole lines of a file that may be being written."""
    if not path.exists():
        return
    with path.open("rb") as stream:
        for line in stream:
            if line.endswith(b"\n"):
                try:
                    yield line, json.loads(line)
                except ValueError:
                    continue
