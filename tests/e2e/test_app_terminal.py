"""What the app sends to the terminal, and what it makes of what the terminal sends: control codes, pastes, signals."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from hermes_engine.paths import Home
from tests.conftest import Serve
from tests.e2e.app import READY, AppTerminal
from tests.e2e.test_app import app, users
from tests.server.scripted import call, hang, say
from tests.tui.drawing import MARKUP

pytestmark = pytest.mark.e2e

EVIL = "start \x1b]52;c;aGFja2Vk\x07 \x1b[2J \x1b]0;owned\x07 \x9b31m \x07 end"


def test_f9_1_brackets_from_model_and_tool(serve: Serve, tmp_path: Path) -> None:
    text = "\n\n".join(MARKUP)
    server = serve([call("terminal", {"command": "printf '%s' '[/] [bold [@click=app.quit]x[/]'"}), say(text)])
    with app(server, "--mode", "auto", cwd=tmp_path, rows=45) as terminal:
        terminal.shows(READY)
        terminal.press(*"[red]hi[/red] [/]", "enter")
        terminal.shows('{"a":[true,false]}')
        terminal.shows("[@click=app.quit]x[/]")
        assert "▌ [red]hi[/red] [/]" in terminal.screen
        terminal.press("ctrl+o")
        terminal.shows("[/] [bold [@click=app.quit]x[/]")
        assert terminal.process.isalive()
        terminal.press("ctrl+d")
        assert terminal.left()[0] == 0


def test_f9_2_control_codes_of_model_and_tool_never_reach_the_terminal(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "evil").write_text(EVIL)
    server = serve([call("terminal", {"command": "cat evil"}), say(EVIL, reasoning=EVIL)])
    with app(server, "--mode", "auto", cwd=tmp_path) as terminal:
        terminal.shows(READY)
        started = len(terminal.raw)
        terminal.press(*"go", "enter")
        terminal.shows("start")
        terminal.idle()
        terminal.press("ctrl+o")
        terminal.press("ctrl+t")
        terminal.pump(0.5)
        sent = terminal.raw[started:]
        for code in (b"]52;", b"\x1b[2J", b"]0;owned", b"\xc2\x9b", b"\x07"):
            assert code not in sent, code
        terminal.press("escape", "ctrl+d")
        assert terminal.left()[0] == 0


def test_f9_2_an_approval_shows_control_codes_as_escapes(serve: Serve, tmp_path: Path) -> None:
    server = serve([call("terminal", {"command": "rm x \u202e \x1b[8m hidden"}), say("ok")])
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.press(*"go", "enter")
        terminal.shows("Hermes asks")
        assert "\\u202e" in terminal.screen
        assert "\\x1b[8m hidden" in terminal.screen


TITLE, PROGRESS = rb"\x1b\]2;Hermes (\d+)%\x1b\\\\", rb"\x1b\]9;4;1;(\d+)\x1b\\\\"


@pytest.mark.parametrize("typed", ["1\r", "2\r"])
def test_a_digit_and_enter_in_one_burst_are_no_answer_and_no_message(typed: str, serve: Serve, tmp_path: Path) -> None:
    server = serve([call("terminal", {"command": "touch made"}), say("done")])
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.press(*"go", "enter")
        terminal.shows("touch may change something")
        terminal.pump(0.6)
        terminal.send(typed)
        terminal.shows("press it again")
        assert "queued" not in terminal.screen
        assert not (tmp_path / "made").exists()
        terminal.press(typed[0], pause=0.2)
        terminal.press("enter", pause=0.2)
        terminal.shows("done")
        terminal.idle()
        assert (tmp_path / "made").exists()
        assert users(server) == ["go"]
        terminal.press("ctrl+d")
        assert terminal.left()[0] == 0


@pytest.mark.parametrize("at_once", [False, True])
def test_the_terminal_shows_how_far_a_batch_is_and_is_cleared(serve: Serve, tmp_path: Path, at_once: bool) -> None:
    server = serve([say("row answer")] * 3 + [hang(60 if at_once else 0.5)])
    (tmp_path / "prompts.jsonl").write_text("".join(f'{{"prompt": "number {n}"}}\n' for n in range(4)))
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows(READY)
        assert b"\x1b]9;4" not in terminal.raw
        terminal.press(*"/batch prompts.jsonl", "enter")
        terminal.until(lambda seen: b"]9;4;1;75" in seen.raw, 60)
        if not at_once:
            terminal.until(lambda seen: b"]9;4;0" in seen.raw, 60)
        terminal.press("ctrl+d")
        terminal.pump(0.3)
        if at_once:
            terminal.press("ctrl+d")
        assert terminal.left()[0] == 0
        sent = terminal.raw
    assert re.findall(TITLE, sent) == re.findall(PROGRESS, sent)
    assert sent.count(b"\x1b[22;2t") == sent.count(b"\x1b[23;2t") == sent.count(b"\x1b]9;4;0\x1b\\") == 1
    assert sent.rindex(b"\x1b]9;4;0") > sent.rindex(b"\x1b]9;4;1")


def test_a_console_without_a_title_is_told_nothing_of_a_batch(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("row answer", reasoning="hm")])
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "one"}\n')
    with app(server, cwd=tmp_path, TERM="linux") as terminal:
        terminal.shows(READY)
        terminal.press(*"/batch prompts.jsonl", "enter")
        terminal.shows("1/1", 60)
        assert b"\x1b]9;4" not in terminal.raw
        assert b"\x1b]2;" not in terminal.raw


def test_leaving_says_how_to_go_on_with_what_was_said(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("an answer"), say("another")])
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.press("ctrl+d")
        assert terminal.left()[0] == 0
        assert b"--resume" not in terminal.raw
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.press(*"one", "enter")
        terminal.shows("an answer")
        terminal.idle()
        terminal.press("ctrl+d")
        assert terminal.left()[0] == 0
        line = terminal.raw[terminal.raw.rindex(b"\x1b[?1049l") :].decode()
    found = re.search(r"To go on with this chat: hermes --resume ([0-9a-z-]+)", line)
    assert found is not None
    with app(server, "--resume", found[1], cwd=tmp_path) as terminal:
        terminal.shows("an answer")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_f9_3_signals_leave_the_terminal_in_order(
    serve: Serve, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    server = serve([call("terminal", {"command": "echo $$ > pid; exec sleep 300"})])
    with app(server, "--mode", "auto", cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.press(*"go", "enter")
        pid_file = tmp_path / "pid"
        terminal.when(lambda: pid_file.exists() and pid_file.read_text().strip() != "")
        pid = int(pid_file.read_text())
        terminal.signal(number)
        left, seconds = terminal.left()
        assert left == code
        assert seconds < 2.2
        assert terminal.restored
    assert not Path(f"/proc/{pid}").exists()


def test_f9_3_a_crash_leaves_the_terminal_in_order_and_a_log(serve: Serve, tmp_path: Path) -> None:
    script = tmp_path / "crash.py"
    script.write_text(
        "import sys\n"
        "from hermes_tui.app import HermesApp\n"
        "def broken(self):\n    raise RuntimeError('broken by the test')\n"
        "HermesApp.action_redraw = broken\n"
        "from hermes_tui.cli import main\n"
        "sys.exit(main(['--model', 'demo']))\n"
    )
    with AppTerminal(str(script), cwd=tmp_path, command=(sys.executable,)) as crashing:
        crashing.shows(READY)
        crashing.shows("demo")
        crashing.press("ctrl+l")
        code, seconds = crashing.left()
        assert code == 1
        assert seconds < 3
        assert crashing.restored
        assert "an unexpected error ended the app: broken by the test" in crashing.text
        assert "Traceback" not in crashing.text
    assert "RuntimeError: broken by the test" in (Home.from_env().logs / "app.log").read_text()


def test_f9_7_pastes_through_a_real_terminal(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("one"), say("two"), say("three")])
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.paste("a\nb\n")
        terminal.shows("❯ a")
        terminal.pump(0.3)
        assert server.requests == []
        terminal.press("enter")
        terminal.shows("one")
        assert users(server) == ["a\nb\n"]
        many = "".join(f"line {number} of the paste\n" for number in range(5000))
        began = time.monotonic()
        terminal.paste(many)
        terminal.shows("[Pasted 5,000 lines")
        assert time.monotonic() - began < 1.5
        terminal.press("enter")
        terminal.shows("two")
        assert users(server)[-1] == many
        odd = "x\r\ny\tz \x1b[31mred\x1b[0m \x1bOP done"
        terminal.paste(odd)
        terminal.shows("[Pasted 2 lines")
        terminal.pump(0.3)
        assert len(server.requests) == 2
        terminal.press("enter")
        terminal.shows("three")
        assert users(server)[-1] == odd


def test_f9_8_new_lines_in_a_plain_terminal(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("here it is")])
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.press("a", "ctrl+j", "b", "alt+enter", "c", "\\", "enter", "d", "shift+enter", "e")
        terminal.shows("e")
        terminal.press("enter")
        terminal.shows("here it is")
    assert users(server) == ["a\nb\nc\nd\ne"]


def test_f9_5_reading_above_while_it_streams(serve: Serve, tmp_path: Path) -> None:
    text = "".join(f"line {number}\n\n" for number in range(120))
    server = serve([say(text, chunks=120, delay=0.04)])
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.press(*"go", "enter")
        terminal.shows("line 40")
        terminal.press("pageup", "pageup")
        terminal.pump(0.3)
        top = read(terminal)
        terminal.pump(1.0)
        assert read(terminal) == top
        terminal.press("ctrl+end")
        terminal.shows("line 119", 20)


def read(terminal: AppTerminal) -> list[str]:
    """The lines of the transcript, without the bar at its right."""
    return [line[:95].rstrip() for line in terminal.screen.splitlines()[3:20]]


def test_f9_12_nothing_is_sent_while_nothing_happens(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("here it is")])
    with app(server, cwd=tmp_path) as terminal:
        terminal.shows(READY)
        terminal.press(*"go", "enter")
        terminal.shows("here it is")
        terminal.idle()
        terminal.pump(1.0)
        before, used = len(terminal.raw), cpu_seconds(terminal.pid)
        terminal.pump(3.0)
        assert len(terminal.raw) == before
        assert cpu_seconds(terminal.pid) - used < 0.15


def cpu_seconds(pid: int) -> float:
    """Processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_f9_10_tiny_terminals_and_back(serve: Serve, tmp_path: Path) -> None:
    server = serve([hang(0.2), say("here it is")])
    with app(server, cwd=tmp_path, columns=20, rows=5) as terminal:
        terminal.pump(1.0)
        terminal.resize(1, 1)
        terminal.pump(0.3)
        terminal.press("f1")
        terminal.resize(20, 5)
        terminal.pump(0.3)
        terminal.press("escape")
        terminal.resize(80, 24)
        terminal.shows(READY)
        terminal.press("ctrl+d")
        assert terminal.left()[0] == 0


