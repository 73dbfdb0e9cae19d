"""What a prompt costs our batch and the two floors, in the same breath and with the same requests.

The floors get the system message, the tools and the other fields of a request that our batch has sent. A prompt's
cost is the slope between two runs, one of them some times as large: start, imports and end fall out. What they add is
told beside it, from the smaller one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import ours
from bench.answers import Script
from bench.figures import Figure, spread
from bench.place import ROOT, Place
from bench.processes import run as run_process
from bench.rounds import Rounds, interleaved
from bench.server import Served


@dataclass(frozen=True, slots=True)
class Load:
    """What is run.

    Attributes:
        script: the server's answers.
        rows: prompts of the run that is told whole.
        more: prompts of the larger one, for the slope.
        in_flight: prompts at once.
        distribution: our rows' toolsets.
        launcher: what Python runs as our batch.
    """

    script: Script
    rows: int
    more: int
    in_flight: int
    distribution: str = "terminal_only"
    launcher: tuple[str | Path, ...] = (ROOT / "batch_runner.py",)


@dataclass(frozen=True, slots=True)
class Costs:
    """Milliseconds of processor time a prompt, by contender (ours, sdk, bare, others), round by round.

    Attributes:
        slope: of a further prompt.
        whole: of the whole process of `rows` prompts, shared out.
        rows: prompts of that run.
        tools: how many tools the requests had.
    """

    slope: Rounds
    whole: Rounds
    rows: int
    tools: int


Other = Callable[[Place, Served, int], float]
"""Another contender: works so many prompts against the server, and tells seconds of processor time of all it took."""


def costs(
    load: Load,
    rounds: int,
    title: str,
    contenders: tuple[str, ...] = ("ours", "sdk", "bare"),
    others: Mapping[str, tuple[Other, int, int]] | None = None,
) -> Costs:
    """Measures a load.

    Args:
        load: what is run.
        rounds: how often.
        title: shown while it runs.
        contenders: of ours and the floors.
        others: further ones, each with its two numbers of prompts.
    """
    others = others or {}
    with Place() as place, Served(load.script) as server:
        measure = _Measure(place, server, load, {name: other for name, (other, _, _) in others.items()})
        template = measure.template()
        whole: dict[str, list[float]] = {name: [] for name in (*contenders, *others)}

        def cost(name: str, rows: int, more: int) -> Callable[[], float]:
            def measured() -> float:
                few, many = measure.cpu(name, rows), measure.cpu(name, more)
                whole[name].append(1000 * few / rows if rows == load.rows else 1000 * many / more)
                return 1000 * (many - few) / (more - rows)

            return measured

        measures = {name: cost(name, load.rows, load.more) for name in contenders}
        measures |= {name: cost(name, rows, more) for name, (_, rows, more) in others.items()}
        slope = interleaved(measures, rounds, title)
    return Costs(slope, Rounds(whole), load.rows, len(template.get("tools", ())))


def figures(case: str, measured: Costs, what: str) -> list[Figure]:
    """The lines of the table: the ratio with its target, then what it is made of."""
    slope, whole = measured.slope, measured.whole
    each = ", ".join(f"{name} {slope.median(name):.2f}" for name in slope.values)
    note = f"{each} ms a prompt, {measured.tools} tools; {spread(slope.ratios('ours', 'sdk'), '×')}"
    of_all = ", ".join(f"{name} {whole.median(name):.2f}" for name in whole.values)
    return [
        Figure(case, f"{what}, ours / SDK floor", slope.ratio("ours", "sdk"), "×", 1.5, note),
        Figure(case, "…ours / bare aiohttp", slope.ratio("ours", "bare"), "×"),
        Figure(
            case,
            f"…{measured.rows} prompts with start, imports and end, ours / SDK",
            whole.ratio("ours", "sdk"),
            "×",
            None,
            of_all,
        ),
    ]


class _Measure:
    def __init__(self, place: Place, server: Served, load: Load, others: Mapping[str, Other]) -> None:
        self._others = others
        self._place = place
        self._server = server
        self._load = load
        self._template: Mapping[str, Any] = {}

    def template(self) -> Mapping[str, Any]:
        """A request of ours without its conversation; this first run also warms what is cached on the disk."""
        self.cpu("ours", 1)
        body = self._server.take()["body"]
        first_prompt = next(at for at, message in enumerate(body["messages"]) if message["role"] == "user")
        self._template = {**body, "messages": body["messages"][:first_prompt]}
        return self._template

    def cpu(self, name: str, rows: int) -> float:
        """Seconds of processor time of one whole process."""
        self._server.take()
        used = self._used(name, rows)
        told, due = self._server.take()["requests"], rows * (self._load.script.rounds + 1)
        if told != due:
            raise RuntimeError(f"{name} sent {told} requests, expected {due}")
        return used

    def _used(self, name: str, rows: int) -> float:
        if name in self._others:
            return self._others[name](self._place, self._server, rows)
        return self._ours(rows) if name == "ours" else self._floor(name, rows)

    def _ours(self, rows: int) -> float:
        load = self._load
        return ours.batch(
            self._place,
            self._server.base_url,
            rows,
            load.in_flight,
            distribution=load.distribution,
            launcher=load.launcher,
        ).cpu

    def _floor(self, name: str, rows: int) -> float:
        job = {
            "base_url": self._server.base_url,
            "template": self._template,
            "prompt": ours.PROMPT,
            "rows": rows,
            "in_flight": self._load.in_flight,
            "requests": rows * (self._load.script.rounds + 1),
        }
        path = self._place.file("job.json", json.dumps(job))
        command: list[str | Path] = [sys.executable, "-m", "bench.floors", name, path]
        return run_process(command, env=self._place.env(), cwd=self._place.work, log=self._place.root / "floor.log").cpu
