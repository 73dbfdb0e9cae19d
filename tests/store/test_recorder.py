"""The recorder: off the working threads, joined, redacted, and never a reason for a run to fail."""

from __future__ import annotations

import logging
import os
import random
import signal
import sqlite3
import string
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_engine.events import (
    AgentChanged,
    AgentFinished,
    AgentStarted,
    BatchStarted,
    Emitter,
    Event,
    Notice,
    ReplyFinished,
    RowFinished,
    RowStarted,
    StepStarted,
    TextDelta,
    ThoughtDelta,
    ToolFinished,
    TurnFinished,
    TurnStarted,
    to_json,
)
from hermes_engine.messages import Usage
from hermes_engine.redaction import MARK, Redactor
from hermes_engine.store import database as database_module
from hermes_engine.store import recorder as recorder_module
from hermes_engine.store.agents import AgentStore
from hermes_engine.store.database import Database
from hermes_engine.store.instances import Instances
from hermes_engine.store.migrations import STATE_MIGRATIONS, open_state
from hermes_engine.store.recorder import Recorder
from hermes_engine.store.recordings import Recordings

ROOT = str(Path(__file__).parents[2])
SECRET = "sk-secret-1234567890"


@pytest.fixture
def recorder(database: Database) -> Iterator[Recorder]:
    made = Recorder(database, instance="i1", redactor=Redactor([SECRET]))
    yield made
    made.close()


def turn(sink: Recorder, run: str = "r1", pieces: int = 5, session: str = "s1") -> list[Event]:
    sent: list[Event] = []

    def both(event: Event) -> None:
        sent.append(event)
        sink(event)

    emit = Emitter(both, session=session, run=run, agent="a1")
    emit(TurnStarted, prompt="do it", model="m")
    emit(StepStarted, step=1)
    for number in range(pieces):
        emit(ThoughtDelta, text=f"t{number} ")
    for number in range(pieces):
        emit(TextDelta, text=f"w{number} ")
    emit(ReplyFinished, step=1, text="".join(f"w{number} " for number in range(pieces)))
    emit(TurnFinished, status="ok", answer="done")
    return sent


def test_a_run_is_recorded_and_comes_back_with_its_deltas_joined(recorder: Recorder, database: Database) -> None:
    sent = turn(recorder)
    assert recorder.flush()
    recordings = Recordings(database)
    back = list(recordings.events("r1"))
    assert [type(event) for event in back] == [
        TurnStarted,
        StepStarted,
        ThoughtDelta,
        TextDelta,
        ReplyFinished,
        TurnFinished,
    ]
    assert [back[0], back[1], *back[4:]] == [sent[0], sent[1], *sent[-2:]]
    assert isinstance(back[3], TextDelta)
    assert back[3].text == "w0 w1 w2 w3 w4 "
    assert [event.seq for event in back] == [1, 2, 7, 12, 13, 14]
    assert [event.seq for event in recordings.events("r1", after_seq=7)] == [12, 13, 14]
    (record,) = recordings.runs("s1")
    assert (record.id, record.agent, record.model, record.prompt, record.status) == ("r1", "a1", "m", "do it", "ok")
    assert record.ended is not None
    assert list(recordings.events("nope")) == []


def test_agents_are_recorded_from_their_events(recorder: Recorder, database: Database) -> None:
    emit = Emitter(recorder, session="s1", run="", agent="a1")
    emit(AgentStarted, parent="a0", name="n", title="t", kind="child", model="m", profile="p")
    emit(AgentChanged, state="running", activity=f"Run echo {SECRET}")
    turn(recorder)
    emit(AgentFinished, state="done", answer=f"it is {SECRET}", usage=Usage(1, 2))
    assert recorder.flush()
    record = AgentStore(database).get("a1")
    assert record is not None
    assert (record.parent, record.session, record.instance, record.kind) == ("a0", "s1", "i1", "child")
    assert (record.state, record.answer, record.usage) == ("done", f"it is {MARK}", Usage(1, 2))
    assert (record.activity, record.prompt) == (f"Run echo {MARK}", "do it")
    assert record.started is not None


def test_batch_rows_are_not_recorded(recorder: Recorder, database: Database) -> None:
    recorder(BatchStarted(name="run-7"))
    recorder(RowStarted(session="run-7", run="row-1", index=1))
    turn(recorder, run="row-1", session="run-7")
    recorder(AgentStarted(session="run-7", agent="row-agent", kind="row"))
    recorder(RowFinished(session="run-7", index=1))
    turn(recorder)
    assert recorder.flush()
    assert [row[0] for row in database.read("SELECT DISTINCT run FROM events")] == ["r1"]
    assert [row[0] for row in database.read("SELECT id FROM runs")] == ["r1"]
    assert AgentStore(database).list() == ()


