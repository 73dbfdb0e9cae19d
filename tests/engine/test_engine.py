"""The engine as front ends use it, on a real home, over real HTTP."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.errors import NotConfigured, UnknownName, UsageError
from hermes_engine.events import (
    AgentFinished,
    AgentStarted,
    ApprovalAsked,
    BatchFinished,
    BatchStarted,
    ContextCompacted,
    Event,
    Notice,
    RowFinished,
    TextDelta,
    ToolFinished,
    TurnFinished,
    TurnStarted,
)
from hermes_engine.messages import closed
from hermes_engine.profiles import resolve
from hermes_engine.requests import Answer
from hermes_engine.session import Engine
from hermes_engine.settings import Overrides
from hermes_engine.store.migrations import open_state
from hermes_engine.store.sessions import SessionStore
from tests.conftest import Serve
from tests.server.answers import call, chunk, hang, say, status, stream
from tests.server.scripted import ScriptedServer


class Driver:
    """An engine with what it said."""

    def __init__(self, server: ScriptedServer, cwd: Path, *, attended: bool = True, **flags: Any) -> None:
        self.events: list[Event] = []
        self._heard = threading.Condition()
        self.server, self.cwd = server, cwd
        resolved = resolve(Overrides(base_url=server.base_url, model="m", **flags))
        self.engine = Engine(resolved, self._hear, attended=attended)
        self.engine.start()
        self.session = self.engine.open_session(cwd).id

    def _hear(self, event: Event) -> None:
        with self._heard:
            self.events.append(event)
            self._heard.notify_all()

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for event in list(self.events) if isinstance(event, kind)]

    def wait(self, condition: Callable[[], Any], seconds: float = 15.0) -> None:
        with self._heard:
            assert self._heard.wait_for(condition, seconds), [type(e).__name__ for e in self.events]

    def wait_turns(self, count: int) -> TurnFinished:
        self.wait(lambda: len(self.of(TurnFinished)) >= count)
        end = time.monotonic() + 5
        while self.engine.busy(self.session) and len(self.of(TurnStarted)) <= count and time.monotonic() < end:
            time.sleep(0.005)
        return self.of(TurnFinished)[count - 1]  # type: ignore[no-any-return]


@pytest.fixture
def drive(serve: Serve, tmp_path: Path) -> Iterator[Callable[..., Driver]]:
    drivers: list[Driver] = []
    work = tmp_path / "work"
    work.mkdir()

    def start(script: Any, **options: Any) -> Driver:
        driver = Driver(serve(script), work, **options)
        drivers.append(driver)
        return driver

    yield start
    for driver in drivers:
        driver.engine.close()


def test_a_turn_is_heard_kept_and_seen(drive: Callable[..., Driver]) -> None:
    driver = drive([call("terminal", {"command": "echo hello"}), say("It says hello.")])
    assert driver.engine.send(driver.session, "say hello") == "started"
    ended = driver.wait_turns(1)
    assert (ended.status, ended.answer, ended.tool_calls) == ("ok", "It says hello.", 1)
    view = driver.engine.view(driver.session)
    assert [m.role for m in view.messages] == ["user", "assistant", "tool", "assistant"]
    assert view.title == "say hello"
    assert "hello" in driver.of(ToolFinished)[0].text
    driver.engine.close()
    with closing(open_state(driver.engine.resolved.home.state_db)) as database:
        kept = SessionStore(database).load(driver.session)
    assert [m.role for m in kept] == ["user", "assistant", "tool", "assistant"]


def test_messages_queue_while_a_turn_runs_and_follow_in_order(drive: Callable[..., Driver]) -> None:
    driver = drive([say("one", delay=0.3), say("two"), say("three")])
    assert driver.engine.send(driver.session, "1") == "started"
    assert driver.engine.send(driver.session, "2") == "queued"
    assert driver.engine.send(driver.session, "3") == "queued"
    assert driver.engine.queued(driver.session) == ("2", "3")
    driver.wait_turns(3)
    assert [event.prompt for event in driver.of(TurnStarted)] == ["1", "2", "3"]


def test_f4_10_interrupting_a_stream_frees_the_prompt_and_keeps_the_queue(drive: Callable[..., Driver]) -> None:
    driver = drive([say("word " * 50, chunks=50, delay=0.0), hang(30), say("after")])
    driver.engine.send(driver.session, "first")
    driver.wait_turns(1)
    driver.engine.send(driver.session, "second")
    driver.engine.send(driver.session, "waiting")
    assert driver.server.wait_until(lambda: len(driver.server.requests) == 2)
    begun = time.monotonic()
    assert driver.engine.interrupt(driver.session)
    ended = driver.wait_turns(2)
    assert time.monotonic() - begun < 1
    assert driver.server.wait_until(lambda: driver.server.open_requests == 0)
    assert ended.status == "cancelled"
    assert driver.engine.queued(driver.session) == ("waiting",)
    assert not driver.engine.busy(driver.session)
    assert driver.engine.send_next(driver.session)
    assert driver.wait_turns(3).answer == "after"


def test_f8_2_interrupting_a_tool_ends_its_processes(drive: Callable[..., Driver]) -> None:
    driver = drive([call("terminal", {"command": "echo $$ > pid; exec sleep 300"}), say("ok")], mode="auto")
    driver.engine.send(driver.session, "sleep")
    pid_file = driver.cwd / "pid"
    end = time.monotonic() + 10
    while not (pid_file.exists() and pid_file.read_text().strip()) and time.monotonic() < end:
        time.sleep(0.01)
    pid = int(pid_file.read_text())
    driver.engine.interrupt(driver.session)
    assert driver.wait_turns(1).status == "cancelled"
    end = time.monotonic() + 2
    while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        time.sleep(0.01)
    assert not Path(f"/proc/{pid}").exists()
    messages = driver.engine.view(driver.session).messages
    assert closed(messages) == list(messages)


def test_an_approval_is_answered_by_id_and_a_no_reaches_the_model(drive: Callable[..., Driver]) -> None:
    driver = drive([call("terminal", {"command": "touch made"}), say("fine"), call("terminal", {"command": "rm made"})])
    driver.engine.send(driver.session, "make it")
    driver.wait(lambda: driver.of(ApprovalAsked))
    assert driver.engine.answer(driver.of(ApprovalAsked)[0].request, Answer("once"))
    driver.wait_turns(1)
    assert (driver.cwd / "made").exists()
    driver.engine.send(driver.session, "remove it")
    driver.wait(lambda: len(driver.of(ApprovalAsked)) == 2)
    driver.engine.answer(driver.of(ApprovalAsked)[1].request, Answer("no", "I still need it"))
    driver.wait(lambda: len(driver.of(ToolFinished)) == 2)
    result = driver.of(ToolFinished)[1]
    assert (result.status, "I still need it" in result.text) == ("denied", True)
    kept = [m.status for m in driver.engine.view(driver.session).messages if m.role == "tool"]
    assert kept[0] == "ok"
    driver.engine.interrupt(driver.session)
    assert (driver.cwd / "made").exists()


def test_quitting_withdraws_what_waits_and_is_quick(drive: Callable[..., Driver]) -> None:
    driver = drive([call("terminal", {"command": "touch made"})])
    driver.engine.send(driver.session, "make it")
    driver.wait(lambda: driver.of(ApprovalAsked))
    begun = time.monotonic()
    driver.engine.close(1.5)
    assert time.monotonic() - begun < 2.5
    assert driver.of(AgentFinished)
    assert not (driver.cwd / "made").exists()


def test_f9_16_an_error_ends_the_turn_and_the_next_message_works(drive: Callable[..., Driver]) -> None:
    driver = drive([status(401, '{"error": {"message": "bad key"}}'), say("now it works")])
    driver.engine.send(driver.session, "hello")
    ended = driver.wait_turns(1)
    assert ended.status == "error"
    assert "401" in ended.error
    driver.engine.send(driver.session, "again")
    assert driver.wait_turns(2).answer == "now it works"


def test_steering_reaches_the_running_turn(drive: Callable[..., Driver]) -> None:
    driver = drive([call("terminal", {"command": "sleep 0.4"}), say("done")], mode="auto")
    driver.engine.send(driver.session, "work")
    driver.wait(lambda: driver.engine.agents()[0].activity.startswith("Run"))
    assert driver.engine.steer(driver.session, "and be brief")
    driver.wait_turns(1)
    users = [m.content for m in driver.engine.view(driver.session).messages if m.role == "user"]
    assert users == ["work", "and be brief"]
    assert len(driver.of(TurnStarted)) == 1


def test_model_toolsets_and_mode_change_for_the_next_turn(
    drive: Callable[..., Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes_engine.settings.endpoints.installed", lambda: None)
    seen: list[tuple[str, list[str]]] = []

    def script(request: Any) -> Any:
        seen.append((request.body["model"], request.tools))
        return say("ok")

    driver = drive(script)
    driver.engine.send(driver.session, "1")
    driver.wait_turns(1)
    driver.engine.set_model(driver.session, "other")
    driver.engine.set_toolsets(driver.session, ["todo"])
    driver.engine.set_mode(driver.session, "plan")
    driver.engine.send(driver.session, "2")
    driver.wait_turns(2)
    assert seen[0][0] == "m"
    assert "terminal" in seen[0][1]
    assert seen[1] == ("other", ["todo"])
    assert driver.engine.view(driver.session).mode == "plan"
    with pytest.raises(UnknownName):
        driver.engine.set_toolsets(driver.session, ["nosuch"])
    with pytest.raises(NotConfigured):
        driver.engine.set_model(driver.session, "local")


def test_f9_14_compacting_is_a_turn_of_its_own_and_messages_queue_meanwhile(drive: Callable[..., Driver]) -> None:
    driver = drive([say("x " * 3000), say("y " * 3000), say("summary of it", delay=0.3), say("after")])
    for number, text in enumerate(("1", "2"), 1):
        driver.engine.send(driver.session, text)
        driver.wait_turns(number)
    driver.engine.compact(driver.session, "the numbers")
    assert driver.engine.send(driver.session, "3") == "queued"
    with pytest.raises(UsageError):
        driver.engine.compact(driver.session)
    driver.wait_turns(4)
    assert driver.of(ContextCompacted)
    assert driver.of(TurnFinished)[3].answer == "after"
    assert "summary of it" in driver.engine.view(driver.session).messages[0].content


def test_nothing_is_asked_of_nobody_and_the_reason_reaches_the_model(drive: Callable[..., Driver]) -> None:
    driver = drive([call("terminal", {"command": "rm -rf build"}), say("not done")], attended=False)
    driver.engine.send(driver.session, "clean")
    assert driver.wait_turns(1).status == "ok"
    assert driver.of(ToolFinished)[0].status == "denied"
    assert not driver.of(ApprovalAsked)


def test_an_unused_chat_leaves_nothing_behind(drive: Callable[..., Driver]) -> None:
    driver = drive([say("hi")])
    driver.engine.close()
    with closing(open_state(driver.engine.resolved.home.state_db)) as database:
        assert SessionStore(database).list(empty=True) == []


def test_a_chat_goes_on_with_what_it_had_and_is_open_once(drive: Callable[..., Driver]) -> None:
    driver = drive([say("hi"), say("hi again")])
    driver.engine.send(driver.session, "hello")
    driver.wait_turns(1)
    driver.engine.set_mode(driver.session, "edits")
    driver.engine.close()
    again = drive([say("hi again")])
    view = again.engine.open_session(again.cwd, resume=driver.session[:-1])
    assert (view.id, view.mode, view.title, len(view.messages)) == (driver.session, "edits", "hello", 2)
    assert again.engine.open_session(again.cwd, continue_last=True).id == driver.session
    with pytest.raises(UsageError):
        again.engine.open_session(again.cwd, resume="nosuch")


KILLED = """
import sys, time
from pathlib import Path
from hermes_engine.events import ToolStarted
from hermes_engine.profiles import resolve
from hermes_engine.session import Engine
from hermes_engine.settings import Overrides

