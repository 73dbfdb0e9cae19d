"""The Spanish README says what the English one says: the same commands, flags, keys, slash commands and documents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "form",
    [
        r"hermes [a-z]+(?: [a-z]+)?",
        r"make [a-z-]+",
        r"(?<![\w-])--[a-z_-]+",
        r"`(?:Alt|Ctrl|Shift|F)[+\w]*`",
        r"`/[a-z]+",
        r"\]\((?!README)[^)]+\)",
        r"[A-Z]+_API_KEY",
    ],
)
def test_both_readmes_name_the_same(form: str) -> None:
    english, spanish = (set(re.findall(form, _prose(name))) for name in ("README.md", "README.es.md"))
    assert english == spanish


def _prose(name: str) -> str:
    """The text with a line's end as a blank, so that a command may stand on two lines."""
    return " ".join((ROOT / name).read_text().split())
