"""200 prompts, 64 in flight, each two model calls and one `echo`; the server answers after 50 ms."""

from __future__ import annotations

from collections.abc import Iterator

from bench.answers import Script
from bench.figures import Figure
from bench.prompts import Load, costs, figures

LOAD = Load(Script(rounds=1, chunks=6), rows=200, more=800, in_flight=64)


def run(rounds: int) -> Iterator[Figure]:
    """Against both floors."""
    yield from figures("short", costs(LOAD, rounds, "short"), "a prompt of two calls and one echo")