def hear(event):
    if isinstance(event, ToolStarted):
        print("tool", flush=True)

engine = Engine(resolve(Overrides(base_url=sys.argv[1], model="m", mode="auto")), hear, attended=False)
engine.start()
session = engine.open_session(Path(sys.argv[2])).id
print(session, flush=True)
engine.send(session, "work")
time.sleep(60)
"""


def killed_at_work(program: str, server: ScriptedServer, cwd: Path, seconds: float) -> str:
    """Runs a program until it has said its session and its first mark, kills it a moment later; the session."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), server.base_url, str(cwd)],
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )
    assert process.stdout is not None
    session = process.stdout.readline().strip()
    assert process.stdout.readline().strip() == "tool"
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    return session


def test_f3_16_after_kill_9_the_history_is_valid_and_nothing_is_running(
    serve: Serve, tmp_path: Path, isolated_home: Path
) -> None:
    server = serve([call("terminal", {"command": "sleep 200"}), say("going on")])
    session = killed_at_work(KILLED, server, tmp_path, 0.3)

    driver = Driver(server, tmp_path, mode="auto")
    try:
        view = driver.engine.open_session(tmp_path, resume=session)
        assert [m.role for m in view.messages] == ["user", "assistant", "tool"]
        assert closed(view.messages) == list(view.messages)
        driver.session = session
        driver.engine.send(session, "go on")
        assert driver.wait_turns(1).answer == "going on"
        deadline = time.monotonic() + 5
        store = driver.engine._state.agents  # type: ignore[union-attr]
        states: list[str] = []
        while time.monotonic() < deadline and "interrupted" not in states:
            states = [record.state for record in store.list() if record.session == session]
            time.sleep(0.02)
        assert "interrupted" in states
        sleeping = subprocess.run(["pgrep", "-f", "^sleep 200$"], capture_output=True, text=True, check=False)
        assert sleeping.stdout == ""
    finally:
        driver.engine.close()