def test_the_first_answer_of_a_newcomer(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes\n")
    with AppTerminal(cwd=tmp_path) as terminal:
        terminal.shows("No model is set up yet")
        terminal.press("2")
        terminal.shows("what is in this folder?")
        terminal.press(*"what is in this folder?", "enter")
        terminal.shows("demo model: scripted, no intelligence")
        terminal.shows("notes.md")
        terminal.idle()
        terminal.press("ctrl+d")
        assert terminal.left()[0] == 0


@pytest.mark.parametrize("theme", ["terminal", "hermes-light"])
def test_no_color_leaves_text_in_the_terminals_own_colours(theme: str, serve: Serve, tmp_path: Path) -> None:
    server = serve([call("terminal", {"command": "touch x"}), say("# A **bold** answer\n\n```python\nx = 1\n```")])
    Home.from_env().ensure().config.write_text(f"ui: {{theme: {theme}}}\n")
    with app(server, cwd=tmp_path, NO_COLOR="1") as terminal:
        terminal.shows(READY)
        terminal.press(*"go", "enter")
        terminal.shows("1 Yes")
        terminal.pump(0.6)
        terminal.press("1")
        terminal.shows("x = 1")
        terminal.idle()
        cells = [cell for row in terminal._screen.buffer.values() for cell in row.values()]
        assert {(cell.fg, cell.bg) for cell in cells} == {("default", "default")}
        assert b"\x1b[38;" not in terminal.raw
        terminal.press("ctrl+d")
        assert terminal.left()[0] == 0


def test_the_mouse_is_given_to_the_terminal_and_taken_back_while_the_app_runs(serve: Serve, tmp_path: Path) -> None:
    with app(serve([say("x")]), cwd=tmp_path) as terminal:
        terminal.shows(READY)
        for choice, words, wanted in (
            ("off", "the terminal has it", set[bytes]()),
            ("wheel", "clicks and the wheel", {b"1000", b"1006"}),
            ("on", "the app has it", {b"1000", b"1003", b"1006"}),
        ):
            terminal.press(*f"/mouse {choice}", "enter")
            terminal.shows(f"{choice}: {words}")
            last = dict(re.findall(rb"\x1b\[\?(1000|1003|1006)([hl])", terminal.raw))
            assert {mode for mode, state in last.items() if state == b"h"} == wanted
        terminal.press("ctrl+d")
        assert terminal.left()[0] == 0
        assert terminal.restored


def test_an_unknown_chat_to_resume_is_said_plainly(tmp_path: Path) -> None:
    with AppTerminal("--model", "demo", "--resume", "nosuchchat", cwd=tmp_path) as terminal:
        code, _seconds = terminal.left(20)
        assert code != 0
        assert "nosuchchat" in terminal.text
        assert "Traceback" not in terminal.text
        assert terminal.restored
