"""A run killed with SIGKILL at random moments and resumed each time: nothing is lost and nothing comes twice.

`HERMES_KILLS` says how often (5 unless given; the promise is tried with 50), `HERMES_KILL_SEED` at which moments.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.batch.support import dataset, read_rows
from tests.conftest import Serve
from tests.e2e.program import hermes, start
from tests.server.scripted import Answer, ScriptedServer, Seen, call, say

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]

KILLS = int(os.environ.get("HERMES_KILLS", "5"))
PROMPTS = 200
WORKERS = 8
DELAY = 0.1 + 0.01 * KILLS
"""Seconds the server takes for a reply: enough that the last kill still finds rows at work."""


def prompt_of(seen: Seen) -> str:
    return next(str(item["content"]) for item in seen.messages if item["role"] == "user")


def script(seen: Seen) -> Answer:
    """Most rows are kept, some rejected, some fail at first; slow enough that a kill finds rows at work."""
    number = int(prompt_of(seen).split()[1])
    if any(item["role"] == "tool" for item in seen.messages):
        return say(f"It says {number}.", None if number % 20 == 3 else "I read it.", first_delay=DELAY)
    reasoning = None if number % 20 == 3 else "I run it."
    return call("terminal", {"command": f"echo {number}"}, reasoning=reasoning, first_delay=DELAY)


def in_files(folder: Path, patterns: tuple[str, ...] = ("batch_*.jsonl", "rejected.jsonl")) -> Counter[str]:
    """Prompts of the whole lines of the files."""
    found: Counter[str] = Counter()
    for pattern in patterns:
        for path in folder.glob(pattern):
            lines = path.read_bytes().split(b"\n")[:-1]
            found.update(json.loads(line)["conversations"][0]["value"] for line in lines)
    return found


def index_files_parse(folder: Path) -> None:
    """What is replaced atomically is whole at every moment."""
    for name in ("checkpoint.json", "statistics.json", "run.json"):
        if (folder / name).exists():
            assert isinstance(json.loads((folder / name).read_bytes()), dict)


def killed(server: ScriptedServer, moment: float, arguments: list[str], cwd: Path) -> bool:
    """Lets a run go on for `moment` seconds and kills it; False when it had ended by itself."""
    process = start(*arguments, cwd=cwd)
    try:
        process.communicate(timeout=moment)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
        assert server.wait_until(lambda: server.open_requests == 0, 10)
        return True
    return False


def test_f1_3_f1_7_killed_at_random_moments_nothing_is_lost_or_doubled(serve: Serve, tmp_path: Path) -> None:
    server = serve(script)
    prompts = [f"prompt {number}" for number in range(PROMPTS)]
    dataset(tmp_path / "d.jsonl", prompts)
    chance = random.Random(os.environ.get("HERMES_KILL_SEED", "1"))
    arguments = ["batch", "run", "--run_name", "r", "--resume", "--dataset_file", "d.jsonl", "--model", "m"]
    arguments += ["--base_url", server.base_url, "--batch_size", "7", "--num_workers", str(WORKERS), "--quiet"]
    folder = tmp_path / "data" / "r"
    kills = 0
    settled_before: Counter[str] = Counter()
    for _ in range(KILLS):
        moment = chance.choice([chance.uniform(0.0, 0.6), chance.uniform(0.4, 1.2), chance.uniform(0.8, 1.6)])
        kills += killed(server, moment, arguments, tmp_path)
        index_files_parse(folder)
        settled = in_files(folder)
        assert settled_before <= settled, "a finished row was lost"
        settled_before = settled
    assert kills >= KILLS // 2
    assert hermes(*arguments, cwd=tmp_path, timeout=300).code == 0

    merged = read_rows(folder / "trajectories.jsonl")
    rejected = read_rows(folder / "rejected.jsonl")
    told = [row["conversations"][0]["value"] for row in merged]
    refused = [row["conversations"][0]["value"] for row in rejected]
    assert Counter(told + refused) == Counter(prompts)
    assert [row["prompt_index"] for row in merged] == sorted(row["prompt_index"] for row in merged)
    assert in_files(folder) == Counter(prompts)
    for row in merged:
        assert row["conversations"][2]["value"].strip() == str(row["prompt_index"])
    first_calls = Counter(prompt_of(seen) for seen in server.requests if len(seen.messages) <= 2)
    assert set(first_calls) == set(prompts)
    assert sum(first_calls.values()) <= PROMPTS + WORKERS * kills
    rows = json.loads((folder / "statistics.json").read_bytes())["rows"]
    expected = {"total": PROMPTS, "kept": len(merged), "rejected": len(rejected), "failed": 0, "invalid": 0}
    assert rows == {**expected, "pending": 0}
    assert json.loads((folder / "checkpoint.json").read_bytes())["rows"] == rows
    assert len(merged) == PROMPTS - PROMPTS // 20


def test_f1_7_a_kill_before_the_first_row_hides_nothing(serve: Serve, tmp_path: Path) -> None:
    slow = False

    def answer(seen: Seen) -> Answer:
        return say("Yes.", "hm", first_delay=30 if slow else 0)

    server = serve(answer)
    dataset(tmp_path / "d.jsonl", ["a", "b", "c"])
    arguments = ["batch", "run", "--run_name", "r", "--resume", "--dataset_file", "d.jsonl", "--model", "m"]
    arguments += ["--base_url", server.base_url, "--batch_size", "2", "--quiet"]
    assert hermes(*arguments, cwd=tmp_path).code == 0
    dataset(tmp_path / "d.jsonl", ["a", "b", "c", "d", "e"])
    slow = True
    process = start(*arguments, cwd=tmp_path)
    assert server.wait_until(lambda: server.open_requests == 2, 20)
    process.kill()
    process.communicate(timeout=30)
    slow = False
    asked = len(server.requests)
    assert hermes(*arguments, cwd=tmp_path).code == 0
    assert sorted(prompt_of(seen) for seen in server.requests[asked:]) == ["d", "e"]
    assert len(read_rows(tmp_path / "data" / "r" / "trajectories.jsonl")) == 5
