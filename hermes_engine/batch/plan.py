"""What is to be done: the dataset set against what the run's files already hold. Reads both, writes nothing new."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from hermes_engine.batch.dataset import Dataset, Invalid, Place
from hermes_engine.batch.floor import RowName
from hermes_engine.batch.folder import RunFolder
from hermes_engine.batch.job import ident
from hermes_engine.batch.ledger import Ledger, read_ledger
from hermes_engine.batch.options import BatchOptions
from hermes_engine.batch.schedule import Task
from hermes_engine.errors import Interrupted

STOP_EVERY = 1000
"""After so many lines it is asked whether to stop."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The work of one invocation.

    Attributes:
        places: identity of every row, each sample of a prompt one → where its prompt stands in the dataset.
        invalid: lines that are no row.
        tasks: rows to be worked, in order.
        ledger: what is settled.
        digest: SHA-256 of the dataset.
        dataset: its path.
        lines: of the dataset that are not blank; in a run of one shard those of all shards.
    """

    places: dict[str, Place]
    invalid: tuple[Invalid, ...]
    tasks: tuple[Task, ...]
    ledger: Ledger
    digest: str
    dataset: Path
    lines: int

    @property
    def total(self) -> int:
        """Rows, each sample of a prompt one, and invalid lines."""
        return len(self.places) + len(self.invalid)

    @property
    def rows_of_batch(self) -> Counter[int]:
        """How many rows each batch of this invocation has."""
        return Counter(task.batch for task in self.tasks)


def make_plan(
    dataset: Dataset,
    folder: RunFolder,
    options: BatchOptions,
    *,
    only: Collection[RowName] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Plan:
    """Reads the dataset and the run's files. Finished, rejected and invalid rows are not worked again.

    Args:
        dataset: of the run; open.
        folder: of the run; held.
        options: in effect.
        only: rows to be worked, by name; None for all.
        stopped: asked now and then: millions of lines take a while.

    Raises:
        Interrupted: the person asked to stop meanwhile.
        StateError: a file cannot be read.
    """
    found: list[Place] = []
    invalid: list[Invalid] = []
    (part, parts), number = options.part, 0
    for number, item in enumerate(dataset.scan(options.max_samples), 1):
        if number % STOP_EVERY == 0 and stopped():
            raise Interrupted("stopped while the dataset was read; no row was begun")
        if (number - 1) % parts != part:
            continue
        if isinstance(item, Invalid):
            invalid.append(item)
        else:
            found.append(item)
    samples = range(options.num_generations)
    places = {ident(place.key, sample): place for place in found for sample in samples}
    ledger = read_ledger(folder, places, stopped=stopped)
    first = max([ledger.last_batch, *folder.batches()]) + 1
    tasks: list[Task] = []
    for place, sample in itertools.product(found, samples):
        row = ident(place.key, sample)
        if ledger.settled(row) or (options.only_failed and row not in ledger.failed):
            continue
        if only is not None and (place.index, sample) not in only:
            continue
        tasks.append(Task(place, sample, first + len(tasks) // options.batch_size))
    return Plan(places, tuple(invalid), tuple(tasks), ledger, dataset.digest, dataset.path, number)
