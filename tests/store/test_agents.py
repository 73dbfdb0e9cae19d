"""Records of agents and instances: truthful after a crash, never fooled by a pid."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hermes_engine.events import UsageReported, to_json
from hermes_engine.messages import Message, Usage
from hermes_engine.store import instances as instances_module
from hermes_engine.store.agents import INTERRUPTED, AgentRecord, AgentStore
from hermes_engine.store.database import Database
from hermes_engine.store.instances import (
    STALE_SECONDS,
    Identity,
    Instances,
    birth_of,
    is_alive,
    this_boot,
    this_process,
)
from hermes_engine.store.migrations import open_state
from hermes_engine.store.recordings import insert_chunk
from hermes_engine.store.sessions import SessionStore

ROOT = str(Path(__file__).parents[2])


@pytest.fixture
def agents(database: Database) -> AgentStore:
    return AgentStore(database)


def test_a_record_goes_through_its_states(agents: AgentStore) -> None:
    agents.insert(
        AgentRecord("a", parent="p", session="s", instance="i", name="n", title="t\ud800", kind="child", prompt="do")
    )
    agents.insert(AgentRecord("a", name="other"))
    record = agents.get("a")
    assert record is not None
    assert (record.state, record.title, record.name, record.started, record.ended) == (
        "waiting",
        "t\ufffd",
        "n",
        None,
        None,
    )
    agents.change("a", state="running", activity="Run ls")
    agents.change("a", activity="Read x")
    running = agents.get("a")
    assert running is not None
    assert (running.state, running.activity) == ("running", "Read x")
    assert running.started is not None
    agents.finish("a", state="done", answer="42", usage=Usage(3, 2, cost_usd=0.1))
    agents.finish("a", state="failed", error="late")
    agents.change("a", state="running")
    ended = agents.get("a")
    assert ended is not None
    assert (ended.state, ended.answer, ended.error, ended.usage) == ("done", "42", "", Usage(3, 2, cost_usd=0.1))
    assert ended.ended is not None
    assert agents.get("nope") is None


def test_lists_can_be_narrowed(agents: AgentStore) -> None:
    for number, (session, kind) in enumerate((("s1", "chat"), ("s1", "child"), ("s2", "background"))):
        agents.insert(AgentRecord(f"a{number}", session=session, kind=kind, created=100.0 + number))
    agents.finish("a1", state="done")
    assert [record.id for record in agents.list()] == ["a2", "a1", "a0"]
    assert [record.id for record in agents.list(session="s1")] == ["a1", "a0"]
    assert [record.id for record in agents.list(kinds=("child", "background"), states=("waiting",))] == ["a2"]
    assert [record.id for record in agents.list(limit=1)] == ["a2"]
    assert agents.list(states=()) == ()


def test_f4_2_a_result_stays_with_its_session_until_it_was_seen(agents: AgentStore) -> None:
    for name, owner, kind in (("b1", "s1", "background"), ("b2", "s2", "background"), ("c", "", "chat")):
        agents.insert(AgentRecord(name, owner=owner, kind=kind))
    assert agents.unseen("s1") == ()
    for name in ("b1", "b2", "c"):
        agents.finish(name, state="done", answer=f"result of {name}")
    assert [(record.id, record.answer) for record in agents.unseen("s1")] == [("b1", "result of b1")]
    agents.mark_seen(["b1"])
    assert agents.unseen("s1") == ()
    assert [record.id for record in agents.unseen("s2")] == ["b2"]


INSTANCE = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from hermes_engine.store.agents import AgentRecord, AgentStore
from hermes_engine.store.instances import Instances
from hermes_engine.store.migrations import open_state
from hermes_engine.store.recordings import insert_chunk
from hermes_engine.store.sessions import SessionStore
database = open_state(Path(sys.argv[1]))
instance = Instances(database).register(Path("/work"))
agents = AgentStore(database)
for number in range(2):
    agents.insert(AgentRecord(f"{instance}-{number}", owner="s", instance=instance, kind="child", state="running"))
with database.write() as connection:
    connection.execute("INSERT INTO runs (id, instance, started) VALUES (?, ?, 1)", (f"run-{instance}", instance))
print(instance, flush=True)
time.sleep(120)
"""


