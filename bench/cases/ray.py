"""What a row costs on Ray: the rows of `short` without their command, worked here and by a Ray of this machine.

Ray's processes are nobody's children for the kernel's count, so those of both are sampled while they run.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from importlib.util import find_spec

import psutil

from bench import ours
from bench.answers import Script
from bench.figures import Figure, spread
from bench.place import Place
from bench.rounds import interleaved
from bench.server import Served

ROWS, MORE = 200, 1000
IN_FLIGHT = 64
SCRIPT = Script(rounds=0, chunks=6, latency=0.05)
_LOOK = 0.1
WHAT = "a prompt of one call on a Ray of this machine, against the run's own loop"


def run(rounds: int) -> Iterator[Figure]:
    """The slope between few rows and more, by each engine."""
    if find_spec("ray") is None:
        yield Figure("ray", WHAT, None, "×", note="Ray is not installed")
        return
    with Place() as place, Served(SCRIPT) as server:

        def row(engine: str) -> float:
            few, more = (_processor(place, server.base_url, rows, engine) for rows in (ROWS, MORE))
            return 1000 * (more - few) / (MORE - ROWS)

        told = interleaved({"ray": lambda: row("ray"), "own": lambda: row("threads")}, rounds, "ray")
    note = f"{told.median('ray'):.1f} ms a prompt against {told.median('own'):.1f}"
    yield Figure("ray", WHAT, told.ratio("ray", "own"), "×", note=f"{note}; {spread(told.ratios('ray', 'own'))}")


def _processor(place: Place, url: str, rows: int, engine: str) -> float:
    """Seconds of processor time of a run and of all its processes."""
    used: dict[tuple[int, float], float] = {}
    over = threading.Event()

    def watch() -> None:
        bench = psutil.Process()
        while not over.wait(_LOOK):
            for process in bench.children(recursive=True):
                try:
                    if "bench.server" not in process.cmdline():
                        times = process.cpu_times()
                        used[process.pid, process.create_time()] = times.user + times.system
                except psutil.Error:
                    continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        ours.batch(place, url, rows, IN_FLIGHT, more=["--engine", engine])
    finally:
        over.set()
        watcher.join()
    return sum(used.values())
