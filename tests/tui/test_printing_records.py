"""Lists and JSON as programs read them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_tui.commands.host import Output
from hermes_tui.printing.outputs import output_lines
from hermes_tui.printing.records import aligned, json_text, out_table


def test_off_a_terminal_a_record_is_a_line_whole_and_uncoloured(capsys: pytest.CaptureFixture[str]) -> None:
    long = "w" * 500
    out_table(("a", "b"), [("1", long), ("two\twords", "line\nbreak\x1b[31m")])
    assert capsys.readouterr().out == f"1\t{long}\ntwo words\tline break\n"


def test_aligned_records_hold_every_word_and_square_brackets() -> None:
    text = aligned(("name", "what"), [("a", "[bold] x [/] " + "y " * 60)], columns_wide=60)
    assert "[bold] x [/]" in text
    assert text.count("y") == 60
    assert all(len(line) <= 60 for line in text.splitlines())


PROFILES = ("profile", "kind", "description")
ROWS = [("default", "own", "General work in the current folder"), ("orchestrator", "template", "Splits a goal " * 3)]


def test_short_columns_are_never_broken() -> None:
    lines = aligned(PROFILES, ROWS, columns_wide=50).splitlines()
    assert lines[0].split() == ["profile", "kind", "description"]
    assert [line.split()[:2] for line in lines if line[:1] != " "][1:] == [
        ["default", "own"],
        ["orchestrator", "template"],
    ]


def test_records_without_room_stand_on_lines_of_their_own() -> None:
    assert aligned(PROFILES, ROWS[:1] * 2, columns_wide=26) == (
        "profile      default\nkind         own\ndescription  General work\n             in the\n             current\n"
        "             folder\n\n"
        "profile      default\nkind         own\ndescription  General work\n             in the\n             current\n"
        "             folder\n"
    )
    assert (
        aligned(("", ""), [("k", "a b c d e f"), ("long key here", "")], columns_wide=8)
        == "k\na b c d e f\n\nlong key here\n"
    )


@given(st.dictionaries(st.text(alphabet=st.characters(codec=None)), st.text(alphabet=st.characters(codec=None))))
def test_json_is_one_safe_line_and_reads_back(value: dict[str, str]) -> None:
    text = json_text(value)
    assert not any(ord(character) < 32 or 0x7F <= ord(character) < 0xA0 for character in text)
    assert "\u2028" not in text
    text.encode()
    clean = {key: item for key, item in value.items() if _encodable(key) and _encodable(item)}
    if len(clean) == len(value):
        assert json.loads(text) == value


def _encodable(text: str) -> bool:
    return not any(0xD800 <= ord(character) <= 0xDFFF for character in text)


def test_outputs_become_lines() -> None:
    table = Output("table", "below", "Title", ("a",), (("1",), ("2",)))
    assert [line.text for line in output_lines(table, columns_wide=40)] == ["Title", "a", "1", "2", "below"]
    assert [line.text for line in output_lines(Output("markdown", "**a**\n\nb\n"))] == ["**a**", "", "b"]
    assert [(line.text, line.style) for line in output_lines(Output("error", "no"))] == [("no", "red")]
    assert output_lines(Output("text", "")) == []
