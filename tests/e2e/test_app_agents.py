"""The agents' screen in a real terminal: the keys that lead there, and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Serve
from tests.e2e.app import READY
from tests.e2e.test_app import app
from tests.server.scripted import hang, say
from tests.work.support import by_prompt, spawn

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("key", ["\x1b2", "\x1bOR", "\x1b[13~"], ids=["alt+2", "f3", "f3 of others"])
def test_the_agents_are_a_key_away(serve: Serve, tmp_path: Path, key: str) -> None:
    server = serve(by_prompt({"split": [spawn("alpha reads"), say("all in")], "alpha": hang(60)}))
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.press(*"split it", "enter")
        terminal.when(lambda: len(server.requests) == 2)
        terminal.press(key)
        terminal.shows("Enter open")
        terminal.shows("● alpha")
        terminal.press("enter")
        terminal.shows("m tells alpha something")
        terminal.press("escape")
        terminal.shows("Enter open")
        terminal.press("\x1b1", "\x1b9")
        terminal.shows(READY)
        assert server.open_requests == 1
