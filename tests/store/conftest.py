"""A fresh state database for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_engine.store.database import Database
from hermes_engine.store.migrations import open_state


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = open_state(tmp_path / "home" / "state.db")
    yield made
    made.close()
