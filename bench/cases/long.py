"""10 tool rounds, 15 tools in the request, 300 chunks a call; and whether the cost grows with the rounds alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bench.answers import Script
from bench.figures import Figure
from bench.prompts import Load, costs, figures

LOAD = Load(
    Script(rounds=10, chunks=300),
    rows=16,
    more=40,
    in_flight=16,
    distribution="terminal_file",
    launcher=("-m", "bench.padded"),
)
LINEAR = 1.15
"""Most that a round may cost at 20 rounds against one at 5."""


def run(rounds: int) -> Iterator[Figure]:
    """Against both floors, then at 5 and 20 rounds."""
    yield from figures("long", costs(LOAD, rounds, "long"), "a prompt of 10 tool rounds")
    yield from _linear(max(3, rounds // 2))


def _linear(rounds: int) -> list[Figure]:
    each: dict[str, list[float]] = {"ours": [], "sdk": []}
    for count in (5, 10, 20):
        load = replace(LOAD, script=replace(LOAD.script, rounds=count, chunks=30), more=64)
        measured = costs(load, rounds, f"{count} rounds", ("ours", "sdk"))
        for name, values in each.items():
            values.append(measured.slope.median(name) / count)
    growth = {name: values[2] / values[0] for name, values in each.items()}
    note = f"{_list(each['ours'])} ms a round at 5, 10, 20 rounds (30 chunks a call)"
    return [
        Figure("long", "a round at 20 rounds / at 5, ours", growth["ours"], "×", LINEAR, note),
        Figure(
            "long",
            "…the SDK floor",
            growth["sdk"],
            "×",
            None,
            f"{_list(each['sdk'])} ms; it encodes every message anew",
        ),
    ]


def _list(values: list[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)