def test_every_agent_and_turn_has_one_beginning_and_one_end(drive: Callable[..., Driver]) -> None:
    driver = drive([say("a b c", chunks=3)])
    driver.engine.send(driver.session, "x")
    driver.wait_turns(1)
    driver.engine.close()
    assert len(driver.of(AgentStarted)) == len(driver.of(AgentFinished)) == 1
    turn = [e for e in driver.events if e.run]
    assert [e.seq for e in turn] == list(range(1, len(turn) + 1))
    assert {(e.session, e.agent) for e in turn} == {(driver.session, driver.of(AgentStarted)[0].agent)}
    assert "".join(e.text for e in driver.of(TextDelta)) == "a b c"
    assert not [n for n in driver.of(Notice) if n.level == "error"]


def test_a_batch_runs_in_the_pool_and_shows_as_one_agent(drive: Callable[..., Driver], tmp_path: Path) -> None:
    from hermes_engine.batch.options import BatchOptions

    driver = drive(lambda seen: say("answer", reasoning="hm"))
    data = tmp_path / "rows.jsonl"
    data.write_text('{"prompt": "a"}\n{"prompt": "b"}\n')
    options = BatchOptions(run_name="r", dataset_file=data, output_dir=tmp_path / "data")
    assert driver.engine.start_batch(options) == "r"
    driver.wait(lambda: driver.of(BatchFinished))
    assert driver.of(BatchFinished)[0].counts["kept"] == 2
    driver.wait(lambda: driver.of(AgentFinished))
    row = next(row for row in driver.engine.agents() if row.kind == "batch")
    assert (row.name, row.state, row.activity) == ("r", "done", "")
    assert {event.agent for event in driver.of(RowFinished)} == {row.id}
    assert driver.engine.start_batch(options) == "r"
    driver.wait(lambda: len(driver.of(BatchFinished)) == 2)
    refused = driver.of(BatchFinished)[1]
    assert (refused.state, "resume" in refused.reason) == ("failed", True)
    assert len(driver.of(BatchStarted)) == 1


def test_what_a_reply_had_brought_is_there_after_kill_9(serve: Serve, tmp_path: Path) -> None:
    server = serve([stream([chunk({"content": "Half of "}), chunk({"content": "the answer"}), 60.0]), say("and on")])
    program = KILLED.replace("ToolStarted", "TextDelta")
    session = killed_at_work(program, server, tmp_path, 0.6)
    for _ in range(2):
        driver = Driver(server, tmp_path)
        try:
            view = driver.engine.open_session(tmp_path, resume=session)
            assert [(m.role, m.content, m.partial) for m in view.messages] == [
                ("user", "work", False),
                ("assistant", "Half of the answer", True),
            ]
        finally:
            driver.engine.close()
