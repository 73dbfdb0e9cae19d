"""The batch runner from the top of a checkout: `python batch_runner.py …` is `hermes batch run …`."""

from __future__ import annotations

import os

try:
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is ignored, as under nohup
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))  # until the run listens itself: no traceback
except KeyboardInterrupt:
    os._exit(130)

import importlib.util
import sys
from pathlib import Path


def main() -> None:
    """Runs a batch with the command line's flags and exits with its code."""
    there = all(importlib.util.find_spec(name) for name in ("click", "pydantic", "openai"))
    if sys.version_info < (3, 11) or not there:
        _in_own_environment()
    from hermes_tui.cli import main as hermes
    from hermes_tui.cli.border import leave

    leave(hermes(["batch", "run", *sys.argv[1:]]))


def _in_own_environment() -> None:
    """Starts again with the checkout's own Python, where `make run` or `make test` has set one up."""
    python = Path(__file__).parent / ".venv" / "bin" / "python"
    if python.exists() and Path(sys.prefix) != python.parent.parent:
        os.execv(python, [str(python), *sys.argv])
    sys.stderr.write("hermes: its packages are missing here: run `make test` once, or `pip install .`\n")
    raise SystemExit(2)


if __name__ == "__main__":
    main()
