"""What a long streamed answer costs: 50 kB and 200 kB in pieces of 4 bytes, in the app and in `chat -q`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench.answers import END_MARK, Kind, Script
from bench.figures import Figure, spread
from bench.place import HERMES, Place
from bench.processes import run as run_process
from bench.rounds import interleaved
from bench.server import Served
from bench.terminal import Terminal

SMALL, LARGE = 50_000, 200_000
TARGET = 4.5
PACE = Script(rounds=0, per_packet=10, gap=0.002)
"""5,000 pieces a second: many times what a model says."""


def run(rounds: int) -> Iterator[Figure]:
    """The app with mixed Markdown and with one code block, then the one-shot."""
    rounds = max(3, rounds // 2)
    yield from _sizes("chat -q", _one_shot, rounds, TARGET)
    yield from _sizes("app, Markdown", partial(_app, "prose"), rounds, TARGET)
    yield from _sizes("app, one code block", partial(_app, "code"), rounds, TARGET)


def _sizes(what: str, cost: Callable[[int], float], rounds: int, target: float) -> list[Figure]:
    sizes = {"200 kB": partial(cost, LARGE), "50 kB": partial(cost, SMALL)}
    costs = interleaved(sizes, rounds, f"stream, {what}")
    ratios = costs.ratios("200 kB", "50 kB")
    note = f"{costs.median('200 kB'):.2f} / {costs.median('50 kB'):.2f} s of processor time; {spread(ratios, '×')}"
    per_piece = 1e6 * costs.median("200 kB") / (LARGE / 4)
    return [
        Figure("stream", f"200 kB / 50 kB, {what}", costs.ratio("200 kB", "50 kB"), "×", target, note),
        Figure("stream", "…a piece of 4 bytes", per_piece, "µs"),
    ]


def _app(kind: Kind, size: int) -> float:
    """Seconds of processor time from Enter until the end is painted and the program is quiet."""
    script = replace(PACE, text_bytes=size, kind=kind, brief_first=True)
    with (
        Place() as place,
        Served(script) as server,
        Terminal([HERMES, "--model", "bench"], env=place.pointed(server.base_url), cwd=place.work) as terminal,
    ):
        terminal.wait_for("❯")
        terminal.write("hello\r")
        terminal.wait_for("reads")
        terminal.settle()
        before = terminal.cpu
        terminal.write("tell all\r")
        terminal.wait_for(END_MARK, timeout=300)
        terminal.settle()
        return terminal.cpu - before


def _one_shot(size: int) -> float:
    """Seconds of processor time of the whole process beyond those of a one-shot with a short answer."""
    return _whole_one_shot(replace(PACE, text_bytes=size, kind="prose")) - _whole_one_shot(PACE)


def _whole_one_shot(script: Script) -> float:
    with Place() as place, Served(script) as server:
        command: list[str | Path] = [HERMES, "--model", "bench", "chat", "-q", "tell all"]
        env = place.pointed(server.base_url)
        done = run_process(command, env=env, cwd=place.work, log=place.root / "chat.log")
    if script.text_bytes and END_MARK not in done.output:
        raise RuntimeError(f"the answer is not whole: {done.output[-500:]}")
    return done.cpu
