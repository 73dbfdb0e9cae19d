"""How soon the program is there: `--version`, and the app's first paint against a bare Textual app."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from bench.figures import Figure, spread
from bench.place import HERMES, Place
from bench.processes import run as run_process
from bench.rounds import Rounds, interleaved
from bench.terminal import Terminal

HEAVY = ("textual", "prompt_toolkit", "openai", "pydantic", "yaml", "rich")
BARE = ("-m", "bench.bare_app")
APP = ("-m", "hermes_tui.cli", "--model", "demo")
READY = {BARE: "bare-is-ready", APP: "❯"}
Command = tuple[str, ...]


def run(rounds: int) -> Iterator[Figure]:
    """Both parts."""
    with Place() as place:
        yield from _version(place, rounds)
        yield from _paint(place, rounds)


def _version(place: Place, rounds: int) -> list[Figure]:
    env = place.env()
    log = place.root / "version.log"

    def cpu(*command: str | Path) -> float:
        return 1000 * run_process(command, env=env, cwd=place.work, log=log).cpu

    cpu(HERMES, "--version")
    costs = interleaved(
        {
            "hermes --version": partial(cpu, HERMES, "--version"),
            "python -c pass": partial(cpu, sys.executable, "-c", "pass"),
        },
        max(rounds, 10),
        "startup",
    )
    told = run_process([sys.executable, "-X", "importtime", HERMES, "--version"], env=env, cwd=place.work, log=log)
    names = {line.rsplit("|", 1)[1].strip() for line in told.output.splitlines() if line.startswith("import time:")}
    heavy = sorted(name for name in HEAVY if name in names)
    version = costs.values["hermes --version"]
    note = f"processor time; {spread(version, ' ms')}; python -c pass: {costs.median('python -c pass'):.0f} ms"
    return [
        Figure("startup", "hermes --version", costs.median("hermes --version"), "ms", 150, note),
        Figure("startup", "…of the six packages loaded", len(heavy), "modules", 0, ", ".join(heavy)),
        Figure("startup", "…modules loaded", len(names), "modules"),
    ]


def _paint(place: Place, rounds: int) -> list[Figure]:
    painted: dict[Command, list[float]] = {BARE: [], APP: []}
    walls: dict[Command, list[float]] = {BARE: [], APP: []}

    def cpu(command: Command) -> float:
        """Milliseconds until the prompt has taken a key."""
        with Terminal([sys.executable, *command], env=place.env(), cwd=place.work) as terminal:
            terminal.wait_for(READY[command])
            painted[command].append(1000 * terminal.cpu)
            terminal.echo("Ж")
            walls[command].append(1000 * (time.monotonic() - terminal.began))
            return 1000 * terminal.cpu

    for command in (BARE, APP):
        cpu(command)
        painted[command].clear()
        walls[command].clear()
    taken = interleaved({"app": partial(cpu, APP), "bare": partial(cpu, BARE)}, max(rounds, 5), "first paint")
    return [
        _ratio("first paint, app / bare Textual", _pair(painted), 1.3, "ms of processor time"),
        _ratio("…until it has taken a key", taken, None, "ms; the app loads its engine meanwhile"),
        _ratio("…the same by the clock", _pair(walls), None, "ms"),
        *_modules(place),
    ]


def _pair(values: dict[Command, list[float]]) -> Rounds:
    return Rounds({"app": values[APP], "bare": values[BARE]})


def _ratio(what: str, costs: Rounds, target: float | None, unit: str) -> Figure:
    note = f"{costs.median('app'):.0f} / {costs.median('bare'):.0f} {unit}; {spread(costs.ratios('app', 'bare'), '×')}"
    return Figure("startup", what, costs.ratio("app", "bare"), "×", target, note)


def _modules(place: Place) -> list[Figure]:
    counts = {command: _loaded(place, command) for command in (BARE, APP)}
    late = sorted(name for name in ("openai", "prompt_toolkit", "aiohttp", "tree_sitter", "ray") if name in counts[APP])
    return [
        Figure(
            "startup", "…modules loaded then, app", len(counts[APP]), "modules", None, f"among them {late or 'none'}"
        ),
        Figure("startup", "…modules loaded then, bare", len(counts[BARE]), "modules"),
    ]


def _loaded(place: Place, command: Command) -> Sequence[str]:
    """Names of the modules in a program that has just painted."""
    out = place.root / f"modules-{time.monotonic_ns()}"
    probed: list[str | Path] = [sys.executable, "-m", "bench.probe", out, *command[1:]]
    with Terminal(probed, env=place.env(), cwd=place.work) as terminal:
        terminal.wait_for(READY[command])
        terminal.echo("Ж")
        os.kill(terminal.pid, signal.SIGUSR1)
        for _ in range(100):
            terminal.watch(0.05)
            if out.exists() and (names := out.read_text("utf-8").split()):
                return names
    raise RuntimeError(f"{command} did not tell its modules")
