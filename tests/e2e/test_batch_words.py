"""What `hermes batch` tells people as a process: one line for each fault, why rows failed, quick ends, no traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from hermes_tui.cli.presses import TOGETHER_SECONDS, Presses
from tests.batch.support import dataset, read_rows
from tests.conftest import Serve
from tests.e2e.program import ROOT, environment, hermes, start
from tests.e2e.terminal import Terminal
from tests.server.scripted import Answer, Seen, say, status

pytestmark = pytest.mark.e2e

FLAGS = ("--dataset_file", "d.jsonl", "--batch_size", "5", "--run_name", "r", "--model", "m", "--plain")


def test_why_rows_failed_stands_on_the_screen(serve: Serve, tmp_path: Path) -> None:
    """A count of `key_refused` alone helps nobody; the first row of each kind speaks for the others."""

    def script(seen: Seen) -> Answer:
        if "bad" in str(seen.messages[-1]["content"]):
            return status(400, {"error": {"message": "no such\x1b[31m parameter"}})
        return say("Yes.", "hm")

    server = serve(script)
    dataset(tmp_path / "d.jsonl", ["a", "bad 1", "bad 2"])
    done = hermes("batch", "run", *FLAGS, "--base_url", server.base_url, cwd=tmp_path)
    assert done.code == 1
    lines = done.out.splitlines()
    place = lines.index("failed: rejected_request 2")
    assert lines[place + 1].startswith("  rejected_request: HTTP 400 from ")
    assert "no such" in lines[place + 1]
    assert "\x1b" not in done.out + done.err


def test_unknown_cost_is_not_shown_as_nothing(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("Yes.", "hm", usage=None)])
    dataset(tmp_path / "d.jsonl", ["a"])
    assert hermes("batch", "run", *FLAGS, "--base_url", server.base_url, cwd=tmp_path).code == 0
    shown = {row[0]: row[1] for row in hermes("batch", "show", "r", cwd=tmp_path).rows}
    assert (shown["tokens"], shown["cost"]) == ("unknown", "unknown")


def test_a_resume_under_a_cap_that_is_reached_is_not_advised(serve: Serve, tmp_path: Path) -> None:
    """It would end at once: what is advised has to work."""
    server = serve(lambda seen: say("Yes.", "hm", usage={"prompt_tokens": 600, "completion_tokens": 400}))
    dataset(tmp_path / "d.jsonl", [f"p{number}" for number in range(9)])
    cap = ("--max_total_tokens", "2000", "--num_workers", "1")
    done = hermes("batch", "run", *FLAGS, *cap, "--base_url", server.base_url, cwd=tmp_path)
    assert done.err.splitlines()[-1] == (
        "go on under a higher cap: hermes batch run --resume --run_name r --max_total_tokens …"
    )
    resume = ("batch", "run", "--resume", "--run_name", "r", "--plain", "--max-total-tokens")
    assert hermes(*resume, "none", cwd=tmp_path).out.splitlines()[-2] == (
        "kept 9 · rejected 0 · failed 0 · invalid 0 · pending 0 · total 9"
    )
    assert "'many' is not a valid integer" in hermes(*resume, "many", cwd=tmp_path).err


def test_help_tells_what_a_run_has_without_a_flag(tmp_path: Path) -> None:
    told = " ".join(hermes("batch", "run", "-h", cwd=tmp_path).out.split())
    for words in (
        "Prompts in flight at once. [default: 4]",
        "before the run stops. [default: 3600]",
        "[default: data]",
    ):
        assert words in told
    assert "[default" not in hermes("batch", "retry", "-h", cwd=tmp_path).out, "it has what its run has"


def test_a_replay_nobody_reads_to_its_end_leaves_no_folder(tmp_path: Path) -> None:
    dataset(tmp_path / "d.jsonl", [f"p{number}" for number in range(40)])
    flags = ("--dataset_file", "d.jsonl", "--batch_size", "40", "--run_name", "r", "--model", "demo", "--record")
    assert hermes("batch", "run", *flags, "--plain", cwd=tmp_path).code == 0
    rows = tmp_path / "rows"
    rows.mkdir()
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m hermes_tui.cli batch replay r --no_tools --json | head -c 20"],
        cwd=tmp_path, env=environment(TMPDIR=str(rows)), capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout == b'{"index": 0, "sample'
    assert list(rows.iterdir()) == []
    ended = start("batch", "replay", "r", cwd=tmp_path, TMPDIR=str(rows))
    while not list(rows.iterdir()):
        time.sleep(0.01)
    ended.terminate()
    _out, err = ended.communicate(timeout=30)
    assert (ended.returncode, err) == (130, b"hermes: stopped\n")
    assert list(rows.iterdir()) == []


def test_distributions_as_json(tmp_path: Path) -> None:
    told = hermes("batch", "run", "--list_distributions", "--json", cwd=tmp_path).json
    assert {name: value for name, value in told[3].items() if name != "description"} == {
        "name": "web_only",
        "toolsets": {"web": 100},
    }


def test_an_export_into_no_folder_is_one_line(serve: Serve, tmp_path: Path) -> None:
    dataset(tmp_path / "d.jsonl", ["a"])
    assert hermes("batch", "run", *FLAGS[:-3], "--model", "demo", cwd=tmp_path).code == 0
    done = hermes("batch", "export", "r", "-o", "nowhere/out.jsonl", cwd=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert done.err == "hermes: cannot write nowhere/out.jsonl: No such file or directory\n"


def test_a_pipe_as_dataset_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    flags = ("--dataset_file", "pipe", "--batch_size", "5", "--run_name", "r", "--model", "demo")
    done = hermes("batch", "run", *flags, cwd=tmp_path, timeout=20)
    assert (done.code, done.out) == (2, "")
    assert "a pipe cannot be resumed" in done.err


@pytest.mark.parametrize("delay", [0.03, 0.08, 0.15, 0.3, 0.6, 1.2])
def test_f1_8_many_presses_at_any_moment_leave_no_traceback(serve: Serve, tmp_path: Path, delay: float) -> None:
    server = serve([say("Yes.", "hm", first_delay=0.05)])
    dataset(tmp_path / "d.jsonl", [f"p{number}" for number in range(60)])
    command = [sys.executable, str(ROOT / "batch_runner.py"), *FLAGS, "--base_url", server.base_url]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    time.sleep(delay)
    begun = (tmp_path / "data").exists()  # before that, Python itself may be the one to hear the signal
    for _ in range(4):
        process.send_signal(signal.SIGINT)
        time.sleep(0.01)
    _, told = process.communicate(timeout=15)
    assert process.returncode == 130 or not begun
    assert b"Traceback" not in told or not begun
    done = hermes("batch", "run", "--resume", *FLAGS, "--base_url", server.base_url, cwd=tmp_path)
    assert done.code == 0
    assert len(read_rows(tmp_path / "data" / "r" / "trajectories.jsonl")) == 60


def test_a_second_interrupt_says_where_the_rows_are(serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda seen: say("Yes.", "hm", first_delay=0.0 if "p0" in str(seen.messages[-1]) else 30.0))
    dataset(tmp_path / "d.jsonl", [f"p{number}" for number in range(4)])
    command = [sys.executable, str(ROOT / "batch_runner.py"), *FLAGS, "--base_url", server.base_url]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    folder = tmp_path / "data" / "r"
    assert server.wait_until(lambda: (folder / "batch_0.jsonl").exists(), 20)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    while b"stopping: rows in flight" not in process.stderr.readline():
        assert process.poll() is None
    time.sleep(2 * TOGETHER_SECONDS)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=15)
    assert process.returncode == 130
    assert b"the rows are in its batch files" in out
    assert b"trajectories.jsonl" not in out
    checkpoint = json.loads((folder / "checkpoint.json").read_text())
    assert (checkpoint["state"], checkpoint["rows"]["kept"]) == ("interrupted", 1)


def test_odds_are_drawn_beside_what_was_drawn(tmp_path: Path) -> None:
    dataset(tmp_path / "d.jsonl", [f"p{number}" for number in range(40)])
    flags = ("--dataset_file", "d.jsonl", "--batch_size", "50", "--run_name", "r", "--model", "demo", "--quiet")
    assert hermes("batch", "run", *flags, "--distribution", "research", cwd=tmp_path).code == 0
    figures = hermes("batch", "show", "r", "--json", cwd=tmp_path).json["statistics"]
    assert "stated" not in hermes("batch", "show", "r", cwd=tmp_path).out, "only at a terminal"
    with Terminal("batch", "show", "r", cwd=tmp_path, columns=90, rows=40) as terminal:
        terminal.ended()
        shown = terminal.text
    lines = shown[shown.index("toolsets of the rows that ran") :].splitlines()[1:9]
    assert [line.split()[-1] for line in lines if "stated" in line] == ["30.0%", "60.0%", "95.0%", "30.0%"]
    drawn = {name: f"{figures['toolset_draws'].get(name, 0) / 40:.1%}" for name in ("terminal", "file", "web", "todo")}
    assert [line.split()[-1] for line in lines if "drawn" in line] == list(drawn.values())


def test_who_presses_again_and_again_insists(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal that came twice is one wish; presses five times a second are more than one."""
    times = iter([10.0, 10.0, 10.2, 10.4, 10.6, 10.8])
    monkeypatch.setattr("hermes_tui.cli.presses.time", SimpleNamespace(monotonic=lambda: next(times)))
    pressed = Presses()
    assert [pressed.press() for _ in range(6)] == [1, 1, 1, 2, 2, 3]
