"""Small bar charts of text for a terminal. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_tui.cleaning import one_line

CELLS = 30
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def bar(share: float, *, cells: int = CELLS, plain: bool = False) -> str:
    """A bar that fills `share` (0 to 1) of its cells, to an eighth of a cell; whole signs where `plain`."""
    share = min(max(share, 0.0), 1.0)
    if plain:
        return "#" * round(share * cells)
    eighths = round(share * cells * 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def pairs(rows: Sequence[tuple[str, float, float]], names: tuple[str, str], *, plain: bool = False) -> list[str]:
    """Lines that set two shares of each row one below the other.

    Args:
        rows: a name and its two shares, 0 to 1.
        names: of the two.
        plain: for a terminal without block characters.
    """
    wide = max((len(one_line(name)) for name, _, _ in rows), default=0)
    both = max(map(len, names))
    lines: list[str] = []
    for name, *shares in rows:
        for head, what, share in zip((one_line(name), ""), names, shares, strict=True):
            drawn = bar(share, plain=plain)
            lines.append(f"  {head:<{wide}}  {what:<{both}}  {drawn:<{CELLS}}  {share:6.1%}")
    return lines
