"""Our batch, the SDK floor and two other engines on the same prompts and server, in the same breath.

What cannot be installed here is named as not measured; that is no fault of ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench import ours
from bench.cases import long, short
from bench.figures import Figure, spread
from bench.peers import PEERS, NotHere, Peer, Task
from bench.place import Place
from bench.prompts import Costs, Load, Other, costs
from bench.rounds import say
from bench.server import Served

TARGET = 1.3
"""Ours against the SDK floor."""


def run(rounds: int) -> Iterator[Figure]:
    """Two model calls and an echo, then ten tool rounds; the others a third as often, since they take long."""
    here: dict[Peer, Path] = {}
    for peer in PEERS:
        try:
            here[peer] = peer.environment()
        except NotHere as reason:
            say(f"peers: {peer.name} is not measured: {reason}")
            yield Figure("peers", f"{peer.name} {peer.version}", None, "", None, str(reason))
    yield from _figures("two calls and one echo", here, short.LOAD, (50, 200), rounds)
    yield from _figures("ten tool rounds", here, long.LOAD, (8, 24), rounds)


def _figures(what: str, here: dict[Peer, Path], load: Load, rows: tuple[int, int], rounds: int) -> Iterator[Figure]:
    others: dict[str, tuple[Other, int, int]] = {}
    for peer, environment in here.items():
        others[peer.name] = (partial(_cpu, peer, environment, load), *rows)
    floor = costs(load, rounds, f"peers, {what}", ("ours", "sdk"))
    yield _ratio(f"{what}: ours / SDK floor", floor, "sdk", TARGET)
    measured = costs(load, max(1, rounds // 3), f"peers, {what}", ("ours",), others)
    for peer in here:
        yield _ratio(f"…ours / {peer.name} {peer.version}", measured, peer.name, None)


def _ratio(what: str, measured: Costs, other: str, target: float | None) -> Figure:
    slope, whole = measured.slope, measured.whole
    ratio = slope.ratio("ours", other)
    note = (
        f"{slope.median('ours'):.1f} / {slope.median(other):.1f} ms for one more prompt, 1 : {1 / ratio:.1f}; "
        f"with start and imports {whole.median('ours'):.1f} / {whole.median(other):.1f}; "
        f"{spread(slope.ratios('ours', other), '×')}"
    )
    return Figure("peers", what, ratio, "×", target, note)


def _cpu(peer: Peer, environment: Path, load: Load, place: Place, server: Served, rows: int) -> float:
    task = Task(server.base_url, ours.dataset(place, rows), rows, load.script.rounds, load.in_flight)
    return peer.work(environment, place, task).cpu
