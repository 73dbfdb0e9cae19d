"""`make demo-atropos`: prompts → run → feed → batches at a trainer; offline, with the embedded model, a tiny tokenizer.

Ends with 1 when the Atropos API server is not installed: then the run is exported instead of fed.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.batch.trainer import Trainer

ROOT = Path(__file__).parents[2]
TOKENIZER = ROOT / "tests" / "batch" / "tiny_tokenizer"
BATCH = 4
MISSING = "atroposlib is not installed, so nothing was fed; `make demo-atropos` installs it where it can be reached"


def main() -> int:
    """Shows the chain, each command before it runs."""
    with tempfile.TemporaryDirectory(prefix="demo-atropos-") as folder:
        place = Path(folder)
        dataset = ROOT / "examples" / "prompts.jsonl"
        flags = ["--batch_size=10", "--run_name=demo", "--model=demo", "--plain"]
        _hermes(place, "batch", "run", f"--dataset_file={dataset}", *flags).wait()
        if importlib.util.find_spec("atroposlib") is None:
            form = ["--format", "atropos", "--tokenizer", str(TOKENIZER)]
            _hermes(place, "batch", "export", "demo", *form, "-o", "groups.jsonl").wait()
            _say(MISSING)
            return 1
        with closing(Trainer()) as trainer:
            _say(f"a trainer registers at {trainer.url} and asks for batches of {BATCH}")
            trainer.register(BATCH)
            trainer.batch()
            feeding = _hermes(place, "batch", "feed", "demo", "--url", trainer.url, "--tokenizer", str(TOKENIZER))
            batches = list(_batches(trainer, feeding))
    _say(f"the trainer took {len(batches)} batches of {BATCH}; the first:")
    for group in batches[0] if batches else ():
        trained = sum(mask != -100 for mask in group["masks"][0])
        said = [message["content"] for message in group["messages"][0] if message["role"] == "assistant"]
        _say(f"  {len(group['tokens'][0])} tokens, {trained} of them trained, score {group['scores'][0]:g}")
        _say(f"    asked:  {_short(group['messages'][0][0]['content'])}")
        _say(f"    learns: {_short(said[0])}")
    if not batches:
        return 1
    _say("With a model of your own: the same two commands with --model NAME and --tokenizer of the model you train.")
    return 0


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else f"{line[:79]}…"


def _hermes(place: Path, *args: str) -> subprocess.Popen[bytes]:
    _say(f"$ hermes {shlex.join(args)}")
    home = {**os.environ, "HERMES_HOME": str(place / "home")}
    return subprocess.Popen([sys.executable, "-m", "hermes_tui.cli", *args], cwd=place, env=home)


def _batches(trainer: Trainer, feeding: subprocess.Popen[bytes]) -> Iterator[list[dict[str, Any]]]:
    """What the trainer gets until all is fed."""
    while True:
        ended = feeding.poll() is not None
        if batch := trainer.batch():
            yield batch
        elif ended:
            return
        else:
            time.sleep(0.1)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
