"""The one owner of a run's files while it is worked: a line per settled row, then the index files over them.

Each method leaves the files true: what it returned from is written, what it did not is not there. Runs on the run's
loop; only forcing to the disk goes to a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hermes_engine.batch.dataset import Place
from hermes_engine.batch.files import Appender, sync_folder
from hermes_engine.batch.folder import RunFolder, write_object
from hermes_engine.batch.job import Record
from hermes_engine.batch.ledger import Ledger, Spot, extra_of, identity
from hermes_engine.batch.merge import Carried, compact_failed, merge
from hermes_engine.batch.options import Fsync
from hermes_engine.batch.trajectory import line_of

Figures = Callable[[], Mapping[str, Any]]


def now() -> str:
    """The time as the files have it: UTC, ISO 8601, with milliseconds.

    Without a fraction, Arrow's reader of JSON would turn it from text into a timestamp.
    """
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Writer:
    """Appends rows and keeps `checkpoint.json` and `statistics.json` up.

    Args:
        folder: of the run; held by this process.
        ledger: kept up here.
        fsync: when lines are forced to the disk.
        rows_of_batch: how many rows each batch of this invocation has; a batch is closed after its last one.
        checkpoint, statistics: make the content of those files.
    """

    def __init__(
        self,
        folder: RunFolder,
        ledger: Ledger,
        *,
        fsync: Fsync,
        rows_of_batch: Mapping[int, int],
        checkpoint: Figures,
        statistics: Figures,
    ) -> None:
        self.folder, self.ledger = folder, ledger
        self._fsync = fsync
        self._left = dict(rows_of_batch)
        self._checkpoint, self._statistics = checkpoint, statistics
        self._rejected = Appender(folder.rejected)
        self._failed = Appender(folder.failed)
        self._batches: dict[int, Appender] = {}
        self._unsynced: set[Appender] = set()
        self._closed_unsynced: list[int] = []
        numbers = folder.batches()
        self._batch_files = len(numbers)
        self._batch_bytes = sum(folder.batch(number).stat().st_size for number in numbers)
        self._new_files = True
        self._dirty = True
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="hermes-batch-disk")

    async def keep(self, record: Record, batch: int) -> None:
        """Adds a row to its batch's file."""
        file = self._batches.get(batch)
        if file is None:
            file = self._batches[batch] = Appender(self.folder.batch(batch))
            self._new_files = True
            self._batch_files += 1
        line = line_of(record)
        offset = file.append(line)
        shape = self.ledger.shape(tuple(record["tool_stats"]))
        spot = Spot(batch, offset, len(line), record["prompt_index"], shape, extra_of(record))
        self._batch_bytes += len(line)
        self.ledger.keep(identity(record), spot, record)
        await self._written(file)

    async def reject(self, record: Record) -> None:
        """Adds a row a filter turned away."""
        self._rejected.append(line_of(record))
        self.ledger.reject(identity(record), record)
        await self._written(self._rejected)

    async def fail(self, record: Record) -> None:
        """Adds a row that failed; its earlier failure no longer counts."""
        line = line_of(record)
        offset = self._failed.append(line)
        self.ledger.fail(identity(record), offset, len(line), record)
        await self._written(self._failed)

    def expect(self, batch: int) -> None:
        """One row more comes to this batch."""
        self._left[batch] = self._left.get(batch, 0) + 1

    @property
    def next_batch(self) -> int:
        """The first number that no batch of this invocation has."""
        return max(self._left, default=-1) + 1

    def touch(self) -> None:
        """Something that only the index files tell has changed."""
        self._dirty = True

    async def _written(self, file: Appender) -> None:
        self._dirty = True
        self._unsynced.add(file)
        if self._fsync == "row":
            await asyncio.shield(self._on_disk(self._sync))

    def leave_batch(self, batch: int) -> None:
        """A row of this batch is done with, whatever became of it; after the last one its file is closed."""
        self._left[batch] -= 1
        if self._left[batch] or batch not in self._batches:
            return
        file = self._batches.pop(batch)
        sync = self._fsync != "end" and file in self._unsynced
        self._unsynced.discard(file)
        if self._fsync == "end":
            self._closed_unsynced.append(batch)
        self._disk.submit(_close, file, sync=sync)

    async def tick(self) -> None:
        """Once a second: forces lines to the disk and renews the index files, where something is new."""
        if not self._dirty:
            return
        self._dirty = False
        contents = self._with_lengths(self._checkpoint()), self._statistics()
        await asyncio.shield(self._on_disk(lambda: self._index(*contents, sync=False)))
        if self._fsync == "second":
            await asyncio.shield(self._on_disk(self._sync))

    def _index(self, checkpoint: Mapping[str, Any], statistics: Mapping[str, Any], *, sync: bool) -> None:
        write_object(self.folder.checkpoint, checkpoint, sync=sync)
        write_object(self.folder.statistics, statistics, sync=sync)

    def _sync(self) -> None:
        files = set(self._unsynced)
        self._unsynced -= files
        for file in files:
            file.sync()
        if self._new_files:
            self._new_files = False
            sync_folder(self.folder.root)

    def _on_disk(self, work: Callable[[], None]) -> asyncio.Future[None]:
        return asyncio.get_running_loop().run_in_executor(self._disk, work)

    def _with_lengths(self, checkpoint: Mapping[str, Any]) -> dict[str, Any]:
        """The checkpoint with the length in bytes of each file; those of closed batches in one sum."""
        return {
            **checkpoint,
            "files": {
                "trajectories.jsonl": _size(self.folder.trajectories),
                "rejected.jsonl": self._rejected.length,
                "failed.jsonl": self._failed.length,
                "batches": {
                    "files": self._batch_files,
                    "bytes": self._batch_bytes,
                    "open": {file.path.name: file.length for file in self._batches.values()},
                },
            },
        }

    def finish(self, places: Mapping[str, Place], carried: Carried) -> None:
        """Closes the files and merges. Blocking. Raises StateError; what is written stays."""
        self._disk.shutdown(wait=True)
        again = (Appender(self.folder.batch(number)) for number in self._closed_unsynced)
        for file in (*self._batches.values(), self._rejected, self._failed, *again):
            _close(file, sync=True)
        self._batches.clear()
        compact_failed(self.folder, self.ledger)
        self._failed.length = _size(self.folder.failed)
        merge(self.folder, self.ledger, places, carried)

    def write_index(self, *, sync: bool = True) -> None:
        """The last word of an invocation: the index files as they now are. Blocking. Raises StateError."""
        self._disk.shutdown(wait=True)
        self._index(self._with_lengths(self._checkpoint()), self._statistics(), sync=sync)
        if sync:
            sync_folder(self.folder.root)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _close(file: Appender, *, sync: bool) -> None:
    if sync:
        file.sync()
    file.close()
