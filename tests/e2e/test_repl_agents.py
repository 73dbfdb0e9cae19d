"""Agents and background tasks in the plain shell, through a pseudo terminal."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hermes_engine.paths import Home
from hermes_tui.repl.asking import ANSWER_DELAY_SECONDS
from tests.conftest import Serve
from tests.e2e.program import hermes
from tests.e2e.test_repl import shell
from tests.e2e.test_tasks import soon, states
from tests.server.answers import Answer, Seen, call, hang, say
from tests.work.dead import at_work, killed_at_work
from tests.work.support import by_prompt, first_user, spawn

pytestmark = pytest.mark.e2e
WAITS = call("terminal", {"command": "while [ ! -e go ]; do sleep 0.05; done; echo went"})


def test_f4_1_f4_4_a_result_is_printed_above_the_draft_in_the_middle_of_a_turn(serve: Serve, tmp_path: Path) -> None:
    def script(seen: Seen) -> Answer:
        if first_user(seen) == "look around":
            return say("found\n**it**")
        return say("yes?") if "go on" in str(seen.last["content"]) else hang(60)

    server = serve(script)
    with shell(server.base_url, cwd=tmp_path) as terminal:
        terminal.until("❯")
        terminal.line("wait for me")
        terminal.until("working")
        terminal.line("/background look around")
        terminal.send("hello wor")
        terminal.until("**it**")
        assert server.requests[0].ended is None
        terminal.until("look ag_")
        terminal.until("❯ hello wor")
        terminal.send("\x15\x1b")
        terminal.until(lambda _: server.requests[0].ended is not None)
        terminal.until("cancelled")
        terminal.line("then go on")
        terminal.until("yes?")
        terminal.line("/tasks")
        terminal.until("background")
    asked = " ".join(str(m["content"]) for m in server.requests[-1].messages if m["role"] == "user")
    assert " ".join(asked.split()) == "wait for me then go on"


def test_an_agent_is_watched_and_told_and_left(serve: Serve, tmp_path: Path) -> None:
    server = serve(by_prompt({"look": [WAITS, say("found it")], "hello": say("hi there")}))
    with shell(server.base_url, "--mode", "yolo", cwd=tmp_path) as terminal:
        terminal.until("❯")
        terminal.line("/background look around")
        terminal.until("runs in the background")
        terminal.until(lambda _: len(server.requests) == 1)
        terminal.line("/attach look")
        terminal.until("── look: look around")
        terminal.until("Enter goes back")
        terminal.line("and be quick")
        terminal.until("at the next step: and be quick")
        terminal.send("\r")
        terminal.until(lambda _: "Enter goes back" not in terminal.screen.rstrip().splitlines()[-2])
        terminal.line("hello")
        terminal.until("hi there")
        (tmp_path / "go").touch()
        terminal.until("found it")
        terminal.line("/attach look")
        terminal.until("Run while [")
    assert server.requests[-1].messages[-1]["content"] == "and be quick"


def test_a_task_asks_by_name_and_is_answered_from_the_prompt(serve: Serve, tmp_path: Path) -> None:
    server = serve(by_prompt({"write": [call("write_file", {"path": "a.txt", "content": "x"}), say("written")]}))
    with shell(server.base_url, cwd=tmp_path) as terminal:
        terminal.until("❯")
        terminal.line("/background write a file")
        terminal.until("write asks:")
        terminal.pump(ANSWER_DELAY_SECONDS + 0.1)
        terminal.line("1")
        terminal.until("written")
    assert (tmp_path / "a.txt").read_text() == "x"


def test_while_a_task_asks_words_go_to_the_chat_and_a_number_answers_it(serve: Serve, tmp_path: Path) -> None:
    write = call("write_file", {"path": "a.txt", "content": "x"})
    server = serve(by_prompt({"write": [write, say("written")], "hello": say("hi there")}))
    with shell(server.base_url, cwd=tmp_path) as terminal:
        terminal.until("❯")
        terminal.line("/background write a file")
        terminal.until("◆ write: ")
        terminal.line("hello, what is up")
        terminal.until("hi there")
        assert not (tmp_path / "a.txt").exists()
        terminal.line("9")
        terminal.until("9 is no answer to what write asks.")
        terminal.line("1")
        terminal.until("written")
    assert (tmp_path / "a.txt").read_text() == "x"
    assert {first_user(seen) for seen in server.requests} == {"write a file", "hello, what is up"}


def test_tasks_from_a_pipe_are_records(serve: Serve, tmp_path: Path) -> None:
    server = serve(by_prompt({}))
    task = "look around " + "far " * 60
    lines = f"/background {task}\n/tasks\n"
    done = hermes("repl", "--base-url", server.base_url, "-m", "m", cwd=tmp_path, stdin=lines)
    (record,) = [line.split("\t") for line in done.out.splitlines() if line.startswith("ag_")]
    assert record[1:3] == ["look", "background"]
    assert len(record) == 8


def test_what_was_interrupted_is_told_at_the_start_once(serve: Serve, tmp_path: Path) -> None:
    server = serve(by_prompt({"hello": say("hi"), "slow": hang(60)}))
    killed_at_work(server, tmp_path, ["slow look"], ends=0)
    with shell(server.base_url, "--continue", cwd=tmp_path) as terminal:
        terminal.until("interrupted")
        terminal.until("/retry slow")
        terminal.line("/quit")
        assert terminal.ended() == 0
    with shell(server.base_url, "--continue", cwd=tmp_path) as terminal:
        terminal.until("Going on with")
        terminal.line("/status")
        terminal.until("Python")
        assert "/retry slow" not in terminal.text


def test_children_are_told_of_by_name(serve: Serve, tmp_path: Path) -> None:
    server = serve(by_prompt({"split": [spawn("count files", "read notes"), say("all in")]}))
    done = hermes("repl", "--base-url", server.base_url, "-m", "m", cwd=tmp_path, stdin="split it\n")
    assert (done.code, done.out) == (0, "all in\n")
    for words in ("started count: count files", "✓ read done", "2 agents — count, read"):
        assert words in done.err


def test_a_pipe_waits_for_what_runs_beside_the_chat(serve: Serve, tmp_path: Path) -> None:
    server = serve(by_prompt({"look": say("found it")}))
    lines = "/background look around\n"
    done = hermes("repl", "--base-url", server.base_url, "-m", "m", cwd=tmp_path, stdin=lines)
    assert (done.code, done.out) == (0, "⚙ look runs in the background · /tasks\nfound it\n")


def test_leaving_while_a_task_runs_asks_and_can_wait_for_it(serve: Serve, tmp_path: Path) -> None:
    server = serve(by_prompt({"look": [WAITS, say("found it")]}))
    with shell(server.base_url, "--mode", "yolo", cwd=tmp_path) as terminal:
        terminal.until("❯")
        terminal.line("/background look around")
        terminal.until("runs in the background")
        terminal.line("/quit")
        terminal.until("1 stop it and leave")
        terminal.until("Leaving stops: look.")
        terminal.until("  look          look around  ")
        terminal.until("what it would ask is denied")
        terminal.send("\r")
        terminal.until("Staying.")
        terminal.send("\x04")
        terminal.until(lambda _: terminal.text.count("quit? 1 stop") == 2)
        terminal.line("2")
        terminal.until("Leaves when it is done")
        (tmp_path / "go").touch()
        terminal.until("found it")
        assert terminal.ended() == 0


def test_a_task_left_working_goes_on_without_the_shell(serve: Serve, tmp_path: Path) -> None:
    server = serve(by_prompt({"look": hang(60)}))
    with shell(server.base_url, cwd=tmp_path) as terminal:
        terminal.until("❯")
        terminal.line("/background look around")
        terminal.until(lambda _: len(server.requests) == 1)
        server.script = by_prompt({"look": say("found it")})
        terminal.line("/quit")
        terminal.until("3 leave it working")
        terminal.line("3")
        terminal.until("goes on in process")
        assert terminal.ended() == 0
    assert soon(lambda: "done" in states().values())
    with shell(server.base_url, "--continue", cwd=tmp_path) as terminal:
        terminal.until("found it")


def test_what_ends_in_another_program_is_printed_where_its_chat_is_open(serve: Serve, tmp_path: Path) -> None:
    server = serve(by_prompt({"hello": say("hi"), "slow": hang(60)}))
    [slow, _chat] = killed_at_work(server, tmp_path, ["slow look"])
    server.script = by_prompt({"slow": say("found it")})
    with shell(server.base_url, "--continue", cwd=tmp_path) as terminal:
        terminal.until("interrupted")
        terminal.send("hello wor")
        assert hermes("--base-url", server.base_url, "tasks", "resume", slow, cwd=tmp_path).out == "found it\n"
        terminal.until("found it")
        terminal.until("❯ hello wor")


def test_a_lost_terminal_can_leave_work_behind(serve: Serve, tmp_path: Path) -> None:
    Home.from_env().ensure().config.write_text("ui: {on_hangup: leave}\n")
    server = serve(by_prompt({"look": hang(60)}))
    with shell(server.base_url, cwd=tmp_path) as terminal:
        terminal.until("❯")
        terminal.line("/background look around")
        terminal.until(lambda _: len(server.requests) == 1)
        server.script = by_prompt({"look": say("found it")})
        terminal.signal(signal.SIGHUP)
        assert terminal.ended() == 130
    assert soon(lambda: "done" in states().values())


def heard_orders(kind: str) -> bool:
    """Whether another program took an order of this kind."""
    with closing(sqlite3.connect(Home.from_env().state_db)) as connection:
        return bool(connection.execute("SELECT 1 FROM orders WHERE kind = ? AND taken > 0", (kind,)).fetchone())


def test_an_agent_of_another_program_is_watched_answered_told_and_ends(serve: Serve, tmp_path: Path) -> None:
    write = call("write_file", {"path": "a.txt", "content": "x"})
    server = serve(by_prompt({"hello": say("hi"), "slow": [write, WAITS, say("all found")]}))
    (tmp_path / "other").mkdir()
    with (
        at_work(server, tmp_path / "other", ["slow look"], mode="ask"),
        shell(server.base_url, cwd=tmp_path) as terminal,
    ):
        terminal.until("❯")
        terminal.line("/attach slow")
        terminal.until("── slow: slow look")
        terminal.until("◆ slow: Write a.txt")
        terminal.pump(ANSWER_DELAY_SECONDS + 0.1)
        terminal.line("1")
        terminal.until("Run while [")
        assert (tmp_path / "other" / "a.txt").read_text() == "x"
        terminal.line("and be quick")
        terminal.until("at the next step: and be quick")
        terminal.until(lambda _: heard_orders("steer"))
        (tmp_path / "other" / "go").touch()
        terminal.until("all found")
        terminal.until("── slow: done")
        terminal.until(lambda _: "Enter goes back" not in terminal.screen.rstrip().splitlines()[-2])
        terminal.line("hello")
        terminal.until("hi")
    assert "and be quick" in [message["content"] for seen in server.requests for message in seen.messages]


def test_steer_reaches_an_agent_of_another_program(serve: Serve, tmp_path: Path) -> None:
    server = serve(by_prompt({"hello": say("hi"), "slow": [WAITS, say("all found")]}))
    (tmp_path / "other").mkdir()
    with at_work(server, tmp_path / "other", ["slow look"]), shell(server.base_url, cwd=tmp_path) as terminal:
        terminal.until("❯")
        terminal.line("/steer nobody do it")
        terminal.until("unknown running agent 'nobody'; valid: main, slow")
        terminal.line("/steer slow look in the cellar too")
        terminal.until("slow (slow look) works in another program; it hears before its next step: look in")
        terminal.until(lambda _: heard_orders("steer"))
        (tmp_path / "other" / "go").touch()
        assert server.wait_until(lambda: server.requests[-1].last.get("content") == "look in the cellar too")
