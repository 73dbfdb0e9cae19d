"""The app through a pseudo terminal, against a scripted server: a person's session, key by key."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Serve
from tests.e2e.app import READY, AppTerminal
from tests.server.answers import chunk
from tests.server.scripted import Answer, ScriptedServer, Seen, call, drop, hang, say, status, stream

pytestmark = pytest.mark.e2e


def app(server: ScriptedServer, *args: str, cwd: Path, columns: int = 100, rows: int = 30, **env: str) -> AppTerminal:
    """The app on a scripted server."""
    options = ("--base-url", server.base_url, "-m", "scripted", *args)
    return AppTerminal(*options, columns=columns, rows=rows, cwd=cwd, **env)


def users(server: ScriptedServer, request: int = -1) -> list[str]:
    """The user messages of a request."""
    body: dict[str, Any] = server.requests[request].body
    return [message["content"] for message in body["messages"] if message["role"] == "user"]


def test_type_stream_and_leave(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("# Title\n\nfirst **bold** words\n\n- one\n- two", chunks=6, delay=0.05)])
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.press(*"hello there", "enter")
        terminal.shows("first bold words")
        terminal.shows("• two")
        terminal.idle()
        assert "▌ hello there" in terminal.screen
        terminal.press("ctrl+d")
        code, seconds = terminal.left()
        assert code == 0
        assert seconds < 2
        assert terminal.restored
    assert users(server) == ["hello there"]


def test_tool_card_opens_and_a_question_is_answered(serve: Serve, tmp_path: Path) -> None:
    server = serve([call("terminal", {"command": "touch made && echo hello from here"}), say("It is done.")])
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.press(*"make it", "enter")
        terminal.shows("Hermes asks")
        assert "touch made && echo hello from here" in terminal.screen
        time.sleep(0.6)
        terminal.press("1")
        terminal.shows("It is done.")
        assert (tmp_path / "made").exists()
        terminal.press("ctrl+o")
        terminal.shows("hello from here")
        terminal.press("ctrl+d")
        assert terminal.left()[0] == 0


def test_refused_with_a_reason_the_model_hears(serve: Serve, tmp_path: Path) -> None:
    server = serve([call("terminal", {"command": "touch made"}), say("Understood.")])
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.press(*"make it", "enter")
        terminal.shows("Hermes asks")
        time.sleep(0.6)
        terminal.press("3")
        terminal.shows("why not ❯")
        terminal.press(*"use python instead", "enter")
        terminal.shows("Understood.")
        assert not (tmp_path / "made").exists()
        assert "use python instead" in str(server.requests[-1].body["messages"][-1])
        terminal.press("ctrl+d")
        assert terminal.left()[0] == 0


def test_esc_in_mid_stream(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("word " * 400, chunks=400, delay=0.02), say("second answer")])
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.press(*"go", "enter")
        terminal.shows("word word")
        terminal.press("escape")
        assert terminal.shows("Stopped.") < 1.0
        terminal.when(lambda: server.open_requests == 0, 2)
        terminal.press(*"again", "enter")
        terminal.shows("second answer")
        terminal.press("ctrl+d")
        assert terminal.left()[0] == 0
    roles = [message["role"] for message in server.requests[-1].body["messages"]]
    assert roles[-3:] == ["user", "assistant", "user"]


def test_f4_10_esc_in_mid_tool(serve: Serve, tmp_path: Path) -> None:
    server = serve([call("terminal", {"command": "echo begun; sleep 300"}), say("after")])
    with app(server, "--mode", "auto", cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.press(*"go", "enter")
        terminal.shows("begun")
        terminal.press("escape")
        assert terminal.shows("Stopped.") < 2.0
        terminal.press(*"next", "enter")
        terminal.shows("after")
        terminal.press("ctrl+d")
        assert terminal.left()[0] == 0
    roles = [message["role"] for message in server.requests[-1].body["messages"]]
    assert roles[-4:] == ["user", "assistant", "tool", "user"]


def test_f4_10_esc_in_back_off(serve: Serve, tmp_path: Path) -> None:
    server = serve([status(500, {"error": {"message": "down"}}, {"retry-after": "30"}), say("fine now")])
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.press(*"go", "enter")
        terminal.shows("Trying again in")
        terminal.press("escape")
        assert terminal.shows("Stopped.") < 2.0
        terminal.press(*"next", "enter")
        terminal.shows("fine now")


def test_f9_4_ctrl_c_stops_then_leaves(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("word " * 400, chunks=400, delay=0.02)])
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.press(*"go", "enter")
        terminal.shows("word word")
        terminal.press("ctrl+c")
        terminal.shows("Stopped.")
        assert terminal.process.isalive()
        terminal.press("ctrl+c")
        code, seconds = terminal.left()
        assert (code, seconds < 2) == (0, True)
        assert terminal.restored


def test_f9_4_ctrl_c_clears_the_draft_and_up_brings_it_back(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("x")])
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.press(*"a half written thought")
        terminal.shows("a half written thought")
        terminal.press("ctrl+c")
        terminal.gone("a half written thought")
        terminal.press("up")
        terminal.shows("a half written thought")
        time.sleep(3.2)
        terminal.press("ctrl+c")
        terminal.gone("a half written thought")
        assert terminal.process.isalive()
        terminal.press("ctrl+c")
        assert terminal.left()[0] == 0


def test_f9_11_quit_while_a_request_hangs(serve: Serve, tmp_path: Path) -> None:
    server = serve([hang(60)])
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.press(*"go", "enter")
        terminal.shows("Esc stops")
        terminal.when(lambda: server.open_requests == 1)
        terminal.press("ctrl+d")
        terminal.shows("still runs")
        terminal.press("1")
        code, seconds = terminal.left()
        assert code == 0
        assert seconds < 2
        assert terminal.restored


def test_f9_11_quit_while_a_tool_runs_ends_its_processes(serve: Serve, tmp_path: Path) -> None:
    server = serve([call("terminal", {"command": "echo $$ > pid; exec sleep 300"})])
    with app(server, "--mode", "auto", cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.press(*"go", "enter")
        pid_file = tmp_path / "pid"
        terminal.when(lambda: pid_file.exists() and pid_file.read_text().strip() != "")
        pid = int(pid_file.read_text())
        terminal.press("ctrl+d")
        terminal.shows("still runs")
        terminal.press("ctrl+c")
        assert terminal.left()[1] < 2.2
    assert not Path(f"/proc/{pid}").exists()


def test_resize_keeps_the_text_once(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("alpha beta gamma " * 12 + "omega")])
    with app(server, cwd=tmp_path, columns=80, rows=24) as terminal:
        terminal.shows(READY)
        terminal.press(*"go", "enter")
        terminal.shows("omega")
        for columns, rows in ((40, 12), (130, 40), (20, 5), (1, 1), (80, 24)):
            terminal.resize(columns, rows)
            terminal.pump(0.3)
            assert terminal.process.isalive()
        terminal.shows("omega")
        assert terminal.screen.count("omega") == 1
        terminal.press("ctrl+d")
        assert terminal.left()[0] == 0


def test_f3_7_a_message_while_busy_is_queued_and_sent(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("first answer " * 30, chunks=30, delay=0.05), say("second answer")])
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.press(*"one", "enter")
        terminal.shows("first answer")
        terminal.press(*"two", "enter")
        terminal.shows("queued 1  two")
        terminal.press("up")
        terminal.gone("queued 1")
        terminal.shows("❯ two")
        terminal.press("enter")
        terminal.shows("queued 1  two")
        terminal.shows("second answer")
    assert users(server) == ["one", "two"]


def test_f9_17_steering_goes_into_the_running_turn_or_becomes_the_next(serve: Serve, tmp_path: Path) -> None:
    server = serve([call("terminal", {"command": "sleep 1.5; echo x"}), say("done with both"), say("late one")])
    with app(server, "--mode", "auto", cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.press(*"one", "enter")
        terminal.shows("Run")
        terminal.press(*"also this", "ctrl+s")
        terminal.shows("▌ also this")
        terminal.shows("done with both")
        assert users(server) == ["one", "also this"]
        assert terminal.screen.count("also this") == 1
        terminal.press(*"when idle", "ctrl+s")
        terminal.shows("late one")
    assert users(server) == ["one", "also this", "when idle"]


def test_what_is_typed_right_after_ctrl_s_is_another_draft(serve: Serve, tmp_path: Path) -> None:
    server = serve([call("terminal", {"command": "sleep 1.5; echo x"}), say("done with both")])
    with app(server, "--mode", "auto", cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.press(*"one", "enter")
        terminal.shows("Run")
        terminal.send("also this\x13and then\x13a draft")
        terminal.shows("▌ and then")
        terminal.shows("done with both")
        assert "❯ a draft" in terminal.screen
    assert users(server) == ["one", "also this\n\nand then"], "one message: some chat templates refuse two in a row"


@pytest.mark.parametrize(
    "fault",
    [
        drop(),
        status(401, {"error": {"message": "bad key"}}),
        stream([chunk({"content": "half an answer"})], end="cut"),
    ],
    ids=["connection", "401", "cut"],
)
def test_f9_16_busy_ends_after_an_error(serve: Serve, tmp_path: Path, fault: Any) -> None:
    def script(seen: Seen) -> Answer:
        asked = [message for message in seen.body["messages"] if message["role"] == "user"]
        return say("works again") if "two" in asked[-1]["content"] else fault

    server = serve(script)
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.press(*"one", "enter")
        terminal.shows("✗", 30)
        terminal.idle()
        terminal.press(*"two", "enter")
        terminal.shows("works again")


def test_what_is_typed_after_enter_is_the_next_message(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("fine")] * 40)
    wanted: list[str] = []
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows(READY)
        for burst in range(20):
            wanted += [f"hello one {burst}", f"hello two {burst}"]
            terminal.send(f"hello one {burst}\rhello two {burst}\r")
            if burst % 3 == 0:
                terminal.pump(0.05)
        terminal.when(lambda: len(server.requests) == 40, timeout=60)
        terminal.idle()
    assert users(server) == wanted


@pytest.mark.parametrize("seed", range(4))
def test_keys_that_arrive_in_any_pieces_make_the_same_messages(serve: Serve, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    server = serve([say("fine")] * 20)
    wanted = [f"text {number} {'word ' * chance.randrange(4)}end" for number in range(20)]
    keys = "".join(f"{text}\r" for text in wanted)
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows("❯")  # there may be no engine yet
        while keys:
            size = chance.choice((1, 2, 3, 7, 40))
            terminal.send(keys[:size])
            keys = keys[size:]
            terminal.pump(chance.choice((0.0, 0.001, 0.004, 0.02)))
        terminal.when(lambda: len(server.requests) == 20, timeout=60)
        terminal.idle()
    assert users(server) == wanted


@pytest.mark.parametrize(
    ("keys", "left"),
    [
        ("bcd\x15z", "z"),
        ("bcd\x01x\x05y", "xbcdy"),
        ("bcd\x1b[D\x1b[Dx", "bxcd"),
        ("foo bar\x17baz\x01\x0bq\x19", "qfoo baz"),
    ],
    ids=["cut to the start", "ends of the line", "arrows", "cut and put back"],
)
def test_keys_that_edit_are_obeyed_before_the_next_one_is_typed(
    serve: Serve, tmp_path: Path, keys: str, left: str
) -> None:
    server = serve([say("yes")])
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.send(f"{keys}\r")
        terminal.shows(f"▌ {left}\n")
        terminal.when(lambda: len(server.requests) == 1)
    assert users(server) == [left]


def test_tasks_typed_ahead_start_once_each(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("fine")] * 3)
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.send("/background count the files\r/background read the notes\rhello\r")
        terminal.when(lambda: len(server.requests) == 3, timeout=30)
        terminal.idle()
    sent = sorted(users(server, number)[-1] for number in range(3))
    assert sent == ["count the files", "hello", "read the notes"]


def test_a_message_typed_ahead_of_a_new_chat_is_for_that_one(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("fine")] * 2)
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.send("the first\r")
        terminal.shows("fine")
        terminal.idle()
        terminal.send("/new\rthe second\r")
        terminal.when(lambda: len(server.requests) == 2)
        terminal.idle()
    assert users(server) == ["the second"]


def test_what_is_typed_ahead_answers_no_question(serve: Serve, tmp_path: Path) -> None:
    server = serve([call("terminal", {"command": "touch made"}), say("It is done."), say("checked"), say("first")])
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.press(*"make it", "enter")
        terminal.shows("Hermes asks")
        terminal.pump(0.6)
        terminal.send("2 more things: check the docs\r1 first\r")
        terminal.shows("1 first")
        terminal.pump(1)
        assert "Hermes asks" in terminal.screen
        assert not (tmp_path / "made").exists()
        terminal.press("1")
        terminal.when(lambda: len(server.requests) == 4)
        assert (tmp_path / "made").exists()
        terminal.idle()
    assert users(server) == ["make it", "2 more things: check the docs", "1 first"]
