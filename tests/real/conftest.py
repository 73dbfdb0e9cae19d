"""The small real model behind its real server, one for each test's home; skipped in plain words where it is missing."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.clients.local import LocalClient
from hermes_engine.clients.local_process import stop
from hermes_engine.paths import Home
from hermes_engine.settings import ProviderSettings
from hermes_engine.settings.local_model import installed

SCHEMAS = Path(__file__).parents[1] / "golden" / "tool_schemas.json"
Wait = Callable[[Callable[[], bool]], None]


@pytest.fixture(autouse=True)
def home(isolated_home: Path) -> Iterator[Home]:
    """The test's home; its server is ended afterwards."""
    if installed() is None:
        pytest.skip("the local model is not installed (hermes local install)")
    yield Home(isolated_home)
    stop(Home(isolated_home))


@pytest.fixture
async def local(home: Home) -> AsyncIterator[LocalClient]:
    """A client of that home."""
    client = LocalClient(home, ProviderSettings())
    yield client
    await client.close()


@pytest.fixture(scope="session")
def tools() -> dict[str, Any]:
    """The schemas of our own tools, by name."""
    found: dict[str, Any] = json.loads(SCHEMAS.read_text("utf-8"))
    return found


@pytest.fixture
def wait() -> Wait:
    """`wait(condition)` until it holds; fails after a minute."""

    def until(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, "it did not happen within a minute"
            time.sleep(0.02)

    return until
