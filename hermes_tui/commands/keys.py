"""What the keys of the plain shell do, for `/keys`. The app has its own list. Knows no front end."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_tui.texts import _


def plain_keys(*, linear: bool) -> Iterator[tuple[str, str]]:
    """Key and effect; `linear` leaves out what needs a line editor."""
    yield "Enter", _("send; while a turn runs: queue")
    if not linear:
        yield "Ctrl+J, Alt+Enter", _("new line")
        yield "/ Tab", _("commands, complete")
        yield "↑ ↓, Ctrl+R", _("what was typed before, search in it")
        yield "Esc", _("stop the turn; queue and draft stay")
        yield "Ctrl+S", _("tell the running turn at its next step")
    yield "Ctrl+C", _("stop the turn; else clear the line; else, twice, leave")
    yield "Ctrl+D", _("leave")
    yield "1 2 3 4", _("answer what waits: yes, yes for this session, no and why, always")
