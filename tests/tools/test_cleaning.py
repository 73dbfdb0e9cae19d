"""Foreign text made harmless: for the model, for an approval, for a screen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_engine.cleaning import clean_for_model, one_line, plain, printable, restore_tokens, visible


def test_f12_8_a_progress_bar_leaves_its_last_state() -> None:
    bar = "".join(f"\r{n}" for n in range(5000)) + "\n"
    assert plain(bar) == "4999\n"
    assert plain("one\r\ntwo\r\n") == "one\ntwo\n"
    assert plain("10%\r100%\r") == "100%"


def test_f9_2_escape_sequences_and_control_codes_go() -> None:
    text = "a\x1b[31mred\x1b[0m \x1b]52;c;aGk=\x07b \x1b]0;title\x1b\\c \x9b31md \x07e\x00f \x1bPq...\x1b\\g\x1b"
    assert plain(text) == "ared b c d ef g"


def test_an_unfinished_sequence_takes_no_more_than_its_line() -> None:
    assert plain("x\x1b]0;never ended\nnext line") == "x\nnext line"


def test_overstruck_text_of_manual_pages_is_read_once() -> None:
    assert plain("N\bNA\bAM\bME\bE") == "NAME"


def test_f2_5_lone_surrogates_are_replaced() -> None:
    assert plain("x\ud83d y") == "x\ufffd y"
    assert clean_for_model("ok 😀") == "ok 😀"


@pytest.mark.parametrize(
    "token",
    [
        "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|start_header_id|>", "<｜begin▁of▁sentence｜>", "<tool_call>",
        "</tool_response>", "<start_of_turn>", "[INST]", "[/INST]", "<<SYS>>", "</s>",
    ],
)  # fmt: skip
def test_f12_11_chat_tokens_are_neutralised_and_restorable(token: str) -> None:
    shown = clean_for_model(f"a {token} b")
    assert token not in shown
    assert restore_tokens(shown) == f"a {token} b"


@pytest.mark.parametrize("text", ["a <b> c", "x <| y |> z", "if a <s> b", "[INSTALL]", "«‹quoted›»", "f <<EOF\n|>"])
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert clean_for_model(text) == text
    assert restore_tokens(text) == text


def test_an_approval_hides_nothing() -> None:
    assert visible("rm \u202etxt.exe\u200b\x1b[2J\x9b\ud800\U000e0041\n\tend") == (
        "rm \\u202etxt.exe\\u200b\\x1b[2J\\x9b\\ud800\\U000e0041\n\tend"
    )


def test_a_screen_keeps_emoji_whole_and_drops_direction_marks() -> None:
    assert printable("👩\u200d👧 e\u0301 \u202eabc") == "👩\u200d👧 e\u0301 abc"


def test_one_line_is_one_line() -> None:
    assert one_line("a\n b\t\u200bc") == "a b c"
    assert one_line("x" * 50, 10) == "x" * 9 + "…"


@given(st.text())
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    once = clean_for_model(text)
    assert clean_for_model(once) == once
    assert visible(visible(text)) == visible(text)
    once.encode()
    printable(text).encode()
