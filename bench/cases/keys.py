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


@dataclass(frozen=True, slots=True)
class _Typed:
    """Milliseconds of each letter, and the share of a core the app used meanwhile."""

    echoes: list[float]
    share: float


_MACHINE = "a bare Textual app without work (what the machine adds)"


def run(rounds: int) -> Iterator[Figure]:
    """All phases in turns; letters of all rounds are taken together."""
    rounds = max(2, rounds // 2)
    found: dict[str, list[_Typed]] = {}
    for number in range(rounds):
        for phase in PHASES:
            say(f"keys: {phase.what}, round {number + 1} of {rounds}")
            found.setdefault(phase.what, []).append(_typed(phase))
        say(f"keys: bare Textual app, round {number + 1} of {rounds}")
        found.setdefault(_MACHINE, []).append(_typed_in_bare())
    yield _figure(_MACHINE, found[_MACHINE], None)
    for phase in PHASES:
        yield _figure(phase.what, found[phase.what], phase.target)


def _figure(what: str, typed: list[_Typed], target: float | None) -> Figure:
    echoes = [echo for one in typed for echo in one.echoes]
    middle, most, share = median(echoes), max(echoes), 100 * median(one.share for one in typed)
    note = f"p50 {middle:.0f} ms, largest {most:.0f} ms, {len(echoes)} keys; {share:.0f} % of a core"
    return Figure("keys", f"p95, {what}", percentile(echoes, 0.95), "ms", target, note)


def _typed_in_bare() -> _Typed:
    """What this machine, as busy as it is just now, adds to any app."""
    with Place() as place, Terminal([sys.executable, "-m", "bench.bare_app"], env=place.env(), cwd=place.work) as bare:
        bare.wait_for("bare-is-ready")
        bare.settle()
        return _letters(bare)


def _letters(terminal: Terminal) -> _Typed:
    cpu, began = terminal.cpu, time.monotonic()
    echoes = []
    for letter in random.sample(LETTERS, len(LETTERS)):
        echoes.append(1000 * terminal.echo(letter))
        terminal.watch(random.uniform(0.08, 0.25))
    return _Typed(echoes, (terminal.cpu - cpu) / (time.monotonic() - began))


def _typed(phase: Phase) -> _Typed:
    """One app, its load started, then a row of letters."""
    kind, count = phase.load
    with Place() as place, Served(phase.script) as server:
        prompts = ours.dataset(place, 20_000)
        command: list[str | Path] = [sys.executable, "-m", "bench.loads", kind, str(count), prompts, "--model", "bench"]
        with Terminal(command, env=place.pointed(server.base_url), cwd=place.work) as terminal:
            terminal.wait_for("❯")
            terminal.settle()
            phase.begin(terminal)
            typed = _letters(terminal)
            _still_at_work(phase, server)
    return typed


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