def start_instance(path: Path) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen([sys.executable, "-c", INSTANCE, str(path), ROOT], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def test_f3_16_children_of_a_killed_program_are_interrupted_and_those_of_a_living_one_are_not(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    dead, dead_id = start_instance(path)
    alive, alive_id = start_instance(path)
    try:
        os.kill(dead.pid, signal.SIGKILL)
        os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)
        database = open_state(path)
        agents, instances = AgentStore(database), Instances(database)
        assert instances.living() == {alive_id}, "a zombie counts as dead"
        dead.wait()
        mine = instances.register(tmp_path)
        agents.insert(AgentRecord("mine", instance=mine))
        agents.insert(AgentRecord("nobodys", instance="unknown"))
        closed = agents.close_dead()
        assert {record.id for record in closed} == {f"{dead_id}-0", f"{dead_id}-1", "nobodys"}
        assert {(record.state, record.error) for record in closed} == {("interrupted", INTERRUPTED)}
        assert {record.id for record in agents.list(states=("running", "waiting"))} == {
            f"{alive_id}-0",
            f"{alive_id}-1",
            "mine",
        }
        assert {record.id for record in agents.unseen("s")} == {f"{dead_id}-0", f"{dead_id}-1"}
        runs = {row["id"]: row["status"] for row in database.read("SELECT id, status FROM runs")}
        assert runs == {f"run-{dead_id}": "interrupted", f"run-{alive_id}": ""}
        assert agents.close_dead() == ()
        assert instances.alive(alive_id)
        assert not instances.alive(dead_id)
        database.close()
    finally:
        for process in (alive, dead):
            process.kill()
            process.communicate()


def test_an_interrupted_one_ended_when_its_last_word_was_kept(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    dead, _dead_id = start_instance(path)
    dead.kill()
    dead.communicate()
    database = open_state(path)
    try:
        now = time.time()
        session = SessionStore(database).create_session(cwd=tmp_path, model="m", profile="default")
        AgentStore(database).insert(AgentRecord("a", session=session, created=now - 60, started=now - 60))
        SessionStore(database).append(session, [Message("user", "go")])
        [record] = [record for record in AgentStore(database).close_dead() if record.id == "a"]
        assert record.ended is not None
        assert record.ended >= now
    finally:
        database.close()


def test_an_interrupted_one_has_used_what_its_replies_told_and_what_is_not_known(tmp_path: Path) -> None:
    database = open_state(tmp_path / "state.db")
    agents, now = AgentStore(database), time.time()
    for number, (agent, parent, state) in enumerate(
        [("a", "", "running"), ("b", "a", "running"), ("c", "a", "waiting")]
    ):
        record = AgentRecord(agent, parent=parent, kind="child", state=state, instance="gone", created=now + number)
        agents.insert(record)
        if state == "waiting":
            continue
        told = UsageReported(session="s", agent=agent, run=f"run-{agent}", usage=Usage(10, 5, cost_usd=0.5))
        with database.write() as connection:
            connection.execute(
                "INSERT INTO runs (id, session, agent, started) VALUES (?, 's', ?, ?)", (told.run, agent, now)
            )
            insert_chunk(connection, "s", told.run, (1, 2), [json.dumps(to_json(told), separators=(",", ":"))] * 2)
    agents.close_dead()
    records = {agent: agents.get(agent) for agent in "abc"}
    assert {agent: record and record.usage for agent, record in records.items()} == {
        "a": Usage(40, 20, tokens_known=False, cost_usd=2.0, cost_known=False),
        "b": Usage(20, 10, tokens_known=False, cost_usd=1.0, cost_known=False),
        "c": Usage(),
    }
    database.close()


def test_f5_13_a_pid_used_again_is_another_process() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        birth = birth_of(process.pid)
        assert birth is not None
        identity = Identity(this_boot(), process.pid, birth)
        assert is_alive(identity)
        assert not is_alive(Identity(identity.boot, identity.pid, str(int(birth) - 1))), "same pid, older process"
        assert not is_alive(Identity(identity.boot, os.getpid(), birth)), "same birth, another pid"
    finally:
        process.communicate(b"\n", timeout=30)
    assert not is_alive(identity)
    assert is_alive(this_process())


def test_f5_13_a_host_name_means_nothing_and_another_boot_is_judged_by_its_heartbeat(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    instances = Instances(database)
    mine = instances.register(Path("/work"))
    with database.write() as connection:
        connection.execute("UPDATE instances SET host = 'elsewhere', heartbeat = 0")
    assert instances.alive(mine)
    monkeypatch.setattr(instances_module, "this_boot", lambda: "another machine")
    assert not instances.alive(mine)
    instances.beat(mine)
    assert instances.alive(mine), "it lives on another machine"
    with database.write() as connection:
        connection.execute("UPDATE instances SET heartbeat = ?", (time.time() - STALE_SECONDS - 1,))
    assert instances.bury() == (mine,)
    assert not instances.alive(mine)


def test_an_instance_that_ended_in_order_is_dead(database: Database) -> None:
    instances = Instances(database)
    mine = instances.register(Path("/work\udcff"))
    assert instances.living() == {mine}
    assert not instances.alive("unknown")
    instances.end(mine)
    assert instances.living() == set()
    assert instances.bury() == ()
