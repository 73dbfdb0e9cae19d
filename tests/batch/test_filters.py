"""Which rows are kept, rejected or failed."""

from __future__ import annotations

import pytest

from hermes_engine.batch.filters import NOTHING_BEFORE_THE_CUT, Verdict, invented_tools, judged
from hermes_engine.batch.job import RowResult
from hermes_engine.messages import Message, ToolCall, tool_message, user

CALL = ToolCall("c", "terminal", "{}")
INVENTED = ToolCall("d", "make_coffee", "{}")
THOUGHT = Message("assistant", "Yes.", reasoning="hm")
WORDS = Message("assistant", "Yes.")
USED = (Message("assistant", "", (CALL,), reasoning="hm"), tool_message(CALL, "x"))
MADE_UP = (Message("assistant", "", (INVENTED,), reasoning="hm"), tool_message(INVENTED, "no"))
MADE_UP_DULLY = (Message("assistant", "", (INVENTED,)), tool_message(INVENTED, "no"))


def result(*said: Message, stop: str = "done", error: str = "", kind: str = "") -> RowResult:
    return RowResult(stop, error=error, error_kind=kind, conversation=(user("p"), *said), offered=("terminal",))


@pytest.mark.parametrize(
    ("row", "outcome", "reason"),
    [
        (result(THOUGHT), "kept", ""),
        (result(Message("assistant", "<think>hm</think>Yes.")), "kept", ""),
        (result(Message("assistant", "<REASONING_SCRATCHPAD>hm</REASONING_SCRATCHPAD>Yes.")), "kept", ""),
        (result(*USED, WORDS), "kept", ""),
        (result(Message("assistant", "Yes.")), "rejected", "no_reasoning"),
        (result(Message("assistant", "Yes.", reasoning=" \n")), "rejected", "no_reasoning"),
        (result(*MADE_UP, THOUGHT), "rejected", "invented_tool"),
        (result(*MADE_UP_DULLY, WORDS), "rejected", "no_reasoning"),
        (result(*USED, stop="max_turns"), "kept", ""),
        (result(Message("assistant", "half", reasoning="hm"), stop="length"), "kept", ""),
        (result(Message("assistant", "half", reasoning="hm"), stop="budget"), "kept", ""),
        (result(THOUGHT, stop="timeout", error="stopped after 2 s", kind="timeout"), "failed", "timeout"),
        (result(stop="error", error="500: oh", kind="server_error"), "failed", "server_error"),
        (result(THOUGHT, stop="cancelled"), "failed", "cancelled"),
        (result(stop="budget"), "failed", "empty_answer"),
    ],
)
def test_verdicts(row: RowResult, outcome: str, reason: str) -> None:
    verdict = judged(row)
    assert (verdict.outcome, verdict.reason) == (outcome, reason)
    assert bool(verdict.detail) == (outcome != "kept")


@pytest.mark.parametrize("text", ["", "   ", "\n", "<think>only this</think>"])
@pytest.mark.parametrize("stop", ["done", "length"])
def test_f1_12_f2_4_an_empty_answer_is_a_failure(text: str, stop: str) -> None:
    row = result(*USED, Message("assistant", text, reasoning="hm"), stop=stop)
    why = {"done": "the last answer is empty", "length": NOTHING_BEFORE_THE_CUT}[stop]
    assert judged(row) == Verdict("failed", "empty_answer", why)
    assert judged(result(stop=stop)).reason == "empty_answer"


def test_a_provider_error_is_a_failure_and_never_a_reject() -> None:
    row = result(Message("assistant", "half"), stop="error", error="429", kind="rate_limit")
    assert judged(row) == Verdict("failed", "rate_limit", "429")


def test_rows_without_reasoning_can_be_kept() -> None:
    assert judged(result(Message("assistant", "Yes.")), keep_without_reasoning=True).outcome == "kept"


def test_invented_names_in_order_once() -> None:
    said = Message("assistant", "", (ToolCall("1", "b"), ToolCall("2", "a"), CALL, ToolCall("3", "b")))
    assert invented_tools(result(said)) == ["b", "a"]
