"""What may be said to a switch, `--resume=True`: on the command line and in `/batch` the same."""

from __future__ import annotations

_SAID = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

ALONE = frozenset({"true", "false"})
"""Those that also count as a word of their own behind the switch."""


def meant(word: str) -> bool | None:
    """Yes or no; None for a word that says neither."""
    return _SAID.get(word.strip().lower())
