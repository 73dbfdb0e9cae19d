"""Makes text that can be written anywhere: no half surrogates. Knows nothing of where it came from."""

from __future__ import annotations

import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def whole_text(text: str) -> str:
    """The text with pairs of surrogates joined and lone ones as U+FFFD: it can be encoded as UTF-8."""
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class SurrogateJoiner:
    """Joins a pair of surrogates that a server cut between two pieces; lone ones become U+FFFD."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def feed(self, piece: str) -> str:
        """The piece made whole; a half at its end waits for the next one."""
        if not self._half and piece.isascii():
            return piece
        text = self._half + piece
        self._half = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return whole_text(text)

    def end(self) -> str:
        """What still waits, as it must be shown."""
        half, self._half = self._half, ""
        return whole_text(half)
