"""`hermes batch` and `batch_runner.py` as processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pexpect
import pyte
import pytest

from hermes_tui.cli.presses import TOGETHER_SECONDS
from tests.batch.support import dataset, read_rows
from tests.conftest import Serve
from tests.e2e.program import COMMAND, ROOT, Done, environment, hermes, start
from tests.server.scripted import Seen, call, hang, say, status

pytestmark = pytest.mark.e2e

SANDBOX = r"no sandbox.*: commands of the rows run on this machine, as you|commands of the rows run in .* network"
"""The one line that says where commands run; which one depends on the machine."""


def runner(*args: str, cwd: Path) -> Done:
    """`python batch_runner.py ARGS`."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "batch_runner.py"), *args],
        capture_output=True,
        cwd=cwd,
        env=environment(),
        timeout=60,
        check=False,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def counts(folder: Path) -> dict[str, int]:
    """The rows of the run by state, those that there are."""
    rows = json.loads((folder / "statistics.json").read_text())["rows"]
    return {name: number for name, number in rows.items() if number}


def seed_commands() -> list[list[str]]:
    """The batch commands of the guide as printed, their line ends joined."""
    first = (
        "--dataset_file=data/prompts.jsonl --batch_size=10 --run_name=my_first_run "
        "--model=anthropic/claude-sonnet-4-6 --num_workers=4"
    )
    resumed = "--dataset_file=data/prompts.jsonl --batch_size=10 --run_name=my_first_run --resume"
    atropos = (
        "--dataset_file=data/coding_tasks.jsonl --run_name=atropos_run --model=nous-hermes-3.1 --num_workers=8 "
        "--reasoning_effort=high"
    )
    return [command.split() for command in (first, resumed, atropos)]


