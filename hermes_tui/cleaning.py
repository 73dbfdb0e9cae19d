"""Makes foreign text safe for a terminal: what a model, a tool or a file says must never act on the screen.

Pure functions over text. Knows no front end: printing and the app's widgets both clean through here.
"""

from __future__ import annotations

import re

from hermes_engine.cleaning import printable, visible

_LINE_ENDS = re.compile(r"\r\n?|\x85|\x0b|\x0c")
_BLANKS = re.compile(r"\s+")


def clean(text: str) -> str:
    """The text without anything a terminal would obey; line feeds and tabs stay, other line ends become LF.

    Nothing else is lost: a lone carriage return does not make the line before it vanish, as it would in output
    of a command. Lone surrogates become U+FFFD, so that the text can always be encoded.
    """
    if text.isascii() and text.isprintable():
        return text
    return printable(_LINE_ENDS.sub("\n", text))


def one_line(text: str, limit: int = 0) -> str:
    """The cleaned text on one line, runs of blanks joined; cut to `limit` characters with an ellipsis (0 = whole)."""
    line = _BLANKS.sub(" ", clean(text)).strip()
    if limit and len(line) > limit:
        return line[: max(0, limit - 1)].rstrip() + "…"
    return line


def escaped(text: str) -> str:
    r"""The text with everything invisible shown as an escape (`\x1b`, `\u202e`); line feeds and tabs stay.

    For what a person is asked to approve: nothing of it may be hidden.
    """
    return visible(text)
