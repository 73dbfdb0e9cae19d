"""The plain shell fed from a pipe: a line is a message or command, one after another."""

from __future__ import annotations

import signal
import stat
import time
from pathlib import Path

import pytest

from tests.conftest import Serve
from tests.e2e.program import Done, hermes, start
from tests.e2e.terminal import Terminal
from tests.server.scripted import call, hang, say, status

pytestmark = pytest.mark.e2e


def shell(url: str, lines: str, cwd: Path, *args: str) -> Done:
    """Lines into `hermes repl` on a scripted server."""
    return hermes("repl", "--base-url", url, "-m", "scripted", *args, stdin=lines, cwd=cwd)


def test_lines_are_turns_one_after_another(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("one", delay=0.1), say("two"), say("three")])
    done = shell(server.base_url, "first\n\nsecond\nthird", tmp_path)
    assert done.code == 0
    assert [line for line in done.out.splitlines() if line] == ["one", "two", "three"]
    assert server.max_in_flight == 1
    assert [seen.last["content"] for seen in server.requests] == ["first", "second", "third"]
    assert "\x1b" not in done.out + done.err


def test_commands_answer_on_standard_output(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("x")])
    done = shell(server.base_url, "/model other\nhello\n/status\n/quit\nnever sent\n", tmp_path)
    assert done.code == 0
    assert "Model other from the next turn on." in done.out
    assert any("\t" in line and "other" in line for line in done.out.splitlines()), "the records of /status"
    assert len(server.requests) == 1


def test_a_failed_turn_or_a_refused_line_is_exit_1(serve: Serve, tmp_path: Path) -> None:
    server = serve([status(400, "bad request"), say("fine")])
    done = shell(server.base_url, "a\nb\n", tmp_path)
    assert done.code == 1
    assert "400" in done.err
    assert "fine" in done.out
    assert shell(server.base_url, "/modell x\n", tmp_path).code == 1


def test_without_a_model_a_message_is_exit_2_and_says_how_to_set_one_up(tmp_path: Path) -> None:
    done = hermes("repl", stdin="hello\n", cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "no model is set up" in done.err
    assert "OPENROUTER_API_KEY" in done.err
    assert hermes("repl", stdin="/help\n", cwd=tmp_path).code == 0
    assert hermes("repl", stdin="/model demo\nhello\n", cwd=tmp_path).code == 0


@pytest.mark.parametrize("line", ["/copy 3", "/mode wild", "/toolsets nosuch", "/resume nosuch", "/batch nosuch"])
def test_a_command_that_could_do_nothing_is_exit_1(line: str, tmp_path: Path) -> None:
    done = hermes("repl", "-m", "demo", stdin=f"{line}\n", cwd=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert len(done.err.splitlines()) == 1


def test_a_message_after_a_command_of_the_disk_goes_to_the_new_chat(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("one"), say("two", delay=0.2)])
    done = shell(server.base_url, "first\n/new\nsecond\n/quit\n", tmp_path)
    assert (done.code, done.out.splitlines()) == (0, ["one", "A new chat.", "two"])
    assert [len(seen.body["messages"]) for seen in server.requests] == [2, 2]


def test_a_mode_chosen_stays_in_a_new_chat(serve: Serve, tmp_path: Path) -> None:
    server = serve([call("terminal", {"command": "touch x"}), say("planned")])
    done = shell(server.base_url, "/mode plan\n/new\ngo\n", tmp_path)
    assert (done.code, done.out.splitlines()[-1]) == (0, "planned")
    assert "plan mode" in server.requests[-1].last["content"]
    assert not (tmp_path / "x").exists()


def test_a_run_started_from_a_pipe_is_waited_for(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"prompt": "a"}\n{"prompt": "b"}\n')
    server = serve([say("x", reasoning="r", delay=0.3)])
    done = shell(server.base_url, "/batch rows.jsonl\n", tmp_path)
    assert done.code == 0
    assert "2 kept" in done.err
    (rows,) = tmp_path.glob("data/*/trajectories.jsonl")
    assert len(rows.read_text().splitlines()) == 2
    (tmp_path / "bad.jsonl").write_text('{"prompt": "a"}\n{bad\n')
    assert shell(server.base_url, "/batch bad.jsonl\n", tmp_path).code == 1


def test_nobody_is_asked_in_a_pipe(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "keep").mkdir()
    server = serve([call("terminal", {"command": "rm -rf keep"}), say("denied")])
    done = shell(server.base_url, "go\n1\n", tmp_path)
    assert (tmp_path / "keep").exists()
    assert "denied" in done.out
    assert server.requests[-1].last["content"] == "1"


def test_an_empty_pipe_ends_at_once(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("x")])
    assert shell(server.base_url, "", tmp_path).code == 0
    assert server.requests == []


