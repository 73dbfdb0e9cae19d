"""Memory where a run has many rows: 10,000 of 100 kB, run, merged once more by a resume, and made one of shards."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench import ours
from bench.answers import Script
from bench.figures import Figure
from bench.place import Place
from bench.processes import MB, Run
from bench.processes import run as run_process
from bench.rounds import say
from bench.server import Served

ROWS = 10_000
ROW_BYTES = 100_000
SHARDS = 4
TARGET = 200.0
SCRIPT = Script(rounds=0, latency=0.01, text_bytes=ROW_BYTES - 900, piece=2000, kind="prose")


def run(rounds: int) -> Iterator[Figure]:
    """One run, one resume of it, and a merge of the shards that it could have been."""
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
        merged.unlink()
        say(f"merge: of {SHARDS} shards")
        joined = _merge_of_shards(place, data)
        if before != _rows(data / "whole" / "trajectories.jsonl"):
            raise RuntimeError("the run of the shards does not hold every row once, in order, with the same words")
    note = f"{size / MB:.0f} MB of trajectories, {_took(first)}"
    yield Figure("merge", "peak RSS of a run of 10,000 rows", first.peak_rss / MB, "MB", TARGET, note)
    yield Figure("merge", "peak RSS of its merge alone, by a resume", again.peak_rss / MB, "MB", TARGET, _took(again))
    yield Figure("merge", f"peak RSS of a merge of {SHARDS} shards", joined.peak_rss / MB, "MB", TARGET, _took(joined))


def _merge_of_shards(place: Place, data: Path) -> Run:
    """Parts a run into the runs its shards would have been, and merges them into `whole`."""
    settings = json.loads((data / "bench" / "run.json").read_text("utf-8"))
    names = [f"part-{which}" for which in range(1, SHARDS + 1)]
    with ExitStack() as stack:
        files = []
        for which, name in enumerate(names, 1):
            (data / name).mkdir()
            told = {**settings, "options": {**settings["options"], "shard": f"{which}/{SHARDS}"}}
            (data / name / "run.json").write_text(json.dumps(told), "utf-8")
            files.append(stack.enter_context((data / name / "batch_0.jsonl").open("wb")))
        for batch in (data / "bench").glob("batch_*.jsonl"):
            with batch.open("rb") as lines:
                for line in lines:
                    files[json.loads(line)["prompt_index"] % SHARDS].write(line)
            batch.unlink()
    command = [sys.executable, "-m", "hermes_tui.cli", "batch", "merge", "whole", *names, f"--output_dir={data}"]
    return run_process(
        command, env=place.pointed("http://127.0.0.1:9/v1"), cwd=place.work, log=place.root / "merge.log"
    )


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
