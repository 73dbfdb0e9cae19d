"""What tasks bring, in the whole app: where it appears, when, how often, and what it leaves alone."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hermes_engine.events import AgentFinished
from hermes_engine.messages import Usage
from hermes_engine.store.agents import AgentRecord
from hermes_tui.outcomes import heard, kept
from hermes_tui.presenter.results import result_block
from hermes_tui.widgets.blocks import NoticeBlock, ResultBlock, UserBlock
from tests.conftest import Serve
from tests.e2e.program import hermes
from tests.server.answers import Answer, Seen, call, hang, say
from tests.tui.drawing import drawn
from tests.tui.live import Live, live, settings
from tests.tui.stage import SESSION, stage
from tests.work.dead import killed_at_work
from tests.work.support import answered, by_prompt, first_user, spawn


def results(app: Live) -> list[ResultBlock]:
    return [block for block in app.chat.transcript.blocks if isinstance(block, ResultBlock)]


class Quiet(BaseHTTPRequestHandler):
    """A server that is well."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"well")

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@contextmanager
def up() -> Iterator[int]:
    """A server on the loopback; its port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


LOOK = """for port in {ports}; do {python} -c "import urllib.request as r; r.urlopen('http://127.0.0.1:$port', \
timeout=5)" 2>/dev/null && echo "$port up" || echo "$port down"; done"""


async def test_background_verifica_todos_los_servidores_while_a_turn_is_open(serve: Serve, tmp_path: Path) -> None:
    with ExitStack() as stack:
        first, last = stack.enter_context(up()), stack.enter_context(up())
        with up() as down:
            pass
        command = LOOK.format(ports=f"{first} {down} {last}", python=sys.executable)

        def script(seen: Seen) -> Answer:
            if first_user(seen) == "cuéntame algo":
                return hang(60)
            if not answered(seen):
                return call("terminal", {"command": command})
            told = str(seen.last["content"])
            fallen = [line.split()[0] for line in told.splitlines() if line.endswith(" down")]
            return say(f"**{len(fallen)} de 3** no responde: {', '.join(fallen)}")

        server = serve(script)
        async with live(settings(server, mode="yolo"), tmp_path) as app:
            await app.ready()
            await app.say("cuéntame algo")
            await app.until(lambda: server.requests)
            await app.say("/background verifica todos los servidores")
            await app.shows("⚙ verifica runs in the background")
            await app.until(lambda: len(server.requests) >= 2)
            assert app.desk.busy
            assert server.requests[0].ended is None, "the chat's own request is still open"
            await app.pilot.press(*"hola wor")
            await app.until(lambda: results(app))
            assert (app.desk.busy, server.requests[0].ended) == (True, None)
            assert app.chat.prompt.text == "hola wor"
            block = results(app)[0]
            assert (block.name, block.state, block.task) == ("verifica", "done", "verifica todos los servidores")
            assert block.copy_text() == f"**1 de 3** no responde: {down}"
            await app.shows(f"no responde: {down}")
            assert server.max_in_flight == 2


async def test_f4_1_a_result_appears_without_a_key_and_the_list_says_done(serve: Serve, tmp_path: Path) -> None:
    async with live(settings(serve(by_prompt({"look": say("found it")}))), tmp_path) as app:
        await app.ready()
        await app.say("/background look around")
        await app.shows("found it")
        await app.shows("look around")
        agent = results(app)[0].agent
        assert agent in app.screen
        await app.say("/tasks")
        await app.until(lambda: app.screen.count(agent) == 2)
        row = next(line for line in reversed(app.screen.splitlines()) if agent in line)
        assert "background" in row
        assert "done" in row


async def test_f4_2_a_result_goes_to_the_chat_that_started_it(serve: Serve, tmp_path: Path) -> None:
    waits = call("terminal", {"command": "while [ ! -e go ]; do sleep 0.05; done"})
    server = serve(by_prompt({"look": [waits, say("found it")], "hello": say("hi there")}))
    async with live(settings(server, mode="yolo"), tmp_path) as app:
        await app.ready()
        first = app.desk.session
        await app.say("hello")
        await app.shows("hi there")
        await app.idle()
        await app.say("/background look around")
        await app.until(lambda: len(server.requests) == 2)
        await app.say("/new")
        await app.until(lambda: app.desk.session != first and not app.chat.transcript.unseen)
        (tmp_path / "go").touch()
        await app.shows("look, a task of another chat: done")
        assert results(app) == []
        app.chat.host.run_session(resume=first)
        await app.shows("found it")
        assert [block.name for block in results(app)] == ["look"]
        engine = app.desk.engine
        assert engine is not None
        await app.until(lambda: engine.tasks.results(first) == ())


async def test_f4_3_an_end_that_is_heard_and_read_is_shown_once() -> None:
    end = AgentFinished(agent="ag_1", session="t", owner=SESSION, name="look", kind="background", answer="found it")
    async with stage() as (app, _pilot):
        app.feed(end)
        app.chat.presenter.result(heard(end))
        app.feed(end)
        assert [type(block) for block in app.chat.transcript.blocks] == [ResultBlock]


async def test_f4_4_a_result_is_no_message_and_leaves_the_draft_alone(serve: Serve, tmp_path: Path) -> None:
    server = serve(by_prompt({"look": say("found it"), "after": say("yes?")}))
    async with live(settings(server), tmp_path) as app:
        await app.ready()
        await app.say("/background look around")
        await app.pilot.press(*"hello wor")
        await app.shows("found it")
        assert app.chat.prompt.text == "hello wor"
        await app.say("after that")
        await app.shows("yes?")
        asked = [message["content"] for message in server.requests[-1].messages if message["role"] == "user"]
        assert asked == ["after that"]
        assert [block.text for block in app.chat.transcript.blocks if isinstance(block, UserBlock)] == ["after that"]


async def test_what_a_model_s_call_started_has_no_block_but_a_card(serve: Serve, tmp_path: Path) -> None:
    server = serve(by_prompt({"split": [spawn("count files", "read notes"), say("all in")]}))
    async with live(settings(server), tmp_path) as app:
        await app.ready()
        await app.say("split it")
        await app.shows("all in")
        await app.idle()
        assert results(app) == []
        await app.shows("2 agents — count, read")
        assert not [block for block in app.chat.transcript.blocks if isinstance(block, NoticeBlock)]


async def test_what_ended_or_was_interrupted_meanwhile_is_shown_once_when_the_chat_opens(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(by_prompt({"hello": say("hi"), "quick": say("brought it"), "slow": hang(60)}))
    killed_at_work(server, tmp_path, ["quick look", "slow look"], ends=1)
    async with live(settings(server), tmp_path, continue_last=True) as app:
        await app.ready()
        await app.shows("brought it")
        shown = {block.name: block for block in results(app)}
        assert {name: block.state for name, block in shown.items()} == {"quick": "done", "slow": "interrupted"}
        words = drawn(shown["slow"], 100)
        assert "/retry slow" in words
        assert f"hermes tasks resume {shown['slow'].agent}" in words
        engine = app.desk.engine
        assert engine is not None
        await app.until(lambda: engine.tasks.results(app.desk.session) == ())


async def test_what_ends_in_another_program_is_shown_where_its_chat_is_open(serve: Serve, tmp_path: Path) -> None:
    server = serve(by_prompt({"hello": say("hi"), "slow": hang(60)}))
    [slow, _chat] = killed_at_work(server, tmp_path, ["slow look"])
    server.script = by_prompt({"slow": say("found it")})
    async with live(settings(server), tmp_path, continue_last=True) as app:
        await app.shows("interrupted")
        done = await asyncio.to_thread(hermes, "--base-url", server.base_url, "tasks", "resume", slow, cwd=tmp_path)
        assert done.out == "found it\n"
        await app.until(lambda: [block.state for block in results(app)] == ["interrupted", "done"])


@pytest.mark.parametrize("state", ["done", "failed", "interrupted"])
def test_a_block_tells_who_what_and_how_long(state: str) -> None:
    end = AgentFinished(
        agent="ag_12", name="scout", kind="background", state=state, prompt="a\nb\nc\nd", seconds=72, error="it broke",
        usage=Usage(3000, 100, cost_usd=0.02), files_changed=("x.py",), note="branch hermes/scout, 1 file changed",
    )  # fmt: skip
    outcome = heard(end)
    block = ResultBlock(
        outcome.id, name=outcome.name, state=state, heading=outcome.heading, task=outcome.task,
        answer="\n".join(f"- line {number}" for number in range(60)), remains=tuple(outcome.remains()),
    )  # fmt: skip
    words = drawn(block, 90)
    assert f"scout ag_12 {state} · 1m12 · 3.1k tokens · $0.02" in words
    assert "d" not in outcome.task
    assert ("it broke" in words) == (state != "done")
    assert "wrote x.py" in words
    assert "branch hermes/scout" in words
    assert "line 59" not in words
    assert block.toggle()
    assert "line 59" in drawn(block, 90)
    assert block.copy_text().startswith("- line 0\n")


def test_a_branch_is_taken_over_by_a_command_that_is_told() -> None:
    end = AgentFinished(agent="a", name="fix", kind="child", note="branch hermes/fix-1a: 2 files changed")
    assert list(heard(end).remains())[-1] == "`git merge hermes/fix-1a` takes it over"
    assert list(heard(AgentFinished(agent="a", note="no files changed")).remains()) == ["no files changed"]
    assert "⑂ ✓ fix" in drawn(result_block(heard(end)), 60)
    assert "⚙ ✓ fix" in drawn(result_block(heard(dataclasses.replace(end, kind="background"))), 60)


async def test_enter_opens_the_agent_behind_a_result_and_y_copies_its_answer(serve: Serve, tmp_path: Path) -> None:
    async with live(settings(serve(by_prompt({"look": say("found it")}))), tmp_path) as app:
        await app.ready()
        await app.say("/background look around")
        await app.until(lambda: results(app))
        await app.pilot.press("tab", "y")
        await app.shows("Copied 1 line")
        await app.pilot.press("enter")
        await app.until(lambda: app.app.screen is not app.chat)
        await app.shows("look around")
        await app.pilot.press("escape")
        await app.until(lambda: app.app.screen is app.chat)
        await app.say("/attach look")
        await app.until(lambda: app.app.screen is not app.chat)


async def test_an_ended_task_becomes_a_chat(serve: Serve, tmp_path: Path) -> None:
    server = serve(by_prompt({"look": lambda seen: say(f"answer {len(seen.messages)}")}))
    async with live(settings(server), tmp_path) as app:
        await app.ready()
        first = app.desk.session
        await app.say("/background look around")
        await app.shows("answer 2")
        await app.say("/open look")
        await app.until(lambda: app.desk.session != first)
        await app.shows("▌ look around")
        await app.say("and further")
        await app.shows("answer 4")


def test_how_long_one_that_lives_has_worked() -> None:
    began = time.time() - 75
    outcome = kept(AgentRecord("ag_1", state="running", created=began, started=began))
    assert outcome.heading.startswith("ag_1 running · 1m1")
    assert kept(AgentRecord("ag_1", state="done", created=1, started=1, ended=4)).seconds == 3
