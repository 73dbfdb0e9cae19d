"""The difference between two texts as a person reads it, at a cost that follows the change, not the file."""

from __future__ import annotations

import difflib
import itertools
from dataclasses import dataclass

_MOST_LINES = 1500
_AROUND = 3


@dataclass(frozen=True, slots=True)
class Difference:
    """`text` is a unified diff, or "" where it would be too long; lines added and removed; first changed line."""

    text: str
    added: int
    removed: int
    line: int

    @property
    def summary(self) -> str:
        """`+2 −1`."""
        return f"+{self.added} −{self.removed}"


def difference(old: str, new: str) -> Difference:
    """Compares two texts line by line."""
    before, after = old.splitlines(), new.splitlines()
    same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
    room = min(len(before), len(after)) - same
    tail = sum(
        1
        for _ in itertools.takewhile(
            lambda pair: pair[0] == pair[1],
            zip(itertools.islice(reversed(before), room), itertools.islice(reversed(after), room), strict=True),
        )
    )
    first, stop_before, stop_after = max(0, same - _AROUND), len(before) - tail, len(after) - tail
    changed_before, changed_after = before[same:stop_before], after[same:stop_after]
    if max(len(changed_before), len(changed_after)) > _MOST_LINES:
        return Difference("", len(changed_after), len(changed_before), same + 1)
    around_before = before[first : stop_before + _AROUND]
    around_after = after[first : stop_after + _AROUND]
    lines = list(difflib.unified_diff(around_before, around_after, lineterm="", n=_AROUND))[2:]
    lines = [_shifted(line, first) if line.startswith("@@") else line for line in lines]
    added = sum(1 for line in lines if line.startswith("+"))
    removed = sum(1 for line in lines if line.startswith("-"))
    return Difference("\n".join(lines), added, removed, same + 1)


def _shifted(header: str, by: int) -> str:
    """`@@ -1,4 +1,5 @@` counted from the beginning of the whole text."""
    parts = header.split(" ")
    for place in (1, 2):
        sign, (start, comma, count) = parts[place][0], parts[place][1:].partition(",")
        parts[place] = f"{sign}{int(start) + by}{comma}{count}"
    return " ".join(parts)
