"""The `hermes` command. `main` answers `--version` with almost nothing loaded and hands everything else to the
border; no other module is imported before it is needed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command line (default: the process's) and returns its exit code; as the program itself it exits.

    The process ends without waiting for threads: what had to be saved is saved by then.
    """
    from hermes_tui.cli.border import guarded, leave

    args = sys.argv[1:] if argv is None else list(argv)
    code = guarded(_version if args in (["--version"], ["-V"]) else lambda: _run(args))
    if argv is None:
        leave(code)
    return code


def _version() -> int:
    from hermes_engine import __version__
    from hermes_tui.printing.streams import out

    out(f"hermes {__version__}")
    return 0


def _run(args: Sequence[str]) -> int:
    from hermes_tui.cli.root import invoke

    return invoke(args)