def test_the_commands_of_the_guide_run_as_printed(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in ("prompts.jsonl", "coding_tasks.jsonl"):
        (tmp_path / "data" / name).write_bytes((ROOT / "data" / name).read_bytes())
    first, resumed, atropos = seed_commands()

    def demo(command: list[str]) -> list[str]:
        return ["--model=demo" if flag.startswith("--model") else flag for flag in command]

    done = runner(*demo(first), cwd=tmp_path)
    assert done.code == 0
    assert re.fullmatch(f"(?:{SANDBOX})\n", done.err)
    folder = tmp_path / "data" / "my_first_run"
    assert counts(folder) == {"total": 3, "kept": 3}
    names = {"trajectories.jsonl", "batch_0.jsonl", "checkpoint.json", "statistics.json"}
    assert names <= {path.name for path in folder.iterdir()}
    before = (folder / "batch_0.jsonl").read_bytes()
    assert runner(*resumed, cwd=tmp_path).code == 0
    assert (folder / "batch_0.jsonl").read_bytes() == before
    done = runner(*demo(atropos), cwd=tmp_path)
    assert done.code == 0
    assert re.fullmatch(f"--batch_size is not given; 10 prompts to a batch\n(?:{SANDBOX})\n", done.err)
    assert counts(tmp_path / "data" / "atropos_run") == {"total": 5, "kept": 5}


def test_the_example_prompts_run_on_the_embedded_model(tmp_path: Path) -> None:
    prompts = str(ROOT / "examples" / "prompts.jsonl")
    flags = ("--dataset-file", prompts, "--batch-size", "10", "--run-name", "all", "-m", "demo", "--quiet")
    done = hermes("batch", "run", *flags, cwd=tmp_path)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert counts(tmp_path / "data" / "all") == {"total": 30, "kept": 30}
    shown = hermes("batch", "show", "all", "--json", cwd=tmp_path).json
    assert (shown["state"], shown["rows"]["kept"], shown["model"]) == ("done", 30, "demo")
    assert hermes("batch", "list", cwd=tmp_path).rows == [["all", "done", "30/30", "30", "0", "demo"]]
    out = hermes("batch", "export", "all", "--format", "sharegpt", cwd=tmp_path)
    assert out.out == (tmp_path / "data" / "all" / "trajectories.jsonl").read_text()
    assert "30 rows written" in out.err
    to_file = hermes("batch", "export", "all", "-o", "out.jsonl", cwd=tmp_path)
    assert (to_file.code, to_file.out) == (0, "")
    assert (tmp_path / "out.jsonl").read_text() == out.out


def test_shards_are_merged_and_the_missing_one_is_worked_by_a_resume(tmp_path: Path) -> None:
    dataset(tmp_path / "d.jsonl", [f"prompt {number}" for number in range(7)])
    base = ("batch", "run", "--dataset_file=d.jsonl", "--batch_size=2", "--model=demo", "--quiet")
    for part in (1, 3):
        done = hermes(*base, f"--run_name=part{part}", f"--shard={part}/3", cwd=tmp_path)
        assert (done.code, done.err) == (0, "")
    done = hermes("batch", "merge", "whole", "part1", "data/part3", cwd=tmp_path)
    assert done.code == 1
    assert "whole: 2 shards" in done.out
    assert "kept 5 · rejected 0 · failed 0 · invalid 0 · pending 2 · total 7" in done.out
    assert "their rows are pending: shard 2/3" in done.err
    assert "hermes batch run --resume --run_name whole" in done.err
    assert hermes("batch", "run", "--resume", "--run_name=whole", "--quiet", cwd=tmp_path).code == 0
    rows = read_rows(tmp_path / "data" / "whole" / "trajectories.jsonl")
    assert [row["prompt_index"] for row in rows] == list(range(7))
    again = hermes("batch", "merge", "whole", "part1", cwd=tmp_path)
    assert (again.code, "exists already in data — take another name" in again.err) == (2, True)
    assert hermes(*base, "--run_name=part2", "--shard=2/3", cwd=tmp_path).code == 0
    batch = tmp_path / "data" / "part2" / "batch_0.jsonl"
    batch.write_bytes(batch.read_bytes().splitlines(keepends=True)[0])
    half = hermes("batch", "merge", "half", "part1", "part2", "part3", cwd=tmp_path)
    assert (half.code, "pending 1 " in half.out, "--resume --run_name half" in half.err) == (1, True, True)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["run"], "--run_name is needed"),
        (["run", "--run_name", "x"], "--dataset_file is needed"),
        (["run", "--run_name", "x", "--dataset_file", "none.jsonl"], "none.jsonl"),
        (["run", "--run_name", "x", "--dataset_file", "d.jsonl", "--batch_size", "0"], "--batch_size"),
        (["run", "--run_name", "x", "--dataset_file", "d.jsonl", "--batch_size", "-1"], "--batch_size"),
        (["run", "--run_name", "x", "--dataset_file", "d.jsonl", "--distribution", "nosuch"], "balanced"),
        (["run", "--run_name", "../x", "--dataset_file", "d.jsonl"], "run_name"),
        (["run", "--run_name", "x", "--engine", "bogus"], "'threads', 'ray'"),
        (["run", "--run_name", "x", "--num_generations", "0"], "--num_generations: 0 is too small"),
        (["run", "--run_name", "x", "--sandbox", "bogus"], "bubblewrap"),
        (["run", "--run_name", "x", "--dataset_file", "d.jsonl", "--image", "a"], "--image is for --sandbox container"),
        (["run", "--run_name", "x", "--shard", "3/2"], "--shard: 3/2 is no part"),
        (
            ["run", "--run_name", "x", "--base_url", "http://a/v1,http://b/v1", "--api_key", "k"],
            "--api_key is given 1 times for 2 --base_url",
        ),
        (["run", "--run_name", "x", "--sampling", "[1]"], "no JSON object"),
        (["run", "--run_name", "x", "--extra_body", "{"], "not JSON"),
        (["run", "--run_name", "x", "--sampling", "none.json"], "neither a JSON object nor a file"),
        (["run", "--run_name", "x", "--extra_body", '{"model": "y"}'], "model cannot be set here"),
        (["run", "--run_name", "x", "--reasoning_effort", "huge"], "xhigh"),
        (["run", "--run_name", "x", "--nosuch", "1"], "--nosuch"),
        (["run", "--run_name", "x", "--filter", "tidy"], "--filter: unknown filter 'tidy'"),
        (["filter", "nosuch", "finished"], "unknown run"),
        (["replay", "nosuch"], "unknown run"),
        (["report", "nosuch"], "unknown run"),
        (["show", "nosuch"], "unknown run"),
        (["export", "nosuch"], "unknown run"),
        (["stop", "nosuch"], "unknown run"),
        (["retry", "nosuch"], "unknown run"),
        (["run", "--run_name", "x", "--dataset_file", "d.jsonl"], "no model is set up"),
        ([], "needs a verb"),
    ],
)
def test_wrong_usage_is_one_line_and_writes_nothing(tmp_path: Path, args: list[str], says: str) -> None:
    dataset(tmp_path / "d.jsonl", ["a"])
    done = hermes("batch", *args, cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    last = done.err.splitlines()[-1]
    assert says in last
    assert "Traceback" not in done.err
    assert len([line for line in done.err.splitlines() if not line.startswith("--batch_size is not")]) == 1
    assert not (tmp_path / "data").exists()


def test_an_unknown_export_format(tmp_path: Path) -> None:
    done = hermes("batch", "export", "any", "--format", "nosuch", cwd=tmp_path)
    assert done.code == 2
    assert "sharegpt" in done.err


def test_filters_are_tried_on_a_finished_run(tmp_path: Path) -> None:
    dataset(tmp_path / "d.jsonl", ["one file", "two\x1b[31m files"])
    flags = ("--dataset_file", "d.jsonl", "--batch_size", "5", "--run_name", "r", "--model", "demo", "--quiet")
    assert hermes("batch", "run", *flags, "--filter", "max_turns:9", cwd=tmp_path).code == 0
    done = hermes("batch", "filter", "r", "max_turns:0", "finished", "-o", "kept.jsonl", cwd=tmp_path)
    assert done.code == 0
    assert "all together keep 0 of 2" in done.out
    assert "max_turns:0 · row 1, sample 0: " in done.out
    assert "\x1b" not in done.out
    assert read_rows(tmp_path / "kept.jsonl") == []
    assert hermes("batch", "report", "r", cwd=tmp_path).out == "r.html\n"
    assert "All 2 rows that ended are here." in (tmp_path / "r.html").read_text()
    done = hermes("batch", "filter", "r", "finished", "--json", cwd=tmp_path)
    assert json.loads(done.out) == {
        "rows": 2,
        "kept": 2,
        "filters": [{"filter": "finished", "dropped": 0, "examples": []}],
    }


def test_a_recorded_run_is_replayed(tmp_path: Path) -> None:
    dataset(tmp_path / "d.jsonl", ["one", "two"])
    flags = ("--dataset_file", "d.jsonl", "--batch_size", "5", "--run_name", "r", "--model", "demo", "--quiet")
    assert hermes("batch", "run", *flags, "--record", cwd=tmp_path).code == 0
    done = hermes("batch", "replay", "r", "1", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert done.out == "row 1, sample 0 (kept): the same, 1 reply\n1 of 1 rows are the same\n"
    kept = read_rows(tmp_path / "data" / "r" / "trajectories.jsonl")
    kept[0]["conversations"][-1]["value"] = "something else"
    (tmp_path / "data" / "r" / "trajectories.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept))
    done = hermes("batch", "replay", "r", "--json", "--no_tools", cwd=tmp_path)
    assert done.code == 1
    [first, second] = map(json.loads, done.out.splitlines())
    assert first["differences"][0].partition(": ")[2].startswith("what gpt said was “something else”")
    assert second["differences"] == []


def test_a_replay_needs_no_key_and_no_address(serve: Serve, tmp_path: Path) -> None:
    dataset(tmp_path / "d.jsonl", ["one"])
    server = serve([say("Done.", reasoning="hm")])
    flags = ("--dataset_file", "d.jsonl", "--batch_size", "5", "--run_name", "r", "--model", "m", "--quiet", "--record")
    url, key = server.base_url, "sk-of-that-server"
    done = hermes("batch", "run", *flags, cwd=tmp_path, OPENAI_BASE_URL=url, OPENAI_API_KEY=key)
    assert done.code == 0, done.err
    done = hermes("batch", "replay", "r", cwd=tmp_path)
    assert (done.code, done.err, done.out.splitlines()[-1]) == (0, "", "1 of 1 rows are the same")
    assert len(server.requests) == 1


def test_distributions_are_listed(tmp_path: Path) -> None:
    done = hermes("batch", "run", "--list_distributions", cwd=tmp_path)
    assert done.code == 0
    assert [row[0] for row in done.rows][:2] == ["default", "terminal_only"]


def test_json_is_one_event_a_line(tmp_path: Path) -> None:
    dataset(tmp_path / "d.jsonl", ["a", "b", b"{bad"])
    flags = ("--dataset_file", "d.jsonl", "--batch_size", "5", "--run_name", "r", "--model", "demo", "--json")
    done = hermes("batch", "run", *flags, cwd=tmp_path)
    events = [json.loads(line) for line in done.out.splitlines()]
    kinds = [event["type"] for event in events]
    assert kinds[0] == "Notice"
    assert kinds.count("RowStarted") == kinds.count("RowFinished") == 2
    assert (kinds[-1], events[-1]["state"]) == ("BatchFinished", "done")
    assert done.code == 1


def test_failed_rows_end_with_one_and_can_be_retried(serve: Serve, tmp_path: Path) -> None:
    well = False

    def script(seen: Seen) -> Any:
        if "bad" in str(seen.messages) and not well:
            return status(400, {"error": {"message": "this prompt is refused"}})
        return say("Yes.", "hm")

    server = serve(script)
    dataset(tmp_path / "d.jsonl", ["good", "bad one", "bad two"])
    flags = ("--dataset_file", "d.jsonl", "--batch_size", "5", "--run_name", "r", "--model", "m")
    done = hermes("batch", "run", *flags, "--base-url", server.base_url, cwd=tmp_path)
    assert done.code == 1
    assert "kept 1 · rejected 0 · failed 2 · invalid 0 · pending 0 · total 3" in done.out
    assert "failed: rejected_request 2" in done.out
    assert "hermes batch retry r" in done.err
    well = True
    again = hermes("batch", "retry", "r", cwd=tmp_path)
    assert again.code == 0
    assert counts(tmp_path / "data" / "r") == {"total": 3, "kept": 3}
    assert len(server.requests) == 5


def test_f1_8_one_interrupt_ends_in_seconds_and_says_how_to_resume(serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda seen: hang(60) if "slow" in str(seen.messages[-1]) else say("Yes.", "hm"))
    dataset(tmp_path / "d.jsonl", ["a", "b", "slow 1", "slow 2", "slow 3", "slow 4", "c"])
    flags = ("--dataset_file", "d.jsonl", "--batch_size", "5", "--run_name", "r", "--model", "m")
    process = start("batch", "run", *flags, "--base_url", server.base_url, cwd=tmp_path)
    assert server.wait_until(lambda: server.open_requests == 4, 20)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=15)
    assert time.monotonic() - begun < 7
    assert process.returncode == 130
    assert counts(tmp_path / "data" / "r") == {"total": 7, "kept": 2, "pending": 5}
    assert len(read_rows(tmp_path / "data" / "r" / "trajectories.jsonl")) == 2
    assert err.decode().splitlines()[-1] == "go on with: hermes batch run --resume --run_name r"
    assert "interrupted" in out.decode()
    assert server.wait_until(lambda: server.open_requests == 0, 5)


def test_f1_8_a_second_interrupt_ends_at_once_and_leaves_no_command(serve: Serve, tmp_path: Path) -> None:
    mark = f"32{os.getpid()}"
    server = serve([call("terminal", {"command": f"sleep {mark}"}, reasoning="hm")])
    dataset(tmp_path / "d.jsonl", ["a", "b"])
    flags = ("--dataset_file", "d.jsonl", "--batch_size", "5", "--run_name", "r", "--model", "m")
    process = start("batch", "run", *flags, "--base_url", server.base_url, cwd=tmp_path)

    def sleeping() -> int:
        found = subprocess.run(["pgrep", "-fx", f"sleep {mark}"], capture_output=True, check=False)
        return len(found.stdout.split())

    assert server.wait_until(lambda: sleeping() == 2, 20)
    process.send_signal(signal.SIGINT)
    time.sleep(2 * TOGETHER_SECONDS)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=15)
    assert time.monotonic() - begun < 3
    assert process.returncode == 130
    assert server.wait_until(lambda: sleeping() == 0, 5)


def test_a_run_is_stopped_from_another_terminal(serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda seen: hang(60))
    dataset(tmp_path / "d.jsonl", ["a", "b"])
    flags = ("--dataset_file", "d.jsonl", "--batch_size", "5", "--run_name", "r", "--model", "m")
    process = start("batch", "run", *flags, "--base_url", server.base_url, cwd=tmp_path)
    assert server.wait_until(lambda: server.open_requests == 2, 20)
    refused = hermes("batch", "run", "--resume", "--run_name", "r", cwd=tmp_path)
    assert refused.code == 2
    assert f"process {process.pid}" in refused.err
    assert hermes("batch", "list", cwd=tmp_path).rows[0][1] == "running"
    asked = hermes("batch", "stop", "r", cwd=tmp_path)
    assert (asked.code, "--resume" in asked.out) == (0, True)
    process.communicate(timeout=15)
    assert process.returncode == 130
    assert hermes("batch", "stop", "r", cwd=tmp_path).code == 2


def test_f1_15_two_thousand_rows_make_few_lines_and_no_cursor_codes(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("Yes.", "hm")])
    dataset(tmp_path / "d.jsonl", [f"prompt {number}" for number in range(2000)])
    flags = ("--dataset_file", "d.jsonl", "--batch_size", "100", "--run_name", "r", "--model", "m")
    done = hermes("batch", "run", *flags, "--num_workers", "32", "--base_url", server.base_url, cwd=tmp_path)
    assert done.code == 0
    assert not re.search(r"[\x1b\r]", done.out + done.err)
    assert len(done.out.splitlines()) < 30
    assert counts(tmp_path / "data" / "r") == {"total": 2000, "kept": 2000}


