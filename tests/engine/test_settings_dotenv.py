"""`.env` files: what is a value, and that none ever reaches the process environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_engine.dotenv import odd_lines, parse_dotenv, read_dotenv
from hermes_engine.errors import ConfigError


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("KEY=abc", "abc"),
        ("  export KEY = abc  ", "abc"),
        ("KEY=abc # a comment", "abc"),
        ("KEY=abc#not a comment", "abc#not a comment"),
        ("KEY=# all comment", ""),
        ('KEY="a b # c"', "a b # c"),
        ('KEY="a\\"b\\n"', 'a"b\n'),
        ("KEY='a $X \\n'", "a $X \\n"),
        ("KEY='a' # c", "a"),
        ("KEY=$HOME/`id`", "$HOME/`id`"),
        ('KEY="unclosed', '"unclosed'),
        ("KEY=", ""),
        ("KEY=a=b", "a=b"),
        ("\ufeffKEY=abc\r", "abc"),
        ("KEY=one\nKEY=two", "two"),
    ],
)
def test_values_are_as_a_shell_would_write_them(line: str, value: str) -> None:
    assert parse_dotenv(line) == {"KEY": value}


def test_lines_of_another_form_are_passed_over() -> None:
    assert parse_dotenv("# KEY=1\nnot a line\n=x\n1A=2\n\nB=2\n") == {"B": "2"}


def test_odd_lines_are_named_by_number_and_not_shown(tmp_path: Path) -> None:
    good = '# KEY=1\n\n  \nexport A=\'x\'\nB="a\\"b"\r\nC=\'\'\nD=""\nE=\n'
    assert odd_lines(f"\ufeff{good}") == []
    assert odd_lines("sk-secret-alone\nA: sk-secret\nB='open\nC=\"open\nD=ok\n1A=2") == [1, 2, 3, 4, 6]
    (tmp_path / ".env").write_text("A: sk-secret\nB=2\n")
    told: list[str] = []
    assert read_dotenv(tmp_path / ".env", told) == {"B": "2"}
    assert told == [f"{tmp_path / '.env'}:1: no NAME=value as a shell reads it"]


def test_a_missing_file_is_empty_and_a_folder_is_refused(tmp_path: Path) -> None:
    assert read_dotenv(tmp_path / ".env") == {}
    with pytest.raises(ConfigError, match="cannot be read"):
        read_dotenv(tmp_path)


def test_reading_leaves_the_environment_alone(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"SOME_NEW_NAME=1\nBAD=\xff\n")
    before = dict(os.environ)
    assert read_dotenv(tmp_path / ".env")["SOME_NEW_NAME"] == "1"
    assert dict(os.environ) == before


@given(st.text())
def test_any_text_gives_names_and_values(text: str) -> None:
    for name, value in parse_dotenv(text).items():
        assert name.isidentifier()
        assert isinstance(value, str)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_a_value_in_quotes_comes_back(value: str) -> None:
    quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    assert parse_dotenv(f'KEY="{quoted}"')["KEY"] == value
