"""The bundled colour themes and the one palette that everything is drawn with.

A palette has five greys-to-foreground steps and four signal colours; whatever a theme brings, each is moved until
it reads at 4.5:1 on the background. Knows no widget.
"""

from __future__ import annotations

from dataclasses import dataclass

from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from hermes_tui.texts import _

MIN_CONTRAST = 4.5
"""WCAG AA for small text."""

TERMINAL = "terminal"
"""Name of the default theme: the terminal's own colours, so it is light or dark as the terminal is."""

_BORROWED = ("tokyo-night", "catppuccin-latte", "catppuccin-mocha", "gruvbox", "nord")
"""Themes of the toolkit that are offered under their own names."""


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours as CSS names.

    Attributes:
        text, soft, faint: foreground at full, about 70 % and about 45 % strength.
        accent: focus and running, nothing else.
        warning: only for what needs the person.
        good, bad: only for final marks.
        line: thin lines and unfilled bars.
        raised: background of what lies above (menus, dialogs); background of the selected row.
        syntax: colours of code: keyword, string, number, comment, name.
    """

    text: str
    soft: str
    faint: str
    accent: str
    warning: str
    good: str
    bad: str
    line: str
    raised: str
    selected: str
    background: str
    syntax: tuple[str, str, str, str, str]
    native: bool = False


def _own(name: str, *, dark: bool, background: str, text: str, accent: str, signals: tuple[str, str, str]) -> Theme:
    warning, good, bad = signals
    return Theme(
        name=name,
        primary=accent,
        secondary=accent,
        accent=accent,
        warning=warning,
        success=good,
        error=bad,
        foreground=text,
        background=background,
        surface=background,
        panel=background,
        dark=dark,
    )


def _terminal() -> Theme:
    base = BUILTIN_THEMES["ansi-dark"]
    return Theme(
        name=TERMINAL,
        primary="ansi_cyan",
        secondary="ansi_cyan",
        accent="ansi_cyan",
        warning="ansi_yellow",
        error="ansi_red",
        success="ansi_green",
        foreground="ansi_default",
        background="ansi_default",
        surface="ansi_default",
        panel="ansi_default",
        boost="ansi_default",
        dark=True,
        ansi=True,
        variables=dict(base.variables),
    )


def bundled_themes() -> dict[str, Theme]:
    """Every theme on offer by name, the default first."""
    own = [
        _terminal(),
        _own(
            "hermes-dark",
            dark=True,
            background="#14161b",
            text="#e4e6eb",
            accent="#7aa2f7",
            signals=("#e0af68", "#9ece6a", "#f7768e"),
        ),
        _own(
            "hermes-light",
            dark=False,
            background="#fbfbf9",
            text="#24262b",
            accent="#2f5fc4",
            signals=("#9a5b00", "#2f7a2f", "#b3243c"),
        ),
        _own(
            "high-contrast",
            dark=True,
            background="#000000",
            text="#ffffff",
            accent="#4fd6ff",
            signals=("#ffd500", "#5dff5d", "#ff8080"),
        ),
    ]
    return {theme.name: theme for theme in [*own, *(BUILTIN_THEMES[name] for name in _BORROWED)]}


def unknown_theme(name: str) -> list[str]:
    """What to say of a theme's name in the settings: nothing when there is one of that name."""
    return [] if name in bundled_themes() else [_("ui.theme: there is no theme {name}").format(name=repr(name))]


def palette_of(theme: Theme) -> Palette:
    """The palette of a theme; every colour of text reads at `MIN_CONTRAST` on its background."""
    if theme.ansi:
        return _NATIVE
    background = Color.parse(theme.background or "#121212")
    text = readable(Color.parse(theme.foreground or ("#e0e0e0" if theme.dark else "#202020")), background)
    high = theme.name == "high-contrast"

    def signal(value: str | None, fallback: str) -> str:
        return readable(Color.parse(value or fallback), background).hex

    return Palette(
        text=text.hex,
        soft=_step(text, background, 0.85 if high else 0.72),
        faint=_step(text, background, 0.75 if high else 0.48),
        accent=signal(theme.primary, "#7aa2f7"),
        warning=signal(theme.warning, "#e0af68"),
        good=signal(theme.success, "#9ece6a"),
        bad=signal(theme.error, "#f7768e"),
        line=background.blend(text, 0.5 if high else 0.2).hex,
        raised=background.blend(text, 0.06).hex,
        selected=background.blend(text, 0.14).hex,
        background=background.hex,
        syntax=(
            signal(theme.primary, "#7aa2f7"),
            signal(theme.success, "#9ece6a"),
            signal(theme.warning, "#e0af68"),
            _step(text, background, 0.48),
            signal(theme.secondary, "#7dcfff"),
        ),
    )


_NATIVE = Palette(
    text="ansi_default",
    soft="ansi_default",
    faint="ansi_default",
    accent="ansi_cyan",
    warning="ansi_yellow",
    good="ansi_green",
    bad="ansi_red",
    line="ansi_bright_black",
    raised="ansi_default",
    selected="ansi_default",
    background="ansi_default",
    syntax=("ansi_blue", "ansi_green", "ansi_magenta", "ansi_default", "ansi_cyan"),
    native=True,
)


def contrast(one: Color, other: Color) -> float:
    """The WCAG ratio of two opaque colours, 1 to 21."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def readable(color: Color, background: Color) -> Color:
    """The colour, moved towards black or white just as far as it must be to read on the background."""
    target = Color(0, 0, 0) if _luminance(background) > 0.18 else Color(255, 255, 255)
    for step in range(21):
        moved = color.blend(target, step / 20)
        if contrast(moved, background) >= MIN_CONTRAST:
            return moved
    return target


def _step(text: Color, background: Color, share: float) -> str:
    """The text colour at `share` of its strength, stronger where that would not read."""
    while share < 1.0:
        blended = background.blend(text, share)
        if contrast(blended, background) >= MIN_CONTRAST:
            return blended.hex
        share += 0.02
    return text.hex


def _luminance(color: Color) -> float:
    channels = [value / 255 for value in (color.r, color.g, color.b)]
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
