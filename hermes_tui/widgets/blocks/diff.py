"""Changed lines as a person reads them: numbered, a sign each, hunks apart. Takes unified diffs and the like."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from rich.style import Style

from hermes_tui.widgets.look import Look

Kind = Literal["added", "removed", "same", "gap"]

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_OWN_NUMBERS = re.compile(r"\s*\d+ ?([+\-−])")


def diff_lines(lines: Iterable[str], look: Look) -> Iterator[tuple[str, Kind]]:
    """Each line with its number and sign. Lines before the first hunk are taken as they are."""
    minus = look.glyphs.minus
    old = new = 0
    for line in lines:
        hunk = _HUNK.match(line)
        if hunk:
            if old:
                yield f"     {look.glyphs.ellipsis}", "gap"
            old, new = int(hunk[1]) or 1, int(hunk[2]) or 1
        elif not old:
            yield line, _kind_of(line)
        elif line.startswith("+"):
            yield f"{new:>4} + {line[1:]}", "added"
            new += 1
        elif line.startswith("-"):
            yield f"{old:>4} {minus} {line[1:]}", "removed"
            old += 1
        else:
            yield f"{new:>4}   {line[1:]}", "same"
            old, new = old + 1, new + 1


def _kind_of(line: str) -> Kind:
    own = _OWN_NUMBERS.match(line)
    sign = own[1] if own else line[:1]
    return "added" if sign == "+" else "removed" if sign in ("-", "−") else "same"


def diff_style(kind: Kind, look: Look) -> Style:
    """The style of a line."""
    return {"added": look.added, "removed": look.removed}.get(kind, look.faint)
