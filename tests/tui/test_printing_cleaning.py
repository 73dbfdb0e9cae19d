"""Foreign text on its way to a terminal: nothing in it acts (faults 9.2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_tui.cleaning import clean, escaped, one_line

ACTING = [*(chr(code) for code in range(32) if chr(code) not in "\n\t"), *(chr(code) for code in range(0x7F, 0xA0))]


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("a\x1b]52;c;aGk=\x07b", "ab"),
        ("a\x1b]52;c;aGk=\x1b\\b", "ab"),
        ("a\x1b[2Jb", "ab"),
        ("a\x1b]0;x\x07b", "ab"),
        ("a\x9b31mb", "ab"),
        ("a\x07b", "ab"),
        ("one\rtwo", "one\ntwo"),
        ("one\r\ntwo", "one\ntwo"),
        ("a\x1bPq#0\x1b\\b", "ab"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("中文 👩‍👩‍👧 é", "中文 👩‍👩‍👧 é"),
        ("x\ud83dy", "x\ufffdy"),
        ("a\u202eb", "ab"),
    ],
)
def test_f9_2_control_codes_are_taken_out(text: str, right: str) -> None:
    assert clean(text) == right


@given(st.text(alphabet=st.characters(codec=None), max_size=200) | st.text(alphabet="\x1b[]0;m\x07\x9b\x9d\\ab\n\r"))
def test_f9_2_no_text_leaves_a_control_code(text: str) -> None:
    done = clean(text)
    assert not any(character in done for character in ACTING)
    done.encode()
    assert clean(done) == done


def test_one_line_joins_and_cuts() -> None:
    assert one_line(" a\n\n b\t c ") == "a b c"
    assert one_line("abcdef", 4) == "abc…"
    assert one_line("abcd", 4) == "abcd"


def test_what_is_to_be_approved_hides_nothing() -> None:
    assert escaped("rm \x1b[2K x\u202ey\u200b") == "rm \\x1b[2K x\\u202ey\\u200b"
