"""The client over real HTTP: what it sends, and what it makes of good answers."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable
from typing import Any

import pytest

from hermes_engine.clients.openai_client import OpenAIClient
from hermes_engine.clients.prices import Price, PriceTable
from hermes_engine.errors import KeyRefused
from hermes_engine.messages import Message, ToolCall, assistant, tool_message, user
from hermes_engine.protocols import ModelRequest
from hermes_engine.settings import Endpoint, ProviderSettings
from tests.clients.conftest import Connect
from tests.conftest import Serve
from tests.server import scripted
from tests.server.scripted import ScriptedServer

Talk = Callable[..., tuple[OpenAIClient, ScriptedServer]]
TOOL = {"type": "function", "function": {"name": "t", "description": "d", "parameters": {"type": "object"}}}
HELLO = ModelRequest("m", [user("hi")])


class Heard:
    """A delta sink that keeps what it hears."""

    def __init__(self) -> None:
        self.pieces: list[tuple[str, str]] = []

    def __call__(self, *, text: str = "", reasoning: str = "") -> None:
        assert bool(text) != bool(reasoning)
        self.pieces.append(("text", text) if text else ("reasoning", reasoning))

    def joined(self, kind: str) -> str:
        """Everything of one kind."""
        return "".join(text for heard, text in self.pieces if heard == kind)


async def test_an_answer_streams_and_ends(talk: Talk) -> None:
    client, server = talk([scripted.say("Hello there, world", "I greet", chunks=4, delay=0.02)])
    heard = Heard()
    reply = await client.complete(HELLO, heard)
    assert (reply.text, reply.reasoning, reply.finish_reason) == ("Hello there, world", "I greet", "stop")
    assert (heard.joined("text"), heard.joined("reasoning")) == ("Hello there, world", "I greet")
    assert len(heard.pieces) >= 4
    assert reply.usage.prompt_tokens == 10
    assert reply.usage.tokens_known
    assert not reply.usage.cost_known
    assert server.requests[0].body == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_pieces_of_one_packet_are_joined(talk: Talk) -> None:
    client, _ = talk([scripted.say("a long answer in many pieces", chunks=20)])
    heard = Heard()
    await client.complete(HELLO, heard)
    assert heard.pieces == [("text", "a long answer in many pieces")]


async def test_the_request_holds_tools_sampling_and_extra_fields(talk: Talk) -> None:
    client, server = talk([scripted.say("x")], extra_body={"top_k": 5}, reasoning_effort="low")
    sampling = {"temperature": 0, "max_tokens": 9, "stop": None}
    extra = {"chat_template_kwargs": {"a": True}, "stream": False, "messages": []}
    await client.complete(ModelRequest("m", [user("hi")], [TOOL], sampling, extra))
    await client.complete(ModelRequest("m", [user("hi")], reasoning_effort="high"))
    body = server.requests[0].body
    assert body["tools"] == [TOOL]
    assert (body["temperature"], body["max_tokens"], body["top_k"]) == (0, 9, 5)
    assert body["chat_template_kwargs"] == {"a": True}
    assert body["stream"] is True
    assert body["messages"] == [{"role": "user", "content": "hi"}]
    assert body["reasoning_effort"] == "low"
    assert "stop" not in body
    assert server.requests[1].body["reasoning_effort"] == "high"
    assert "tools" not in server.requests[1].body


@pytest.mark.parametrize(("effort", "thinks"), [("high", True), ("none", False)])
async def test_a_switch_of_the_chat_template_goes_out_beside_its_other_variables(
    talk: Talk, effort: str, thinks: bool
) -> None:
    kwargs = {"chat_template_kwargs": {"preserve_thinking": True}}
    client, server = talk(
        [scripted.say("x")], extra_body=kwargs, reasoning_effort=effort, send_effort="enable_thinking"
    )
    await client.complete(ModelRequest("m", [user("hi")]))
    await client.complete(ModelRequest("m", [user("hi")], extra_body={"chat_template_kwargs": {"enable_thinking": 7}}))
    sent = [seen.body["chat_template_kwargs"] for seen in server.requests]
    assert sent == [
        {"enable_thinking": thinks, "preserve_thinking": True},
        {"enable_thinking": 7, "preserve_thinking": True},
    ]
    assert "reasoning_effort" not in server.requests[0].body


async def test_the_key_goes_into_one_header_and_nothing_of_the_environment_goes_out(
    serve: Serve, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-environment")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Environment: environment\nAuthorization: Bearer environment")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    server = serve([scripted.say("x")])
    await connect(server, key=" sk-mine\n").complete(HELLO)
    await connect(server).complete(HELLO)
    with_key, without = (seen.headers for seen in server.requests)
    assert with_key["authorization"] == "Bearer sk-mine"
    assert "authorization" not in without
    assert with_key["content-type"] == "application/json"
    assert with_key["user-agent"].startswith("hermes-tui/")
    assert "environment" not in str(with_key) + str(without) + str(server.requests[0].body)
    assert "openai-organization" not in with_key


async def test_name_and_password_of_an_address_go_into_one_header(serve: Serve) -> None:
    server = serve([scripted.say("x")])
    address = server.base_url.replace("http://", "http://me:pa%3Ass@")
    for key in (None, "sk-mine"):
        client = OpenAIClient(Endpoint("openai", address, key, "m", "m"), ProviderSettings())
        assert (await client.complete(HELLO)).text == "x"
        assert await client.context_window("scripted") == 131072
        await client.close()
    told = [seen.headers["authorization"] for seen in (*server.requests, *server.others)]
    basic = f"Basic {base64.b64encode(b'me:pa:ss').decode()}"
    assert told == [basic, "Bearer sk-mine", basic, "Bearer sk-mine"]
    assert all("@" not in seen.headers["host"] for seen in server.requests)


async def test_a_key_that_cannot_be_sent_is_refused_at_once(talk: Talk) -> None:
    client, server = talk([scripted.say("x")], key="sk-ключ")
    with pytest.raises(KeyRefused):
        await client.complete(HELLO)
    assert server.requests == []


async def test_a_conversation_with_calls_goes_out_valid(talk: Talk) -> None:
    client, server = talk([scripted.call("t", {"a": 1}, id="c9"), scripted.say("done")])
    messages: list[Message] = [Message("system", "be brief"), user("go")]
    reply = await client.complete(ModelRequest("m", messages, [TOOL]))
    assert reply.tool_calls == (ToolCall("c9", "t", '{"a": 1}'),)
    assert reply.finish_reason == "tool_calls"
    messages += [assistant(reply), tool_message(reply.tool_calls[0], "ok")]
    assert (await client.complete(ModelRequest("m", messages, [TOOL]))).text == "done"
    assert server.requests[1].messages == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c9", "type": "function", "function": {"name": "t", "arguments": '{"a": 1}'}}],
        },
        {"role": "tool", "tool_call_id": "c9", "content": "ok"},
    ]


async def test_one_connection_serves_request_after_request(talk: Talk) -> None:
    client, server = talk([scripted.say("x")])
    for _ in range(5):
        await client.complete(HELLO)
    assert server.connections == 1


async def test_two_hundred_requests_at_once(talk: Talk) -> None:
    client, server = talk([scripted.say("x", first_delay=0.8)], options={"pool_limit": 256})
    replies = await asyncio.gather(*(client.complete(HELLO) for _ in range(200)))
    assert {reply.text for reply in replies} == {"x"}
    assert server.max_in_flight == 200


async def test_cancelling_closes_the_connection(talk: Talk) -> None:
    client, server = talk([scripted.stream([scripted.chunk({"content": "a"}), 60])])
    for _ in range(2):
        heard = Heard()
        task = asyncio.create_task(client.complete(HELLO, heard))
        while not heard.pieces:
            await asyncio.sleep(0.01)
        begun = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - begun < 1
        assert await asyncio.to_thread(server.wait_until, lambda: server.open_requests == 0)
    assert [seen.aborted for seen in server.requests] == [True, True]


async def test_cancelling_before_the_first_byte_closes_the_connection(talk: Talk) -> None:
    client, server = talk([scripted.hang(60)])
    task = asyncio.create_task(client.complete(HELLO))
    assert await asyncio.to_thread(server.wait_until, lambda: server.open_requests == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(server.wait_until, lambda: server.open_requests == 0)


async def test_a_client_can_be_closed_twice_and_unused(serve: Serve, connect: Connect) -> None:
    client = connect(serve([scripted.say("x")]))
    await client.close()
    await client.complete(HELLO)
    await client.close()
    await client.close()


async def test_loading_the_package_does_not_stop_the_loop(talk: Talk) -> None:
    client, _ = talk([scripted.say("x")])
    worst = 0.0

    async def watch() -> None:
        nonlocal worst
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            worst = max(worst, time.monotonic() - before)

    watcher = asyncio.create_task(watch())
    await client.complete(HELLO)
    watcher.cancel()
    assert worst < 0.5


@pytest.mark.parametrize(
    ("models", "window"),
    [
        ({"m": {"context_length": 4096}, "n": {"context_length": 1}}, 4096),
        ({"m": {"max_model_len": 512}, "n": {}}, 512),
        ({"other": {"context_length": 77}}, 77),
        ({"m": {"meta": {"n_ctx": 2048, "n_ctx_train": 131072}}, "n": {}}, 2048),
        ({"m": {"context_length": 900, "top_provider": {"context_length": 800}}, "n": {}}, 800),
        ({"m": {}, "n": {}}, 123),
        ({"m": {"context_length": "x"}, "n": {}}, 123),
    ],
)
async def test_the_context_window_is_what_the_server_lists(
    serve: Serve, connect: Connect, models: dict[str, Any], window: int
) -> None:
    server = serve([scripted.say("x")], models=models)
    client = connect(server, context_window=123)
    told = await asyncio.gather(client.context_window("m"), client.context_window("m"))
    assert list(told) == [window, window]
    assert len(server.others) == 1


@pytest.mark.parametrize("answer", [scripted.status(500, "no"), scripted.drop(), scripted.plain_json({"data": "x"})])
async def test_an_unknown_context_window_is_none(serve: Serve, connect: Connect, answer: scripted.Answer) -> None:
    server = serve([scripted.say("x")], others={"/v1/models": answer})
    client = connect(server)
    assert await client.context_window("m") is None
    asked = len(server.others)
    assert await client.context_window("m") is None
    assert len(server.others) == asked
    assert await connect("http://127.0.0.1:9/v1").context_window("m") is None


async def test_ollama_is_asked_for_the_context_it_runs_with(serve: Serve, connect: Connect) -> None:
    show = scripted.plain_json({"parameters": "stop  x\nnum_ctx    8192\n", "model_info": {"llama.context_length": 1}})
    server = serve([scripted.say("x")], models={"m": {"owned_by": "library"}}, others={"/api/show": show})
    client = connect(server)
    assert await client.context_window("m") == 8192
    assert server.others[1].body == {"model": "m"}
    assert server.others[1].path == "/api/show"


async def test_costs_come_from_the_server_or_a_price(serve: Serve, connect: Connect) -> None:
    told = scripted.say("x", usage={"prompt_tokens": 1000, "completion_tokens": 100, "cost": 0.5})
    silent = scripted.say("x", usage={"prompt_tokens": 1000, "completion_tokens": 100})
    priced = {"m": {"pricing": {"prompt": "0.000002", "completion": "0.00001"}}}
    server = serve([told, silent, silent, silent], models=priced)
    client = connect(server)
    assert (await client.complete(HELLO)).usage.cost_usd == 0.5
    assert not (await client.complete(HELLO)).usage.cost_known
    price = await client.price("m")
    assert price is not None
    assert price.input == pytest.approx(2)
    assert price.output == pytest.approx(10)
    listed = (await client.complete(HELLO)).usage
    assert listed.cost_known
    assert listed.cost_usd == pytest.approx(0.003)
    own = connect(server, prices={"m": {"input": 1, "output": 2}})
    assert (await own.complete(HELLO)).usage.cost_usd == pytest.approx(0.0012)


async def test_a_price_is_that_of_the_model_asked_for(serve: Serve, connect: Connect) -> None:
    server = serve([scripted.say("x", usage={"prompt_tokens": 1000, "completion_tokens": 100})])
    client = connect(server, prices={"m": {"input": 1, "output": 2}})
    other = await client.complete(ModelRequest("another", [user("hi")]))
    assert not other.usage.cost_known
    table = PriceTable(default=Price(3.0, 0.0))
    run = connect(server, prices={"m": {"input": 1, "output": 2}}, options={"prices": table})
    assert (await run.complete(HELLO)).usage.cost_usd == pytest.approx(0.003)
