"""Markdown: pieces that are closed once, rows that lose nothing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_tui.widgets.blocks import AnswerBlock
from hermes_tui.widgets.glyphs import ASCII
from hermes_tui.widgets.highlight import find_spans
from hermes_tui.widgets.markdown.drawing import draw, draw_code
from hermes_tui.widgets.markdown.splitting import OPEN_LIMIT, Piece, Splitter, split
from tests.tui.drawing import LOOK, MARKUP, WIDE, drawn_whole, lines, logical, look

BLOCKS = st.sampled_from(
    [
        "A paragraph with *words* in it.",
        "# Heading",
        "- one\n- two\n  - nested",
        "1. first\n2. second",
        "```python\ncode = 1\n\nmore = 2\n```",
        "~~~\ntext\n~~~",
        "> quoted\n> twice",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "---",
        "    indented code",
        "A line\nand the next",
        "- item\n\n  its second paragraph",
    ]
)
SOURCES = st.lists(BLOCKS, min_size=1, max_size=8).map("\n\n".join)


def words(text: str) -> list[str]:
    """Words without numbers: a list that is cut keeps the numbers its source has."""
    return re.findall(r"[A-Za-z]+", text)


@given(SOURCES, st.integers(1, 9))
def test_pieces_do_not_depend_on_how_the_source_arrives(source: str, size: int) -> None:
    splitter = Splitter()
    found: list[Piece] = []
    for start in range(0, len(source), size):
        found += splitter.feed(source[start : start + size])
    found += splitter.finish()
    assert found == split(source)


@given(SOURCES)
def test_pieces_hold_every_line_once(source: str) -> None:
    text = "\n".join(piece.source for piece in split(source))
    assert [line for line in text.split("\n") if line.strip()] == [line for line in source.split("\n") if line.strip()]


@given(SOURCES)
def test_pieces_look_like_the_whole(source: str) -> None:
    parts = [line for piece in split(source) for line in lines(draw(piece.source, 60, LOOK)) if line]
    whole = [line for line in lines(draw(source, 60, LOOK)) if line]
    assert words(" ".join(parts)) == words(" ".join(whole))


@given(SOURCES, st.integers(12, 90))
def test_rows_fit_and_lose_no_word(source: str, width: int) -> None:
    rows = draw(source, width, LOOK)
    assert all(row.strip.cell_length <= width for row in rows)
    told = words(logical(rows))
    for word in words(re.sub(r"```python|\d\.", "", source)):
        assert word in told or any(word in other for other in told)


def test_a_piece_closes_when_the_next_block_begins() -> None:
    splitter = Splitter()
    assert splitter.feed("one\n\n") == []
    assert splitter.feed("t") == []
    assert splitter.open == Piece("one\n\nt")
    assert splitter.feed("wo\n") == [Piece("one")]
    assert splitter.open == Piece("two\n")


def test_a_long_fence_is_cut_at_lines_and_goes_on_as_code() -> None:
    code = "".join(f"line {number} = {number}\n" for number in range(900))
    pieces = split(f"Look:\n\n```python\n{code}```\n\nafter")
    assert len(pieces) > 4
    assert pieces[-1] == Piece("after")
    inside = [piece for piece in pieces if piece.fence is not None]
    assert inside
    assert all(piece.glued and piece.fence == "python" for piece in inside)
    assert "".join(piece.source for piece in pieces).count("line ") == 900
    assert max(len(piece.source) for piece in pieces) < OPEN_LIMIT * 2


def test_a_long_line_without_end_is_cut_at_blanks() -> None:
    pieces = split("word " * 5000)
    assert all(len(piece.source) <= OPEN_LIMIT + 8 for piece in pieces)
    assert sum(piece.source.count("word") for piece in pieces) == 5000
    assert all(piece.glued for piece in pieces[1:])


def test_f9_1_brackets_are_text() -> None:
    for text in MARKUP:
        assert lines(draw(f"before {text} after", 60, LOOK)) == [f"before {text} after".replace("\\[", "[")]
        assert lines(draw_code(text, "", 60, LOOK)) == [f"│ {text}"]


def test_f9_9_tables_align_by_cells() -> None:
    rows = draw(f"| a | b |\n|---|---|\n| {WIDE} | x |\n| short | y |", 60, LOOK)
    from rich.cells import cell_len

    ends = {cell_len(row.text.rstrip()[:-1]) for row in (rows[2], rows[3])}
    assert len(ends) == 1


def test_f9_15_a_long_code_line_wraps_and_copies_whole() -> None:
    line = "value = [" + ", ".join(f"item_{number}" for number in range(60)) + "]"
    assert len(line) > 300
    rows = draw(f"```python\n{line}\n```", 50, LOOK)
    assert len(rows) > 5
    assert logical(rows) == line


def test_f9_15_a_wide_table_wraps_in_its_cells() -> None:
    rows = draw("| name | " + "x" * 80 + " |\n|---|---|\n| a | " + "y" * 90 + " |", 40, LOOK)
    text = "".join(lines(rows))
    assert text.count("x") == 80
    assert text.count("y") == 90
    assert all(row.strip.cell_length <= 40 for row in rows)


def test_columns_that_are_equally_wide_are_narrowed_alike() -> None:
    one, two = "word " * 10, "text " * 11
    rows = lines(draw(f"| a | b | c |\n|---|---|---|\n| {one} | {two} | x |", 50, LOOK))
    assert [len(rule) for rule in rows[1].split()] == [21, 22, 3]


def test_a_table_that_cannot_fit_becomes_fields() -> None:
    rows = draw("| a | b | c | d |\n|---|---|---|---|\n| 1 | 2 | 3 | 4 |", 12, LOOK)
    assert lines(rows) == ["a: 1", "b: 2", "c: 3", "d: 4"]


@pytest.mark.parametrize("bars", [True, False])
def test_a_table_that_is_cut_keeps_its_columns_in_each_piece(bars: bool) -> None:
    rows = [f"row {number} | " + "x" * 80 for number in range(900)]
    lined = ["name | what it holds", "---|---", *rows]
    source = "Look:\n" * bars + "\n".join(f"| {line} |" if bars else line for line in lined)
    block = AnswerBlock(live=True)
    for start in range(0, len(source), 700):
        block.feed(source[start : start + 700])
    text = drawn_whole(block, 120)[-1]
    block.finish()
    assert drawn_whole(block, 120)[-1] == text
    assert sum("what it holds" in line for line in text) > 2
    assert not any("|" in line for line in text)
    assert [line.split()[1] for line in text if "xxx" in line] == [str(number) for number in range(900)]
    assert block.copy_text() == source


def test_code_in_a_sentence_stands_without_its_quotes_and_is_not_plain() -> None:
    for theme in ("hermes-dark", "terminal"):
        style = look(theme)
        (row,) = draw("use `rm -rf` now", 60, style)
        assert row.text == "use rm -rf now"
        styles = {segment.text.strip(): segment.style for segment in row.segments}
        assert styles["rm -rf"] not in (styles["use"], style.strong)
    assert AnswerBlock("use `rm -rf` now").copy_text() == "use `rm -rf` now"


def test_items_to_be_ticked_have_a_box_for_a_bullet() -> None:
    source = "- [ ] open `x`\n- [x] done\n  - [X] below\n- [y] other\n- [ ]\n\n1. [x] first"
    assert lines(draw(source, 40, LOOK)) == [
        "☐ open x", "☑ done", "  ☑ below", "• [y] other", "☐", "", "1. ☑ first",
    ]  # fmt: skip
    assert lines(draw(source, 40, look(glyphs=ASCII)))[:3] == ["[ ] open x", "[x] done", "    [x] below"]


def test_links_show_where_they_lead() -> None:
    assert lines(draw("[words](http://a.b/c) and <http://x.y>", 60, LOOK)) == ["words (http://a.b/c) and http://x.y"]


def test_lists_and_quotes_copy_without_their_edges() -> None:
    rows = draw(
        "> a quotation that is long enough to be folded once\n\n- an item that is long enough to be folded", 24, LOOK
    )
    assert logical(rows) == (
        "a quotation that is long enough to be folded once\n\n• an item that is long enough to be folded"
    )


def test_code_gets_its_colours_by_kind() -> None:
    code = 'def f(x):\n    # why\n    return "s" + 1\n'
    kinds = {code[start:end]: kind for start, end, kind in find_spans(code, "python")}
    assert kinds["def"] == "keyword"
    assert kinds["# why"] == "comment"
    assert kinds["1"] == "number"
    assert kinds["f"] == "name"
    assert find_spans("x", "no-such-language") == ()


def test_single_line_ends_of_an_answer_stay_line_ends() -> None:
    assert lines(draw("Name: Ada\nBorn: 1815\n\n- one\n  and more", 60, LOOK)) == [
        "Name: Ada",
        "Born: 1815",
        "",
        "• one",
        "  and more",
    ]
