"""10,000 rows against a server that fails one call in five in nine ways, killed three times and resumed each time.

Every row's fate is drawn before it runs (`bench.chaos`); what became of it is read from the files, and everything the
run says of itself is counted again by a script that knows nothing of the program.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import chaos, ours
from bench.answers import Script
from bench.figures import Figure
from bench.place import ROOT, Place
from bench.processes import RunFailed
from bench.processes import run as run_process
from bench.rounds import say
from bench.server import Served

ROWS, IN_FLIGHT = 10_000, 256
INVALID = ("not json", '{"no_prompt": 1}', '{"prompt": ""}', '{"prompt": 7}', '["a list"]', '{"prompt": "cut')
SILENCE = 5
"""Seconds after which our run gives up on a silent server."""

_CONFIG = f"provider: {{first_byte_timeout_seconds: {SILENCE}, idle_timeout_seconds: {SILENCE}}}\n"
_PARTS = ((0.05, 0.3), (0.35, 0.6), (0.65, 0.95))
"""Between which shares of all requests each kill falls."""


def run(rounds: int) -> Iterator[Figure]:
    """One run, whatever the rounds."""
    seed = random.randrange(1_000_000)
    with Place() as place, Served(Script(latency=0.02), "bench.chaos_server") as server:
        prompts, data = place.file("prompts.jsonl", _dataset()), place.folder("data")
        began = time.monotonic()
        cpu, killed_at = _worked(place, server, prompts, data, random.Random(seed))
        seconds = time.monotonic() - began
        ways = server.take()["ways"]
        folder = data / "bench"
        told = _recounted(place, folder, prompts)
        strange = list(_strange(folder, prompts))
    for line in (*told["differences"][:20], *strange[:20]):
        say(f"chaos: {line}")
    rows, well = told["counted"]["rows"], ways.pop("well")
    failed = sum(ways.values())
    counts = ", ".join(f"{number} {name}" for name, number in rows.items())
    what = f"{ROWS} rows, killed at {', '.join(map(str, killed_at))} requests (seed {seed})"
    failing = ", ".join(f"{name} {number}" for name, number in sorted(ways.items()))
    yield Figure("chaos", f"{what}: differences to the recount", len(told["differences"]), "", 0, counts)
    yield Figure("chaos", "…rows that are lost, twice, or not what was drawn for them", len(strange), "", 0)
    yield Figure("chaos", "…calls that went wrong", failed, "", None, f"of {well + failed}: {failing}")
    yield Figure("chaos", "…processor time of all four processes", cpu, "s", None, f"{seconds:.0f} s by the clock")


def _dataset() -> str:
    """Prompts, one in a hundred of them the same as the one before, with lines between that are none."""
    lines = []
    for number in range(ROWS):
        if number % (ROWS // len(INVALID)) == 7:
            lines += [INVALID[number * len(INVALID) // ROWS], ""]
        prompt = f"{ours.PROMPT} {number - (number % 100 == 99)}"
        lines.append(json.dumps({"prompt": prompt, "id": f"row {number}"}))
    return "\n".join(lines) + "\n"


def _worked(
    place: Place, server: Served, prompts: Path, data: Path, chance: random.Random
) -> tuple[float, tuple[int, ...]]:
    """Runs to the end with three kills; the processor time of all four, and after how many requests."""
    env = place.pointed(server.base_url)
    (Path(env["HERMES_HOME"]) / "config.yaml").write_text(_CONFIG, encoding="utf-8")
    command: list[str | Path] = [sys.executable, ROOT / "batch_runner.py", *ours.flags(prompts, data, IN_FLIGHT)]
    marks = [int(chance.uniform(*part) * 2.2 * ROWS) for part in _PARTS]
    seen, cpu = 0, 0.0
    for mark in marks:
        task = (server, mark - seen, chance.random())

        def kill(pid: int, task: tuple[Served, int, float] = task) -> None:
            threading.Thread(target=_kill, args=(pid, *task), daemon=True).start()

        say(f"chaos: a run until it is killed at {mark} requests")
        more = ["--resume"] if seen else []
        log = place.root / "run.log"
        done = run_process([*command, *more], env=env, cwd=place.work, log=log, expect=-signal.SIGKILL, started=kill)
        seen, cpu = mark, cpu + done.cpu
    say("chaos: the run that ends")
    done = run_process([*command, "--resume"], env=env, cwd=place.work, log=place.root / "run.log", expect=1)
    return cpu + done.cpu, tuple(marks)


def _kill(pid: int, server: Served, requests: int, delay: float) -> None:
    """Kills a process when the server has had so many requests more, and a moment later."""
    seen = 0
    while seen < requests:
        time.sleep(0.05)
        seen += server.take()["requests"]
    time.sleep(delay)
    os.kill(pid, signal.SIGKILL)


def _recounted(place: Place, folder: Path, prompts: Path) -> dict[str, Any]:
    """What the script says that shares no code with the program, nor with this one."""
    script: list[str | Path] = [sys.executable, "-I", ROOT / "bench" / "recount.py", folder, prompts]
    log = place.root / "recount.log"
    try:
        output = run_process(script, env=place.env(), cwd=place.work, log=log).output
    except RunFailed:
        output = log.read_text("utf-8")
    told: dict[str, Any] = json.loads(output)
    return told


def _strange(folder: Path, prompts: Path) -> Iterator[str]:
    """Rows of the dataset that are not exactly once where they were to come to, with what they were to call."""
    found: dict[int, list[tuple[str, str, tuple[str, ...]]]] = {}
    for outcome, name, reason in (
        ("kept", "trajectories.jsonl", ""),
        ("rejected", "rejected.jsonl", "reject_reason"),
        ("failed", "failed.jsonl", "error_kind"),
    ):
        for line in (folder / name).read_text("utf-8").splitlines():
            record = json.loads(line)
            found.setdefault(record["prompt_index"], []).append((outcome, record.get(reason, ""), _calls(record)))
    for number, text in enumerate(prompts.read_text("utf-8").splitlines()):
        if not text.startswith('{"prompt": "Run'):
            continue
        due = chaos.fate(json.loads(text)["prompt"])
        here = found.pop(number, [])
        if here != [(due.outcome, due.reason, due.calls)]:
            yield f"row {number} was to be {due}, and is {here}"
    yield from (f"row {number} is in no line of the dataset: {here}" for number, here in found.items())


def _calls(record: dict[str, Any]) -> tuple[str, ...]:
    """What a row called, in the words of `chaos.Fate`; a command whose output is wrong counts as something else."""
    told = []
    turns = record["conversations"]
    answers = iter([turn["value"] for turn in turns if turn["from"] == "tool"])
    for call in (call for turn in turns for call in turn.get("tool_calls", ())):
        answer = next(answers)
        if call["name"] != "terminal":
            told.append("invented tool")
        elif "_raw" in call["arguments"]:
            told.append("truncated arguments")
        else:
            told.append("echo" if answer.strip() == "part-0" else answer)
    return tuple(told)
