"""Reasoning in tags, parted from the answer whatever the pieces are."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_engine.clients import thinking
from hermes_engine.clients.thinking import ThoughtSplitter


def split(*pieces: str, lone_close: bool = True) -> tuple[str, str]:
    """(answer, reasoning) after all pieces."""
    splitter = ThoughtSplitter(lone_close=lone_close)
    for piece in pieces:
        splitter.feed(piece)
    splitter.finish()
    return splitter.text, splitter.reasoning


def shown(*pieces: str) -> tuple[str, str]:
    """(answer, reasoning) as a screen that only adds pieces has them."""
    splitter = ThoughtSplitter()
    out = [part for piece in pieces for part in splitter.feed(piece)] + splitter.finish()
    return tuple("".join(text for kind, text in out if kind == wanted) for wanted in ("text", "reasoning"))  # type: ignore[return-value]


def test_f7_9_tags_split_over_pieces() -> None:
    assert split("<thi", "nk>r</th", "ink>answer") == ("answer", "r")
    assert shown("<thi", "nk>r</th", "ink>answer") == ("answer", "r")


@pytest.mark.parametrize("name", ["think", "thinking", "REASONING_SCRATCHPAD", "Think", "reasoning_scratchpad"])
def test_f7_9_all_tag_names(name: str) -> None:
    assert split(f"<{name}>r</{name}>\n\nanswer") == ("answer", "r")


def test_f7_9_only_a_closing_tag() -> None:
    assert split("r</think>answer") == ("answer", "r")
    assert split("first\n\nsecond\n</think>\n\nanswer") == ("answer", "first\n\nsecond")


def test_f7_9_never_closed_is_reasoning_and_no_answer() -> None:
    assert split("<think>r") == ("", "r")
    assert split("  <think>r and more") == ("", "r and more")


def test_f7_9_a_closing_tag_first_then_reasoning() -> None:
    assert split("</think>r</think>answer") == ("answer", "r")
    assert split("<think>r</think>\n</think>\nanswer") == ("answer", "r")


def test_f7_9_two_blocks_with_text_between() -> None:
    assert split("<think>a</think>one <think>b</think>two") == ("one two", "a\nb")
    assert split("<think>a</think>\none\n<think>b</think>\ntwo") == ("one\n\ntwo", "a\nb")


@pytest.mark.parametrize(
    "answer",
    [
        "The `<think>` tag opens, `</think>` closes.",
        "Use\n```\n<think>\nr\n</think>\n```\nlike that.",
        "~~~xml\n<think>x</think>\n~~~",
        "Models write <think> in the middle of a line.",
        "a <b> c </b> d < e",
        "``x ` <think>`` and `</think>`",
        "````\n```\n<think>\n````\n",
        "text ending with a lone <",
        "text ending with <thin",
        "ends with </think",
    ],
)
def test_f7_9_literals_are_kept_and_nothing_is_held_back(answer: str) -> None:
    assert split(answer) == (answer, "")
    assert split(*answer) == (answer, "")
    assert shown(*answer) == (answer, "")
    assert split(f"<think>r</think>{answer}") == (answer, "r")


def test_an_unclosed_tag_in_mid_line_after_a_block_is_text_again() -> None:
    assert split("<think>r</think>The <think> tag opens.") == ("The <think> tag opens.", "r")


def test_a_second_closing_tag_in_the_answer_is_text() -> None:
    assert split("<think>r</think>the </think> tag") == ("the </think> tag", "r")


def test_a_lone_closing_tag_is_text_where_reasoning_came_otherwise() -> None:
    assert split("the </think> tag", lone_close=False) == ("the </think> tag", "")
    assert split("</think>\n\nanswer", lone_close=False) == ("answer", "")


def test_an_empty_block_leaves_nothing() -> None:
    assert split("<think>\n\n</think>\n\nanswer") == ("answer", "")


def test_a_block_closes_with_its_own_tag_only() -> None:
    assert split("<think>a </thinking> b</think>c") == ("c", "a </thinking> b")


def test_text_without_tags_is_given_at_once_and_unchanged() -> None:
    splitter = ThoughtSplitter()
    assert splitter.feed("  hello\n") == [("text", "  hello\n")]
    assert splitter.feed("") == []
    assert splitter.finish() == []
    assert splitter.text == "  hello\n"


SNIPPETS = [
    "<think>",
    "</think>",
    "<thinking>",
    "</THINK>",
    "`",
    "```\n",
    "\n",
    " ",
    "a",
    "word ",
    "<",
    "é",
    "</",
    "~~~\n",
]


@given(st.lists(st.sampled_from(SNIPPETS), max_size=25), st.lists(st.integers(1, 120), max_size=25))
def test_any_split_gives_the_same_text_and_reasoning(snippets: list[str], cuts: list[int]) -> None:
    whole = "".join(snippets)
    places = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    pieces = [whole[start:stop] for start, stop in itertools.pairwise(places)]
    assert split(*pieces) == split(whole)
    assert split(*whole) == split(whole)


@given(st.text(st.characters(exclude_characters="<"), min_size=1))
def test_text_without_any_tag_is_never_changed(text: str) -> None:
    assert split(text) == (text, "")


def test_a_model_that_only_repeats_a_tag_costs_no_more_per_tag_the_longer_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    letters: list[int] = []
    feed = thinking._CodeState.feed

    def counted(state: thinking._CodeState, text: str) -> None:
        letters.append(len(text))
        feed(state, text)

    monkeypatch.setattr(thinking._CodeState, "feed", counted)
    piece = "no </think>\n"
    answer, reasoning = split("x</think>", *[piece] * 1000)
    assert (answer, reasoning) == (piece * 1000, "x")
    assert sum(letters) <= len("x" + piece * 1000)
