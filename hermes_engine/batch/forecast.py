"""Says once, early in a large run, what the rest of it will cost: from what its first rows used. Knows no file."""

from __future__ import annotations

from collections.abc import Callable

from hermes_engine.batch.dataset import Dataset
from hermes_engine.batch.plan import Plan
from hermes_engine.messages import NO_USAGE, Usage

LARGE = 500
"""Rows to be worked from which on it is said."""

FIRST = 20
"""So many rows are enough to say it."""

SAMPLED = 200
"""Prompts of the dataset that are looked at."""

UNLIKE = 1.5
"""The first prompts are said to be unlike the others when they are so many times as long, or as short."""


class Forecast:
    """See the module's docstring.

    Args:
        rows: to be worked.
        length: of a prompt, in characters, on average over the rows to be worked.
        tell: shows a line, with its level.
    """

    def __init__(self, rows: int, length: float, tell: Callable[[str, str], None]) -> None:
        self._rows, self._length, self._tell = rows, length, tell
        self._seen = self._characters = 0
        self._usage: Usage = NO_USAGE

    def note(self, prompt: str, usage: Usage) -> None:
        """A row ended, and used this."""
        if self._rows < LARGE or self._seen >= FIRST:
            return
        self._seen += 1
        self._characters += len(prompt)
        self._usage += usage
        if self._seen == FIRST and self._usage.cost_known and self._usage.cost_usd:
            self._tell("info", self._line())

    def _line(self) -> str:
        left = self._rows - self._seen
        cost, tokens = (whole / self._seen * left for whole in (self._usage.cost_usd, self._usage.total_tokens))
        line = f"the {left:,} rows to come: about ${cost:,.2f} and {tokens:,.0f} tokens, by the first {self._seen}"
        first = self._characters / self._seen
        ratio = self._length / first if first else 1.0
        if ratio >= UNLIKE or ratio <= 1 / UNLIKE:
            line += f"; but their prompts are {ratio:.1f} times as long"
        return line


def forecast_of(plan: Plan, dataset: Dataset, tell: Callable[[str, str], None]) -> Forecast:
    """For the rows of a plan, of which a sample, spread over all, is looked at."""
    rows = len(plan.tasks)
    if rows < LARGE:
        return Forecast(rows, 0.0, tell)
    some = plan.tasks[:: max(1, rows // SAMPLED)]
    return Forecast(rows, sum(len(dataset.row(task.place).prompt) for task in some) / len(some), tell)
