"""Fixtures of all tests: no test sees the person's home, keys or endpoints; `serve` starts a scripted server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.containers import bubblewrap_here as bubblewrap_here
from tests.containers import container_store as container_store
from tests.containers import image as image
from tests.server.scripted import Script, ScriptedServer

_EXAMPLES = int(os.environ.get("TEST_EXAMPLES", "60"))
"""Examples a property test tries; set it high to search longer."""
settings.register_profile("hermes", deadline=None, max_examples=_EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("hermes")

_PRIVATE = ("OPENAI_", "OPENROUTER_", "ANTHROPIC_", "HERMES_")

Serve = Callable[..., ScriptedServer]


@pytest.fixture(autouse=True)
def isolated_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """HOME and HERMES_HOME are fresh, keys and endpoints unset; the value is HERMES_HOME (not created)."""
    for name in [name for name in os.environ if name.startswith(_PRIVATE)]:
        monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("HERMES_HOME", str(home / ".hermes"))
    return home / ".hermes"


@pytest.fixture
def serve() -> Iterator[Serve]:
    """`serve(script, **options)` starts a scripted server that lives as long as the test."""
    with ExitStack() as stack:

        def start(script: Script, **options: Any) -> ScriptedServer:
            return stack.enter_context(ScriptedServer(script, **options))

        yield start
