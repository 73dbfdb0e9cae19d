"""The plain shell through a pseudo terminal."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.conftest import Serve
from tests.e2e.terminal import Terminal
from tests.server.scripted import call, hang, say, status

pytestmark = pytest.mark.e2e


def shell(url: str, *args: str, cwd: Path) -> Terminal:
    """`hermes repl` on a scripted server."""
    return Terminal("repl", "--base-url", url, "-m", "scripted", *args, cwd=cwd)


def test_a_chat_prints_the_answer_and_keeps_the_prompt(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("first line\nsecond line"), say("again")])
    with shell(server.base_url, cwd=tmp_path) as terminal:
        terminal.until("❯")
        terminal.line("hello there")
        terminal.until("second line")
        terminal.line("and more")
        terminal.until("again")
        terminal.send("\x04")
        assert terminal.ended() == 0
    texts = [message["content"] for message in server.requests[1].body["messages"] if message["role"] == "user"]
    assert texts == ["hello there", "and more"]
    assert b"\x1b[?1049h" not in terminal.raw, "no alternate screen"


def test_commands_complete_from_the_one_registry(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("x")])
    with shell(server.base_url, cwd=tmp_path) as terminal:
        terminal.until("❯")
        terminal.send("/m")
        terminal.until("Show or change the model")
        terminal.send("\t\r\r")
        terminal.until("/model NAME changes it.")
        terminal.line("/mode plan")
        terminal.until("nothing that changes anything runs")
        terminal.until("plan · scripted")
        terminal.line("/shwo")
        terminal.until("No /shwo.")
        assert "/shwo" in terminal.screen.splitlines()[-2] or "❯ /shwo" in terminal.screen
        terminal.send("\x03")
        terminal.line("/etc/hosts is a file")
        terminal.until("x")
        terminal.until(lambda _: len(server.requests) == 1)
        assert server.requests[0].body["messages"][-1]["content"] == "/etc/hosts is a file"
        terminal.line("/quit")
        assert terminal.ended() == 0


def test_f9_14_typing_while_a_turn_runs_is_queued(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("one", delay=1.5), say("two")])
    with shell(server.base_url, cwd=tmp_path) as terminal:
        terminal.until("❯")
        terminal.line("first")
        terminal.until("working")
        terminal.line("second")
        terminal.until("queued: second")
        terminal.line("/queue")
        terminal.until("Waiting")
        terminal.until("two")
    assert [seen.body["messages"][-1]["content"] for seen in server.requests] == ["first", "second"]


@pytest.mark.parametrize("key", ["\x1b", "\x03"])
def test_f4_10_escape_and_ctrl_c_stop_the_turn_and_the_shell_goes_on(key: str, serve: Serve, tmp_path: Path) -> None:
    server = serve([hang(60), say("fine")])
    with shell(server.base_url, cwd=tmp_path) as terminal:
        terminal.until("❯")
        terminal.line("wait")
        terminal.until(lambda _: len(server.requests) == 1)
        terminal.send(key)
        assert terminal.until("✗ cancelled") < 2
        terminal.until(lambda _: server.open_requests == 0, 3)
        terminal.line("next")
        terminal.until("fine")


@pytest.mark.parametrize("where", ["tool", "back-off", "approval"])
def test_f4_10_escape_stops_a_tool_a_back_off_and_a_question(where: str, serve: Serve, tmp_path: Path) -> None:
    sleep = call("terminal", {"command": "echo $$ > pid; exec sleep 300"})
    script = {
        "tool": [sleep],
        "back-off": [status(500, "boom")],
        "approval": [call("terminal", {"command": "touch x"})],
    }
    words = {"tool": "working", "back-off": "try 2 in", "approval": "1 yes, this once"}
    server = serve([*script[where], say("fine")])
    mode = "yolo" if where == "tool" else "ask"
    with shell(server.base_url, "--mode", mode, cwd=tmp_path) as terminal:
        terminal.until("❯")
        terminal.line("go")
        terminal.until(words[where])
        terminal.until(lambda _: where != "tool" or (tmp_path / "pid").exists())
        terminal.send("\x1b")
        assert terminal.until("✗ cancelled") < 2
        terminal.line("next")
        terminal.until("fine")
    assert not (tmp_path / "x").exists()
    if where == "tool":
        assert not Path(f"/proc/{int((tmp_path / 'pid').read_text())}").exists()


def test_f9_4_ctrl_c_clears_the_draft_recoverably_then_asks_then_leaves(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("x")])
    with shell(server.base_url, cwd=tmp_path) as terminal:
        terminal.until("❯")
        terminal.send("my draft")
        terminal.until("❯ my draft")
        terminal.send("\x03")
        terminal.until(lambda t: "❯ my draft" not in t.screen)
        terminal.send("\x1b[A")
        terminal.until("❯ my draft")
        terminal.send("\x03")
        terminal.send("\x03")
        terminal.until("again to leave")
        terminal.send("\x03")
        assert terminal.ended() == 0
    assert server.requests == []


def test_an_approval_changes_the_prompt_and_is_answered_there(serve: Serve, tmp_path: Path) -> None:
    server = serve([call("terminal", {"command": "touch made"}), say("done"), say("maybe")])
    with shell(server.base_url, cwd=tmp_path) as terminal:
        terminal.until("❯")
        terminal.line("make it")
        terminal.until("1 yes, this once")
        assert "touch made" in terminal.screen
        assert not (tmp_path / "made").exists()
        time.sleep(0.5)
        terminal.line("perhaps")
        terminal.until("queued: perhaps")
        terminal.line("1")
        terminal.until("done")
        assert (tmp_path / "made").exists()
        assert server.wait_until(lambda: len(server.requests) == 3, 10)
        assert server.requests[-1].last["content"] == "perhaps"


def test_a_stopped_turn_says_what_becomes_of_what_was_queued(serve: Serve, tmp_path: Path) -> None:
    server = serve([hang(60), say("told")])
    with shell(server.base_url, "--linear", cwd=tmp_path) as terminal:
        terminal.until("/quit leaves")
        terminal.line("first")
        server.wait_until(lambda: len(server.requests) == 1)
        terminal.line("second")
        terminal.until("queued: second")
        terminal.send("\x03")
        terminal.until("1 queued stays: /queue send, /queue clear")
        terminal.line("/queue send")
        terminal.until("told")
    assert server.requests[-1].last["content"].endswith("second")


def test_a_question_answered_is_not_asked_again(serve: Serve, tmp_path: Path) -> None:
    server = serve([call("terminal", {"command": "touch made; sleep 0.5"}), say("done", first_delay=0.5)])
    with shell(server.base_url, "--linear", cwd=tmp_path) as terminal:
        terminal.until("/quit leaves")
        terminal.line("make it")
        terminal.until("4 always >")
        time.sleep(0.5)
        terminal.line("1")
        terminal.until("done")
        assert terminal.text.count("4 always >") == 1


def test_a_refusal_tells_the_model_why(serve: Serve, tmp_path: Path) -> None:
    server = serve([call("terminal", {"command": "touch made"}), say("all right")])
    with shell(server.base_url, cwd=tmp_path) as terminal:
        terminal.until("❯")
        terminal.line("make it")
        terminal.until("1 yes, this once")
        time.sleep(0.5)
        terminal.line("n use another name")
        terminal.until("all right")
    assert not (tmp_path / "made").exists()
    assert "use another name" in server.requests[1].body["messages"][-1]["content"]


def test_f9_2_control_codes_of_the_model_reach_no_terminal(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("a\x1b]52;c;aGk=\x07b\x1b[2Jc\x9b31md\x07e\rf")])
    with shell(server.base_url, cwd=tmp_path) as terminal:
        terminal.until("❯")
        terminal.line("go")
        terminal.until("abcde")
        assert b"\x1b]52" not in terminal.raw
        assert b"\x07" not in terminal.raw


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_f4_7_a_signal_ends_the_shell_and_what_runs(number: signal.Signals, serve: Serve, tmp_path: Path) -> None:
    command = "echo $$ > pid; exec sleep 300"
    server = serve([call("terminal", {"command": command}), say("x")])
    with shell(server.base_url, "--mode", "yolo", cwd=tmp_path) as terminal:
        terminal.until("❯")
        terminal.line("go")
        terminal.until(lambda _: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip() != "")
        terminal.signal(number)
        assert terminal.ended() == 130
    pid = int((tmp_path / "pid").read_text())
    assert not Path(f"/proc/{pid}").exists()


def test_quitting_while_a_request_hangs_is_quick(serve: Serve, tmp_path: Path) -> None:
    server = serve([hang(60)])
    with shell(server.base_url, cwd=tmp_path) as terminal:
        terminal.until("❯")
        terminal.line("go")
        terminal.until(lambda _: len(server.requests) == 1)
        terminal.line("/quit")
        terminal.until("Once more")
        began = time.monotonic()
        terminal.line("/quit")
        assert terminal.ended() == 0
        assert time.monotonic() - began < 3


def test_a_chat_is_resumed_with_its_last_answer(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("the answer is 42"), say("still 42")])
    with shell(server.base_url, cwd=tmp_path) as terminal:
        terminal.until("❯")
        terminal.line("question")
        terminal.until("the answer is 42")
        terminal.send("\x04")
        terminal.ended()
    with shell(server.base_url, "--continue", cwd=tmp_path) as terminal:
        terminal.until("Going on with question")
        terminal.until("the answer is 42")
        terminal.line("sure?")
        terminal.until("still 42")
        terminal.line("/new")
        terminal.until("A new chat.")
        terminal.line("/resume question")
        terminal.until(lambda t: t.text.count("Going on with question") == 2)
    roles = [message["role"] for message in server.requests[1].body["messages"]]
    assert roles[-3:] == ["user", "assistant", "user"]


# -- plain lines --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("term", "args"), [("dumb", ("repl",)), ("xterm", ("--linear",)), ("dumb", ())])
def test_f12_10_plain_lines_on_a_dumb_terminal_and_for_screen_readers(
    term: str, args: tuple[str, ...], serve: Serve, tmp_path: Path
) -> None:
    server = serve([call("terminal", {"command": "touch made"}), say("done\nit is")])
    flags = ("--base-url", server.base_url, "-m", "scripted")
    with Terminal(*args, *flags, cwd=tmp_path, term=term) as terminal:
        terminal.until("\n>")
        terminal.line("make it")
        terminal.until("1 yes, this once")
        time.sleep(0.5)
        terminal.line("y")
        terminal.until("it is")
        terminal.send("\x04")
        assert terminal.ended() == 0
    assert (tmp_path / "made").exists()
    assert "❯" not in terminal.text
    assert b"\x1b" not in terminal.raw.replace(b"\x1b[2m", b"").replace(b"\x1b[0m", b"").replace(b"\x1b[1m", b"")
    if term == "dumb":
        assert b"\x1b" not in terminal.raw


def test_plain_lines_stop_on_ctrl_c_and_leave_on_two(serve: Serve, tmp_path: Path) -> None:
    server = serve([hang(60), say("fine")])
    with Terminal("--linear", "--base-url", server.base_url, "-m", "scripted", cwd=tmp_path) as terminal:
        terminal.until("\n>")
        terminal.line("wait")
        terminal.until(lambda _: len(server.requests) == 1)
        terminal.send("\x03")
        assert terminal.until("x cancelled") < 2
        terminal.line("next")
        terminal.until("fine")
        terminal.send("\x03")
        terminal.until("again to leave")
        terminal.send("\x03")
        assert terminal.ended() == 0


def test_a_killed_turn_is_told_of_when_its_chat_is_opened_again(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("hello", first_delay=60)])
    with shell(server.base_url, cwd=tmp_path) as terminal:
        terminal.until("❯")
        terminal.line("wait for me")
        terminal.until(lambda _: server.open_requests == 1)
        terminal.signal(signal.SIGKILL)
        terminal.ended()
    with shell(server.base_url, "--continue", cwd=tmp_path) as terminal:
        terminal.until("Its last turn was cut off. /retry sends the message again.")
