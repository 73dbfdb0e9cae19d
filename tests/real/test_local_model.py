"""The real model: it answers, calls tools through the schema, is cut, and its server dies and comes back."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from hermes_engine.clients.assemble import CUT_CALLS_NOTE
from hermes_engine.clients.local import LocalClient
from hermes_engine.clients.local_port import Running
from hermes_engine.clients.local_process import ensure, find, log_file, port_file, stop
from hermes_engine.errors import ProviderError
from hermes_engine.messages import user
from hermes_engine.paths import Home
from hermes_engine.protocols import ModelRequest
from tests.clients.test_openai_client import Heard
from tests.e2e.program import hermes
from tests.real.conftest import Wait

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]
HELLO = ModelRequest("local", [user("Hello!")], sampling={"max_tokens": 24})
LISTING = "Which files are here?"


def served(home: Home) -> Running:
    found = find(home)
    assert found is not None
    return found


async def test_it_answers_and_streams(local: LocalClient, home: Home) -> None:
    shown = Heard()
    reply = await local.complete(HELLO, shown)
    assert reply.text.strip()
    assert shown.joined("text") == reply.text
    assert (reply.usage.tokens_known, reply.usage.cost_usd, reply.usage.cost_known) == (True, 0.0, True)
    assert stat.S_IMODE(port_file(home).stat().st_mode) == 0o600
    assert stat.S_IMODE(log_file(home).stat().st_mode) == 0o600


async def test_with_tools_an_answer_comes_as_its_text(local: LocalClient, tools: dict[str, Any]) -> None:
    shown = Heard()
    reply = await local.complete(ModelRequest("local", [user("Hi!")], [tools["terminal"]]), shown)
    assert reply.tool_calls == ()
    assert reply.text
    assert not reply.text.startswith("{")
    assert shown.joined("text") == reply.text


async def test_it_calls_a_tool_through_the_schema(local: LocalClient, tools: dict[str, Any]) -> None:
    reply = await local.complete(ModelRequest("local", [user(LISTING)], [tools["terminal"], tools["read_file"]]))
    call = reply.tool_calls[0]
    assert call.name in ("terminal", "read_file"), "the schema lets it invent no name"
    assert call.parsed()


def test_a_call_is_carried_out_by_the_program(tmp_path: Path) -> None:
    (tmp_path / "marker-of-this-test.txt").write_text("x")
    flags = ("--model", "local", "-t", "terminal", "--mode", "auto", "--max-turns", "4", "--stream-json")
    done = hermes("chat", "-q", LISTING, *flags, cwd=tmp_path, timeout=200)
    events = [json.loads(line) for line in done.out.splitlines()]
    results = [event for event in events if "marker-of-this-test.txt" in json.dumps(event)]
    assert results, (done.out, done.err)
    assert "Traceback" not in done.err


async def test_a_cut_call_is_a_cut_reply(local: LocalClient, tools: dict[str, Any]) -> None:
    request = ModelRequest("local", [user(LISTING)], [tools["terminal"]], sampling={"max_tokens": 6})
    reply = await local.complete(request)
    assert (reply.tool_calls, reply.finish_reason) == ((), "length")
    assert reply.text or reply.notes == (CUT_CALLS_NOTE,)


async def test_a_conversation_that_does_not_fit_is_told_as_such(local: LocalClient) -> None:
    with pytest.raises(ProviderError) as caught:
        await local.complete(ModelRequest("local", [user("word " * 9000)]))
    assert caught.value.kind == "context_too_long"


async def test_a_killed_server_is_started_again_by_the_next_request(local: LocalClient, home: Home, wait: Wait) -> None:
    await local.complete(HELLO)
    first = served(home)
    os.kill(first.identity.pid, signal.SIGKILL)
    await asyncio.to_thread(wait, lambda: not first.alive)
    assert (await local.complete(HELLO)).text.strip()
    assert served(home).identity.pid != first.identity.pid


async def test_a_server_killed_within_a_reply_is_a_fault_that_may_be_tried_again(
    local: LocalClient, home: Home, wait: Wait
) -> None:
    def on_delta(*, text: str = "", reasoning: str = "") -> None:
        os.kill(served(home).identity.pid, signal.SIGKILL)

    with pytest.raises(ProviderError) as caught:
        await local.complete(ModelRequest("local", [user("Count to 500.")], sampling={"max_tokens": 900}), on_delta)
    assert caught.value.retryable
    await asyncio.to_thread(wait, lambda: find(home) is None)
    assert (await local.complete(HELLO)).text.strip()


def test_nobody_asks_and_it_ends(home: Home, wait: Wait) -> None:
    running = ensure(home, idle_seconds=0.5)
    wait(lambda: not running.alive)
    assert not port_file(home).exists()


async def test_it_stays_while_it_is_asked(local: LocalClient, home: Home, wait: Wait) -> None:
    await local.complete(HELLO)
    await asyncio.to_thread(stop, home)
    running = ensure(home, idle_seconds=3)
    began = time.monotonic()
    while time.monotonic() - began < 6:
        await local.complete(HELLO)
    assert served(home) == running
    await asyncio.to_thread(wait, lambda: not running.alive)


def test_two_that_start_at_once_start_one(home: Home) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: ensure(home), range(4)))
    assert len({running.identity.pid for running in found}) == 1


def test_it_has_a_session_and_no_keys_of_ours(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-123456")
    running = ensure(home)
    process = psutil.Process(running.identity.pid)
    assert os.getsid(process.pid) == process.pid
    assert "OPENAI_API_KEY" not in process.environ()
    listening = [item for item in process.net_connections(kind="tcp") if item.status == psutil.CONN_LISTEN]
    assert {(item.laddr.ip, item.laddr.port) for item in listening if item.laddr} == {("127.0.0.1", running.port)}


def test_it_ends_when_nobody_could_find_it(home: Home, wait: Wait) -> None:
    running = ensure(home, idle_seconds=4)
    shutil.rmtree(home.root)
    wait(lambda: not running.alive)


def test_status_and_stop(home: Home) -> None:
    assert hermes("local", "status", "--json").json["server"] is None
    running = ensure(home)
    told = hermes("local", "status", "--json").json
    assert told["installed"] is True
    assert told["server"] == {"pid": running.identity.pid, "port": running.port}
    assert str(running.port) in hermes("local", "status").out
    assert hermes("local", "stop").code == 0
    assert not running.alive
    assert hermes("local", "stop").code == 0
    assert stop(home) is None


def test_installing_again_says_that_it_is_there() -> None:
    done = hermes("local", "install")
    assert (done.code, done.err) == (0, "")
    assert "is installed already" in done.out
