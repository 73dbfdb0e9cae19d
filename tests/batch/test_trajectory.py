"""Records as the contract has them, and lines that every reader can read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_engine.batch.job import Record, Row, RowResult, ToolCount
from hermes_engine.batch.trajectory import line_of, make_record, recorded, turn
from hermes_engine.messages import Message, ToolCall, Usage, tool_message, user
from hermes_engine.redaction import Redactor

KEYS = [
    "prompt_index",
    "conversations",
    "completed",
    "toolsets_used",
    "tool_stats",
    "tool_error_counts",
    "partial",
    "stop_reason",
    "api_calls",
    "retries",
    "sample",
    "reasoning",
    "usage",
    "metadata",
]


def record(result: RowResult, row: Row | None = None, *, secrets: tuple[str, ...] = ()) -> Record:
    return make_record(
        row or Row(42, "abc-0", "Write it", extra='{"source": "gsm8k"}'),
        result,
        tools=("terminal", "read_file"),
        batch=2,
        timestamp="2026-11-29T10:00:00Z",
        redactor=Redactor(secrets),
    )


def conversation() -> tuple[Message, ...]:
    call = ToolCall("c1", "terminal", '{"command": "ls"}')
    return (
        user("Write it"),
        Message("assistant", "I will create it.", (call,), reasoning="I need …"),
        tool_message(call, "README.md"),
        Message("assistant", "Done.", reasoning="…"),
    )


def test_the_record_is_the_contracts() -> None:
    result = RowResult(
        "done",
        conversation=conversation(),
        toolsets=("file", "terminal"),
        offered=("terminal", "read_file"),
        tools={"terminal": ToolCount(1, 1, 0)},
        api_calls=2,
        usage=Usage(12, 5, 3, cost_known=False),
        model="m",
    )
    made = json.loads(line_of(record(result)))
    assert list(made) == KEYS
    assert made == {
        "prompt_index": 42,
        "conversations": [
            {"from": "human", "value": "Write it"},
            {
                "from": "gpt",
                "value": "<think>\nI need …\n</think>\nI will create it.",
                "tool_calls": [{"name": "terminal", "arguments": {"command": "ls"}}],
            },
            {"from": "tool", "value": "README.md"},
            {"from": "gpt", "value": "<think>\n…\n</think>\nDone.", "tool_calls": []},
        ],
        "completed": True,
        "toolsets_used": ["file", "terminal"],
        "tool_stats": {
            "terminal": {"count": 1, "success": 1, "failure": 0},
            "read_file": {"count": 0, "success": 0, "failure": 0},
        },
        "tool_error_counts": {"terminal": 0, "read_file": 0},
        "partial": False,
        "stop_reason": "done",
        "api_calls": 2,
        "retries": 0,
        "sample": 0,
        "reasoning": {"turns": 2, "with_reasoning": 2},
        "usage": {
            "prompt_tokens": 12,
            "completion_tokens": 5,
            "reasoning_tokens": 3,
            "tokens_known": True,
            "cost_usd": 0.0,
            "cost_known": False,
        },
        "metadata": {
            "batch_num": 2,
            "timestamp": "2026-11-29T10:00:00Z",
            "model": "m",
            "row_id": "abc-0",
            "extra": '{"source": "gsm8k"}',
        },
    }


@pytest.mark.parametrize(
    ("message", "value"),
    [
        (Message("assistant", "Yes.", reasoning="r"), "<think>\nr\n</think>\nYes."),
        (Message("assistant", "<think>r</think>Yes."), "<think>\nr\n</think>\nYes."),
        (Message("assistant", "<think>r</think>\nYes.", reasoning="r"), "<think>\nr\n</think>\nYes."),
        (
            Message("assistant", "\n<REASONING_SCRATCHPAD>\nr\n</REASONING_SCRATCHPAD>\nYes."),
            "<think>\nr\n</think>\nYes.",
        ),
        (Message("assistant", "Yes.", reasoning="<think>r</think>"), "<think>\nr\n</think>\nYes."),
        (Message("assistant", "", (ToolCall("c", "t"),), reasoning="r"), "<think>\nr\n</think>"),
        (Message("assistant", "", (ToolCall("c", "t"),)), ""),
        (Message("assistant", "Yes.", reasoning="  "), "Yes."),
        (Message("assistant", "<think></think>Yes."), "Yes."),
    ],
)
def test_f2_1_reasoning_stands_once_at_the_start(message: Message, value: str) -> None:
    assert turn(message, Redactor())["value"] == value


def test_f2_3_only_the_four_names_and_calls_on_every_gpt_turn_and_no_other() -> None:
    made = record(RowResult("done", conversation=conversation()))["conversations"]
    assert {entry["from"] for entry in made} == {"human", "gpt", "tool"}
    assert all(("tool_calls" in entry) == (entry["from"] == "gpt") for entry in made)
    assert turn(Message("system", "s"), Redactor()) == {"from": "system", "value": "s"}


@pytest.mark.parametrize(
    "arguments", ['{"a": 1', "[1]", '"x"', '{"a": NaN}', '{"a": 1e999}', '{"a": 99999999999999999999}']
)
def test_arguments_that_are_no_plain_object_are_kept_raw(arguments: str) -> None:
    assert recorded(ToolCall("c", "t", arguments), Redactor()) == {"name": "t", "arguments": {"_raw": arguments}}


def test_f2_12_arguments_are_an_object_decoded_once() -> None:
    call = ToolCall("c", "t", '{"q": "é \\"x\\" \\n", "on": true, "none": null}')
    line = line_of(record(RowResult("done", conversation=(Message("assistant", "", (call,)),))))
    found = json.loads(line)["conversations"][0]["tool_calls"][0]["arguments"]
    assert found == {"q": 'é "x" \n', "on": True, "none": None}
    assert "é".encode() in line


def test_f2_5_lone_surrogates_become_the_replacement_character() -> None:
    result = RowResult("done", conversation=(user("\udc00"), Message("assistant", "x\ud83d y \U0001f600")))
    line = line_of(record(result, Row(0, "k-0", "\udc00", extra='{"a": "\ud800"}')))
    made = json.loads(line.decode("utf-8"))
    assert [entry["value"] for entry in made["conversations"]] == ["\ufffd", "x\ufffd y \U0001f600"]
    assert made["metadata"]["extra"] == '{"a": "\ufffd"}'


def test_f2_6_no_character_but_lf_ends_a_line() -> None:
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\rh\ni"
    line = line_of(record(RowResult("done", conversation=(Message("assistant", text),))))
    assert line.decode().splitlines() == [line.decode()[:-1]]
    assert json.loads(line)["conversations"][0]["value"] == text


def test_f2_11_secrets_leave_every_text() -> None:
    secret = "sk-or-v1-0123456789abcdef"
    call = ToolCall("c", "terminal", json.dumps({"command": f"echo {secret}"}))
    said = (user(f"my {secret}"), Message("assistant", secret, (call,), reasoning=secret), tool_message(call, secret))
    row = Row(0, "k-0", "p", extra=json.dumps({"key": secret}))
    line = line_of(record(RowResult("done", conversation=said), row, secrets=(secret,)))
    assert secret.encode() not in line
    assert line.count(b"[redacted]") == 6


def test_f2_9_an_unfinished_row_is_partial_and_says_why() -> None:
    for reason in ("max_turns", "length", "budget"):
        made = record(RowResult(reason, conversation=conversation()[:3]))
        assert (made["completed"], made["partial"], made["stop_reason"]) == (False, True, reason)
        assert made["conversations"][-1]["from"] == "tool"


def test_f2_10_a_row_counts_what_failed_by_tool() -> None:
    tools = {"terminal": ToolCount(2, 0, 2)}
    made = record(RowResult("done", conversation=conversation(), tools=tools, offered=("terminal", "patch")))
    assert made["tool_stats"]["terminal"] == {"count": 2, "success": 0, "failure": 2}
    assert made["tool_error_counts"] == {"terminal": 2, "read_file": 0, "patch": 0}


TEXT = st.characters(exclude_categories=["Cs"])
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(TEXT),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(TEXT, max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(TEXT, max_size=5), json_values, max_size=4))
def test_any_arguments_come_back_equal(arguments: dict[str, object]) -> None:
    call = ToolCall("c", "t", json.dumps(arguments))
    line = line_of(record(RowResult("done", conversation=(Message("assistant", "", (call,)),))))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line)["conversations"][0]["tool_calls"][0]["arguments"] == arguments


@given(st.text(st.characters(codec=None)), st.text(st.characters(codec=None)))
def test_any_text_makes_one_valid_line(said: str, thought: str) -> None:
    message = Message("assistant", said, reasoning=thought)
    line = line_of(record(RowResult("done", conversation=(user(said), message))))
    assert len(line.decode("utf-8").splitlines()) == 1
    assert json.loads(line)["conversations"][0]["value"] == "".join(
        "\ufffd" if 0xD800 <= ord(character) <= 0xDFFF else character for character in said
    )
