"""A figure beside what it is held against, and the table of them. Knows nothing of how one is measured."""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table.

    Attributes:
        case: which case it belongs to.
        what: what was measured.
        value: in `unit`; None where it cannot be measured on this machine, and `note` says why.
        unit: "ms", "MB", "×", "modules", …
        target: most that `value` may be; None where it only informs.
        note: what it stands beside: spread, number of runs, conditions.
    """

    case: str
    what: str
    value: float | None
    unit: str
    target: float | None = None
    note: str = ""

    @property
    def reached(self) -> bool | None:
        """Whether the target is met; None where there is none, or no value."""
        return None if self.target is None or self.value is None else self.value <= self.target


def median(values: Iterable[float]) -> float:
    """The middle one."""
    return statistics.median(values)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (0-1) of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


def spread(values: Sequence[float], unit: str = "") -> str:
    """Smallest and largest, for a note."""
    return f"{min(values):.3g}–{max(values):.3g}{unit} in {len(values)} runs"


def table(figures: Sequence[Figure]) -> str:
    """The figures as aligned lines of text."""
    rows = [("case", "what", "value", "target", "", "note")]
    for figure in figures:
        target = "" if figure.target is None else f"≤ {_number(figure.target)} {figure.unit}"
        value = "not measured" if figure.value is None else f"{_number(figure.value)} {figure.unit}"
        mark = {None: "", True: "ok", False: "MISSED"}[figure.reached]
        rows.append((figure.case, figure.what, value, target, mark, figure.note))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if at == 2 else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=False))
        ]
        lines.append("  ".join([*cells, row[5]]).rstrip())
    lines.insert(1, "─" * max(map(len, lines)))
    return "\n".join(lines)


def as_json(figures: Sequence[Figure]) -> str:
    """The figures as a JSON array, `reached` beside the fields."""
    return json.dumps([{**dataclasses.asdict(figure), "reached": figure.reached} for figure in figures], indent=1)


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
