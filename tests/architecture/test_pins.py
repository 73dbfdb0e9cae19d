"""The pinned versions can be installed on the oldest Python that is promised, not only on the one at hand."""

from __future__ import annotations

import importlib.metadata
import tomllib
from pathlib import Path

from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[2]


def test_every_pinned_version_takes_the_oldest_python_promised() -> None:
    promised = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    oldest = promised.removeprefix(">=") + ".0"
    looked_at, refusing = 0, []
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        name, _, version = line.partition(";")[0].strip().partition("==")
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # of an extra that is not installed here
        if version and found.version == version:
            looked_at += 1
            wanted = found.metadata["Requires-Python"] or ""
            if not SpecifierSet(wanted).contains(oldest):
                refusing.append(f"{line}: {wanted}")
    assert looked_at > 50
    assert refusing == [], f"Python {oldest} cannot install them"
