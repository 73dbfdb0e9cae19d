"""How soon a key is painted: idle, while the chat streams, while ten agents stream, while a 64-wide batch runs.

Measured raw at the pseudo terminal, from the write of the key to the arrival of its letter, at irregular moments.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import ours
from bench.answers import Script
from bench.figures import Figure, median, percentile
from bench.place import Place
from bench.rounds import say
from bench.server import Served
from bench.terminal import LETTERS, Terminal

STREAMS = Script(rounds=0, text_bytes=40_000, piece=5, kind="prose", per_packet=1, gap=0.02)
"""50 pieces a second, a fast model; 160 s of them."""

ROWS = Script(rounds=1, chunks=6, latency=0.05)
TEN_STREAMS, WIDE_BATCH = 50.0, 100.0
"""Targets for the 95th percentile, in ms."""


@dataclass(frozen=True, slots=True)
class Phase:
    """What is at work while keys are typed.

    Attributes:
        what: for the table.
        script: the server's answers.
        load: what `bench.loads` starts at its signal, and how many.
        begin: brings the app there.
        answers: how many must be under way at the last key; None = a batch, which asks again and again.
        target: for the 95th percentile, in ms.
    """

    what: str
    script: Script
    load: tuple[str, int]
    begin: Callable[[Terminal], None]
    answers: int | None
    target: float | None = None


def run(rounds: int) -> Iterator[Figure]:
    """All phases; letters of all rounds are taken together."""
    for phase in PHASES:
        yield _figure(phase, max(2, rounds // 2))


def _figure(phase: Phase, rounds: int) -> Figure:
    echoes: list[float] = []
    shares: list[float] = []
    for number in range(rounds):
        say(f"keys: {phase.what}, round {number + 1}")
        found, share = _typed(phase)
        echoes += found
        shares.append(share)
    middle, most, share = median(echoes), max(echoes), 100 * median(shares)
    note = f"p50 {middle:.0f} ms, largest {most:.0f} ms, {len(echoes)} keys; {share:.0f} % of a core"
    return Figure("keys", f"p95, {phase.what}", percentile(echoes, 0.95), "ms", phase.target, note)


def _typed(phase: Phase) -> tuple[list[float], float]:
    """One app, its load started, then a row of letters: each one's milliseconds, and the share of a core in use."""
    kind, count = phase.load
    with Place() as place, Served(phase.script) as server:
        prompts = ours.dataset(place, 20_000)
        command: list[str | Path] = [sys.executable, "-m", "bench.loads", kind, str(count), prompts, "--model", "bench"]
        with Terminal(command, env=place.pointed(server.base_url), cwd=place.work) as terminal:
            terminal.wait_for("❯")
            terminal.settle()
            phase.begin(terminal)
            cpu, began = terminal.cpu, time.monotonic()
            echoes = []
            for letter in random.sample(LETTERS, len(LETTERS)):
                echoes.append(1000 * terminal.echo(letter))
                terminal.watch(random.uniform(0.08, 0.25))
            share = (terminal.cpu - cpu) / (time.monotonic() - began)
            _still_at_work(phase, server)
    return echoes, share


def _still_at_work(phase: Phase, server: Served) -> None:
    """What was to run beside the keys ran until the last one."""
    told = server.take()
    if phase.answers is None:
        time.sleep(1)
        if not server.take()["requests"]:
            raise RuntimeError("the batch had ended before the last key")
    elif told["open"] != phase.answers:
        raise RuntimeError(f"{told['open']} answers under way at the last key, expected {phase.answers}")


def _nothing(terminal: Terminal) -> None:
    terminal.watch(0.5)


def _chat(terminal: Terminal) -> None:
    terminal.write("tell all\r")
    terminal.wait_for("Part")
    terminal.watch(3)


def _load(terminal: Terminal) -> None:
    os.kill(terminal.pid, signal.SIGUSR2)
    terminal.watch(5)


def _chat_and_load(terminal: Terminal) -> None:
    _chat(terminal)
    _load(terminal)


PHASES = (
    Phase("no work", STREAMS, ("streams", 0), _nothing, 0),
    Phase("the chat streams", STREAMS, ("streams", 0), _chat, 1, TEN_STREAMS),
    Phase("ten agents stream, one of them the chat", STREAMS, ("streams", 9), _chat_and_load, 10, TEN_STREAMS),
    Phase("a 64-wide batch runs in the pool", ROWS, ("batch", 64), _load, None, WIDE_BATCH),
)
