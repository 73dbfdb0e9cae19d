"""The few signs the interface draws with, in Unicode and in ASCII for locales that have no better. Pure data."""

from __future__ import annotations

import locale
import os
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set of signs, each one cell wide but for the boxes, corners and frames."""

    user: str = "▌"
    """Bar before what the person said."""
    prompt: str = "❯"
    """Before the input."""
    folded: str = "▸"
    """A line that opens."""
    unfolded: str = "▾"
    """A line that is open."""
    running: str = "●"
    """At work."""
    needs: str = "◆"
    """Waits for the person."""
    waiting: str = "○"
    """Not started."""
    good: str = "✓"
    """Ended well."""
    bad: str = "✗"
    """Ended badly."""
    rejected: str = "⊘"
    """Left out by a filter."""
    stopped: str = "■"
    """Ended by the person."""
    warning: str = "▲"
    """Something to read."""
    batch: str = "▤"
    """A batch run."""
    background: str = "⚙"
    """A background task."""
    forked: str = "⑂"
    """Agents that an agent started."""
    bullet: str = "•"
    """List item."""
    unticked: str = "☐"
    """List item that is to be done."""
    ticked: str = "☑"
    """List item that is done."""
    gutter: str = "│"
    """Left edge of code."""
    quote: str = "▎"
    """Left edge of a quotation."""
    line: str = "─"
    """Thin line."""
    bar: str = "━"
    """Filled part of a bar."""
    more: str = "▾"
    """Something to choose from."""
    down: str = "↓"
    """Newer text below."""
    ellipsis: str = "…"
    """Something was cut."""
    dot: str = "·"
    """Between small things."""
    minus: str = "−"
    """Removed lines."""
    corners: str = "╭╮╰╯"
    """Corners of a frame: top left, top right, bottom left, bottom right."""
    upright: str = "│"
    """Side of a frame."""
    heavy: str = "┏┓┗┛┃━"
    """The frame of what is chosen: its corners in the same order, side, top and bottom."""
    spinner: str = "⠋⠙⠸⠴⠦⠇"
    """Frames of the sign of work, four a second."""


UNICODE = Glyphs()
ASCII = Glyphs(
    user="|",
    prompt=">",
    folded="+",
    unfolded="-",
    running="*",
    needs="!",
    waiting=".",
    good="+",
    bad="x",
    rejected="/",
    stopped="#",
    warning="!",
    batch="=",
    background="&",
    forked="Y",
    bullet="*",
    unticked="[ ]",
    ticked="[x]",
    gutter="|",
    quote="|",
    line="-",
    bar="=",
    more="v",
    down="v",
    ellipsis="~",
    dot="-",
    minus="-",
    corners="++++",
    upright="|",
    heavy="####|=",
    spinner="|/-\\",
)


def choose_glyphs(env: Mapping[str, str] | None = None) -> Glyphs:
    """The set that fits the terminal: ASCII for `TERM=dumb` and for locales that are not UTF-8."""
    values = os.environ if env is None else env
    if values.get("TERM") == "dumb":
        return ASCII
    named = next((values[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if values.get(name)), "")
    if named:
        plain = named.upper() in ("C", "POSIX") or ("." in named and "UTF" not in named.upper())
        return ASCII if plain else UNICODE
    return UNICODE if "utf" in locale.getpreferredencoding(False).lower() else ASCII


def motion_allowed(env: Mapping[str, str] | None = None) -> bool:
    """Whether signs may move: not with `NO_COLOR`, `TERM=dumb`, `ACCESSIBLE` or `REDUCE_MOTION` set."""
    values = os.environ if env is None else env
    if values.get("TERM") == "dumb" or "NO_COLOR" in values:
        return False
    return not any(values.get(name, "") not in ("", "0") for name in ("ACCESSIBLE", "REDUCE_MOTION"))
