"""The scripted server itself: what the other tests rest on."""

from __future__ import annotations

import asyncio
import json
import os
import select
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.conftest import Serve
from tests.server import scripted
from tests.server.scripted import ScriptedServer, Seen


async def post(session: aiohttp.ClientSession, url: str, **body: Any) -> tuple[int, str]:
    """One chat request; status and body."""
    async with session.post(f"{url}/chat/completions", json=body) as response:
        return response.status, await response.text()


def datas(text: str) -> list[Any]:
    """The objects of an SSE body, [DONE] left out."""
    lines = [line[5:].strip() for line in text.replace("\r\n", "\n").split("\n") if line.startswith("data:")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


async def test_answers_play_in_order_and_the_last_repeats(serve: Serve) -> None:
    server = serve([scripted.say("one"), scripted.call("ls", {"path": "x"}, id="c1"), scripted.status(503, "busy")])
    async with aiohttp.ClientSession() as session:
        got = [await post(session, server.base_url, model="m", n=n) for n in range(4)]
    assert [status for status, _ in got] == [200, 200, 503, 503]
    text = "".join(part["choices"][0]["delta"].get("content", "") for part in datas(got[0][1]) if part["choices"])
    assert text == "one"
    calls = [part["choices"][0]["delta"]["tool_calls"][0] for part in datas(got[1][1])[1:3]]
    assert calls[0]["id"] == "c1"
    assert calls[1]["function"]["arguments"] == '{"path": "x"}'
    assert [seen.body["n"] for seen in server.requests] == [0, 1, 2, 3]
    assert server.wait_until(lambda: all(seen.ended is not None for seen in server.requests))
    assert not any(seen.aborted for seen in server.requests)
    assert server.connections == 1


async def test_a_callable_script_sees_the_request_and_its_faults_are_kept(serve: Serve) -> None:
    def script(seen: Seen) -> scripted.Answer:
        return scripted.say(seen.body["echo"])

    server = serve(script)
    async with aiohttp.ClientSession() as session:
        status, text = await post(session, server.base_url, echo="héllo")
        broken, _ = await post(session, server.base_url)
    assert status == 200
    assert "héllo" in text
    assert broken == 500
    assert isinstance(server.faults[0], KeyError)


async def test_a_thousand_requests_are_held_at_once(serve: Serve) -> None:
    server = serve([scripted.say("ok", first_delay=1.5)])
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        got = await asyncio.gather(*(post(session, server.base_url, n=n) for n in range(1000)))
    assert {status for status, _ in got} == {200}
    assert server.max_in_flight > 800
    assert server.open_requests == 0


async def test_a_client_that_leaves_is_noticed(serve: Serve) -> None:
    server = serve([scripted.stream([scripted.chunk({"content": "a"}), 60])])
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{server.base_url}/chat/completions", json={}) as response,
    ):
        await response.content.readany()
        assert server.open_requests == 1
        response.close()
    assert await asyncio.to_thread(server.wait_until, lambda: server.open_requests == 0)
    assert server.requests[0].aborted


@pytest.mark.parametrize("end", ["cut", "reset"])
async def test_a_stream_can_break(serve: Serve, end: Any) -> None:
    server = serve([scripted.stream([scripted.chunk({"content": "a"}), 0.02], end=end)])
    async with aiohttp.ClientSession() as session:
        with pytest.raises((aiohttp.ClientPayloadError, ConnectionResetError, aiohttp.ClientConnectionError)):
            await post(session, server.base_url)


async def test_a_stream_can_end_by_a_plain_close_or_without_done(serve: Serve) -> None:
    part = scripted.chunk({"content": "a"})
    server = serve([scripted.stream([part], end="eof"), scripted.stream([part], end=False)])
    async with aiohttp.ClientSession() as session:
        got = [await post(session, server.base_url) for _ in range(2)]
    assert [datas(text) for _, text in got] == [[part], [part]]
    assert "[DONE]" not in got[0][1] + got[1][1]


def test_packets_are_split_as_asked(serve: Serve) -> None:
    answer = scripted.stream([scripted.chunk({"content": "日本"})], split=1, eol="\r\n", space=False)
    assert all(isinstance(step, bytes) and len(step) == 1 for step in answer.steps)
    whole = b"".join(step for step in answer.steps if isinstance(step, bytes))
    assert whole.startswith(b"data:{")
    assert whole.endswith(b"data:[DONE]\r\n\r\n")
    server = serve([answer])
    with socket.create_connection(("127.0.0.1", server.port)) as raw:
        raw.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
        received = b""
        while b"0\r\n\r\n" not in received:
            received += raw.recv(65536)
    assert received.count(b"\r\n1\r\n") >= len(whole) - 5


async def test_hang_drop_models_and_unknown_addresses(serve: Serve) -> None:
    server = serve([scripted.hang(0.05), scripted.drop()], models={"m": {"context_length": 7}})
    async with aiohttp.ClientSession() as session:
        for least in (0.05, 0.0):
            begun = time.monotonic()
            with pytest.raises(aiohttp.ClientError):
                await post(session, server.base_url)
            assert time.monotonic() - begun >= least
        async with session.get(f"{server.base_url}/models") as response:
            listed = await response.json()
        async with session.get(f"{server.base_url}/nothing") as response:
            assert response.status == 404
    assert listed["data"] == [{"id": "m", "context_length": 7}]
    assert len(server.requests) == 2
    assert [seen.path for seen in server.others] == ["/v1/models", "/v1/nothing"]


async def test_a_refused_field_is_named(serve: Serve) -> None:
    server = serve(scripted.refuse_field("stream_options", scripted.say("ok")))
    async with aiohttp.ClientSession() as session:
        refused = await post(session, server.base_url, stream_options={})
        taken = await post(session, server.base_url)
    assert refused[0] == 400
    assert "stream_options" in refused[1]
    assert taken[0] == 200


def test_it_runs_as_a_process(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("from tests.server.scripted import say\nscript = [say('from a process')]\n")
    log = tmp_path / "log.jsonl"
    command = [sys.executable, "-m", "tests.server.scripted", "--script", str(script), "--log", str(log)]
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root, env=environment) as process:
        try:
            assert process.stdout is not None
            assert select.select([process.stdout], [], [], 30)[0]
            url = process.stdout.readline().strip()

            async def ask() -> tuple[int, str]:
                async with aiohttp.ClientSession() as session:
                    return await post(session, url, model="m")

            status, text = asyncio.run(ask())
        finally:
            process.terminate()
    assert status == 200
    assert "from a process" in text
    assert json.loads(log.read_text())["body"] == {"model": "m"}


def test_a_closed_server_can_be_closed_again() -> None:
    with ScriptedServer([scripted.say("x")]) as server:
        assert server.base_url.endswith("/v1")
    server.close()
