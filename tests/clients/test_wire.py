"""What goes out: valid JSON, each message encoded once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_engine.clients import wire
from hermes_engine.clients.dialects import dialect_of, effort_fields, sampling_fields
from hermes_engine.clients.wire import BodyWriter, message_bytes
from hermes_engine.messages import Message, Reply, ToolCall, assistant, tool_message, user
from hermes_engine.protocols import ModelRequest

CALL = ToolCall("c1", "t", '{"a":1}')
TOOL = {"type": "function", "function": {"name": "t"}}


def sent(*messages: Message, writer: BodyWriter | None = None, tools: Any = (), **fields: Any) -> dict[str, Any]:
    """The body as the server reads it."""
    body = (writer or BodyWriter()).body(ModelRequest("m", messages, tools), fields)
    value: dict[str, Any] = json.loads(body)
    return value


def test_f7_16_no_calls_no_key_and_content_is_always_text() -> None:
    told = sent(user("hi"), Message("assistant", "text"), Message("assistant", "", (CALL,)), tool_message(CALL, ""))
    assert told["messages"] == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "text"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "t", "arguments": '{"a":1}'}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": ""},
    ]


def test_f7_16_messages_with_neither_words_nor_calls_stay_here() -> None:
    thought = Message("assistant", "", reasoning="only thoughts")
    told = sent(Message("system"), user(""), thought, Message("assistant"))
    assert told["messages"] == [{"role": "user", "content": ""}]


def test_messages_of_the_person_that_touch_are_one_on_the_wire_and_stay_two_here() -> None:
    first, second = user('stopped "early"'), user("again\né")
    answers = Message("assistant", "a", partial=True), Message("assistant", reasoning="only thoughts")
    messages = [Message("system", "s"), first, answers[1], second, answers[0], user("last")]
    kept = list(messages)
    before = BodyWriter().body(ModelRequest("m", messages[:2]), {})
    body = BodyWriter().body(ModelRequest("m", messages), {})
    assert [(item["role"], item["content"]) for item in json.loads(body)["messages"]] == [
        ("system", "s"),
        ("user", 'stopped "early"\n\nagain\né'),
        ("assistant", "a"),
        ("user", "last"),
    ]
    assert body.startswith(before[: before.index(b'"}]')])  # what a server has cached stays true
    assert messages == kept
    assert first.wire == [b'{"role":"user","content":"stopped \\"early\\""}']


@given(st.lists(st.text(), min_size=1))
def test_any_texts_of_the_person_are_joined_by_a_blank_line(texts: list[str]) -> None:
    assert sent(*map(user, texts))["messages"] == [{"role": "user", "content": "\n\n".join(texts)}]


def test_f7_4_arguments_go_out_as_they_came_and_encoded_once() -> None:
    told = sent(assistant(Reply(tool_calls=(ToolCall("c", "t", '{"path": "x"}'),))))
    assert told["messages"][0]["tool_calls"][0]["function"]["arguments"] == '{"path": "x"}'


@pytest.mark.parametrize("arguments", ['{"a":', "[]", '"x"', "5", "", "null"])
def test_f7_5_what_is_no_object_goes_out_as_one(arguments: str) -> None:
    told = sent(assistant(Reply(tool_calls=(ToolCall("c", "t", arguments),))))
    assert json.loads(told["messages"][0]["tool_calls"][0]["function"]["arguments"]) == {"_raw": arguments}


def test_f7_15_ids_of_calls_and_results_match() -> None:
    told = sent(assistant(Reply(tool_calls=(CALL,))), tool_message(CALL, "x"))["messages"]
    assert told[0]["tool_calls"][0]["id"] == told[1]["tool_call_id"]


def test_a_message_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []
    encode = wire._message

    def counting(message: Message) -> dict[str, Any]:
        counted.append(message.content)
        return encode(message)

    monkeypatch.setattr(wire, "_message", counting)
    writer, messages = BodyWriter(), [user("one"), Message("assistant", "two")]
    for text in ("three", "four"):
        messages.append(user(text))
        sent(*messages, writer=writer)
    assert counted == ["one", "two", "three", "four"]
    assert all(len(message.wire) == 1 for message in messages)


def test_tools_are_encoded_once_a_list_and_never_mixed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "_KEPT_TOOL_LISTS", 3)
    writer = BodyWriter()
    for number in range(20):
        tool = {"type": "function", "function": {"name": f"t{number}"}}
        assert sent(user("x"), writer=writer, tools=[tool])["tools"] == [tool]
        assert sent(user("x"), writer=writer, tools=[tool, TOOL])["tools"] == [tool, TOOL]
    assert "tools" not in sent(user("x"), writer=writer)


def test_fields_are_sent_but_ours_cannot_be_replaced() -> None:
    fields = {
        "temperature": 0.5,
        "stop": None,
        "stream": False,
        "messages": [],
        "tools": [1],
        "model": "other",
        "seed": 0,
    }
    assert json.loads(BodyWriter().body(ModelRequest("m", [user("x")]), fields)) == {
        "model": "other",
        "messages": [{"role": "user", "content": "x"}],
        "temperature": 0.5,
        "seed": 0,
        "stream": True,
    }


def test_reasoning_goes_back_only_where_the_settings_say_so() -> None:
    message = Message("assistant", "text", reasoning="why")
    assert "why" not in str(sent(message))
    told = sent(message, user("x"), writer=BodyWriter("reasoning_content"))["messages"]
    assert told[0] == {"role": "assistant", "content": "text", "reasoning_content": "why"}
    assert b"why" not in message.wire[0]


def test_f2_5_half_surrogates_go_out_as_marks() -> None:
    data = message_bytes(user("a\ud83d b \ud83d\ude00"))
    assert json.loads(data.decode())["content"] == "a\ufffd b 😀"
    assert json.loads(BodyWriter().body(ModelRequest("m\udc00", []), {"user": "\udc00"}).decode())["user"] == "\ufffd"


@given(
    st.text(st.characters()),
    st.text(st.characters()),
    st.dictionaries(st.text(max_size=5), st.integers() | st.text(st.characters(), max_size=5), max_size=3),
)
def test_every_body_is_valid_utf8_and_json(content: str, arguments: str, fields: dict[str, Any]) -> None:
    messages = [
        user(content),
        Message("assistant", content, (ToolCall(content, content, arguments),), reasoning=content),
    ]
    body = BodyWriter("reasoning_content").body(ModelRequest("m", messages), fields)
    told = json.loads(body.decode())
    assert told["stream"] is True
    assert len(told["messages"]) == 2
    assert isinstance(json.loads(told["messages"][1]["tool_calls"][0]["function"]["arguments"]), dict)


@pytest.mark.parametrize(
    ("url", "effort", "fields"),
    [
        ("https://openrouter.ai/api/v1", "high", {"reasoning": {"effort": "high"}}),
        ("https://openrouter.ai/api/v1", "none", {"reasoning": {"enabled": False}}),
        ("http://127.0.0.1:8000/v1", "high", {"reasoning_effort": "high"}),
        ("http://127.0.0.1:8000/v1", "none", {"reasoning_effort": "none"}),
        ("http://127.0.0.1:8000/v1", None, {}),
        ("https://openrouter.ai.example.org/v1", "low", {"reasoning_effort": "low"}),
    ],
)
def test_efforts_are_said_as_the_service_wants_them(url: str, effort: str | None, fields: dict[str, Any]) -> None:
    assert effort_fields(effort, dialect_of(url)) == fields


@pytest.mark.parametrize(
    ("way", "high", "none"),
    [
        ("reasoning_effort", {"reasoning_effort": "high"}, {"reasoning_effort": "none"}),
        ("reasoning", {"reasoning": {"effort": "high"}}, {"reasoning": {"enabled": False}}),
        (
            "enable_thinking",
            {"chat_template_kwargs": {"enable_thinking": True}},
            {"chat_template_kwargs": {"enable_thinking": False}},
        ),
        ("thinking", {"chat_template_kwargs": {"thinking": True}}, {"chat_template_kwargs": {"thinking": False}}),
        (
            "template_effort",
            {"chat_template_kwargs": {"reasoning_effort": "high"}},
            {"chat_template_kwargs": {"reasoning_effort": "none"}},
        ),
    ],
)
@pytest.mark.parametrize("url", ["https://openrouter.ai/api/v1", "http://127.0.0.1:8000/v1"])
def test_efforts_are_said_as_a_setting_wants_them(url: str, way: Any, high: Any, none: Any) -> None:
    dialect = dialect_of(url, way)
    assert effort_fields("high", dialect) == high
    assert effort_fields("none", dialect) == none
    assert effort_fields(None, dialect) == {}


def test_the_answer_limit_has_another_name_at_openai() -> None:
    sampling = {"max_tokens": 5, "top_p": 1}
    assert sampling_fields(sampling, dialect_of("https://api.openai.com/v1")) == {
        "max_completion_tokens": 5,
        "top_p": 1,
    }
    assert sampling_fields(sampling, dialect_of("http://localhost/v1")) == sampling
