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
"""The same for tables, whose heading is drawn again over each piece."""

_FENCE = re.compile(r"\s*(`{3,}|~{3,})[ \t]*([^\n`]*)\Z")
_TABLE_HEAD = re.compile(r"^[^\n]*\|[^\n]*\n[ \t|:]*-[ \t:-]*(?:\|[ \t:-]*)+\n", re.MULTILINE)
"""A table's first two lines."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A closed part of a source.

    Attributes:
        source: Markdown, without blank lines at its ends; the inside of a fence when `fence` is set.
        glued: belongs to the piece before without a blank line.
        fence: language of the fence it is the inside of, or None for ordinary Markdown.
        head: the first lines of the table whose later rows it holds, to be drawn before them.
    """

    source: str
    glued: bool = False
    fence: str | None = None
    head: str = ""


class Splitter:
    """Takes a source in pieces of any size; hands out closed pieces; knows what is still open."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._text = ""
        self._start = 0
        self._scanned = 0
        self._blank_seen = False
        self._fence = ""
        self._language = ""
        self._inside_cut = False
        self._glued = False
        self._head = ""
        self._closed: list[Piece] = []

    @property
    def open(self) -> Piece | None:
        """What is not closed yet, as a piece to be drawn for now."""
        rest = self._text[self._start :]
        if self._inside_cut:
            return Piece(rest, True, self._language) if rest else None
        return Piece(rest, self._glued, head=self._head) if rest.strip() else None

    def feed(self, text: str) -> list[Piece]:
        """Adds text; returns the pieces it closed."""
        self._text += text
        while (end := self._text.find("\n", self._scanned)) >= 0:
            self._line(self._scanned, end)
            if self._scanned - self._start > OPEN_LIMIT:
                self._cut()
        while len(self._text) - self._start > OPEN_LIMIT and self._cut_endless():
            pass
        self._text, self._scanned, self._start = self._text[self._start :], self._scanned - self._start, 0
        closed, self._closed = self._closed, []
        return closed

    def finish(self) -> list[Piece]:
        """Closes everything."""
        closed = self.feed("\n") if self._text and not self._text.endswith("\n") else []
        rest = self._text.strip("\n") if not self._inside_cut else self._text.rstrip("\n")
        if rest.strip():
            fence = self._language if self._inside_cut else None
            closed.append(Piece(rest, self._inside_cut or self._glued, fence, self._head))
        self._reset()
        return closed

    def _line(self, start: int, end: int) -> None:
        """Looks at one whole line."""
        line = self._text[start:end]
        self._scanned = end + 1
        if self._fence:
            self._fence_line(line, start, end)
            return
        if not line.strip():
            self._blank_seen = True
            return
        if self._blank_seen and not line[0].isspace():
            self._close(start)
        self._blank_seen = False
        match = _FENCE.match(line)
        if match:
            self._fence, self._language = match[1], match[2].strip().partition(" ")[0]

    def _fence_line(self, line: str, start: int, end: int) -> None:
        bare = line.strip()
        if bare and len(bare) >= len(self._fence) and set(bare) == {self._fence[0]}:
            self._fence = ""
            if self._inside_cut:
                self._hand_out(start, fence=self._language)
                self._start = end + 1
                self._inside_cut = self._glued = False
                self._blank_seen = True

    def _close(self, at: int) -> None:
        """What stands before `at` is closed; a blank line follows it."""
        self._hand_out(at)
        self._glued = False

    def _hand_out(self, at: int, *, fence: str | None = None) -> None:
        source = self._text[self._start : at]
        source = source.rstrip("\n") if fence is not None else source.strip("\n")
        if source.strip():
            self._closed.append(Piece(source, self._glued or fence is not None, fence, self._head))
        self._start, self._head = at, ""

    def _cut(self) -> None:
        """Cuts what has grown too long, at a line."""
        if self._fence:
            inside = self._inside_cut
            self._hand_out(self._scanned, fence=self._language if inside else None)
            self._inside_cut = self._glued = True
            return
        head = self._head or self._table_head()
        if head and self._scanned - self._start <= TABLE_LIMIT:
            return
        self._hand_out(self._margin_line() or self._scanned)
        self._glued = not self._blank_seen
        self._head = head if self._glued and head else ""

    def _table_head(self) -> str:
        """The heading of the table that is still open, or "" where none is."""
        if self._blank_seen:
            return ""
        match = _TABLE_HEAD.search(self._text, self._start, self._scanned)
        return match[0] if match is not None else ""

    def _margin_line(self) -> int:
        """Where the last line begins that starts at the margin, behind the first one; 0 where none does."""
        at = self._text.rfind("\n", self._start, self._scanned - 1) + 1
        while at > self._start:
            if not self._text[at].isspace():
                return at
            at = self._text.rfind("\n", self._start, at - 1) + 1
        return 0

    def _cut_endless(self) -> bool:
        """Cuts a line that does not end, at a blank; whether it could."""
        if self._scanned > self._start and not self._fence:
            before = self._start
            self._cut()
            return self._start > before
        if self._fence:
            return False
        at = self._text.rfind(" ", self._start, self._start + OPEN_LIMIT) + 1
        if at <= self._start:
            at = self._start + OPEN_LIMIT
        self._hand_out(at)
        self._glued = True
        self._scanned = max(self._scanned, at)
        return True


def split(source: str) -> list[Piece]:
    """A whole source in pieces."""
    splitter = Splitter()
    return [*splitter.feed(source), *splitter.finish()]
