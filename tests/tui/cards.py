"""Cards for tests of what is shown: values as a board hands them out, made by hand."""

from __future__ import annotations

import dataclasses
from typing import Any

from hermes_engine.board import Card, Owner, Run

NOW = 100_000.0
OWNER = Owner("m", "b", 1, "1", "t")


def run(number: int, card: str, profile: str, seconds: float, **values: Any) -> Run:
    """A run that began so many seconds ago, at work unless told otherwise."""
    made = Run(
        number, card, "work", profile, "running", OWNER, NOW - seconds, NOW, NOW + 900, None, "", "", "", 0,
        f"s-{card}", "", "",
    )  # fmt: skip
    return dataclasses.replace(made, **values)


def card(name: str, title: str, status: str, reason: str = "", seconds: float = 60, **values: Any) -> Card:
    """A card that changed so many seconds ago."""
    made = Card(
        name, title, "", status, reason, "default", "", 0, (), (), "scratch", None, None, "", 0, None, 0, NOW - seconds,  # type: ignore[arg-type]
        NOW - seconds, NOW - seconds if status == "done" else None, "ann", None,
    )  # fmt: skip
    return dataclasses.replace(made, **values)
