"""How the app starts and how its process ends: the settings' loader, a glance at the theme, the last resort.

Knows no screen and no toolkit.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from hermes_engine.errors import NotConfigured
from hermes_engine.paths import Home
from hermes_tui.widgets.themes import TERMINAL

if TYPE_CHECKING:
    from hermes_engine.profiles import Resolved

LAST_SECONDS = 1.8
"""After the person left, the process is gone in this time whatever hangs."""


HANDOVER_SECONDS = 9.0
"""The same where work is handed over to another process."""


def last_resort(code: int, seconds: float = LAST_SECONDS) -> None:
    """Ends the process when leaving takes longer than `seconds`, the terminal put in order first."""
    timer = threading.Timer(seconds, _vanish, [code])
    timer.daemon = True
    timer.start()


RESETS = "\x1b[?2004l\x1b[?7h\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l"


def _vanish(code: int) -> None:
    with suppress(OSError):
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, RESETS.encode())
    os._exit(code)


def end_process(code: int) -> NoReturn:
    """Ends the process now: a thread that hangs in a request or a tool is not waited for."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def loader_of(resolved: Resolved | Callable[[], Resolved]) -> Callable[[], Resolved]:
    """What reads the settings: those given first, afresh after a set-up."""
    if callable(resolved):
        return resolved
    given = [resolved]

    def load() -> Resolved:
        from hermes_engine.profiles import resolve

        return given.pop() if given else resolve(resolved.overrides, resolved.env)

    return load


def configured(resolved: Resolved) -> bool:
    """Whether there is a model to ask."""
    try:
        resolved.endpoint_for()
    except NotConfigured:
        return False
    return True


def peeked_theme() -> str:
    """The theme named in the home's settings, by a look at its lines: reading them properly comes after the paint."""
    try:
        text = Home.from_env().config.read_text("utf-8", errors="replace")
    except OSError:
        return TERMINAL
    section = text.partition("\nui:")[2] or (text[3:] if text.startswith("ui:") else "")
    for line in section.split("\n")[1:]:
        if line and not line[0].isspace():
            break
        name, colon, value = line.strip().partition(":")
        if name == "theme" and colon:
            return value.split("#")[0].strip().strip("'\"")
    return TERMINAL
