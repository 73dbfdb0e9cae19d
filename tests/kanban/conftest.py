"""Fixtures of the tests of worked boards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Serve
from tests.kanban.shop import OpenShop, Shop


@pytest.fixture
def home(isolated_home: Path) -> Path:
    """A home whose board is quick to try again."""
    isolated_home.mkdir(parents=True, exist_ok=True)
    (isolated_home / "config.yaml").write_text(
        "toolsets: [terminal, file, kanban]\nkanban: {retry_seconds: 0.05, failure_limit: 3}\n"
    )
    return isolated_home


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The folder hermes is started in."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def shop(serve: Serve, home: Path, work: Path) -> Iterator[OpenShop]:
    """`shop(script, **flags)`: an engine with a board over a server that plays the script."""
    opened: list[Shop] = []

    def start(script: Any, **flags: Any) -> Shop:
        opened.append(Shop(serve(script), work, **flags))
        return opened[-1]

    yield start
    for one in opened:
        one.engine.close()
