"""Makes the whole files out of the row files: `trajectories.jsonl` in the dataset's order, `failed.jsonl` of what is
failed now. By offsets: no text of more than one row is in memory.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from hermes_engine.batch.files import replacing
from hermes_engine.batch.folder import RunFolder
from hermes_engine.batch.job import Record
from hermes_engine.batch.ledger import Ledger, Spot
from hermes_engine.batch.trajectory import line_of

_OPEN_AT_ONCE = 64


class _Sources:
    """Batch files open for reading, a bounded number."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._open: dict[int, BinaryIO] = {}

    def read(self, spot: Spot) -> bytes:
        """The line at a spot."""
        stream = self._open.get(spot.batch)
        if stream is None:
            if len(self._open) >= _OPEN_AT_ONCE:
                self._open.pop(next(iter(self._open))).close()
            stream = self._open[spot.batch] = self._folder.batch(spot.batch).open("rb")
        stream.seek(spot.offset)
        return stream.read(spot.length)

    def close(self) -> None:
        """Closes what is open."""
        for stream in self._open.values():
            stream.close()


def merged_lines(folder: RunFolder, ledger: Ledger, places: Mapping[str, int]) -> Iterator[bytes]:
    """Every kept row's line, by place in the dataset and then sample, each with the same set of tools.

    Args:
        folder: of the run.
        ledger: where the lines are.
        places: identity → place in the present dataset.
    """
    tools = ledger.tools()
    whole = ledger.shapes.get(tools, -1)
    order = sorted((places[row], int(row.rpartition("/")[2]), spot) for row, spot in ledger.kept.items())
    sources = _Sources(folder)
    with contextlib.closing(sources):
        for place, _sample, spot in order:
            line = sources.read(spot)
            if spot.place == place and spot.shape == whole:
                yield line
            else:
                yield line_of(_fitted(json.loads(line), place, tools))


def _fitted(record: Record, place: int, tools: tuple[str, ...]) -> Record:
    """The record with its present place and counters for all tools."""
    zero = {"count": 0, "success": 0, "failure": 0}
    stats, errors = record.get("tool_stats", {}), record.get("tool_error_counts", {})
    return {
        **record,
        "prompt_index": place,
        "tool_stats": {name: stats.get(name, zero) for name in tools},
        "tool_error_counts": {name: errors.get(name, 0) for name in tools},
    }


def merge(folder: RunFolder, ledger: Ledger, places: Mapping[str, int]) -> None:
    """Writes `trajectories.jsonl` whole."""
    with replacing(folder.trajectories) as target:
        target.writelines(merged_lines(folder, ledger, places))


def compact_failed(folder: RunFolder, ledger: Ledger) -> None:
    """Writes `failed.jsonl` anew where it holds lines of rows that are not failed now."""
    if not ledger.stale:
        return
    moved = {}
    with folder.failed.open("rb") as source, replacing(folder.failed) as target:
        for row, failure in sorted(ledger.failed.items(), key=lambda item: item[1].offset):
            source.seek(failure.offset)
            moved[row] = failure._replace(offset=target.tell())
            target.write(source.read(failure.length))
    ledger.failed.update(moved)
    ledger.stale = False
