"""What is to be done: the dataset set against what the run's files already hold. Reads both, writes nothing new."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from hermes_engine.batch.dataset import Dataset, Invalid, Place
from hermes_engine.batch.folder import RunFolder
from hermes_engine.batch.job import ident
from hermes_engine.batch.ledger import Ledger, read_ledger
from hermes_engine.batch.options import BatchOptions
from hermes_engine.batch.schedule import Task


@dataclass(frozen=True, slots=True)
class Plan:
    """The work of one invocation.

    Attributes:
        places: identity of every row → where it stands in the dataset.
        invalid: lines that are no row.
        tasks: rows to be worked, in order.
        ledger: what is settled.
        digest: SHA-256 of the dataset.
        dataset: its path.
    """

    places: dict[str, Place]
    invalid: tuple[Invalid, ...]
    tasks: tuple[Task, ...]
    ledger: Ledger
    digest: str
    dataset: Path

    @property
    def total(self) -> int:
        """Rows and invalid lines."""
        return len(self.places) + len(self.invalid)

    @property
    def rows_of_batch(self) -> Counter[int]:
        """How many rows each batch of this invocation has."""
        return Counter(task.batch for task in self.tasks)


def make_plan(dataset: Dataset, folder: RunFolder, options: BatchOptions) -> Plan:
    """Reads the dataset and the run's files. Finished, rejected and invalid rows are not worked again."""
    found: list[Place] = []
    invalid: list[Invalid] = []
    for item in dataset.scan(options.max_samples):
        if isinstance(item, Invalid):
            invalid.append(item)
        else:
            found.append(item)
    places = {ident(place.key, 0): place for place in found}
    ledger = read_ledger(folder, places)
    first = max([ledger.last_batch, *folder.batches()]) + 1
    tasks: list[Task] = []
    for place in found:
        row = ident(place.key, 0)
        if ledger.settled(row) or (options.only_failed and row not in ledger.failed):
            continue
        tasks.append(Task(place, 0, first + len(tasks) // options.batch_size))
    return Plan(places, tuple(invalid), tuple(tasks), ledger, dataset.digest, dataset.path)
