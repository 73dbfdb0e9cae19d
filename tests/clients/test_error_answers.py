"""The client over real HTTP against servers that refuse, fail or are not there: what a person is told."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from hermes_engine.clients.openai_client import OpenAIClient
from hermes_engine.errors import (
    ContextTooLong,
    EndpointDown,
    KeyRefused,
    ProviderError,
    RateLimited,
    RequestRejected,
    ServerFault,
    StreamBroken,
)
from tests.clients.conftest import Connect
from tests.clients.test_openai_client import HELLO
from tests.conftest import Serve
from tests.server import scripted
from tests.server.scripted import Answer, ScriptedServer, chunk

Talk = Callable[..., tuple[OpenAIClient, ScriptedServer]]

ERRORS = [
    (400, "model not found", RequestRejected, "model not found"),
    (404, {"error": {"message": "no such model"}}, RequestRejected, "no such model"),
    (401, {"error": "bad key"}, KeyRefused, "bad key"),
    (403, "", KeyRefused, "403"),
    (402, {"error": {"message": "Insufficient credits"}}, RequestRejected, "credits"),
    (429, {"error": {"message": "slow down"}}, RateLimited, "slow down"),
    (429, {"error": {"code": "insufficient_quota", "message": "pay"}}, RequestRejected, "pay"),
    (400, {"error": {"code": "context_length_exceeded", "message": "too much"}}, ContextTooLong, "too much"),
    (400, {"message": "This model's maximum context length is 4096 tokens"}, ContextTooLong, "4096"),
    (500, {"error": {"type": "exceed_context_size_error", "message": "the request"}}, ContextTooLong, "the request"),
    (413, "", ContextTooLong, "413"),
    (422, {"detail": [{"msg": "field required", "loc": ["body"]}]}, RequestRejected, "field required"),
    (500, "Traceback", ServerFault, "Traceback"),
    (502, "<html><head><title>t</title></head><body><h1>Bad Gateway</h1></body></html>", EndpointDown, "Bad Gateway"),
    (503, {"error": {"message": "Loading model"}}, EndpointDown, "Loading model"),
    (500, {"error": {"message": "model is loading"}}, EndpointDown, "model is loading"),
    (504, "", ServerFault, "504"),
    (529, "overloaded", ServerFault, "overloaded"),
    (599, "", ServerFault, "599"),
    (418, "", RequestRejected, "418"),
]


@pytest.mark.parametrize(("code", "body", "kind", "words"), ERRORS)
async def test_f7_22_status_and_words_are_shown(
    talk: Talk, code: int, body: Any, kind: type[ProviderError], words: str
) -> None:
    client, server = talk([scripted.status(code, body)])
    with pytest.raises(ProviderError) as caught:
        await client.complete(HELLO)
    assert type(caught.value) is kind
    assert caught.value.status == code
    assert str(code) in str(caught.value)
    assert words in str(caught.value)
    assert "<" not in str(caught.value)
    assert len(server.requests) == 1


async def test_f7_22_tags_control_codes_and_the_key_are_not_shown(talk: Talk) -> None:
    body = "<script>x()</script>\x1b[31mred\x1b[0m\x07 \u202enope key sk-secret-1234567890 &lt;b&gt; " + "long " * 200
    client, _ = talk([scripted.status(400, body)], key="sk-secret-1234567890")
    with pytest.raises(RequestRejected) as caught:
        await client.complete(HELLO)
    line = str(caught.value)
    assert "red nope key [key]" in line
    assert "x()" not in line
    assert "secret" not in line
    assert line.isprintable()
    assert len(line) < 400


async def test_f7_22_what_the_upstream_said_is_shown_too(talk: Talk) -> None:
    raw = json.dumps({"error": {"message": "tool schema is wrong"}})
    body = {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw}}}
    client, _ = talk([scripted.status(400, body)])
    with pytest.raises(RequestRejected, match="Provider returned error – tool schema is wrong"):
        await client.complete(HELLO)


async def test_a_web_page_under_200_is_no_reply(talk: Talk) -> None:
    page = Answer((b"<!doctype html><html><body>Welcome</body></html>",), headers={"Content-Type": "text/html"})
    client, _ = talk([page])
    with pytest.raises(RequestRejected, match="Welcome") as caught:
        await client.complete(HELLO)
    assert "base_url" in caught.value.hint


@pytest.mark.parametrize("reply", [{}, {"choices": []}, {"detail": "Not Found"}])
async def test_an_object_that_holds_no_reply_is_a_fault(talk: Talk, reply: dict[str, Any]) -> None:
    client, _ = talk([scripted.plain_json(reply)])
    with pytest.raises(ServerFault):
        await client.complete(HELLO)


async def test_an_object_cut_short_is_broken(talk: Talk) -> None:
    client, _ = talk([Answer((b'{"choices":[{"mess',), headers={"Content-Type": "application/json"})])
    with pytest.raises(StreamBroken):
        await client.complete(HELLO)


async def test_an_error_object_within_a_stream(talk: Talk) -> None:
    first = chunk({"content": "a"})
    client, _ = talk(
        [
            scripted.stream([first, {"error": {"message": "overloaded", "code": 529}}]),
            scripted.stream([first, b"event: error\ndata: it broke\n\n"]),
            scripted.stream([first, b'event: error\ndata: {"error":{"message":"it broke, my-secret-key"}}\n\n']),
            scripted.plain_json({"error": {"message": "slow down", "code": 429}}),
        ],
        key="my-secret-key",
    )
    with pytest.raises(ServerFault, match="overloaded"):
        await client.complete(HELLO)
    for words in ("it broke", r"it broke, \[key\]"):
        with pytest.raises(ServerFault, match=words):
            await client.complete(HELLO)
    with pytest.raises(RateLimited, match="slow down"):
        await client.complete(HELLO)


@pytest.mark.parametrize("named", ["7", "7.5", "date", "ms"])
async def test_f11_13_a_named_wait_is_told(talk: Talk, named: str) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=7.5), usegmt=True)
    headers = {"retry-after-ms": "7000"} if named == "ms" else {"Retry-After": date if named == "date" else named}
    client, server = talk([scripted.status(429, "", headers)])
    with pytest.raises(RateLimited) as caught:
        await client.complete(HELLO)
    assert caught.value.retry_after is not None
    assert 5 < caught.value.retry_after <= 7.5
    assert len(server.requests) == 1


async def test_nobody_listening_is_an_endpoint_down(connect: Connect) -> None:
    with pytest.raises(EndpointDown, match=r"127\.0\.0\.1:9"):
        await connect("http://127.0.0.1:9/v1").complete(HELLO)
    with pytest.raises(EndpointDown, match="nowhere"):
        await connect("http://nowhere.invalid/v1").complete(HELLO)


async def test_tls_to_a_plain_server_is_not_tried_again(serve: Serve, connect: Connect) -> None:
    url = serve([scripted.say("x")]).base_url.replace("http:", "https:")
    with pytest.raises(ProviderError) as caught:
        await connect(url).complete(HELLO)
    assert not caught.value.retryable


async def test_redirects_are_not_followed(talk: Talk) -> None:
    moved = scripted.status(308, "", {"Location": "http://elsewhere.invalid/v1?key=x"})
    client, _ = talk([moved], key="sk-mine")
    with pytest.raises(RequestRejected, match=r"http://elsewhere\.invalid/v1\)"):
        await client.complete(HELLO)


async def test_a_refused_key_tells_why_none_was_sent(talk: Talk) -> None:
    client, _ = talk([scripted.status(401, "who?")], note="OPENAI_API_KEY belongs elsewhere")
    with pytest.raises(KeyRefused) as caught:
        await client.complete(HELLO)
    assert caught.value.hint == "OPENAI_API_KEY belongs elsewhere"


async def test_an_error_without_end_is_read_no_further_than_needed(talk: Talk) -> None:
    endless = Answer((b'{"error": {"message": "broken"}}' + b" " * 100_000, 60.0), status=500, end="eof")
    client, server = talk([endless])
    with pytest.raises(ServerFault, match="broken"):
        await client.complete(HELLO)
    assert await asyncio.to_thread(server.wait_until, lambda: server.open_requests == 0)


async def test_a_packed_body_is_unpacked(talk: Talk) -> None:
    body = b"".join(step for step in scripted.say("hi").steps if isinstance(step, bytes))
    headers = {"Content-Type": "text/plain", "Content-Encoding": "gzip"}
    client, _ = talk([Answer((gzip.compress(body),), headers=headers)])
    assert (await client.complete(HELLO)).text == "hi"
