"""Agents in a real terminal: the keys that lead to them, narrow and changing windows, a program that is killed."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.conftest import Serve
from tests.e2e.app import READY
from tests.e2e.program import hermes
from tests.e2e.test_app import app
from tests.server.scripted import call, hang, say
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


def test_f3_17_keys_are_answered_while_twenty_children_start(serve: Serve, tmp_path: Path, isolated_home: Path) -> None:
    isolated_home.mkdir(mode=0o700)
    (isolated_home / "config.yaml").write_text("delegation: {max_concurrent: 20}\n")
    names = [f"child {number}" for number in range(20)]
    server = serve(by_prompt({"split": [spawn(*names), say("x")], "child": hang(60)}))
    with app(server, cwd=tmp_path, columns=120) as terminal:
        terminal.shows(READY)
        terminal.press(*"split it", "enter")
        terminal.when(lambda: server.open_requests > 1)
        for typed in ("o", "on", "one", "one ", "one w", "one wo", "one wor", "one word"):
            terminal.press(typed[-1])
            terminal.shows(f"❯ {typed}".rstrip(), 2)
        terminal.when(lambda: server.open_requests == 20)
        terminal.press("escape")
        terminal.when(lambda: server.open_requests == 0, 2)
        terminal.shows("❯ one word")


def test_five_at_work_are_interrupted_by_a_kill_with_all_they_had_done(serve: Serve, tmp_path: Path) -> None:
    steps = [call("terminal", {"command": "echo one step"}), hang(60)]
    server = serve(by_prompt({"split": [spawn("child a", "child b"), say("x")], "child": steps, "task": steps}))
    with app(server, "--mode", "yolo", cwd=tmp_path) as terminal:
        terminal.shows(READY)
        for number in range(3):
            terminal.press(*f"/background task number {number}", "enter")
        terminal.press(*"split it", "enter")
        terminal.when(lambda: server.open_requests == 5 and len(server.requests) == 11, timeout=40)
        terminal.signal(signal.SIGKILL)
        terminal.ended()
    with app(server, "--continue", cwd=tmp_path, rows=45) as terminal:
        terminal.until(lambda shown: shown.text.count("interrupted") == 3)
        records = hermes("tasks", "list", "--json").json
    assert [record["state"] for record in records] == ["interrupted"] * 5
    for record in records:
        kept = hermes("tasks", "show", record["id"], "--json").json["messages"]
        assert [message["role"] for message in kept] == ["user", "assistant", "tool"]
        assert "one step" in kept[-1]["content"]
    assert len(server.requests) == 11, "nothing goes on by itself"


def test_after_a_storm_of_sizes_the_sidebar_stands_where_it_belongs(serve: Serve, tmp_path: Path) -> None:
    name = "検査する全てのサーバーを順番に確認"
    server = serve(by_prompt({"split": [spawn(name, "alpha reads"), say("all in")], "alpha": hang(60), name: hang(60)}))
    with app(server, cwd=tmp_path, columns=120, rows=36) as terminal:
        terminal.shows(READY)
        terminal.press(*"split it", "enter")
        terminal.shows("● alpha")
        terminal.shows("0/2 ended")
        before = [line.partition("│")[0] for line in terminal.screen.split("\n")]
        for columns in (80, 200, 60, 120):
            terminal.resize(columns, 36)
            terminal.pump(0.07)
        terminal.until(lambda shown: shown.screen.count("│ ● ") == 2 and "AGENTS  2" in shown.screen)
        rows = [line for line in terminal.screen.split("\n") if "│ ● " in line]
        assert [row.partition("│")[0] for row in rows] == [before[number] for number in (4, 6)]
        assert [row[-1] for row in rows] == ["s", "s"], "the time ends each row"


def test_at_40_columns_a_question_opens_at_its_top_and_is_read_before_it_is_answered(
    serve: Serve, tmp_path: Path
) -> None:
    files = " ".join(f"file-number-{number}" for number in range(20))
    server = serve([call("terminal", {"command": f"touch {files}"}), say("made them")])
    with app(server, "--mode", "ask", cwd=tmp_path, columns=40, rows=12) as terminal:
        terminal.shows("❯")
        terminal.press(*"make them", "enter")
        terminal.shows("◆ Hermes asks ─", timeout=40)
        terminal.shows("│ touch file-number-0")
        terminal.press("ctrl+n")
        terminal.shows("▌ ╭─ ◆ Hermes asks")
        terminal.press("1")
        terminal.shows("Read it to its end first")
        assert not (tmp_path / "file-number-0").exists()


def test_keys_that_arrive_together_mean_what_they_mean_one_by_one(serve: Serve, tmp_path: Path) -> None:
    server = serve(by_prompt({"split": [spawn("alpha reads", "beta reads"), say("all in")], "": hang(60)}))
    with app(server, "--mode", "auto", cwd=tmp_path, columns=120) as terminal:
        terminal.shows(READY)
        terminal.press(*"split it", "enter")
        terminal.when(lambda: len(server.requests) == 3)
        terminal.press("\x1b2")
        terminal.shows("Enter open")
        terminal.send("/fix")
        terminal.shows("/fix▏")
        terminal.press("escape")
        terminal.shows("● beta")
        terminal.send("mfix it")
        terminal.shows("❯ fix it")
        terminal.press("escape", "escape", "\x1b1")
        terminal.shows("Esc stops")
        terminal.press("ctrl+t")
        terminal.shows("Enter open · Space last words")
        terminal.send("mexit now")
        terminal.shows(" exit now")
        assert server.open_requests == 2, "nothing was stopped"
