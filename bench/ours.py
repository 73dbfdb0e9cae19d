"""Our batch as a process against the bench's server, its result checked: what is fast and wrong counts for nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.place import ROOT, Place
from bench.processes import Run
from bench.processes import run as run_process

PROMPT = "Run one command and tell what it printed, part"


def dataset(place: Place, rows: int, prompt: str = PROMPT) -> Path:
    """A dataset of so many different prompts."""
    return place.file("prompts.jsonl", "".join(json.dumps({"prompt": f"{prompt} {n}"}) + "\n" for n in range(rows)))


def batch(
    place: Place,
    base_url: str,
    rows: int,
    in_flight: int,
    *,
    prompts: Path | None = None,
    data: Path | None = None,
    distribution: str = "terminal_only",
    launcher: Sequence[str | Path] = (ROOT / "batch_runner.py",),
    watch: bool = False,
    more: Sequence[str] = (),
) -> Run:
    """Runs `batch_runner.py` to its end.

    Args:
        place: gets the run's folder and the log.
        base_url: the server.
        rows: prompts.
        in_flight: at once.
        prompts: the dataset; a fresh one of `rows` prompts when not given.
        data: folder of runs; a fresh one when not given.
        distribution: whose toolsets the rows have.
        launcher: what Python runs.
        watch: sample the memory.
        more: further flags.

    Raises:
        RunFailed: it ended with an error.
        RuntimeError: not every row was kept.
    """
    data = data or place.folder("data")
    words = flags(prompts or dataset(place, rows), data, in_flight, distribution)
    command = [sys.executable, *launcher, *words, *more]
    env = place.pointed(base_url)
    done = run_process(command, env=env, cwd=place.work, log=place.root / "batch.log", watch=watch)
    counts = json.loads((data / "bench" / "statistics.json").read_text("utf-8"))["rows"]
    if counts["kept"] != rows:
        raise RuntimeError(f"{counts} of {rows} rows; {done.output[-2000:]}")
    return done


def flags(prompts: Path, data: Path, in_flight: int, distribution: str = "terminal_only") -> list[str]:
    """Flags of a run of these prompts into `data/bench`."""
    values = {
        "dataset_file": prompts,
        "run_name": "bench",
        "batch_size": 10,
        "num_workers": in_flight,
        "sandbox": "local",  # as the floors run their commands
        "max_turns": 50,
        "model": "bench",
        "distribution": distribution,
        "output_dir": data,
    }
    return [*(f"--{name}={value}" for name, value in values.items()), "--quiet"]
