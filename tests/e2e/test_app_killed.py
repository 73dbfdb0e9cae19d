"""The app is killed in the middle of a turn and opened again: what happened is told, and no draft is lost."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from hermes_engine.paths import Home
from tests.conftest import Serve
from tests.e2e.app import READY
from tests.e2e.program import hermes
from tests.e2e.test_app import app
from tests.server.answers import chunk
from tests.server.scripted import say, stream

pytestmark = pytest.mark.e2e
PASTED = "\n".join(f"line {number}" for number in range(40))


def test_a_killed_turn_is_told_of_and_the_draft_is_there_again(serve: Serve, tmp_path: Path) -> None:
    server = serve(
        [stream([chunk({"role": "assistant", "content": "half a word"}), 60.0], end=False), say("now it is whole")]
    )
    drafts = Home.from_env().drafts
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.press(*"go on", "enter")
        terminal.shows("half a word")
        terminal.press(*"not sent yet ")
        terminal.paste(PASTED)
        terminal.when(lambda: drafts.is_dir() and any("line 39" in file.read_text() for file in drafts.iterdir()))
        terminal.signal(signal.SIGKILL)
        terminal.ended()
    [file] = drafts.iterdir()
    assert file.read_text() == f"not sent yet {PASTED}"
    assert (file.stat().st_mode & 0o777, drafts.stat().st_mode & 0o777) == (0o600, 0o700)
    with app(server, "--continue", cwd=tmp_path) as terminal:
        terminal.shows("Cut off: the program ended")
        assert "half a word" in terminal.screen
        terminal.shows("❯ [Pasted 40 lines")
        terminal.press("enter")
        terminal.shows("now it is whole")
        terminal.when(lambda: not file.exists())
    assert server.requests[-1].last["content"] == f"not sent yet {PASTED}"


def test_a_deleted_chat_leaves_no_draft(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("yes")])
    drafts = Home.from_env().drafts
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.press(*"hello", "enter")
        terminal.shows("yes")
        terminal.press(*"to be kept")
        terminal.when(lambda: drafts.is_dir() and bool(list(drafts.iterdir())))
        terminal.signal(signal.SIGHUP)
        terminal.ended()
    [file] = drafts.iterdir()
    assert hermes("sessions", "delete", "-y", file.stem).code == 0
    assert not file.exists()