def test_a_terminal_gets_a_bar_that_gives_the_screen_back(tmp_path: Path) -> None:
    prompts = str(ROOT / "examples" / "prompts.jsonl")
    flags = ["--dataset_file", prompts, "--batch_size", "10", "--run_name", "r", "--model", "demo"]
    command = [*COMMAND, "batch", "run", *flags]
    size = (24, 100)
    env = environment(TERM="xterm-256color")
    terminal = pexpect.spawn(command[0], command[1:], cwd=str(tmp_path), dimensions=size, env=env, encoding="utf-8")
    printed = terminal.read()
    terminal.close()
    assert terminal.exitstatus == 0
    assert "\x1b[?25l" in printed
    assert printed.rindex("\x1b[?25h") > printed.rindex("\x1b[?25l")
    screen = pyte.Screen(size[1], size[0])
    pyte.Stream(screen).feed(printed)
    lines = [line.rstrip() for line in screen.display if line.strip()]
    head = lines.index("r: 30 rows, 4 at once → data/r")  # what stands above says where commands run, and may wrap
    assert "30/30 · kept 30" in lines[head + 1]
    assert lines[head + 3] == "kept 30 · rejected 0 · failed 0 · invalid 0 · pending 0 · total 30"


def test_a_key_on_the_command_line_is_in_no_file(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("Yes.", "hm")])
    dataset(tmp_path / "d.jsonl", ["a"])
    flags = ("--dataset_file", "d.jsonl", "--batch_size", "5", "--run_name", "r", "--model", "m")
    key = "sk-from-the-flag-0123456789"
    done = hermes("batch", "run", *flags, "--base_url", server.base_url, "--api_key", key, cwd=tmp_path)
    assert done.code == 0
    assert server.requests[0].headers["authorization"] == f"Bearer {key}"
    for path in (tmp_path / "data").rglob("*"):
        assert path.is_dir() or key.encode() not in path.read_bytes()


def test_flags_before_the_command_count_too(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("Yes.", "hm")])
    dataset(tmp_path / "d.jsonl", ["a"])
    before = ("-m", "early", "--base-url", server.base_url, "-t", "file")
    flags = ("--dataset_file", "d.jsonl", "--batch_size", "5", "--run_name", "r")
    assert hermes(*before, "batch", "run", *flags, cwd=tmp_path).code == 0
    assert server.requests[0].body["model"] == "early"
    assert server.requests[0].tools == ["read_file", "write_file", "patch", "search_files"]
