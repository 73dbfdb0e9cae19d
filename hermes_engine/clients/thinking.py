"""Parts reasoning in tags from the answer, while both stream in, however they are cut. Knows no wire format.

A tag opens a block at the start of the answer, at the start of a line, or anywhere once a block was seen; never
inside code. A closing tag alone makes all that came before it reasoning (the opening one stood in the prompt).
A block that never closes is reasoning, unless it opened in the middle of a line: then its tag was meant as text.
"""

from __future__ import annotations

import re
from typing import Literal

Piece = tuple[Literal["text", "reasoning"], str]

TAG_NAMES = ("think", "thinking", "reasoning_scratchpad")
_TAG = re.compile(rf"<(/?)({'|'.join(TAG_NAMES)})>", re.IGNORECASE | re.ASCII)
_BEGINNINGS = frozenset(
    tag[:length] for name in TAG_NAMES for tag in (f"<{name}>", f"</{name}>") for length in range(1, len(tag))
)
_LONGEST = max(map(len, _BEGINNINGS))
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_TICKS = re.compile(r"(`*)([^`]*)")


class ThoughtSplitter:
    """Takes pieces of content, gives pieces of text and of reasoning; `finish` gives the settled whole."""

    def __init__(self, *, lone_close: bool = True) -> None:
        """With `lone_close=False` a closing tag that nothing opened is text."""
        self.lone_close = lone_close
        self._held = ""
        self._answer: list[str] = []
        self._thoughts: list[str] = []
        self._block: list[str] | None = None
        self._closing = ""
        self._opened_as = ""
        self._inline = False
        self._seen_block = False
        self._fresh = False  # leading white space of the answer is still to be dropped
        self._code = _CodeState()
        self._looked_at = 0  # pieces of the answer that `_code` has read

    def feed(self, piece: str) -> list[Piece]:
        """What this piece adds; up to a tag's length is held back while it may become a tag."""
        if self._block is None and not self._fresh and not self._held and "<" not in piece:
            if piece:
                self._answer.append(piece)
                return [("text", piece)]
            return []
        out: list[Piece] = []
        self._consume(self._held + piece, out)
        return out

    def finish(self) -> list[Piece]:
        """Gives back what was held; nothing is fed after it."""
        out: list[Piece] = []
        held, self._held = self._held, ""
        if held:
            self._add(held, out)
        if self._block is not None:
            block = "".join(self._block)
            self._block = None
            if self._inline:
                self._answer.append(self._opened_as + block)
            else:
                self._thoughts.append(block)
        return out

    @property
    def text(self) -> str:
        """The answer so far, without reasoning and tags."""
        return "".join(self._answer)

    @property
    def reasoning(self) -> str:
        """The reasoning so far, without tags, its blocks joined by a line end."""
        blocks = [block.strip() for block in self._thoughts]
        if self._block is not None:
            blocks.append("".join(self._block).strip())
        return "\n".join(block for block in blocks if block)

    def _consume(self, text: str, out: list[Piece]) -> None:
        start = position = 0
        while (match := _TAG.search(text, position)) is not None:
            position = match.end()
            if self._block is not None:
                if match[0].lower() != self._closing:
                    continue
                self._add(text[start : match.start()], out)
                self._close()
            else:
                self._add(text[start : match.start()], out)
                start = match.start()
                if not self._turns(match):
                    continue
            start = match.end()
        rest = text[start:]
        kept = _held_length(rest)
        self._held = rest[len(rest) - kept :]
        self._add(rest[: len(rest) - kept], out)

    def _add(self, text: str, out: list[Piece]) -> None:
        if self._block is not None:
            if text:
                self._block.append(text)
                out.append(("reasoning", text))
            return
        if self._fresh:
            text = text.lstrip()
            self._fresh = not text
        if text:
            self._answer.append(text)
            out.append(("text", text))

    def _turns(self, match: re.Match[str]) -> bool:
        """Whether a tag met in the answer is one; acts on it if so."""
        code = self._read_on()
        if code.inside:
            return False
        if match[1]:
            return self._close_alone()
        if not (code.at_line_start or self._seen_block):
            return False
        self._inline = not code.at_line_start
        if code.blank:
            self._forget_answer()
        self._block, self._opened_as, self._closing = [], match[0], f"</{match[2].lower()}>"
        return True

    def _close(self) -> None:
        block = "".join(self._block or ())
        self._block = None
        self._seen_block = True
        if block.strip():
            self._thoughts.append(block)
        self._fresh = self._read_on().blank
        if self._fresh:
            self._forget_answer()

    def _close_alone(self) -> bool:
        if not self._code.blank:
            if self._seen_block or not self.lone_close:
                return False
            self._thoughts.append(self.text)
            self._seen_block = True
        self._forget_answer()
        self._fresh = True
        return True

    def _forget_answer(self) -> None:
        self._answer.clear()
        self._code, self._looked_at = _CodeState(), 0

    def _read_on(self) -> _CodeState:
        """Where the answer stands now; each piece is read once."""
        self._code.feed("".join(self._answer[self._looked_at :]))
        self._looked_at = len(self._answer)
        return self._code


def _held_length(text: str) -> int:
    """How many characters at the end may be the beginning of a tag."""
    start = text.rfind("<", max(0, len(text) - _LONGEST))
    if start >= 0 and text[start:].lower() in _BEGINNINGS:
        return len(text) - start
    return 0


class _CodeState:
    """Where the end of a growing text stands; each letter is read once.

    Attributes:
        blank: nothing but white space so far.
        at_line_start: nothing but white space in the last line.
    """

    def __init__(self) -> None:
        self.blank = self.at_line_start = True
        self._fence = ""
        self._line: list[str] = []
        self._opened = 0  # how many backticks opened the code in the last line, 0 = none is open
        self._run = 0  # backticks at its very end, of which more may follow

    @property
    def inside(self) -> bool:
        """Whether the end lies inside a fence or inside backticks."""
        return bool(self._fence) or self._after_run() > 0

    def feed(self, text: str) -> None:
        """Reads on."""
        *lines, last = text.split("\n")
        for line in lines:
            self._ended("".join((*self._line, line)))
            self._line.clear()
            self.blank = self.blank and not line.strip()
            self.at_line_start, self._opened, self._run = True, 0, 0
        if not last:
            return
        self._line.append(last)
        if last.strip():
            self.blank = self.at_line_start = False
        for ticks, other in _TICKS.findall(last):
            self._run += len(ticks)
            if other:
                self._opened, self._run = self._after_run(), 0

    def _after_run(self) -> int:
        if self._opened == 0 or self._run == 0:
            return self._opened or self._run
        return 0 if self._opened == self._run else self._opened

    def _ended(self, line: str) -> None:
        mark = _FENCE.match(line)
        if mark is None:
            return
        if not self._fence:
            self._fence = mark[1]
        elif mark[1].startswith(self._fence) and not line[mark.end() :].strip():
            self._fence = ""
