"""Many agents at once in the app: how soon keys are painted, what it takes in memory, what goes to the terminal.

Fifty agents in one tree and twenty background tasks, each in rounds of an answer and an `echo`; then ten agents for a
minute; then nothing at all.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import ours
from bench.answers import Script
from bench.figures import Figure, percentile
from bench.place import Place
from bench.rounds import say
from bench.server import Served
from bench.terminal import LETTERS, Terminal

WORK = Script(rounds=1_000, chunks=20, per_packet=1, gap=0.1, latency=2.0)
"""A request every four seconds and ten pieces a second while it streams, as from a middling provider."""

CHILDREN, TASKS, FEW = 50, 20, 10
ECHO, MEMORY, RATE, IDLE = 50.0, 150.0, 20.0, 0.0
"""Targets: ms, MB above the idle app, kB/s, bytes in ten seconds."""

_CONFIG = "delegation: {max_concurrent: 100}\nlimits: {max_turns: 1000}\n"


def run(rounds: int) -> Iterator[Figure]:
    """All figures, from two apps; `rounds` is how many rows of letters are typed."""
    say(f"agents: {CHILDREN} agents and {TASKS} tasks")
    with _app() as (terminal, server):
        idle = terminal.memory
        os.kill(terminal.pid, signal.SIGUSR2)
        _until(server, CHILDREN + TASKS)
        terminal.watch(5)
        cpu, began = terminal.cpu, time.monotonic()
        echoes = [echo for _ in range(max(2, rounds // 2)) for echo in _letters(terminal)]
        share = 100 * (terminal.cpu - cpu) / (time.monotonic() - began)
        grown = terminal.memory - idle
        note = f"largest {max(echoes):.0f} ms, {len(echoes)} keys; {share:.0f} % of a core"
        what = f"{CHILDREN} agents in one tree and {TASKS} background tasks"
        yield Figure("agents", f"p95 of a key, {what}", percentile(echoes, 0.95), "ms", ECHO, note)
        yield Figure("agents", f"memory above the idle app, {what}", grown, "MB", MEMORY, f"idle {idle:.0f} MB")
    say(f"agents: {FEW} agents for a minute")
    with _app(FEW) as (terminal, server):
        os.kill(terminal.pid, signal.SIGUSR2)
        _until(server, FEW)
        terminal.watch(3)
        before, cpu = terminal.bytes_read, terminal.cpu
        terminal.watch(60)
        rate = (terminal.bytes_read - before) / 60_000
        note = f"{100 * (terminal.cpu - cpu) / 60:.0f} % of a core"
        yield Figure("agents", f"to the terminal while {FEW} agents work, 120×36", rate, "kB/s", RATE, note)
    with _app(0) as (terminal, _):
        before = terminal.bytes_read
        terminal.watch(10)
        yield Figure("agents", "to the terminal in 10 s of nothing", terminal.bytes_read - before, "bytes", IDLE)


@contextmanager
def _app(count: int = CHILDREN) -> Iterator[tuple[Terminal, Served]]:
    """The app, ready and idle, with its load waiting for the signal."""
    with Place() as place, Served(WORK) as server:
        env = place.pointed(server.base_url)
        (Path(env["HERMES_HOME"]) / "config.yaml").write_text(_CONFIG, encoding="utf-8")
        prompts = ours.dataset(place, 1)
        words: list[str | Path] = [
            sys.executable,
            "-m",
            "bench.loads",
            "agents",
            str(count),
            prompts,
            "--model",
            "bench",
        ]
        with Terminal([*words, "--mode", "auto"], env=env, cwd=place.work) as terminal:
            terminal.wait_for("❯")
            terminal.settle()
            yield terminal, server


def _until(server: Served, count: int) -> None:
    """Waits until that many agents have asked the server."""
    seen, end = 0, time.monotonic() + 60
    while seen < count:
        seen += server.take()["requests"]
        if time.monotonic() > end:
            raise RuntimeError(f"only {seen} of {count} agents asked")
        time.sleep(0.1)


def _letters(terminal: Terminal) -> Iterator[float]:
    """Milliseconds until each letter is painted, typed at irregular moments."""
    for letter in random.sample(LETTERS, len(LETTERS)):
        yield 1000 * terminal.echo(letter)
        terminal.watch(random.uniform(0.08, 0.25))
