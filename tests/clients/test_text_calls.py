"""Calls written as text: taken only where nothing else can be meant."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_engine.clients.text_calls import MarkupHider, with_text_calls
from hermes_engine.messages import Message, Reply, ToolCall, user
from hermes_engine.protocols import ModelRequest

TOOLS = [
    {"type": "function", "function": {"name": "t", "parameters": {"properties": {"n": {"type": "integer"}, "p": {}}}}},
    {"type": "function", "function": {"name": "u"}},
]
JSON_CALL = '<tool_call>{"name":"t","arguments":{"p":"v"}}</tool_call>'


def taken(text: str, *messages: Message, tools: Any = TOOLS, **reply: Any) -> tuple[str, list[tuple[str, object]]]:
    """(text left, calls) of an answer."""
    got = with_text_calls(Reply(text, **reply), ModelRequest("m", [user("go"), *messages], tools))
    return got.text, [(call.name, call.parsed()) for call in got.tool_calls]


@pytest.mark.parametrize(
    ("markup", "calls"),
    [
        (JSON_CALL, [("t", {"p": "v"})]),
        ('<tool_call>\n{"name": "t", "arguments": {}}\n</tool_call>\n', [("t", {})]),
        ('<tool_call>{"name":"t","parameters":{"p":"v"}}</tool_call>', [("t", {"p": "v"})]),
        ('<tool_call>{"name":"t"}</tool_call>', [("t", {})]),
        ('<tool_call>{"name":"t","arguments":"{\\"p\\":1}"}</tool_call>', [("t", {"p": 1})]),
        ('<tool_call>{"name":"t","arguments":{}}', [("t", {})]),
        ("<function=t><parameter=p>v</parameter></function>", [("t", {"p": "v"})]),
        ("<tool_call>\n<function=t>\n<parameter=n>\n7\n</parameter>\n</function>\n</tool_call>", [("t", {"n": 7})]),
        (JSON_CALL + "\n" + '<tool_call>{"name":"u"}</tool_call>', [("t", {"p": "v"}), ("u", {})]),
    ],
)
def test_f7_10_calls_at_the_end_of_an_answer_count(markup: str, calls: list[Any]) -> None:
    assert taken(markup) == ("", calls)
    assert taken(f"I look.\n\n{markup}") == ("I look.", calls)


@pytest.mark.parametrize(
    "text",
    [
        f"```\n{JSON_CALL}\n```",
        f"~~~xml\n{JSON_CALL}",
        f"> {JSON_CALL}",
        f"`{JSON_CALL}`",
        f'The file holds "{JSON_CALL}"',
        f"{JSON_CALL}\nThat is what the file holds.",
        '<tool_call>{"name":"unknown","arguments":{}}</tool_call>',
        "<function=unknown></function>",
        "<tool_call>{broken}</tool_call>",
        "<tool_call>[]</tool_call>",
        "no mark-up at all",
    ],
)
def test_f7_10_anything_else_is_text(text: str) -> None:
    assert taken(text) == (text, [])


def test_f7_10_what_was_read_is_not_run() -> None:
    read = Message("tool", f"a file with\n{JSON_CALL}\nin it", tool_call_id="c")
    assert taken(f"It says:\n{JSON_CALL}", read) == (f"It says:\n{JSON_CALL}", [])
    assert taken(JSON_CALL, Message("user", f"never say {JSON_CALL}"))[1] == []


def test_f7_10_a_structured_call_wins_and_without_tools_nothing_is_read() -> None:
    structured = (ToolCall("c", "u"),)
    assert taken(JSON_CALL, tool_calls=structured) == (JSON_CALL, [("u", {})])
    assert taken(JSON_CALL, tools=()) == (JSON_CALL, [])


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
@pytest.mark.parametrize(
    ("text", "final"),
    [
        (f"I look.\n{JSON_CALL}", "I look."),
        (f"I look.\n{JSON_CALL}\nno call after all", None),
        ("a < b\n<tool\nnext line", None),
        ("ends with\n<tool_ca", None),
        (JSON_CALL, ""),
    ],
)
def test_f7_10_markup_is_never_shown_and_text_always(size: int, text: str, final: str | None) -> None:
    heard: list[str] = []

    def hear(*, text: str = "", reasoning: str = "") -> None:
        heard.append(text + reasoning)

    hider = MarkupHider(hear)
    for start in range(0, len(text), size):
        hider(text=text[start : start + size])
    assert "<tool_call>" not in "".join(heard)
    hider.settle(text if final is None else final)
    assert "".join(heard).strip() == (text if final is None else final)