def test_taking_an_event_costs_its_caller_next_to_nothing(recorder: Recorder) -> None:
    started = time.thread_time()  # the caller's own: others may be busy
    turn(recorder, pieces=10_000)
    took = time.thread_time() - started
    assert took < 2
    assert recorder.flush(30)


def test_it_may_be_called_from_many_threads(recorder: Recorder, database: Database) -> None:
    threads = [threading.Thread(target=turn, args=(recorder, f"run{number}", 200)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert recorder.flush(30)
    for number in range(8):
        back = list(Recordings(database).events(f"run{number}"))
        text = "".join(event.text for event in back if isinstance(event, TextDelta))
        assert text == "".join(f"w{piece} " for piece in range(200))


def test_f10_a_secret_cut_into_pieces_is_recorded_nowhere(
    recorder: Recorder, database: Database, tmp_path: Path
) -> None:
    emit = Emitter(recorder, session="s1", run="r1", agent="a1")
    emit(TurnStarted, prompt=f"my key is {SECRET}")
    for letter in f"it is {SECRET}, sk-secret-":
        emit(TextDelta, text=letter)
        if letter in "s3k":
            recorder.flush()
    emit(ToolFinished, name="terminal", text=SECRET, data={"api_key": "whatever-it-is", "out": [SECRET]})
    emit(TextDelta, text="end")
    emit(TurnFinished, answer=SECRET)
    assert recorder.flush()
    back = list(Recordings(database).events("r1"))
    assert SECRET not in repr(back)
    assert "whatever-it-is" not in repr(back)
    text = "".join(event.text for event in back if isinstance(event, TextDelta))
    assert text == f"it is {MARK}, sk-secret-end"
    database.read("PRAGMA wal_checkpoint(TRUNCATE)")
    for item in database.path.parent.iterdir():
        assert SECRET.encode() not in item.read_bytes()


pieces = st.lists(st.sampled_from([*"sk-xyz", SECRET, SECRET[:7], SECRET[7:]]), max_size=4).map("".join)
KINDS: list[type[Event]] = [TextDelta, ThoughtDelta, ReplyFinished]


@given(st.lists(st.tuples(st.sampled_from(KINDS), pieces, st.booleans()), max_size=25))
def test_the_recorded_text_is_the_redacted_text_however_it_was_cut(sent: list[tuple[type[Event], str, bool]]) -> None:
    database = Database.temporary(STATE_MIGRATIONS)
    redactor = Redactor([SECRET])
    recorder = Recorder(database, redactor=redactor)
    try:
        emit = Emitter(recorder, session="s", run="r", agent="a")
        segments = [""]
        last: type[Event] = ReplyFinished
        sent.append((ReplyFinished, "", False))
        for kind, text, flush in sent:
            if kind is not last:
                segments.append("")
            last = kind
            if kind is ReplyFinished:
                emit(ReplyFinished)
            else:
                emit(kind, text=text)
                segments[-1] += text
            if flush:
                assert recorder.flush()
        assert recorder.close()
        back = [event.text for event in Recordings(database).events("r") if isinstance(event, TextDelta | ThoughtDelta)]
        assert "".join(back) == "".join(map(redactor.text, segments))
        assert SECRET not in repr(back)
    finally:
        recorder.close()
        database.close()


def test_a_failing_store_is_told_once_and_what_waited_is_written_later(
    database: Database, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "_BUSY_MILLISECONDS", 20)
    monkeypatch.setattr(recorder_module, "_RETRY_SECONDS", 0.05)
    told: list[Notice] = []
    recorder = Recorder(database, on_notice=told.append)
    holder = sqlite3.connect(database.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with caplog.at_level(logging.ERROR):
        turn(recorder)
        assert not recorder.flush()
        turn(recorder, run="r2")
        assert not recorder.flush()
    assert [notice.level for notice in told] == ["error"]
    assert len(caplog.records) == 1
    holder.execute("ROLLBACK")
    holder.close()
    assert recorder.flush() or recorder.flush()
    assert {row[0] for row in database.read("SELECT run FROM events")} == {"r1", "r2"}
    assert [notice.level for notice in told] == ["error", "info"]
    assert recorder.close()


def test_a_store_that_is_gone_ends_no_run(database: Database) -> None:
    told: list[Notice] = []

    def tell(notice: Notice) -> None:
        told.append(notice)
        raise RuntimeError("a screen that fails")

    recorder = Recorder(database, on_notice=tell)
    database.close()
    turn(recorder)
    assert not recorder.flush()
    assert not recorder.close()
    turn(recorder)
    assert len(told) == 1


def test_an_event_that_is_no_json_does_not_stop_the_others(recorder: Recorder, database: Database) -> None:
    emit = Emitter(recorder, session="s1", run="r0", agent="a1")
    loop: dict[str, object] = {"odd": {1, 2}, "path": Path("/x"), "nan": float("nan"), "text": "\ud83d"}
    emit(ToolFinished, name="t", data=loop)
    emit(TurnFinished)
    assert recorder.flush()
    assert [type(event) for event in Recordings(database).events("r0")] == [ToolFinished, TurnFinished]


def test_deltas_are_dropped_before_memory_grows_without_end(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder_module, "_MOST_WAITING", 10)
    monkeypatch.setattr(recorder_module, "_GATHER_SECONDS", 5.0)
    recorder = Recorder(database)
    turn(recorder, pieces=50)
    assert recorder.close()
    kinds = [type(event) for event in Recordings(database).events("r1")]
    assert kinds[:2] == [TurnStarted, StepStarted]
    assert kinds[-2:] == [ReplyFinished, TurnFinished]


def test_closing_writes_what_waits_and_ends_the_thread(database: Database) -> None:
    before = threading.active_count()
    recorder = Recorder(database)
    turn(recorder)
    assert recorder.close()
    assert threading.active_count() == before
    turn(recorder, run="late")
    assert {row[0] for row in database.read("SELECT run FROM events")} == {"r1"}


def test_it_keeps_the_heartbeat_of_its_instance(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder_module, "HEARTBEAT_SECONDS", 0.05)
    instance = Instances(database).register(Path("/work"))
    with database.write() as connection:
        connection.execute("UPDATE instances SET heartbeat = 0")
    recorder = Recorder(database, instance=instance)
    deadline = time.monotonic() + 10
    while database.read("SELECT heartbeat FROM instances")[0][0] == 0 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert time.time() - database.read("SELECT heartbeat FROM instances")[0][0] < 10
    recorder.close()


def test_old_recordings_go_and_conversations_stay(recorder: Recorder, database: Database) -> None:
    turn(recorder)
    turn(recorder, run="r2")
    assert recorder.flush()
    with database.write() as connection:
        connection.execute("UPDATE events SET created = created - 86400 * 40 WHERE run = 'r1'")
        connection.execute("UPDATE runs SET ended = ended - 86400 * 40 WHERE id = 'r1'")
        connection.execute("INSERT INTO sessions (id, cwd, created, updated) VALUES ('old', '/', 1, 1)")
        connection.execute("INSERT INTO agents (id, created, ended) VALUES ('old', 1, 1), ('open', 1, NULL)")
        connection.execute("INSERT INTO orders (kind, created) VALUES ('stop', 1)")
    recordings = Recordings(database)
    assert recordings.prune(0) == 0
    assert recordings.prune(30) > 0
    assert [record.id for record in recordings.runs("s1")] == ["r2"]
    assert list(recordings.events("r1")) == []
    assert [record.id for record in AgentStore(database).list()] == ["open"]
    assert database.read("SELECT count(*) FROM sessions")[0][0] == 1
    assert database.read("SELECT count(*) FROM orders")[0][0] == 0


def test_recordings_are_small(recorder: Recorder, database: Database) -> None:
    emit = Emitter(recorder, session="s", run="r", agent="a")
    words = ["".join(random.choices(string.ascii_lowercase, k=6)) + " " for _ in range(500)]
    plain = 0
    for _ in range(40):
        for word in words[:50]:
            plain += len(repr(to_json(emit(TextDelta, text=word))))
    assert recorder.flush()
    stored = database.read("SELECT sum(length(data)) FROM events")[0][0]
    assert stored * 20 < plain


KILLED = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from hermes_engine.store.instances import Instances
from hermes_engine.store.migrations import open_state
from hermes_engine.store.recorder import Recorder
from tests.store.test_recorder import turn
database = open_state(Path(sys.argv[1]))
recorder = Recorder(database, instance=Instances(database).register(Path("/work")))
for number in range(10_000):
    turn(recorder, run=f"r{number}", pieces=50)
    if number % 20 == 19:
        recorder.flush()
        print(number, flush=True)
"""


def test_a_recorder_killed_in_mid_write_leaves_whole_events(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(path), ROOT], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    done = [int(process.stdout.readline()) for _ in range(3)][-1]
    time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    database = open_state(path)
    recordings = Recordings(database)
    for number in range(done + 1):
        assert isinstance(list(recordings.events(f"r{number}"))[-1], TurnFinished)
    AgentStore(database).close_dead()
    assert {record.status for record in recordings.runs("s1")} <= {"ok", "interrupted"}
    assert database.read("PRAGMA integrity_check")[0][0] == "ok"
    database.close()
