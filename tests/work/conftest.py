"""Fixtures of the tests of agents that start agents: engines over a scripted server, and the home's settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Serve
from tests.work.support import Heard

Hear = Callable[..., Heard]
Configure = Callable[[str], None]


@pytest.fixture
def hear(serve: Serve, tmp_path: Path) -> Iterator[Hear]:
    """`hear(script, **options)` starts an engine over a server that plays the script."""
    started: list[Heard] = []
    work = tmp_path / "work"
    work.mkdir()

    def start(script: Any, **options: Any) -> Heard:
        cwd = options.pop("cwd", work)
        started.append(Heard(serve(script), cwd, **options))
        return started[-1]

    yield start
    for heard in started:
        heard.engine.close()


@pytest.fixture
def configure(isolated_home: Path) -> Configure:
    """`configure(text)` writes the home's config.yaml."""

    def write(text: str) -> None:
        isolated_home.mkdir(parents=True, exist_ok=True)
        (isolated_home / "config.yaml").write_text(text)

    return write
