"""Cuts a Markdown source that still grows into pieces that are closed for good, so that each is drawn once.

Pure functions over text. A piece ends at a blank line before a line that starts at the margin, outside of code
fences. What stays open too long is cut where it hurts least, and the next piece is marked as glued to it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

OPEN_LIMIT = 4_000
"""Characters an open piece may have before it is cut at a line (or, in one endless line, at a blank)."""

TABLE_LIMIT = 24_000
"""The same for tables, which lose their columns when cut."""

_FENCE = re.compile(r"\s*(`{3,}|~{3,})[ \t]*([^\n`]*)\Z")
_TABLE_ROW = re.compile(r"\s*\|")


@dataclass(frozen=True, slots=True)
class Piece:
    """A closed part of a source.

    Attributes:
        source: Markdown, without blank lines at its ends; the inside of a fence when `fence` is set.
        glued: belongs to the piece before without a blank line.
        fence: language of the fence it is the inside of, or None for ordinary Markdown.
    """

    source: str
    glued: bool = False
    fence: str | None = None


class Splitter:
    """Takes a source in pieces of any size; hands out closed pieces; knows what is still open."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._tail = ""
        self._scanned = 0
        self._blank_seen = False
        self._fence = ""
        self._language = ""
        self._inside_cut = False
        self._glued = False

    @property
    def open(self) -> Piece | None:
        """What is not closed yet, as a piece to be drawn for now."""
        if self._inside_cut:
            return Piece(self._tail, True, self._language) if self._tail else None
        return Piece(self._tail, self._glued) if self._tail.strip() else None

    def feed(self, text: str) -> list[Piece]:
        """Adds text; returns the pieces it closed."""
        self._tail += text
        closed: list[Piece] = []
        while True:
            end = self._tail.find("\n", self._scanned)
            if end < 0:
                break
            self._line(self._scanned, end, closed)
        if len(self._tail) > OPEN_LIMIT:
            self._cut(closed)
        return closed

    def finish(self) -> list[Piece]:
        """Closes everything."""
        closed = self.feed("\n") if self._tail and not self._tail.endswith("\n") else []
        if self._inside_cut:
            source = self._tail.rstrip("\n")
            if source:
                closed.append(Piece(source, True, self._language))
        elif self._tail.strip():
            closed.append(Piece(self._tail.strip("\n"), self._glued))
        self._reset()
        return closed

    def _line(self, start: int, end: int, closed: list[Piece]) -> None:
        """Looks at one whole line of the tail."""
        line = self._tail[start:end]
        self._scanned = end + 1
        if self._fence:
            self._fence_line(line, start, end, closed)
            return
        if not line.strip():
            self._blank_seen = True
            return
        if self._blank_seen and not line[0].isspace():
            self._close(start, closed)
            start, end = 0, len(line)
        self._blank_seen = False
        match = _FENCE.match(line)
        if match:
            self._fence, self._language = match[1], match[2].strip().partition(" ")[0]

    def _fence_line(self, line: str, start: int, end: int, closed: list[Piece]) -> None:
        bare = line.strip()
        if bare and len(bare) >= len(self._fence) and set(bare) == {self._fence[0]}:
            self._fence = ""
            if self._inside_cut:
                source = self._tail[:start].rstrip("\n")
                if source:
                    closed.append(Piece(source, True, self._language))
                self._drop(end + 1)
                self._inside_cut = self._glued = False
                self._blank_seen = True

    def _close(self, at: int, closed: list[Piece]) -> None:
        source = self._tail[:at].strip("\n")
        if source.strip():
            closed.append(Piece(source, self._glued))
        self._glued = False
        self._drop(at)
        self._scanned += self._tail.find("\n") + 1

    def _drop(self, until: int) -> None:
        self._tail = self._tail[until:]
        self._scanned = 0

    def _cut(self, closed: list[Piece]) -> None:
        """Cuts what has grown too long without an end."""
        if self._fence:
            self._cut_fence(closed)
            return
        table = _TABLE_ROW.match(self._tail) is not None
        if table and len(self._tail) <= TABLE_LIMIT:
            return
        at = self._margin_line() or self._tail.rfind(" ") + 1 or len(self._tail)
        source = self._tail[:at].strip("\n")
        if source.strip():
            closed.append(Piece(source, self._glued))
            self._glued = not self._blank_seen
        rest = self._scanned - at
        self._drop(at)
        self._scanned = max(0, rest)

    def _margin_line(self) -> int:
        """Where the last line begins that starts at the margin; any line where none does; 0 without a line end."""
        any_line = at = self._tail.rfind("\n", 0, self._scanned) + 1
        while at > 0:
            if at < len(self._tail) and not self._tail[at].isspace():
                return at
            at = self._tail.rfind("\n", 0, at - 1) + 1
        return any_line

    def _cut_fence(self, closed: list[Piece]) -> None:
        """Hands out the whole lines of an open fence; the rest of it is drawn as its continuation."""
        at = self._tail.rfind("\n", 0, self._scanned) + 1
        if at <= 0:
            return
        source = self._tail[:at].rstrip("\n")
        if self._inside_cut:
            closed.append(Piece(source, True, self._language))
        else:
            closed.append(Piece(source, self._glued))
            self._inside_cut = self._glued = True
        self._drop(at)


def split(source: str) -> list[Piece]:
    """A whole source in pieces."""
    splitter = Splitter()
    return [*splitter.feed(source), *splitter.finish()]
