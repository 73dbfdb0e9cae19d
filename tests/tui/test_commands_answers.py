"""What a person types to answer a request."""

from __future__ import annotations

import pytest

from hermes_engine.events import ApprovalAsked, QuestionAsked
from hermes_engine.requests import Answer
from hermes_tui.commands.answers import read_answer

RULED = ApprovalAsked(request="q", title="make", rule="make in this folder")
ONCE_ONLY = ApprovalAsked(request="q", title="rm -r x")
QUESTION = QuestionAsked(request="q", question="which?", choices=("main", "dev"))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("1", Answer("once")),
        ("y", Answer("once")),
        (" YES ", Answer("once")),
        ("2", Answer("session")),
        ("a", Answer("session")),
        ("3", Answer("no")),
        ("n", Answer("no")),
        ("no, use make instead", Answer("no", "use make instead")),
        ("3 too risky", Answer("no", "too risky")),
        ("4", Answer("always")),
        ("", None),
        ("5", None),
        ("1 but carefully", None),
        ("hello", None),
    ],
)
def test_answers_to_an_approval(text: str, answer: Answer | None) -> None:
    assert read_answer(RULED, text) == answer


@pytest.mark.parametrize("text", ["2", "a", "4", "always"])
def test_nothing_beyond_once_where_no_rule_is_on_offer(text: str) -> None:
    assert read_answer(ONCE_ONLY, text) is None


@pytest.mark.parametrize(("text", "note"), [("1", "main"), ("2", "dev"), ("3", "3"), ("neither", "neither")])
def test_answers_to_a_question(text: str, note: str) -> None:
    assert read_answer(QUESTION, text) == Answer("answer", note)
