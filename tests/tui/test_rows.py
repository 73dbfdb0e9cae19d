"""Folding and cutting by cells: nothing lost, nothing wider than the line, no cluster split."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len, split_graphemes
from rich.style import Style
from rich.text import Text

from hermes_tui.widgets.rows import cut, fold, list_row, row_of, segments_of, shorten, spread
from tests.tui.drawing import WIDE, look

PIECES = st.sampled_from([*"ab c-d.\n", "中", "👩‍👩‍👧", "❤️", "e\u0301", "ע", "   ", "word"])
TEXTS = st.lists(PIECES, max_size=60).map("".join)


def clusters(text: str) -> list[str]:
    return [text[start:end] for start, end, _cells in split_graphemes(text)[0]]


@given(TEXTS, st.integers(2, 30))
def test_folding_loses_nothing_and_fits(text: str, width: int) -> None:
    parts = fold(Text(text), width)
    joined = parts[0][0].plain
    for line, joint in parts[1:]:
        joined = joined.rstrip(" ") if joint == " " else joined
        joined += ("\n" if joint is None else joint) + line.plain
    assert " ".join(joined.split()) == " ".join(text.split())
    for line, _joint in parts:
        assert cell_len(line.plain.rstrip(" ")) <= width


@given(TEXTS.filter(lambda text: "\n" not in text), st.integers(2, 12))
def test_f9_9_folding_splits_no_cluster(text: str, width: int) -> None:
    whole = clusters(text)
    found = [cluster for line, _joint in fold(Text(text), width) for cluster in clusters(line.plain)]
    assert [item for item in found if item != " "] == [item for item in whole if item != " "]


@given(TEXTS.filter(lambda text: "\n" not in text), st.integers(0, 20))
def test_f9_9_cutting_fits_and_splits_no_cluster(text: str, width: int) -> None:
    short = cut(text, width)
    assert cell_len(short) <= width
    if cell_len(text) <= width:
        assert short == text
    elif width:
        assert short.endswith("…")
        assert text.startswith(short[:-1])
        assert clusters(short[:-1]) == clusters(text)[: len(clusters(short[:-1]))]


def test_a_text_without_spans_keeps_its_style() -> None:
    bold = Style(bold=True)
    assert segments_of(Text("x", bold))[0].style == bold
    assert row_of(Text("x", bold)).strip.cell_length == 1


def test_spread_fills_the_line_and_cuts_the_left_part() -> None:
    line = spread(Text("a long title that does not fit"), Text("3 s ✓"), 20)
    assert line.cell_len == 20
    assert line.plain.endswith(" 3 s ✓")
    assert "…" in line.plain


@pytest.mark.parametrize("width", [1, 2, 5, 9, 40])
def test_f9_9_wide_text_in_narrow_columns(width: int) -> None:
    for line, _joint in fold(Text(WIDE), width):
        assert line.cell_len <= max(2, width) + 1
    assert shorten(Text(WIDE), width).cell_len <= width


@pytest.mark.parametrize("theme", ["hermes-dark", "hermes-light", "terminal"])
def test_the_chosen_row_of_a_list_can_be_told_from_the_others(theme: str) -> None:
    drawn = look(theme)
    base = Style(bgcolor="#101010", color="#f0f0f0")
    row = Text("a word").append(" and another", drawn.soft)
    plain = list_row(row, 30, base, drawn, chosen=False)
    chosen = list_row(row, 30, base, drawn, chosen=True)
    assert plain.text == chosen.text
    assert plain.cell_length == chosen.cell_length == 30
    grounds = {(segment.style.bgcolor, segment.style.reverse) for segment in chosen if segment.style is not None}
    assert len(grounds) == 1
    assert grounds.isdisjoint((part.style.bgcolor, part.style.reverse) for part in plain if part.style is not None)
