"""What tests of drawn things share: a look, rows as text, and the texts that break terminals."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_tui.widgets.blocks import Block
from hermes_tui.widgets.glyphs import UNICODE, Glyphs
from hermes_tui.widgets.look import Look
from hermes_tui.widgets.rows import Row
from hermes_tui.widgets.themes import bundled_themes

WIDE = "中文 👩‍👩‍👧 ❤️ e\u0301 עברית"
MARKUP = ("[/]", "[00]", '{"a":[true,false]}', "[bold", "[@click=app.quit]x[/]", "\\[", "[red]x[/red]", "$x [/bold]")
CONTROLS = ("\x1b]52;c;aGk=\x07", "\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\x07", "\r", "\x1b[31m", "\x00", "\x85")


def look(theme: str = "hermes-dark", glyphs: Glyphs = UNICODE, *, motion: bool = True) -> Look:
    """The look of a bundled theme."""
    return Look.of(bundled_themes()[theme], glyphs=glyphs, motion=motion)


LOOK = look()


def lines(rows: Sequence[Row]) -> list[str]:
    """The rows as text."""
    return [row.text.rstrip() for row in rows]


def drawn(block: Block, width: int = 60) -> str:
    """A block as text."""
    return "\n".join(lines(block.rows(width, LOOK)))


def drawn_whole(block: Block, width: int = 60) -> list[list[str]]:
    """A long block as text, part by part until all of it is drawn."""
    parts = [lines(block.rows(width, LOOK))]
    while block.unfinished:
        parts.append(lines(block.rows(width, LOOK)))
    return parts


def logical(rows: Sequence[Row]) -> str:
    """What copying all rows would give: folds joined, decoration left out."""
    out = ""
    for number, row in enumerate(rows):
        text = row.text
        words = text[row.inset : len(text) - row.drawn].rstrip(" ")
        out += words if not number else ("\n" if row.joint is None else row.joint) + words
    return out


def has_control(text: str) -> bool:
    """Whether a terminal would act on something in the text."""
    return any((ord(letter) < 32 and letter != "\n") or 0x7F <= ord(letter) < 0xA0 for letter in text)
