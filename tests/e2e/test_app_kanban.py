"""The board in a person's terminal: another program's card, silence, a worker that asks and is answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.app import AppTerminal
from tests.e2e.program import hermes
from tests.server.answers import Answer, Seen, call, say
from tests.server.scripted import ScriptedServer

pytestmark = pytest.mark.e2e


def finishing(seen: Seen) -> Answer:
    done = sum(message["role"] == "tool" for message in seen.messages)
    if not done:
        return call("write_file", {"path": "x.txt", "content": "one\n"})
    return call("kanban_complete", {"summary": "all written"}) if done == 1 else say("over")


def test_a_board_is_looked_at_worked_answered_and_left(tmp_path: Path, isolated_home: Path) -> None:
    isolated_home.mkdir(parents=True)
    (isolated_home / "config.yaml").write_text("toolsets: [file, kanban]\n")
    with (
        ScriptedServer(finishing) as server,
        AppTerminal("--base-url", server.base_url, "-m", "m", columns=120, rows=36, cwd=tmp_path) as terminal,
    ):
        terminal.shows("/ for commands")
        terminal.press("\x1b3")
        terminal.shows("/kanban GOAL")
        assert hermes("kanban", "create", "from elsewhere").code == 0
        assert terminal.shows("k1 from elsewhere") < 4, "without a change it looks every five seconds"
        terminal.pump(1.0)
        before = len(terminal.raw)
        terminal.pump(2.0)
        assert len(terminal.raw) == before, "an idle board writes nothing"
        terminal.press("s")
        terminal.shows("NEEDS YOU  1")
        terminal.pump(0.6)
        terminal.press("1")
        terminal.shows("DONE  1")
        terminal.shows("all written")
        terminal.press("escape")
        terminal.shows("/ for commands")
        terminal.press("ctrl+d")
        assert terminal.left()[0] == 0
    assert hermes("kanban", "list").rows[0][1] == "done"
