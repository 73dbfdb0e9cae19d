"""`tool_mode: json_schema` over real HTTP: what is sent in place of tools, and what is made of the JSON that comes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_engine.clients import make_client
from hermes_engine.clients.assemble import CUT_CALLS_NOTE
from hermes_engine.clients.schema_calls import heard
from hermes_engine.clients.schema_client import AnswerStream, SchemaClient
from hermes_engine.messages import Message, Reply, ToolCall, tool_message, user
from hermes_engine.protocols import Client, ModelRequest
from hermes_engine.settings import Endpoint, ProviderSettings
from tests.clients.test_openai_client import Heard
from tests.conftest import Serve
from tests.server import scripted
from tests.server.scripted import Script, ScriptedServer

READ: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Read a file. Long ones come in pieces.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
            "required": ["path"],
        },
    },
}
NOW = {"type": "function", "function": {"name": "now", "description": "The time."}}
Talk = Callable[[Script], tuple[Client, ScriptedServer]]


@pytest.fixture
async def talk(serve: Serve) -> AsyncIterator[Talk]:
    """`talk(script)` gives a client whose settings say `tool_mode: json_schema`, and its server."""
    clients: list[Client] = []

    def start(script: Script) -> tuple[Client, ScriptedServer]:
        server = serve(script)
        endpoint = Endpoint("openai", server.base_url, None, "m", "m")
        clients.append(make_client(endpoint, ProviderSettings(tool_mode="json_schema")))
        return clients[-1], server

    yield start
    for client in clients:
        await client.close()


def asking(*messages: Message) -> ModelRequest:
    return ModelRequest("m", messages or [user("go")], [READ, NOW])


def call_text(name: str, **arguments: Any) -> str:
    return json.dumps({"name": name, "arguments": arguments})


async def test_the_request_has_a_schema_in_place_of_tools(talk: Talk) -> None:
    client, server = talk([scripted.say('{"answer": "ok"}')])
    await client.complete(asking(Message("system", "Be brief."), user("go")))
    body = server.requests[0].body
    assert "tools" not in body
    assert body["response_format"]["type"] == "json_schema"
    answer, read, now = body["response_format"]["json_schema"]["schema"]["anyOf"]
    assert (answer["required"], answer["properties"]) == (["answer"], {"answer": {"type": "string"}})
    assert read["properties"]["name"] == {"const": "read_file"}
    assert read["properties"]["arguments"]["properties"] == READ["function"]["parameters"]["properties"]
    assert read["properties"]["arguments"]["required"] == ["path"]
    assert now["properties"]["arguments"] == {"type": "object", "additionalProperties": False}
    system, asked = body["messages"]
    assert system["content"].startswith("Be brief.\n\n")
    assert "read_file(path, limit?): Read a file.\nnow(): The time." in system["content"]
    assert asked == {"role": "user", "content": "go"}


async def test_a_request_without_tools_has_neither_schema_nor_note(talk: Talk) -> None:
    client, server = talk([scripted.say('{"answer": "kept as it is"}')])
    reply = await client.complete(ModelRequest("m", [user("hi")]))
    assert "response_format" not in server.requests[0].body
    assert server.requests[0].messages == [{"role": "user", "content": "hi"}]
    assert reply.text == '{"answer": "kept as it is"}'


async def test_calls_and_results_are_told_by_turns_of_user_and_assistant(talk: Talk) -> None:
    client, server = talk([scripted.say('{"answer": "ok"}')])
    first = ToolCall("a", "read_file", '{"path": "x"}')
    broken = ToolCall("b", "now", "{oops")
    history = [
        user("go"),
        Message("assistant", "I look.", (first, broken)),
        tool_message(first, "one"),
        tool_message(broken, "two"),
        user("and?"),
        Message("assistant", "Done."),
        user("thanks"),
    ]
    await client.complete(asking(*history))
    told = server.requests[0].messages[1:]
    assert [message["role"] for message in told] == ["user", "assistant", "user", "assistant", "user"]
    assert all(set(message) == {"role", "content"} for message in told)
    assert told[1]["content"] == "\n".join(
        ["I look.", call_text("read_file", path="x"), json.dumps({"name": "now", "arguments": {"_raw": "{oops"}})]
    )
    assert told[2]["content"] == "[result of read_file]\none\n\n[result of now]\ntwo\n\nand?"
    assert told[3]["content"] == '{"answer": "Done."}'


async def test_a_call_becomes_a_call_and_is_not_shown(talk: Talk) -> None:
    client, _ = talk([scripted.say(call_text("read_file", path="a\nb"), chunks=9, delay=0.01)])
    shown = Heard()
    reply = await client.complete(asking(), shown)
    assert [(call.name, call.parsed()) for call in reply.tool_calls] == [("read_file", {"path": "a\nb"})]
    assert (reply.text, reply.finish_reason, shown.pieces) == ("", "tool_calls", [])
    assert reply.tool_calls[0].id


async def test_an_answer_streams_as_its_text(talk: Talk) -> None:
    text = 'Say "hi"\n\\ é 😀 ok'
    client, _ = talk([scripted.say(json.dumps({"answer": text}), "I think", chunks=30, delay=0.01)])
    shown = Heard()
    reply = await client.complete(asking(), shown)
    assert (reply.text, reply.finish_reason) == (text, "stop")
    assert shown.joined("text") == text
    assert shown.joined("reasoning") == "I think"
    assert len([piece for piece in shown.pieces if piece[0] == "text"]) > 3


async def test_a_cut_call_is_not_run(talk: Talk) -> None:
    for cut in ("{", '{"na', '{"name": "read', '{"name": "read_file", "arguments": {"path": "aaaa'):
        client, _ = talk([scripted.say(cut, finish="length")])
        shown = Heard()
        reply = await client.complete(asking(), shown)
        assert (reply.text, reply.tool_calls, reply.finish_reason) == ("", (), "length")
        assert (reply.notes, shown.pieces) == ((CUT_CALLS_NOTE,), [])


async def test_a_cut_answer_keeps_its_text(talk: Talk) -> None:
    client, _ = talk([scripted.say('{"answer": "so far\\n and \\u00', finish="length", chunks=5, delay=0.01)])
    shown = Heard()
    reply = await client.complete(asking(), shown)
    assert (reply.text, reply.finish_reason, reply.notes) == ("so far\n and ", "length", ())
    assert shown.joined("text") == reply.text


async def test_a_broken_call_is_a_call_whose_arguments_do_not_parse(talk: Talk) -> None:
    client, _ = talk([scripted.say('{"name": "read_file", "arguments": {"path": oops}}')])
    reply = await client.complete(asking())
    assert [(call.name, call.parsed()) for call in reply.tool_calls] == [("read_file", None)]
    assert "oops" in reply.tool_calls[0].arguments


@pytest.mark.parametrize(
    ("said", "text", "calls"),
    [
        ("Just words.", "Just words.", []),
        ('```json\n{"answer": "fenced"}\n```', "fenced", []),
        (f"```\n{call_text('now')}\n```", "", ["now"]),
        (f"{call_text('now')}\n{call_text('read_file', path='x')}", "", ["now", "read_file"]),
        (f'{{"answer": "I look."}}{call_text("now")}', "I look.", ["now"]),
        (f"{call_text('now')} and then I wait", "and then I wait", ["now"]),
        ('{"other": 1}', '{"other": 1}', []),
        ('{"answer": 7}', '{"answer": 7}', []),
        ("{not json at all", "{not json at all", []),
        ('{"name": "unknown", "arguments": "{}"}', "", ["unknown"]),
        ('{"name": "now", "arguments": null}', "", ["now"]),
        ('{"answer": "half \\ud83d"}', "half \ufffd", []),
    ],
)
async def test_servers_that_do_not_hold_the_model_to_it(talk: Talk, said: str, text: str, calls: list[str]) -> None:
    client, _ = talk([scripted.say(said, chunks=7, delay=0.005)])
    shown = Heard()
    reply = await client.complete(asking(), shown)
    assert (reply.text, [call.name for call in reply.tool_calls]) == (text, calls)
    assert shown.joined("text") == text
    assert len({call.id for call in reply.tool_calls}) == len(calls)


@given(st.text(max_size=60))
def test_whatever_comes_is_read_without_a_fault(text: str) -> None:
    for said in (text, "{" + text, '{"answer": "' + text, '{"name": "' + text, '{"name": "x", "arguments": ' + text):
        for finish in ("stop", "length"):
            assert isinstance(heard(Reply(said, finish_reason=finish)), Reply)


@given(st.text(), st.lists(st.integers(1, 9), max_size=20))
def test_what_streamed_is_the_text_however_it_was_cut(text: str, sizes: list[int]) -> None:
    shown = Heard()
    stream = AnswerStream(shown)
    rest = said = json.dumps({"answer": text})
    for size in sizes:
        if rest:
            stream(text=rest[:size])
        rest = rest[size:]
    if rest:
        stream(text=rest)
    final = heard(Reply(said, finish_reason="stop")).text
    stream.settle(final)
    assert shown.joined("text") == final


def test_the_setting_chooses_the_client() -> None:
    endpoint = Endpoint("openai", "http://127.0.0.1:9/v1")
    assert isinstance(make_client(endpoint, ProviderSettings(tool_mode="json_schema")), SchemaClient)
    assert not isinstance(make_client(endpoint, ProviderSettings()), SchemaClient)


async def test_a_worker_of_which_nobody_reads_an_answer_is_held_to_a_call(talk: Talk) -> None:
    client, server = talk([scripted.say('{"name": "now", "arguments": {}}')])
    await client.complete(dataclasses.replace(asking(), must_call=True))
    offered = server.requests[0].body["response_format"]["json_schema"]["schema"]["anyOf"]
    assert [form["properties"]["name"] for form in offered] == [{"const": "read_file"}, {"const": "now"}]


async def test_an_answer_without_tools_is_held_to_its_schema(talk: Talk) -> None:
    schema = {"type": "object", "properties": {"cards": {"type": "array"}}, "required": ["cards"]}
    client, server = talk([scripted.say('{"cards": []}')])
    reply = await client.complete(ModelRequest("m", [user("plan")], answer_schema=schema))
    assert reply.text == '{"cards": []}'
    assert server.requests[0].body["response_format"]["json_schema"]["schema"] == schema
