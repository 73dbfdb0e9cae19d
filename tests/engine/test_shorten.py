"""Shortening keeps pairs whole and the person's last words as they are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes_engine.agent.shorten import DROPPED_HEAD, SUMMARY_HEAD, as_text, estimate, parted, pruned, rounds
from hermes_engine.messages import Message, ToolCall, closed, tool_message, user


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    out = [Message("system", "rules")]
    number = 0
    for _ in range(draw(st.integers(1, 4))):
        out.append(user(draw(st.text(min_size=1, max_size=50))))
        for _ in range(draw(st.integers(0, 5))):
            calls = tuple(ToolCall(f"c{(number := number + 1)}", "t") for _ in range(draw(st.integers(1, 3))))
            out.append(Message("assistant", "", calls))
            out.extend(tool_message(call, "x" * draw(st.integers(0, 3000))) for call in calls)
        if draw(st.booleans()):
            out.append(Message("assistant", "done"))
    return out


@given(conversations(), st.integers(0, 4000), st.sampled_from(["", "what was said"]))
def test_f7_17_pairs_stay_whole_and_the_last_user_message_word_for_word(
    messages: list[Message], room: int, summary: str
) -> None:
    shorter = parted(messages, room).joined(summary)
    assert closed(shorter) == shorter
    assert shorter[0] == messages[0]
    last = [m for m in messages if m.role == "user"][-1]
    assert [m for m in shorter if m.role == "user"][-1] == last
    assert shorter[-1] == messages[-1]


@given(conversations(), st.integers(0, 3))
def test_pruned_results_keep_their_calls(messages: list[Message], spare: int) -> None:
    shorter = pruned(messages, spare_rounds=spare)
    assert [(m.role, m.tool_call_id, m.tool_calls) for m in shorter] == [
        (m.role, m.tool_call_id, m.tool_calls) for m in messages
    ]
    assert estimate(shorter) <= estimate(messages)
    if spare:
        assert shorter[-len(rounds(messages)[-1]) :] == rounds(messages)[-1]


def test_ten_rounds_become_a_summary_and_the_latest_rounds() -> None:
    messages = [Message("system", "rules"), user("build it")]
    for number in range(10):
        call = ToolCall(f"c{number}", "terminal")
        messages += [Message("assistant", "", (call,)), tool_message(call, "y" * 400)]
    shorter = parted(messages, 300).joined("half is built")
    assert [m.role for m in shorter[:3]] == ["system", "user", "user"]
    assert shorter[1].content == SUMMARY_HEAD + "half is built"
    assert shorter[2].content == "build it"
    assert [m.tool_call_id for m in shorter if m.role == "tool"] == ["c8", "c9"]
    assert parted(messages, 300).joined("")[1].content == DROPPED_HEAD


def test_text_for_a_summary_is_bounded_and_names_the_calls() -> None:
    call = ToolCall("1", "terminal", '{"command": "ls"}')
    text = as_text([user("a" * 5000), Message("assistant", "", (call,)), tool_message(call, "b" * 9000)], 2000)
    assert len(text) < 2100
    assert text.startswith("user: aaa")
    assert "result of terminal" in text or "[…]" in text
