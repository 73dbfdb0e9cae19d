"""The plain shell: chat and commands line by line, append-only, for SSH, dumb terminals and screen readers.

Knows the engine, the commands and printing; never Textual.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_engine.profiles import Resolved


def run_repl(
    resolved: Resolved,
    cwd: Path,
    *,
    resume: str | None = None,
    continue_last: bool = False,
    mode: str | None = None,
    linear: bool = False,
) -> int:
    """Runs the plain shell to its end and returns the exit code.

    A line editor (prompt_toolkit) where the terminal has one; plain lines with `linear`, on a dumb terminal and
    where standard input or output is no terminal. From a pipe every line is a message or command of its own, one
    after another, and nobody is there to be asked.

    Raises:
        UsageError, ConfigError, StateError: before the first line is read.
    """
    from hermes_tui.printing.streams import dumb, is_terminal
    from hermes_tui.repl.shell import Opening

    opening = Opening(resolved, cwd, resume=resume, continue_last=continue_last, mode=mode)
    both = is_terminal(sys.stdin) and is_terminal(sys.stdout)
    if both and not linear and not dumb():
        from hermes_tui.repl.editor import run_editor

        return run_editor(opening)
    from hermes_tui.repl.plain import run_plain

    return run_plain(opening, attended=is_terminal(sys.stdin))
