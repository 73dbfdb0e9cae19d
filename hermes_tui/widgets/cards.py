"""Cards of a board and the heads of its columns, as lines of exactly the width they are given. Pure functions from
facts; knows no engine and no widget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.style import Style
from rich.text import Text

from hermes_tui.cleaning import escaped, one_line
from hermes_tui.texts import _
from hermes_tui.widgets.look import Look
from hermes_tui.widgets.rows import cut, fold, shorten, spread
from hermes_tui.widgets.times import age_short, count_short, seconds_short

COLUMNS = ("todo", "running", "needs", "review", "done")
"""Columns of the board, from left to right."""

FRAMED, BARE = 5, 3
"""Lines of a card with a frame, and without one where the window is short."""

WHO = 12
"""Cells a worker's name takes at most."""

COUNTED = 6
"""Cells a time that runs on has for itself, so that the name beside it keeps its length: `● 4m02`."""


@dataclass(frozen=True, slots=True)
class CardFace:
    """What a card shows.

    Attributes:
        id: short.
        title: foreign text, as it is kept.
        sign: needs | running | good | blocked | review | "".
        who: profile that works it.
        priority: 0 is not worth a word.
        seconds: how long it is so.
        told: why it waits, what its worker does, what it brought.
        tokens: used by its worker up to now; shown where they have room.
        after: cards it waits for.
    """

    id: str
    title: str
    sign: str = ""
    who: str = ""
    priority: int = 0
    seconds: float = 0.0
    told: str = ""
    tokens: int = 0
    after: tuple[str, ...] = ()


def shown(text: str) -> str:
    """Foreign text on one line, everything invisible in it as an escape but the joiners of emoji and scripts."""
    return one_line("\u200d".join(map(escaped, text.split("\u200d"))))


def column_name(name: str) -> str:
    """A column in words."""
    return {
        "todo": _("Todo"),
        "running": _("Running"),
        "needs": _("Needs you"),
        "review": _("Review"),
        "done": _("Done"),
    }[name].upper()


def column_meaning(name: str) -> str:
    """What stands in a column."""
    return {
        "todo": _("waits for other cards or for a worker"),
        "running": _("a worker is at it"),
        "needs": _("blocked, or its worker asks"),
        "review": _("handed in, to be judged"),
        "done": _("finished"),
    }[name]


def head(name: str, count: str, width: int, look: Look, *, chosen: bool) -> Text:
    """The first line of a column."""
    style = look.warning if name == "needs" and count != "0" else look.strong if chosen else look.soft
    line = Text().append(f" {column_name(name)}", style).append(f"  {count}", look.soft if chosen else look.faint)
    return padded(line, width, look)


def padded(line: Text, width: int, look: Look) -> Text:
    """The line in exactly `width` cells."""
    line = shorten(line, width, look.glyphs.ellipsis)
    line.append(" " * max(0, width - line.cell_len))
    return line


def card_lines(face: CardFace, width: int, look: Look, *, chosen: bool, framed: bool) -> list[Text]:
    """A card: name, who and how long, why or what; the chosen one in a heavy frame, or behind a heavy bar."""
    inner = width - (4 if framed else 2)
    lines = [_title(face, look), _second(face, inner, look), _third(face, look)]
    lines = [padded(line, inner, look) for line in lines]
    if framed:
        return frame(lines, width, look, chosen=chosen)
    bar = look.glyphs.user if chosen else " "
    return [Text(f"{bar} ", look.accent).append_text(line) for line in lines]


def frame(lines: Sequence[Text], width: int, look: Look, *, chosen: bool) -> list[Text]:
    """Lines of `width - 4` cells with a frame round them."""
    glyphs, style = look.glyphs, look.text if chosen else look.line
    signs = glyphs.heavy if chosen else glyphs.corners + glyphs.upright + glyphs.line
    left, right, low_left, low_right, side, across = tuple(signs)
    framed = [Text(f"{side} ", style).append_text(line).append(f" {side}", style) for line in lines]
    return [
        Text(f"{left}{across * (width - 2)}{right}", style),
        *framed,
        Text(f"{low_left}{across * (width - 2)}{low_right}", style),
    ]


def _title(face: CardFace, look: Look) -> Text:
    return Text(f"{face.id} ", look.soft).append(shown(face.title), look.text)


def _sign(face: CardFace, look: Look) -> tuple[str, Style]:
    glyphs = look.glyphs
    return {
        "needs": (glyphs.needs, look.warning),
        "blocked": (glyphs.needs, look.warning),
        "running": (glyphs.running, look.accent),
        "good": (glyphs.good, look.good),
    }.get(face.sign, ("", look.faint))


def _second(face: CardFace, width: int, look: Look) -> Text:
    glyphs = look.glyphs
    sign, style = _sign(face, look)
    counting = face.sign in ("running", "needs")
    time = seconds_short(int(face.seconds)) if counting else age_short(face.seconds)
    since = Text().append(f"{sign} " if sign else "", style).append(time, look.faint)
    room = width - 2 - max(since.cell_len, COUNTED if counting else 0)  # the time is never cut for a name
    parts = [Text(cut(shown(face.who), max(2, min(WHO, room)), glyphs.ellipsis), look.soft)] if face.who else []
    parts.append(since)
    room = width - sum(part.cell_len + 2 for part in parts)
    if face.priority and len(told := f"p{face.priority}") <= room:
        parts.append(Text(told, look.soft))
        room -= len(told) + 2
    after = Text(f"{glyphs.forked} {','.join(face.after)}", look.faint)
    if face.after and after.cell_len <= room:
        parts.append(after)
        room -= after.cell_len + 2
    count = count_short(face.tokens) if face.tokens else ""
    words = (_("{n} tok").format(n=count), count) if count else ()
    fitting = next((word for word in words if len(word) <= room), "")
    return spread(Text("  ").join(parts), Text(fitting, look.faint), width)


def _third(face: CardFace, look: Look) -> Text:
    style = {"needs": look.text, "blocked": look.text, "good": look.faint}.get(face.sign, look.soft)
    return Text(shown(face.told), style)


def ghosts(name: str, width: int, look: Look) -> list[Text]:
    """What stands in a column of an empty board: what the column means, and in three of them how to begin."""
    meaning = [line for line, _joint in fold(Text(column_meaning(name), look.faint), width - 2)]
    most = max(len(fold(Text(column_meaning(other)), width - 2)) for other in COLUMNS)
    meaning += [Text()] * (most - len(meaning))
    lines = [padded(Text(" ").append_text(line), width, look) for line in meaning]
    key, words = {
        "todo": ("n", _("new: writes a card, for a profile, after other cards")),
        "running": ("s", _("start: workers take what is ready, until you stop them")),
        "needs": (_("/kanban GOAL"), _("a model makes cards of a goal; you say yes first")),
    }.get(name, ("", ""))
    if not key:
        return lines
    text = Text(f"{key} ", look.text).append(words, look.faint)
    inner = [padded(line, width - 4, look) for line, _joint in fold(text, width - 4)]
    return [*lines, Text(" " * width), *frame(inner, width, look, chosen=False)]
