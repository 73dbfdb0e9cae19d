"""`python -m bench [case …]`: runs the cases, prints the table; exit code 1 when a target was missed."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import traceback
from collections.abc import Sequence

from bench.figures import Figure, as_json, table
from bench.rounds import say

CASES = ("startup", "short", "long", "memory", "stream", "keys", "agents", "merge", "ray", "board", "chaos", "peers")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the cases named, all of them when none is."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="What the program costs, beside its floors.")
    parser.add_argument("cases", nargs="*", metavar="case", help=f"any of {', '.join(CASES)}; all when none is named")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds of each comparison (5)")
    parser.add_argument("--json", action="store_true", help="the figures as JSON in place of the table")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.cases if name not in CASES]
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}; there are {', '.join(CASES)}")
    figures: list[Figure] = []
    broken = False
    for name in options.cases or CASES:
        try:
            for figure in importlib.import_module(f"bench.cases.{name}").run(options.rounds):
                say(table([figure]).splitlines()[-1])
                figures.append(figure)
        except Exception:
            broken = True
            say(f"{name} could not be measured:\n{traceback.format_exc()}")
    print(as_json(figures) if options.json else f"{_machine()}\n{table(figures)}")
    return 1 if broken or any(figure.reached is False for figure in figures) else 0


def _machine() -> str:
    load = os.getloadavg()[0]
    return f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, load {load:.1f} at the end"


if __name__ == "__main__":
    sys.exit(main())
