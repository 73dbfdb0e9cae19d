"""A conversation can always be made valid: each call one result, in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes_engine.messages import (
    CANCELLED_RESULT,
    UNKNOWN_USAGE,
    Message,
    Reply,
    ToolCall,
    Usage,
    closed,
    tool_message,
    user,
)

IDS = st.sampled_from(["a", "b", "c", "d"])
CALLS = st.lists(IDS, max_size=3, unique=True).map(lambda ids: tuple(ToolCall(i, "t") for i in ids))
ANY = st.one_of(
    st.builds(user, st.text(max_size=5)),
    st.builds(lambda text, calls: Message("assistant", text, calls), st.text(max_size=5), CALLS),
    st.builds(lambda i: Message("tool", "out", tool_call_id=i), IDS),
)


def is_valid(messages: list[Message]) -> bool:
    position = 0
    while position < len(messages):
        message = messages[position]
        position += 1
        if message.role == "tool":
            return False
        for call in message.tool_calls:
            if position >= len(messages) or messages[position].role != "tool":
                return False
            if messages[position].tool_call_id != call.id:
                return False
            position += 1
    return True


@given(st.lists(ANY, max_size=12))
def test_closed_makes_any_conversation_valid_and_changes_no_valid_one(messages: list[Message]) -> None:
    once = closed(messages)
    assert is_valid(once)
    assert closed(once) == once
    assert [m for m in once if m.role == "user"] == [m for m in messages if m.role == "user"]


def test_results_of_a_cut_round_keep_their_order() -> None:
    calls = (ToolCall("a", "t"), ToolCall("b", "t"))
    cut = [user("go"), Message("assistant", "", calls), tool_message(calls[1], "second")]
    assert [m.content for m in closed(cut)[2:]] == [CANCELLED_RESULT, "second"]


def test_unknown_usage_stays_unknown_and_is_never_shown_as_a_figure() -> None:
    total = Usage(10, 5, cost_usd=0.1) + UNKNOWN_USAGE
    assert not total.tokens_known
    assert total.as_record() == {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "reasoning_tokens": 0,
        "tokens_known": False,
        "cost_usd": 0.0,
        "cost_known": False,
    }


def test_arguments_that_are_no_object_are_kept_raw() -> None:
    assert ToolCall("1", "t", '{"a": 1').recorded() == {"_raw": '{"a": 1'}
    assert ToolCall("1", "t", "[1]").parsed() is None
    assert ToolCall("1", "t", '{"q": "é"}').recorded() == {"q": "é"}


def test_reasoning_alone_is_no_answer() -> None:
    assert Reply(reasoning="hm").empty
    assert Reply(text="  ").empty
    assert not Reply(tool_calls=(ToolCall("1", "t"),)).empty