def test_term_stops_the_turn_with_130(serve: Serve, tmp_path: Path) -> None:
    server = serve([hang(60)])
    running = start("chat", "-q", "x", "--base-url", server.base_url, "-m", "s", cwd=tmp_path)
    deadline = time.monotonic() + 15
    while not server.requests and time.monotonic() < deadline:
        time.sleep(0.05)
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=10)
    assert running.returncode == 130


@pytest.mark.parametrize("args", [("repl",), ("--linear",)])
def test_a_session_that_is_not_there_leaves_the_terminal_alone(args: tuple[str, ...], tmp_path: Path) -> None:
    with Terminal(*args, "--resume", "nosuch", "-m", "demo", cwd=tmp_path) as terminal:
        assert terminal.ended() == 2
        assert "hermes: there is no session 'nosuch'" in terminal.screen
        assert b"\x1b[?" not in terminal.raw


def test_what_was_typed_is_kept_private_and_comes_back(tmp_path: Path, isolated_home: Path) -> None:
    with Terminal("repl", "-m", "demo", cwd=tmp_path) as terminal:
        terminal.until("❯")
        terminal.line("/mode plan")
        terminal.until("nothing that changes")
        terminal.line("/quit")
        terminal.ended()
    assert stat.S_IMODE((isolated_home / "repl_history").stat().st_mode) == 0o600
    with Terminal("repl", "-m", "demo", cwd=tmp_path) as terminal:
        terminal.until("❯")
        terminal.send("\x1b[A\x1b[A")
        terminal.until("❯ /mode plan")


def test_f9_7_a_pasted_text_is_one_draft_and_one_message(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("got it")])
    with Terminal("repl", "--base-url", server.base_url, "-m", "scripted", cwd=tmp_path) as terminal:
        terminal.until("❯")
        terminal.send("\x1b[200~one\ntwo\n\x1b[201~")
        terminal.until("two")
        terminal.pump(0.3)
        assert server.requests == []
        terminal.send("three\r")
        terminal.until("got it")
    assert server.requests[0].last["content"] == "one\ntwo\nthree"


@pytest.mark.parametrize("key", ["\n", "\x1b\r", "\\\r"])
def test_f9_8_a_new_line_can_be_typed(key: str, serve: Serve, tmp_path: Path) -> None:
    server = serve([say("got it")])
    with Terminal("repl", "--base-url", server.base_url, "-m", "scripted", cwd=tmp_path) as terminal:
        terminal.until("❯")
        terminal.send(f"one{key}")
        terminal.pump(0.3)
        terminal.send("two\r")
        terminal.until("got it")
    assert server.requests[0].last["content"] == "one\ntwo"


def test_no_colours_where_they_are_not_wanted(serve: Serve, tmp_path: Path) -> None:
    server = serve([call("terminal", {"command": "ls"}), say("x")])
    flags = ("chat", "-q", "hi", "--base-url", server.base_url, "-m", "m")
    with Terminal(*flags, cwd=tmp_path) as terminal:
        assert terminal.ended(20) == 0
        assert b"\x1b[2m" in terminal.raw
    for env, term in (({"NO_COLOR": "1"}, "xterm"), ({}, "dumb")):
        with Terminal(*flags, cwd=tmp_path, env=env, term=term) as terminal:
            assert terminal.ended(20) == 0
            assert b"\x1b" not in terminal.raw
