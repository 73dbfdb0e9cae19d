"""The chosen filters over a run's files: what they would drop of rows it kept, and what those mean to new ones.

The files stay as they are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hermes_engine.batch.export.kept import kept_rows
from hermes_engine.batch.folder import RunFolder
from hermes_engine.batch.job import Record
from hermes_engine.batch.ledger import identity
from hermes_engine.batch.quality import Quality
from hermes_engine.batch.targets import writing
from hermes_engine.cleaning import one_line

EXAMPLES = 3
_PROMPT_SHOWN = 80


@dataclass(slots=True)
class Dropped:
    """What one filter would drop, were it the only one.

    Attributes:
        wanted: the filter, as given.
        examples: some of the rows: prompt_index, sample, prompt, detail.
    """

    wanted: str
    rows: int = 0
    examples: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Preview:
    """What a set of filters would do: rows that the run kept, rows that all filters together would."""

    rows: int
    kept: int
    dropped: list[Dropped]

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        filters = [{"filter": one.wanted, "dropped": one.rows, "examples": one.examples} for one in self.dropped]
        return {"rows": self.rows, "kept": self.kept, "filters": filters}


def preview(folder: RunFolder, wanted: Sequence[str], target: Path | None = None) -> Preview:
    """Applies filters to the kept rows of a run, each alone and all together.

    Args:
        folder: of the run.
        wanted: filters, see `quality`.
        target: file for the rows that all of them keep; replaced whole.

    Raises:
        UsageError: a filter is wrong.
        StateError: the file cannot be written.
    """
    alone = [(Dropped(one), Quality([one])) for one in wanted]
    together = Quality(wanted)
    told = Preview(0, 0, [dropped for dropped, _ in alone])
    with contextlib.ExitStack() as stack:
        stream = stack.enter_context(writing(target, folder)) if target else None
        for _path, _offset, line, record in kept_rows(folder):
            told.rows += 1
            for dropped, quality in alone:
                if reason := quality.against(record):
                    _note(dropped, record, reason[1])
            if together.against(record) is None:
                told.kept += 1
                if stream:
                    stream.write(line)
    return told


def quality_of_run(folder: RunFolder, wanted: Sequence[str], kept: Container[str]) -> Quality:
    """The filters for the next rows of a run; those rows (`kept`) that it has kept count where that matters.

    Raises:
        UsageError: a filter is wrong.
    """
    quality = Quality(wanted)
    if quality.remembers:
        for row in kept_rows(folder):
            if identity(row.record) in kept:
                quality.remember(row.record)
    return quality


def _note(dropped: Dropped, record: Record, detail: str) -> None:
    dropped.rows += 1
    if len(dropped.examples) < EXAMPLES:
        prompt = next((turn["value"] for turn in record["conversations"] if turn["from"] == "human"), "")
        dropped.examples.append(
            {
                "prompt_index": record["prompt_index"],
                "sample": record["sample"],
                "prompt": one_line(prompt, _PROMPT_SHOWN),
                "detail": detail,
            }
        )
