"""The board in a person's terminal: another program's card, silence, a worker that asks and is answered."""

from __future__ import annotations

import json
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


def test_keys_that_arrive_together_are_obeyed_in_their_order_in_a_form(tmp_path: Path, isolated_home: Path) -> None:
    """A slow line hands on many keys at once."""
    with AppTerminal("-m", "demo", columns=80, rows=24, cwd=tmp_path) as terminal:
        terminal.shows("/ for commands")
        terminal.press("\x1b3")
        terminal.shows("n new")  # the engine may still be coming up: no key is lost for that
        terminal.press("n")
        terminal.shows("New card")
        assert "default, orchestrator, reviewer" in terminal.screen
        terminal.send("Tx\x7fítulo\tuna\ndos\tyo\x15nadie\t12\x1b[D3\x13")
        terminal.shows("k1 is on the board")
    card = hermes("kanban", "show", "k1", "--json").json
    assert (card["title"], card["body"], card["assignee"], card["priority"]) == ("Título", "una\ndos", "nadie", 132)


PLAN = {
    "cards": [
        {"title": "Informe sobre cachés", "body": "Compara tres", "assignee": "researcher"},
        {"title": "Escribe el caché", "body": "Según el informe", "assignee": "default", "after": [1]},
    ]
}


def mission(seen: Seen) -> Answer:
    """Everybody's model: the planner's, the researcher's, and the coder's, who hands in twice."""
    if "You plan and do nothing else" in seen.messages[0]["content"]:
        return say(json.dumps(PLAN, ensure_ascii=False))
    told = seen.messages[1]["content"]
    if "Card k1" in told:
        return call("kanban_complete", {"summary": "LRU es lo mejor"})
    if not any(message["role"] == "tool" for message in seen.messages):
        return call("write_file", {"path": "cache.py", "content": "# v2" if "faltan pruebas" in told else "# v1"})
    summary = "con pruebas" if "faltan pruebas" in told else "cache.py"
    return call("kanban_request_review", {"summary": summary, "files": ["cache.py"]})


def test_the_mission_from_a_goal_to_an_accepted_result(tmp_path: Path, isolated_home: Path) -> None:
    isolated_home.mkdir(parents=True)
    (isolated_home / "config.yaml").write_text("toolsets: [file]\n")
    assert hermes("tools", "enable", "kanban").code == 0
    assert hermes("profile", "create", "researcher", "--description", "lee y produce informes").code == 0
    with (
        ScriptedServer(mission) as server,
        AppTerminal("--base-url", server.base_url, "-m", "m", columns=120, rows=36, cwd=tmp_path) as terminal,
    ):
        terminal.shows("/ for commands")
        terminal.press(*"/kanban un caché", "enter")
        terminal.shows("2 cards for the board")
        assert hermes("kanban", "list").rows == []
        terminal.pump(0.6)
        terminal.press("enter")
        terminal.shows("2 cards are on the board")
        terminal.press("s")
        terminal.shows("LRU es lo mejor")
        for handed_in, key in (("cache.py", "b"), ("con pruebas", "A")):
            terminal.shows("NEEDS YOU  1")
            if key == "b":
                terminal.press("ctrl+n")
            terminal.shows("1 Yes")
            terminal.pump(0.6)
            terminal.press("1")
            terminal.shows("REVIEW  1")
            terminal.shows(handed_in)
            terminal.press(key)
            if key == "b":
                terminal.shows("What is missing")
                terminal.press(*"faltan pruebas", "enter")
        terminal.shows("DONE  2")
        terminal.press("s")
        terminal.shows("no longer worked here")
        terminal.press("escape")
        terminal.shows("/ for commands")
        terminal.press("ctrl+d")
        assert terminal.left()[0] == 0
    report, code = hermes("kanban", "list", "--json").json
    assert (report["status"], report["result"], report["runs"][0]["profile"]) == (
        "done",
        "LRU es lo mejor",
        "researcher",
    )
    assert (code["status"], code["result"], code["parents"]) == ("done", "con pruebas", ["k1"])
    assert [run["state"] for run in code["runs"]] == ["review", "review"]
    assert Path(code["runs"][1]["workspace"], "cache.py").read_text() == "# v2"
