"""The `hermes` command. `main` answers `--version` with almost nothing loaded and hands everything else to the
border; no other module is imported before it is needed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command line (default: the process's) and returns its exit code; as the program itself it exits.

    The process ends without waiting for threads: what had to be saved is saved by then.
    """
    if argv is None:
        _quit_when_interrupted()
    from hermes_tui.cli.border import guarded, leave

    args = sys.argv[1:] if argv is None else list(argv)
    code = guarded(_version if args in (["--version"], ["-V"]) else lambda: _run(args))
    if argv is None:
        leave(code)
    return code


def _quit_when_interrupted() -> None:
    """Until a command is loaded an interrupt ends the process without a word: there is nothing to tidy up yet."""
    try:
        import signal

        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, quit_at_once)
    except KeyboardInterrupt:
        os._exit(130)


def quit_at_once(*_: object) -> None:
    """The signal handler of that time."""
    os._exit(130)


def _version() -> int:
    from hermes_engine import __version__
    from hermes_tui.printing.streams import out

    out(f"hermes {__version__}")
    return 0


def _run(args: Sequence[str]) -> int:
    from hermes_tui.cli.root import invoke

    return invoke(args)
