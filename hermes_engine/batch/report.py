"""`hermes batch report`: reads a run's files once and says what its page is to show. Changes nothing of the run."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hermes_engine.batch.export.kept import settled_rows
from hermes_engine.batch.folder import RunFolder
from hermes_engine.batch.job import Record
from hermes_engine.batch.overview import RunState, run_state
from hermes_engine.batch.quality import turns_in
from hermes_engine.batch.targets import writing

EMBEDDED = 500
"""Rows whose conversations stand in the page."""

OTHERS = 100
"""At most so many rejected and so many failed ones among them, where kept rows would fill the page."""


@dataclass(slots=True)
class Told:
    """What the page shows.

    Attributes:
        run: how it stands.
        rows: outcome and record of each row whose conversation is shown, in the dataset's order.
        found: rows of each outcome in the files.
        turns: how many kept and rejected rows have so many turns of the model.
    """

    run: RunState
    rows: list[tuple[str, Record]] = field(default_factory=list)
    found: Counter[str] = field(default_factory=Counter)
    turns: Counter[int] = field(default_factory=Counter)


def gather(folder: RunFolder) -> Told:
    """What there is to show of a run, also while it works."""
    told = Told(run_state(folder))
    chosen: dict[str, list[Record]] = {}
    for outcome, record in settled_rows(folder):
        told.found[outcome] += 1
        if outcome != "failed":
            told.turns[turns_in(record)] += 1
        some = chosen.setdefault(outcome, [])
        if len(some) < EMBEDDED:
            some.append(record)
    failed, rejected = (chosen.get(name, [])[:OTHERS] for name in ("failed", "rejected"))
    kept = chosen.get("kept", [])[: EMBEDDED - len(failed) - len(rejected)]
    rest = EMBEDDED - len(kept) - len(failed)
    rejected = chosen.get("rejected", [])[:rest]
    failed = chosen.get("failed", [])[: EMBEDDED - len(kept) - len(rejected)]
    told.rows = sorted(
        itertools.chain(*(zip(itertools.repeat(name), rows) for name, rows in _named(kept, rejected, failed))),
        key=lambda item: (item[1].get("prompt_index", 0), item[1].get("sample", 0)),
    )
    return told


def _named(kept: list[Record], rejected: list[Record], failed: list[Record]) -> Iterator[tuple[str, list[Record]]]:
    yield from (("kept", kept), ("rejected", rejected), ("failed", failed))


def write_report(folder: RunFolder, target: Path) -> Told:
    """Writes the page of a run, whole or not at all. Raises StateError."""
    from hermes_engine.batch.report_page import page

    told = gather(folder)
    with writing(target, folder) as stream:
        stream.write(page(told).encode("utf-8", "replace"))
    return told
