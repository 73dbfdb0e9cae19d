"""`hermes chat -q`: the answer and nothing else on standard output, truthful exit codes."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from hermes_engine.events import EVENT_TYPES, from_json
from hermes_tui.cli.presses import TOGETHER_SECONDS
from tests.conftest import Serve
from tests.e2e.program import COMMAND, Done, environment, hermes, start
from tests.server.scripted import Seen, call, calls, drop, hang, say, status, stream
from tests.tools.shells import gone

pytestmark = pytest.mark.e2e


def ask(url: str, *args: str, cwd: Path, stdin: str | bytes = "") -> Done:
    """`hermes chat ARGS` on a scripted server."""
    return hermes("chat", "--base-url", url, "-m", "scripted", *args, cwd=cwd, stdin=stdin)


def number_in(file: Path) -> int:
    """The number a command writes there, as soon as it has."""
    deadline = time.monotonic() + 15
    while not (file.exists() and file.read_text().strip()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return int(file.read_text())


def user_texts(seen: Seen) -> list[str]:
    """What the user messages of a request say."""
    return [message["content"] for message in seen.messages if message["role"] == "user"]


def test_f8_11_standard_output_is_the_answer_only(serve: Serve, tmp_path: Path) -> None:
    server = serve([call("terminal", {"command": "ls"}), say("two files\nhere")])
    done = ask(server.base_url, "-q", "what is here?", cwd=tmp_path)
    assert (done.code, done.out) == (0, "two files\nhere\n")
    assert "Run ls" in done.err
    assert user_texts(server.requests[0]) == ["what is here?"]
    assert ask(server.base_url, "-q", "again", "--quiet", cwd=tmp_path).err == ""


def test_the_prompt_comes_from_standard_input(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("yes")])
    ask(server.base_url, "-q", "-", cwd=tmp_path, stdin="from a pipe\nin two lines\n")
    ask(server.base_url, cwd=tmp_path, stdin="no flag\n")
    hermes("--base-url", server.base_url, "-m", "scripted", cwd=tmp_path, stdin=b"bare \xff bytes\r\n")
    assert [user_texts(seen) for seen in server.requests] == [
        ["from a pipe\nin two lines"],
        ["no flag"],
        ["bare \ufffd bytes"],
    ]


@pytest.mark.parametrize("prompt", ["", "  \n "])
def test_an_empty_prompt_is_wrong_usage(prompt: str, serve: Serve, tmp_path: Path) -> None:
    server = serve([say("no")])
    for done in (ask(server.base_url, "-q", prompt, cwd=tmp_path), ask(server.base_url, cwd=tmp_path, stdin=prompt)):
        assert (done.code, done.out) == (2, "")
    assert server.requests == []


def test_json_is_one_object_with_exactly_these_keys(serve: Serve, tmp_path: Path) -> None:
    server = serve(
        [call("terminal", {"command": "ls"}), say("done", usage={"prompt_tokens": 7, "completion_tokens": 3})]
    )
    done = ask(server.base_url, "-q", "x", "--json", cwd=tmp_path)
    value = done.json
    assert list(value) == ["status", "answer", "session_id", "model", "turns", "tool_calls", "usage", "error"]
    assert (value["status"], value["answer"], value["error"]) == ("ok", "done", None)
    assert (value["turns"], value["tool_calls"], value["model"]) == (2, 1, "scripted")
    assert list(value["usage"]) == [
        "prompt_tokens", "completion_tokens", "reasoning_tokens", "tokens_known", "cost_usd", "cost_known",
    ]  # fmt: skip
    assert done.out.count("\n") == 1
    assert hermes("sessions", "list", "--json").json[0]["id"] == value["session_id"]


def test_stream_json_is_one_event_a_line_and_reads_back(serve: Serve, tmp_path: Path) -> None:
    server = serve([call("terminal", {"command": "echo \u2028"}), say("a\u2028b\x9b31m", reasoning="hm")])
    done = ask(server.base_url, "-q", "x", "--stream-json", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    events = [from_json(json.loads(line)) for line in done.out.split("\n")[:-1]]
    names = [type(event).__name__ for event in events]
    assert set(names) <= set(EVENT_TYPES)
    assert names.count("TurnStarted") == names.count("TurnFinished") == 1
    assert "ToolFinished" in names
    assert "\x9b" not in done.out


@pytest.mark.parametrize(
    ("script", "code", "says"),
    [
        ([status(500, "boom")], 1, "500"),
        ([status(401, '{"error": {"message": "bad key"}}')], 1, "401"),
        ([status(404, "model not found")], 1, "model not found"),
        ([say("")], 1, ""),
        ([drop()], 1, ""),
    ],
)
def test_f8_11_a_failure_is_never_exit_0(
    script: list[object], code: int, says: str, serve: Serve, tmp_path: Path
) -> None:
    server = serve(script)
    done = ask(server.base_url, "-q", "x", cwd=tmp_path)
    assert (done.code, done.out) == (code, "")
    assert says in done.err
    assert "Traceback" not in done.err
    assert done.err.splitlines()[-1].startswith("hermes: ")
    assert len([line for line in done.err.splitlines() if not line.startswith("·")]) == 1, "told once"
    value = ask(server.base_url, "-q", "x", "--json", cwd=tmp_path)
    assert value.code == 1
    assert value.json["status"] == "error"
    assert value.json["error"]


def test_the_turn_limit_is_exit_1_with_the_partial_answer(serve: Serve, tmp_path: Path) -> None:
    server = serve([call("terminal", {"command": f"echo {number}"}, text=f"step {number}") for number in range(9)])
    done = ask(server.base_url, "-q", "x", "--max-turns", "2", "--json", cwd=tmp_path)
    assert done.code == 1
    assert done.json["status"] == "max_turns"
    assert done.json["turns"] == 2
    assert len(server.requests) == 2


def test_not_configured_is_exit_2_and_says_how(tmp_path: Path) -> None:
    done = hermes("chat", "-q", "x", cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert "OPENROUTER_API_KEY" in done.err
    assert "demo" in done.err


def test_f9_2_no_raw_control_code_on_standard_output(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("a\x1b]52;c;aGk=\x07b\x1b[2Jc\x9b31md\x07e")])
    assert ask(server.base_url, "-q", "x", cwd=tmp_path).out == "abcde\n"
    raw = ask(server.base_url, "-q", "x", "--json", cwd=tmp_path)
    assert not any(character in raw.out for character in "\x1b\x07\x9b")
    assert raw.json["answer"] == "a\x1b]52;c;aGk=\x07b\x1b[2Jc\x9b31md\x07e"


def test_f2_5_a_lone_surrogate_stops_nothing(serve: Serve, tmp_path: Path) -> None:
    server = serve([stream([{"choices": [{"delta": {"content": "x\ud83d y"}, "finish_reason": "stop"}]}])])
    assert ask(server.base_url, "-q", "x", cwd=tmp_path).out == "x\ufffd y\n"
    assert ask(server.base_url, "-q", "x", "--json", cwd=tmp_path).json["answer"] == "x\ufffd y"


def test_f8_11_a_closed_pipe_is_no_traceback(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("line\n" * 50_000)])
    done = subprocess.run(
        ["bash", "-c", '"$@" | head -1', "bash", *COMMAND, "chat", "-q", "x", "--base-url", server.base_url, "-m", "s"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.stdout == "line\n"
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_ctrl_c_stops_the_turn_with_exit_130_and_the_partial_answer(
    form: list[str], serve: Serve, tmp_path: Path
) -> None:
    server = serve([stream([{"choices": [{"delta": {"content": "half an answer"}}]}, 60.0])])
    running = start("chat", "-q", "x", "--base-url", server.base_url, "-m", "s", *form, cwd=tmp_path)
    deadline = time.monotonic() + 15
    while not server.requests and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1.0)
    running.send_signal(signal.SIGINT)
    began = time.monotonic()
    out, err = running.communicate(timeout=20)
    assert time.monotonic() - began < 3
    assert running.returncode == 130
    assert b"Traceback" not in err
    if form:
        value = json.loads(out)
        assert (value["status"], value["answer"]) == ("cancelled", "half an answer")
    else:
        assert out == b"half an answer\n"
    assert server.open_requests == 0


def test_f8_2_ctrl_c_ends_the_running_command(serve: Serve, tmp_path: Path) -> None:
    server = serve([call("terminal", {"command": "echo $$ > pid; exec sleep 300"}), say("x")])
    running = start("chat", "-q", "x", "--base-url", server.base_url, "-m", "s", cwd=tmp_path)
    pid = number_in(tmp_path / "pid")
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=10)
    assert running.returncode == 130
    assert not Path(f"/proc/{pid}").exists()


def test_nobody_is_asked_and_what_is_risky_is_denied_with_the_reason(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "keep").mkdir()
    (tmp_path / "keep" / "file").write_text("x")
    server = serve([call("terminal", {"command": "rm -rf keep"}), say("I may not")])
    done = ask(server.base_url, "-q", "x", cwd=tmp_path)
    assert (done.code, done.out) == (0, "I may not\n")
    assert "not run: it deletes folders with all they hold; it needs a yes, and nobody is here to answer" in done.err
    assert (tmp_path / "keep" / "file").exists()
    assert server.requests[1].last["role"] == "tool"


def test_the_chat_is_saved_and_goes_on(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("one"), say("two"), say("three")])
    first = ask(server.base_url, "-q", "a", "--json", cwd=tmp_path).json["session_id"]
    assert ask(server.base_url, "-q", "b", "--resume", first, "--json", cwd=tmp_path).json["session_id"] == first
    gone_on = ask(server.base_url, "-q", "c", "--continue", "--json", cwd=tmp_path)
    assert gone_on.json["session_id"] == first
    (other := tmp_path / "other").mkdir()
    anew = ask(server.base_url, "-q", "c", "--continue", cwd=other)
    said = "no chat of this folder is saved: a new one begins"
    assert (anew.code, said in anew.err, said in gone_on.err) == (0, True, False)
    assert user_texts(server.requests[2]) == ["a", "b", "c"]


@pytest.mark.parametrize("wanted", ["nosuch", "../../x", "/etc/passwd", "'; drop table sessions; --"])
def test_f10_6_an_unknown_session_is_exit_2(wanted: str, serve: Serve, tmp_path: Path) -> None:
    server = serve([say("x")])
    done = ask(server.base_url, "-q", "a", "--resume", wanted, cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert server.requests == []


def test_toolsets_are_what_the_flag_says(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("x")])
    ask(server.base_url, "-q", "a", "-t", "file", cwd=tmp_path)
    ask(server.base_url, "-q", "a", "-t", "", cwd=tmp_path)
    ask(server.base_url, "-q", "a", "-t", "all", cwd=tmp_path)
    assert "read_file" in server.requests[0].tools
    assert "terminal" not in server.requests[0].tools
    assert "tools" not in server.requests[1].body
    assert "web_fetch" in server.requests[2].tools
    assert not any(name.startswith("kanban") for name in server.requests[2].tools)


def test_f4_9_background_work_left_running_is_ended_and_named(serve: Serve, tmp_path: Path) -> None:
    command = "echo $$ > pid; exec sleep 300"
    server = serve([call("terminal", {"command": command, "background": True}), say("started")])
    done = ask(server.base_url, "-q", "x", cwd=tmp_path)
    assert (done.code, done.out) == (0, "started\n")
    assert "sleep 300" in done.err
    assert "ended" in done.err
    assert not Path(f"/proc/{int((tmp_path / 'pid').read_text())}").exists()


def test_what_a_command_left_running_is_ended_and_named_in_one_line(serve: Serve, tmp_path: Path) -> None:
    command = "sleep 300 & echo $! > pid; setsid sleep 301 >/dev/null 2>&1 & echo $! > daemon"
    calls_first = call("terminal", {"command": command})
    in_background = call("terminal", {"command": "sleep 303", "background": True})
    server = serve([calls_first, in_background, say("left it")])
    done = ask(server.base_url, "-q", "leave something", "--quiet", cwd=tmp_path)
    assert (done.code, done.out) == (0, "left it\n")
    told = done.err.splitlines()
    numbers = [(tmp_path / name).read_text().strip() for name in ("pid", "daemon")]
    assert told[0] == "hermes: ended, it was still running: sleep 303"
    assert told[1].startswith("hermes: ended what was left running: ")
    assert {f"{number} sleep" for number in numbers} <= set(told[1].partition("running: ")[2].split(", "))
    assert "303" not in told[1]
    assert len(told) == 2
    for number in numbers:
        assert not Path(f"/proc/{number}/cmdline").exists() or not Path(f"/proc/{number}/cmdline").read_bytes()


def test_several_calls_of_one_reply_run(serve: Serve, tmp_path: Path) -> None:
    both = [("terminal", {"command": "echo 1"}), ("terminal", {"command": "echo 2"})]
    server = serve([calls(both), say("x")])
    assert ask(server.base_url, "-q", "a", "--json", cwd=tmp_path).json["tool_calls"] == 2


def test_a_server_that_hangs_is_left_by_a_second_ctrl_c_at_once(serve: Serve, tmp_path: Path) -> None:
    server = serve([hang(60)])
    running = start("chat", "-q", "x", "--base-url", server.base_url, "-m", "s", cwd=tmp_path)
    deadline = time.monotonic() + 15
    while not server.requests and time.monotonic() < deadline:
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    running.send_signal(signal.SIGINT)
    began = time.monotonic()
    running.communicate(timeout=10)
    assert running.returncode == 130
    assert time.monotonic() - began < 3


def test_a_second_wish_to_stop_ends_at_once_and_leaves_no_process(serve: Serve, tmp_path: Path) -> None:
    stubborn = "trap '' TERM INT; (trap '' TERM INT; echo $BASHPID > pid; exec sleep 300) & wait; wait"
    server = serve([call("terminal", {"command": stubborn}), say("x")])
    running = start("chat", "-q", "x", "--base-url", server.base_url, "-m", "s", cwd=tmp_path)
    pid = number_in(tmp_path / "pid")
    running.send_signal(signal.SIGINT)
    time.sleep(TOGETHER_SECONDS + 0.1)  # signals closer than this are one wish
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=10)
    assert running.returncode == 130
    assert gone(pid)


def test_under_nohup_a_dropped_line_stops_nothing(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("still here", first_delay=1.0)])
    running = subprocess.Popen(
        ["nohup", *COMMAND, "chat", "-q", "x", "--base-url", server.base_url, "-m", "s"],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert server.wait_until(lambda: server.open_requests == 1, 15)
    running.send_signal(signal.SIGHUP)
    out, _ = running.communicate(timeout=15)
    assert (running.returncode, out) == (0, b"still here\n")
