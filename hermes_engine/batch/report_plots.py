"""Plots of a report as inline SVG: bars with their numbers beside them, and histograms. Knows no run.

Colours are classes, which the page's style fills in for light and dark.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from hermes_engine.cleaning import one_line

WIDTH = 460
_LABEL = 150
_LINE = 22
_TALL = 130
_NAME_SHOWN = 24


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar.

    Attributes:
        name: in front of it.
        parts: class and length of each part, one behind the other.
        told: behind it.
    """

    name: str
    parts: Sequence[tuple[str, float]]
    told: str


def bars(rows: Sequence[Bar], *, longest: float | None = None) -> str:
    """Horizontal bars, one below the other; `longest` fills the width, by default the longest of them."""
    most = longest or max((sum(size for _, size in row.parts) for row in rows), default=0) or 1
    room = WIDTH - _LABEL - 110
    drawn: list[str] = []
    for number, row in enumerate(rows):
        top = number * _LINE
        name = html.escape(one_line(row.name, _NAME_SHOWN))
        drawn.append(f'<text class="name" x="{_LABEL - 8}" y="{top + 15}">{name}</text>')
        start = float(_LABEL)
        for kind, size in row.parts:
            wide = room * min(size / most, 1)
            drawn.append(f'<rect class="{kind}" x="{start:.1f}" y="{top + 4}" width="{wide:.1f}" height="14"/>')
            start += wide
        drawn.append(f'<text x="{start + 6:.1f}" y="{top + 15}">{html.escape(row.told)}</text>')
    return _svg(len(rows) * _LINE + 2, drawn)


def histogram(columns: Sequence[tuple[str, int]]) -> str:
    """Columns with their number above and their name below."""
    most = max((number for _, number in columns), default=0) or 1
    wide = min(60.0, WIDTH / max(1, len(columns)))
    drawn: list[str] = []
    for place, (name, number) in enumerate(columns):
        tall = _TALL * number / most
        middle = (place + 0.5) * wide
        drawn.append(
            f'<rect class="plain" x="{place * wide + 2:.1f}" y="{16 + _TALL - tall:.1f}" width="{wide - 4:.1f}" '
            f'height="{tall:.1f}"/>'
        )
        if number:
            drawn.append(f'<text class="mid" x="{middle:.1f}" y="{12 + _TALL - tall:.1f}">{number}</text>')
        drawn.append(f'<text class="mid" x="{middle:.1f}" y="{_TALL + 32}">{html.escape(name)}</text>')
    return _svg(_TALL + 38, drawn)


def _svg(tall: int, drawn: Sequence[str]) -> str:
    return f'<svg role="img" viewBox="0 0 {WIDTH} {tall}" width="{WIDTH}" height="{tall}">{"".join(drawn)}</svg>'
