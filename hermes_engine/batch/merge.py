"""Makes the whole files out of the row files: `trajectories.jsonl` in the dataset's order, `failed.jsonl` of what is
failed now. By offsets: no text of more than one row is in memory.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO

from hermes_engine.batch.dataset import Place
from hermes_engine.batch.files import replacing
from hermes_engine.batch.folder import RunFolder
from hermes_engine.batch.job import Record
from hermes_engine.batch.ledger import Ledger, Spot
from hermes_engine.batch.trajectory import line_of
from hermes_engine.errors import StateError

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


Carried = Callable[[Place], str]
"""What the present line of a row carries beside its own keys, as JSON text without secrets."""


def merged_lines(folder: RunFolder, ledger: Ledger, places: Mapping[str, Place], carried: Carried) -> Iterator[bytes]:
    """Every kept row's line, by place in the dataset and then sample, each with the same set of tools.

    Args:
        folder: of the run.
        ledger: where the lines are.
        places: identity → where the row stands in the present dataset.
        carried: asked for a row whose line carries something else than its record.
    """
    tools = ledger.tools()
    whole = ledger.shapes.get(tools, -1)
    order = sorted((places[row].index, int(row.rpartition("/")[2]), row) for row in ledger.kept)
    sources = _Sources(folder)
    with contextlib.closing(sources):
        for index, _sample, row in order:
            place, spot = places[row], ledger.kept[row]
            line = sources.read(spot)
            if (spot.place, spot.shape, spot.extra) == (index, whole, place.extra):
                yield line
                continue
            record = _fitted(json.loads(line), index, tools)
            if spot.extra != place.extra:
                with contextlib.suppress(StateError):  # the dataset is being changed: the record says what it was
                    record["metadata"]["extra"] = carried(place)
            yield line_of(record)


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


def merge(folder: RunFolder, ledger: Ledger, places: Mapping[str, Place], carried: Carried) -> None:
    """Writes `trajectories.jsonl` whole."""
    with replacing(folder.trajectories) as target:
        target.writelines(merged_lines(folder, ledger, places, carried))


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
