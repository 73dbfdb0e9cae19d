"""Memory where a run has many rows: 10,000 of 100 kB, run, and then merged once more by a resume."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from bench import ours
from bench.answers import Script
from bench.figures import Figure
from bench.place import Place
from bench.processes import MB, Run
from bench.rounds import say
from bench.server import Served

ROWS = 10_000
ROW_BYTES = 100_000
TARGET = 200.0
SCRIPT = Script(rounds=0, latency=0.01, text_bytes=ROW_BYTES - 900, piece=2000, kind="prose")


def run(rounds: int) -> Iterator[Figure]:
    """One run and one resume of it."""
    with Place() as place, Served(SCRIPT) as server:
        prompts = ours.dataset(place, ROWS)
        data = place.folder("data")
        say(f"merge: a run of {ROWS} rows")
        first = ours.batch(place, server.base_url, ROWS, 64, prompts=prompts, data=data, watch=True)
        merged = data / "bench" / "trajectories.jsonl"
        size = merged.stat().st_size
        before = _rows(merged)
        merged.unlink()
        say("merge: a resume with nothing left to run")
        again = ours.batch(place, server.base_url, ROWS, 64, prompts=prompts, data=data, watch=True, more=["--resume"])
        after = _rows(merged)
        if before != after or [index for index, _ in before] != list(range(ROWS)):
            raise RuntimeError("the merged file does not hold every row once, in order, with the same words")
    note = f"{size / MB:.0f} MB of trajectories, {_took(first)}"
    yield Figure("merge", "peak RSS of a run of 10,000 rows", first.peak_rss / MB, "MB", TARGET, note)
    yield Figure("merge", "peak RSS of its merge alone, by a resume", again.peak_rss / MB, "MB", TARGET, _took(again))


def _rows(path: Path) -> list[tuple[int, str]]:
    """The places of the rows in the order of their lines, each with a hash of its words."""
    found = []
    with path.open("rb") as lines:
        for line in lines:
            record = json.loads(line)
            words = json.dumps(record["conversations"]).encode()
            found.append((record["prompt_index"], hashlib.blake2b(words, digest_size=8).hexdigest()))
    return found


def _took(done: Run) -> str:
    return f"{done.wall:.1f} s, {done.cpu:.1f} s of processor"
