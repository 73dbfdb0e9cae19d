"""The one door through which interface texts pass, so that catalogues can be laid under them. Knows no front end."""

from __future__ import annotations

import gettext

from hermes_engine.paths import shipped

_catalogue = gettext.translation("hermes", localedir=str(shipped("locale")), fallback=True)


def _(text: str) -> str:
    """The text in the person's language; itself where no catalogue has it, and "" for "" (a catalogue's own head)."""
    return _catalogue.gettext(text) if text else ""


def ngettext(one: str, many: str, count: int) -> str:
    """The form that fits `count`."""
    return _catalogue.ngettext(one, many, count)
