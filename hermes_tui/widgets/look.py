"""How things are drawn: the styles of one palette, the signs, whether anything moves. Handed to every block.

Knows no widget; a widget finds the current one by `look_of`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from rich.style import Style
from textual.color import Color
from textual.theme import Theme

from hermes_tui.widgets.glyphs import UNICODE, Glyphs
from hermes_tui.widgets.themes import Palette, palette_of

if TYPE_CHECKING:
    from textual.widget import Widget

SYNTAX_KINDS = ("keyword", "string", "number", "comment", "name")
"""The only kinds of code that get a colour of their own; `Palette.syntax` has theirs in this order."""


@dataclass(frozen=True, eq=False)
class Look:
    """Styles by role; two looks are equal only when they are the same object, which is what caches go by.

    Attributes:
        text, soft, faint: foreground in three strengths.
        accent, warning, good, bad: see `Palette`.
        strong: bold text.
        code: what is added to words that are code, inside a sentence.
        line: thin lines.
        syntax: style of each of `SYNTAX_KINDS`.
        added, removed: lines of a diff.
        picked: the chosen row of a list.
        motion: whether spinners turn.
    """

    palette: Palette
    glyphs: Glyphs
    motion: bool
    text: Style
    soft: Style
    faint: Style
    accent: Style
    warning: Style
    good: Style
    bad: Style
    strong: Style
    code: Style
    line: Style
    added: Style
    removed: Style
    picked: Style
    syntax: Mapping[str, Style]

    @classmethod
    def of(cls, theme: Theme, *, glyphs: Glyphs = UNICODE, motion: bool = True) -> Look:
        """The look of a theme."""
        palette = palette_of(theme)
        native = palette.native
        text, good, bad = _style(palette.text), _style(palette.good), _style(palette.bad)
        syntax = {kind: _style(colour) for kind, colour in zip(SYNTAX_KINDS, palette.syntax, strict=True)}
        faint = Style(dim=True) if native else _style(palette.faint)
        if native:
            syntax["comment"] = faint
        return cls(
            palette=palette,
            glyphs=glyphs,
            motion=motion,
            text=text,
            soft=_style(palette.soft),
            faint=faint,
            accent=_style(palette.accent),
            warning=_style(palette.warning),
            good=good,
            bad=bad,
            strong=text + Style(bold=True),
            code=syntax["number"] + Style(bold=True) if native else _behind(palette.selected),
            line=_style(palette.line),
            added=good,
            removed=bad,
            picked=Style(reverse=True) if native else _behind(palette.selected),
            syntax=syntax,
        )

    def variables(self) -> dict[str, str]:
        """The palette as CSS variables, for the style sheets."""
        palette = self.palette
        return {
            "h-text": palette.text,
            "h-soft": palette.soft,
            "h-faint": palette.faint,
            "h-faint-style": "dim" if palette.native else "none",
            "h-accent": palette.accent,
            "h-warning": palette.warning,
            "h-line": palette.line,
            "h-raised": palette.raised,
            "h-selected": palette.selected,
            "h-background": palette.background,
        }


def _style(colour: str) -> Style:
    return Style(color=Color.parse(colour).rich_color)


def _behind(colour: str) -> Style:
    return Style(bgcolor=Color.parse(colour).rich_color)


class HasLook(Protocol):
    """An app that knows how things are drawn."""

    look: Look


def look_of(widget: Widget) -> Look:
    """The look of the app the widget is in."""
    return cast("HasLook", widget.app).look
