"""`make consumers`: every export read by the programs it is for, each in its own environment, against what is recorded.

Ends with 1 when one of them reads something else than is recorded, with 3 when one could not be set up. Needs a network
once, to install them; what they read and do afterwards is offline.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.consumers import material
from tests.consumers.environments import CONSUMERS, Consumer, set_up
from tests.consumers.verdicts import Line, completed, difference, judged, missing, record, recorded, table

ROOT = Path(__file__).parents[2]
SECONDS = 1200
KEPT = frozenset({"PATH", "LANG", "LC_ALL", "SYSTEMROOT"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Sets up, reads, compares, tells."""
    given = _parser().parse_args(arguments)
    chosen = [consumer for consumer in CONSUMERS if not given.only or consumer.key in given.only]
    lines: list[Line] = []
    absent = False
    with tempfile.TemporaryDirectory(prefix="consumers-") as folder:
        place = Path(folder)
        os.environ["HERMES_HOME"] = str(place / "home")
        _say("a run against a scripted server, exported in every format")
        exports = material.make(place)
        if given.update:
            material.record(exports)
        for consumer in chosen:
            _say(f"{consumer.name} {consumer.version}")
            python, reason = set_up(consumer, given.cache)
            if reason:
                absent = True
                lines.append(missing(consumer, f"not installed: {reason}"))
                continue
            lines += _read(consumer, python, place, update=given.update)
    _say(f"environments are kept in {given.cache}\n")
    sys.stdout.write(f"{table(lines)}\n")
    if any(line.differs for line in lines):
        return 1
    return 3 if absent else 0


def read(consumer: Consumer, python: Path, place: Path) -> list[dict[str, object]]:
    """What the consumer makes of the exports in `place`. Raises RuntimeError with its last words when it breaks."""
    work = place / consumer.key
    work.mkdir()
    out = work / "cases.json"
    module = f"tests.consumers.readers.{consumer.reader}"
    paths = [str(place / "exports"), str(material.TOKENIZER), str(work), str(out)]
    own = {"HOME": str(work), "HF_HOME": str(work / "hf"), "TMPDIR": str(work), "HERMES_HOME": str(place / "home")}
    alone = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "WANDB_MODE": "disabled", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [str(python), "-m", module, *paths],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name in KEPT} | own | alone,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode:
        raise RuntimeError("\n".join(done.stderr.splitlines()[-20:]))
    return completed(json.loads(out.read_text("utf-8")), place / "exports")


def _read(consumer: Consumer, python: Path, place: Path, *, update: bool) -> list[Line]:
    try:
        cases = read(consumer, python, place)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        _say(str(error))
        return [missing(consumer, f"DIFFERENT: {str(error).splitlines()[-1]}", differs=True)]
    if update:
        record(consumer, cases)
    known = recorded(consumer)
    for line in difference(cases, known):
        _say(f"  {line}")
    return judged(consumer, cases, known)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.consumers", description=__doc__.partition("\n")[0])
    parser.add_argument("--update", action="store_true", help="make what is read now the expected")
    names = [consumer.key for consumer in CONSUMERS]
    parser.add_argument("--only", action="append", choices=names, help="this one; may be given several times")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parser.add_argument("--cache", type=Path, default=home / "hermes-consumers", help="folder of the environments")
    return parser


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
