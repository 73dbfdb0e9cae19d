"""Every bundled theme reads: 4.5:1 for all text, whatever a theme brings."""

from __future__ import annotations

import pytest
from textual.color import Color

from hermes_tui.widgets.glyphs import ASCII, UNICODE, choose_glyphs, motion_allowed
from hermes_tui.widgets.look import Look
from hermes_tui.widgets.themes import MIN_CONTRAST, TERMINAL, bundled_themes, contrast, palette_of, readable

NAMES = list(bundled_themes())


def test_the_terminals_own_colours_come_first() -> None:
    assert NAMES[0] == TERMINAL
    assert {"hermes-dark", "hermes-light", "high-contrast", "tokyo-night", "gruvbox", "nord"} <= set(NAMES)


@pytest.mark.parametrize("name", [name for name in NAMES if name != TERMINAL])
def test_every_colour_of_text_reads(name: str) -> None:
    palette = palette_of(bundled_themes()[name])
    background = Color.parse(palette.background)
    colours = [palette.text, palette.soft, palette.faint, palette.accent, palette.warning, palette.good, palette.bad]
    for colour in [*colours, *palette.syntax]:
        assert contrast(Color.parse(colour), background) >= MIN_CONTRAST, colour
    for raised in (palette.raised, palette.selected):
        assert contrast(Color.parse(palette.text), Color.parse(raised)) >= MIN_CONTRAST


def test_the_terminal_theme_names_no_colour_of_its_own() -> None:
    palette = palette_of(bundled_themes()[TERMINAL])
    assert palette.native
    assert palette.background == palette.text == "ansi_default"
    assert Look.of(bundled_themes()[TERMINAL]).faint.dim


def test_an_unreadable_colour_is_moved_just_far_enough() -> None:
    grey, black = Color.parse("#333333"), Color.parse("#000000")
    moved = readable(grey, black)
    assert MIN_CONTRAST <= contrast(moved, black) < MIN_CONTRAST + 1.5
    assert readable(Color.parse("#ffffff"), black) == Color.parse("#ffffff")


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"LANG": "en_US.UTF-8"}, UNICODE),
        ({"LANG": "C"}, ASCII),
        ({"LC_ALL": "POSIX", "LANG": "en_US.UTF-8"}, ASCII),
        ({"LANG": "de_DE.ISO-8859-1"}, ASCII),
        ({"LANG": "en_US.UTF-8", "TERM": "dumb"}, ASCII),
    ],
)
def test_signs_fit_the_locale(env: dict[str, str], expected: object) -> None:
    assert choose_glyphs(env) is expected


def test_ascii_signs_are_ascii_and_as_wide() -> None:
    for name in ASCII.__slots__:
        assert getattr(ASCII, name).isascii()
        if name not in ("corners", "heavy", "spinner", "unticked", "ticked"):
            assert len(getattr(ASCII, name)) == len(getattr(UNICODE, name)) == 1


@pytest.mark.parametrize(
    ("env", "moves"),
    [({}, True), ({"NO_COLOR": ""}, False), ({"TERM": "dumb"}, False), ({"ACCESSIBLE": "1"}, False),
     ({"REDUCE_MOTION": "1"}, False), ({"REDUCE_MOTION": "0"}, True)],
)  # fmt: skip
def test_motion_is_off_where_it_disturbs(env: dict[str, str], moves: bool) -> None:
    assert motion_allowed(env) is moves
