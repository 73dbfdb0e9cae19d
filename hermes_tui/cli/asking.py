"""One yes-or-no question on the command line."""

from __future__ import annotations

import sys

from hermes_engine.errors import UsageError
from hermes_tui.cleaning import one_line
from hermes_tui.printing.streams import is_terminal, out
from hermes_tui.texts import _


def sure(question: str) -> bool:
    """Asks at a terminal; "no" is the default.

    Raises:
        UsageError: nobody is there to be asked.
    """
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise UsageError(_("nobody is here to be asked"), hint=_("-y does not ask"))
    out(f"{one_line(question)} [y/N] ", end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes", _("yes"))
