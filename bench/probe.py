"""Runs a module as a program and writes which modules are loaded whenever it gets SIGUSR1.

`python -m bench.probe FILE MODULE [argument …]`. For counting only: what is timed runs without it.
"""

from __future__ import annotations

import runpy
import signal
import sys
from pathlib import Path


def main() -> None:
    """Reads the command line and becomes that program."""
    _, out, module, *arguments = sys.argv
    path = Path(out)

    def tell(signum: int, frame: object) -> None:
        path.write_text("\n".join(sorted(sys.modules)), encoding="utf-8")

    signal.signal(signal.SIGUSR1, tell)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
