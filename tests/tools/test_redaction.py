"""Secrets leave no text, value or stream, in whatever form and however the pieces are cut."""

from __future__ import annotations

import base64
import json
from itertools import pairwise
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_engine.redaction import MARK, Redactor, StreamRedactor, is_secret_name

KEY = "sk-or-v1-0123456789abcdef/+ü"


def test_f2_11_a_secret_in_text_is_replaced() -> None:
    assert Redactor([KEY]).text(f"the key is {KEY}, twice {KEY}") == f"the key is {MARK}, twice {MARK}"


@pytest.mark.parametrize("lead", [b"", b"u", b"user:", b"ab"])
def test_encoded_forms_are_replaced_at_every_offset(lead: bytes) -> None:
    redactor = Redactor([KEY])
    encoded = base64.b64encode(lead + KEY.encode() + b":tail").decode()
    kept = redactor.text(encoded)
    assert MARK in kept
    assert len(kept.replace(MARK, "")) < 20
    assert redactor.text(f"https://x/?k={quote(KEY, safe='')}&a=1") == f"https://x/?k={MARK}&a=1"
    assert redactor.text(json.dumps({"k": KEY})) == json.dumps({"k": MARK})


def test_short_values_are_never_secrets() -> None:
    redactor = Redactor(["", "abc", "1234567"])
    assert redactor.text("abc 1234567") == "abc 1234567"
    assert redactor.value({"password": "abc"}) == {"password": "abc"}


def test_values_are_redacted_by_key_name_at_any_depth() -> None:
    value = {
        "api_key": "something-long",
        "headers": [{"Authorization": "Bearer something"}],
        "nested": {"clientSecret": "long-enough", "note": "plain", "tokens": 12},
        "max_tokens": 4096,
        "prompt_tokens": "no secret at all",
        "password": {"type": "string", "description": "a schema, not a secret"},
        "secrets": ["one-long-secret", "x"],
    }
    assert Redactor().value(value) == {
        "api_key": MARK,
        "headers": [{"Authorization": MARK}],
        "nested": {"clientSecret": MARK, "note": "plain", "tokens": 12},
        "max_tokens": 4096,
        "prompt_tokens": "no secret at all",
        "password": {"type": "string", "description": "a schema, not a secret"},
        "secrets": [MARK, "x"],
    }


@pytest.mark.parametrize(
    "name",
    ["api_key", "apiKey", "X-Api-Key", "OPENAI_API_KEY", "token", "access_token", "Authorization", "db.password"],
)
def test_names_that_hold_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    ["max_tokens", "max_token", "prompt_tokens", "tokens", "key", "keys", "tokenizer", "next_page_token", "monkey", ""],
)
def test_names_that_do_not(name: str) -> None:
    assert not is_secret_name(name)


def test_a_secret_added_later_counts_from_then_on() -> None:
    redactor = Redactor()
    assert redactor.text("late-secret") == "late-secret"
    redactor.add("late-secret")
    assert redactor.text("late-secret") == MARK


def test_keys_of_objects_are_redacted_too() -> None:
    assert Redactor([KEY]).value({KEY: 1, 5: (KEY,)}) == {MARK: 1, 5: [MARK]}


SECRETS = ["aaaaaaab", "aabaabaab", "aaaaaaabaaa", "bbbbbbbbbb"]


@given(
    st.text(alphabet="ab", max_size=80),
    st.lists(st.integers(0, 80), max_size=12),
    st.lists(st.sampled_from(SECRETS), max_size=4),
)
def test_a_stream_cut_anywhere_reads_like_the_whole(text: str, cuts: list[int], secrets: list[str]) -> None:
    redactor = Redactor(secrets)
    stream = StreamRedactor(redactor)
    places = sorted({0, len(text), *(cut for cut in cuts if cut <= len(text))})
    pieces = [text[start:end] for start, end in pairwise(places)]
    shown = ""
    for piece in pieces:
        shown += stream.feed(piece)
        assert not any(secret in shown for secret in secrets)
    assert shown + stream.end() == redactor.text(text)


def test_a_stream_without_secrets_holds_nothing_back() -> None:
    stream = StreamRedactor(Redactor(["0123456789"]))
    assert stream.feed("hello") == "hello"
    assert stream.feed("01234") == ""
    assert stream.feed("x") == "01234x"
    assert stream.end() == ""
