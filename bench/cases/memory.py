"""Peak memory of our batch with 64, with 256 and with 1,000 prompts in flight; the server answers after 500 ms."""

from __future__ import annotations

from collections.abc import Iterator

from bench import ours
from bench.answers import Script
from bench.figures import Figure
from bench.place import Place
from bench.processes import MB
from bench.rounds import say
from bench.server import Served

SIZES = ((64, 256, None), (256, 1024, 120.0), (1000, 3000, 300.0))
"""In flight, prompts, target in MB."""


def run(rounds: int) -> Iterator[Figure]:
    """One run of each size: peaks repeat well."""
    with Place() as place, Served(Script(latency=0.5)) as server:
        for in_flight, rows, target in SIZES:
            say(f"memory: {in_flight} in flight")
            server.take()
            done = ours.batch(place, server.base_url, rows, in_flight, watch=True)
            most = server.take()["most"]
            note = f"{rows} prompts, at most {most} requests at once, {done.wall:.1f} s, {done.cpu:.1f} s of processor"
            yield Figure("memory", f"peak RSS, {in_flight} in flight", done.peak_rss / MB, "MB", target, note)
            yield Figure("memory", "…with its commands, shared pages once (PSS)", done.peak_pss / MB, "MB", target)
