"""The samples of a prompt as one scored group: what a trainer that compares answers wants, or single ones.

Which rows belong to a group is settled here, what a group looks like by its form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hermes_engine.batch.export.atropos import Atropos, Told
from hermes_engine.batch.export.kept import kept_by_prompt
from hermes_engine.batch.export.turns import Unfit
from hermes_engine.batch.folder import RunFolder
from hermes_engine.batch.job import Record
from hermes_engine.batch.ledger import identity
from hermes_engine.batch.rewards import NoScore, Reward, scored

NO_SCORE = "no score"
"""Why rows are left out for which the reward failed."""

NAMED = 20
"""So many rows without a score are named."""


@dataclass(slots=True)
class Groups:
    """Makes the groups of a run.

    Attributes:
        form: of a group.
        reward: gives a row its score; without one, 1 when it is completed and 0 when not.
        everything: also rows that ended before they were done, where a prompt has one sample. Where it has several
            they are always there: with the score of a failure they are what the others are compared to.
        tell: hears which rows got no score and why.
        left_out: rows left out, by reason.
        seen: every kept row of the run.
        short: groups that lack a sample.
        level: groups of several whose scores are all equal.
    """

    form: Atropos
    reward: Reward | None = None
    everything: bool = False
    tell: Callable[[str], None] = lambda text: None
    left_out: Counter[str] = field(default_factory=Counter)
    seen: set[str] = field(default_factory=set)
    short: int = 0
    level: int = 0
    _unscored: int = 0

    def of(self, folder: RunFolder) -> Iterator[dict[str, Any]]:
        """Each group that has a row."""
        size = samples_of(folder)
        for records in kept_by_prompt(folder):
            told = [item for record in records if (item := self._row(record, size)) is not None]
            if not told:
                continue
            scores = [score for _, score in told]
            self.short += len(told) < size
            self.level += size > 1 and len(set(scores)) == 1
            yield self.form.group([row for row, _ in told], scores, imitate=size == 1)

    def notes(self) -> Iterator[str]:
        """What a person should know about the groups made."""
        if self.short:
            yield f"{self.short} groups lack a sample: it was rejected, failed, or is left out here"
        yield from self.form.notes()
        if self.level:
            yield f"{self.level} groups have equal scores: a trainer that compares samples learns nothing from them"

    def _row(self, record: Record, size: int) -> tuple[Told, float] | None:
        self.seen.add(identity(record))
        if not (self.everything or size > 1 or record.get("completed")):
            self.left_out[f"not completed: {record.get('stop_reason')}"] += 1
            return None
        try:
            told = self.form.told(record)
            return told, scored(self.reward, record)
        except Unfit as reason:
            self.left_out[f"not told in this form: {reason}"] += 1
        except NoScore as reason:
            self.left_out[NO_SCORE] += 1
            self._unscored += 1
            if self._unscored <= NAMED:
                self.tell(f"row {record['prompt_index']}, sample {record['sample']} has no score: {reason}")
        return None


def samples_of(folder: RunFolder) -> int:
    """How many samples of a prompt the run takes."""
    number = folder.settings().get("options", {}).get("num_generations", 1)
    return number if isinstance(number, int) and number > 0 else 1
