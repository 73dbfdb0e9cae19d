"""Which calls fail, in which way, and what must become of each row: drawn from what is asked, so known beforehand.

A call is named by its prompt and by how many answers stood before it. Knows no socket, no file and no engine.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

Way = Literal[
    "",
    "429 with Retry-After",
    "429 without",
    "500",
    "drop",
    "hang",
    "error in stream",
    "truncated arguments",
    "invented tool",
    "no reasoning",
]

ERROR_KINDS: dict[Way, str] = {
    "429 with Retry-After": "rate_limit",
    "429 without": "rate_limit",
    "500": "server_error",
    "drop": "stream_broken",
    "hang": "stream_stalled",
    "error in stream": "server_error",
}
"""Ways in which no reply comes, and what a row that ends by one must say in `error_kind`."""

SHARE = 0.2
"""Of all calls; each of the nine ways has a ninth of it."""

LASTING = 0.05
"""Share of the calls without a reply that fail at every try; the others fail at the first one only.

Few, since a resume runs failed rows first: more of them than are in flight, and 429 would be all that the run hears.
"""

_BY_CALL: tuple[Way, ...] = (*ERROR_KINDS, "truncated arguments", "invented tool")
_EACH = SHARE / (len(_BY_CALL) + 1)
_LONGEST = 3
"""From this step on no call goes wrong, so that every conversation ends."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What must become of a row.

    Attributes:
        outcome: kept | rejected | failed.
        reason: `reject_reason` or `error_kind`, "" when kept.
        calls: what it calls, in order: "echo", "truncated arguments", "invented tool".
    """

    outcome: Literal["kept", "rejected", "failed"]
    reason: str
    calls: tuple[str, ...]


def drawn(*names: object) -> float:
    """A number from 0 to 1, always the same for the same names."""
    digest = hashlib.blake2b("\0".join(map(str, names)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def silent(prompt: str) -> bool:
    """Whether the answers to this prompt have no reasoning."""
    return drawn("silent", prompt) < _EACH


def way(prompt: str, step: int) -> Way:
    """How this call goes wrong; "" when it does not, or only lacks reasoning."""
    place = int(drawn("way", prompt, step) / _EACH)
    return _BY_CALL[place] if place < len(_BY_CALL) and step < _LONGEST else ""


def lasting(prompt: str, step: int) -> bool:
    """Whether a call that gets no reply gets none at any try."""
    return drawn("lasting", prompt, step) < LASTING


def late(prompt: str, step: int) -> bool:
    """Whether a drop or a hang comes within the reply and not before it."""
    return drawn("late", prompt, step) < 0.5


def long(prompt: str, step: int) -> bool:
    """Whether a named wait is a whole second: seldom, since it holds for all rows, and each 45th call names one."""
    return drawn("long", prompt, step) < 0.1


def called(prompt: str, step: int) -> str:
    """What the reply of this step calls; "" for the last answer."""
    wrong = way(prompt, step)
    if wrong and wrong not in ERROR_KINDS:
        return wrong
    return "" if step else "echo"


def fate(prompt: str) -> Fate:
    """What must become of the row with this prompt."""
    calls: list[str] = []
    while True:
        step = len(calls)
        wrong = way(prompt, step)
        if wrong in ERROR_KINDS and lasting(prompt, step):
            return Fate("failed", ERROR_KINDS[wrong], tuple(calls))
        call = called(prompt, step)
        if not call:
            break
        calls.append(call)
    if silent(prompt):
        return Fate("rejected", "no_reasoning", tuple(calls))
    return (
        Fate("rejected", "invented_tool", tuple(calls)) if "invented tool" in calls else Fate("kept", "", tuple(calls))
    )
