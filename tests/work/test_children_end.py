"""How children end: at their time, by a stop, with the program; and what of them is left (faults, section 3)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from hermes_engine.events import AgentFinished, AgentStarted, ApprovalAsked, ToolFinished, ToolStarted, TurnFinished
from hermes_engine.messages import closed
from hermes_engine.requests import Answer
from tests.conftest import Serve
from tests.server.answers import Seen, chunk, hang, stream
from tests.work.conftest import Configure, Hear
from tests.work.support import answered, by_prompt, call, calls, first_user, say, spawn


def soon(condition: Any, seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def running(command: str) -> list[int]:
    """Processes of this user that run a command with these words."""
    words = command.split()
    return [p.pid for p in psutil.process_iter(["cmdline"]) if (p.info["cmdline"] or [])[-len(words) :] == words]


def test_f3_1_a_stream_that_stays_open_without_bytes_ends_at_its_time(hear: Hear) -> None:
    silent = stream([chunk({"role": "assistant", "content": "hm"}), 30.0], end=False)
    tasks = ["one", {"prompt": "silent", "timeout_seconds": 2}, "three"]
    heard = hear(by_prompt({"go": [spawn(*tasks), say("ok")], "silent": silent}))
    heard.ask("go")
    told = heard.results()["results"]
    assert [(entry["index"], entry["status"]) for entry in told] == [(0, "ok"), (1, "timeout"), (2, "ok")]
    assert told[1]["answer"] == "hm"
    assert heard.server.wait_until(lambda: heard.server.open_requests == 0)


def test_f3_2_a_childs_command_does_not_outlive_it(hear: Hear) -> None:
    heard = hear(by_prompt({
        "go": [spawn({"prompt": "sleeper", "timeout_seconds": 2}), say("ok")],
        "sleeper": call("terminal", {"command": "sleep 310.25"}),
    }), mode="auto")  # fmt: skip
    heard.engine.send(heard.session, "go")
    assert soon(lambda: running("sleep 310.25"))
    heard.wait(lambda: heard.of(AgentFinished))
    assert heard.of(AgentFinished)[0].state == "timeout"
    assert running("sleep 310.25") == []


def test_f3_2_neither_do_its_background_commands(hear: Hear) -> None:
    commands = ["sleep 310.5", "setsid sleep 310.75 & echo away"]
    heard = hear(by_prompt({
        "go": [spawn("sleeper"), say("ok")],
        "sleeper": [
            call("terminal", {"command": commands[0], "background": True}),
            call("terminal", {"command": commands[1]}),
            say("left two running"),
        ],
    }), mode="auto")  # fmt: skip
    heard.engine.send(heard.session, "go")
    assert soon(lambda: running("sleep 310.5"))
    heard.wait(lambda: heard.of(AgentFinished))
    assert heard.of(AgentFinished)[0].answer == "left two running"
    assert (running("sleep 310.5"), running("sleep 310.75")) == ([], [])


def test_f3_4_what_was_done_before_a_timeout_is_in_the_result(hear: Hear) -> None:
    heard = hear(by_prompt({
        "go": [spawn({"prompt": "worker", "timeout_seconds": 2}), say("ok")],
        "worker": [call("write_file", {"path": "half.txt", "content": "x"}, text="half"), hang(30)],
    }), mode="auto")  # fmt: skip
    heard.ask("go")
    [entry] = heard.results()["results"]
    assert (entry["status"], entry["answer"], entry["turns"]) == ("timeout", "half", 1)
    assert entry["files_changed"] == ["half.txt"]
    assert entry["tokens"] == 15
    assert (heard.cwd / "half.txt").read_text() == "x"


def test_f3_6_a_stop_ends_children_and_grandchildren_and_nothing_new_begins(hear: Hear, configure: Configure) -> None:
    configure("delegation: {max_concurrent: 6}\n")
    heard = hear(by_prompt({
        "go": [spawn("mid 1", "mid 2", "mid 3"), say("ok")],
        "mid": [spawn("low 1", "low 2"), say("mid done")], "low": hang(60),
    }))  # fmt: skip
    heard.engine.send(heard.session, "go")
    assert heard.server.wait_until(lambda: heard.server.open_requests == 6)
    began = time.monotonic()
    heard.engine.interrupt(heard.session)
    assert heard.server.wait_until(lambda: heard.server.open_requests == 0, 2.0)
    asked = len(heard.server.requests)
    heard.wait(lambda: any(e.session == heard.session for e in heard.of(TurnFinished)), 2.0)
    assert time.monotonic() - began < 2
    assert [row.state for row in heard.engine.agents()[1:]] == ["cancelled"] * 9
    assert len(heard.server.requests) == asked


def test_f3_6_a_stop_while_children_wait_for_their_place_starts_none_of_them(hear: Hear, configure: Configure) -> None:
    configure("delegation: {max_concurrent: 1}\n")
    heard = hear(by_prompt({"go": [spawn(*[f"low {n}" for n in range(9)]), say("ok")], "low": hang(60)}))
    heard.engine.send(heard.session, "go")
    assert heard.server.wait_until(lambda: len(heard.server.requests) == 2)
    heard.engine.interrupt(heard.session)
    heard.wait(lambda: len(heard.of(AgentFinished)) == 9, 2.0)
    heard.rest()
    assert len(heard.server.requests) == 2


def test_one_child_stopped_by_hand_costs_only_itself(hear: Hear) -> None:
    heard = hear(by_prompt({"go": [spawn("low", "quick"), say("ok")], "low": hang(60)}))
    heard.engine.send(heard.session, "go")
    heard.wait(lambda: any(event.state == "done" for event in heard.of(AgentFinished)))
    [low] = [row for row in heard.engine.agents() if row.name == "low"]
    assert heard.engine.stop_agent(low.id)
    heard.wait(lambda: any(e.session == heard.session for e in heard.of(TurnFinished)))
    assert [entry["status"] for entry in heard.results()["results"]] == ["cancelled", "ok"]
    heard.rest()
    assert heard.engine.view(heard.session).messages[-1].content == "ok"
    assert not heard.engine.stop_agent(low.id)


def test_f3_7_a_new_message_ends_no_child(hear: Hear) -> None:
    heard = hear(by_prompt({"go": [spawn("low"), say("ok")], "low": say("low done", first_delay=0.6)}))
    heard.engine.send(heard.session, "go")
    assert heard.server.wait_until(lambda: len(heard.server.requests) == 2)
    assert heard.engine.send(heard.session, "and this") == "queued"
    assert heard.engine.steer(heard.session, "mind that")
    heard.wait(lambda: len([e for e in heard.of(TurnFinished) if e.session == heard.session]) == 2)
    assert heard.results()["results"][0]["answer"] == "low done"
    asked = [seen for seen in heard.server.requests if first_user(seen) == "go"]
    said = [[m["content"] for m in seen.messages if m["role"] == "user"] for seen in asked]
    assert said[1:] == [["go", "mind that"], ["go", "mind that", "and this"]]


@pytest.mark.parametrize("depth", [1, 2])
def test_f3_14_a_childs_question_names_it_and_an_answer_lets_it_go_on(hear: Hear, depth: int) -> None:
    work = [call("terminal", {"command": "touch made"}), say("made it")]
    script = {"go": [spawn("low" if depth == 1 else "mid"), say("ok")], "mid": [spawn("low"), say("mid done")],
              "low": work}  # fmt: skip
    heard = hear(by_prompt(script), attended=True, mode="ask")
    heard.engine.send(heard.session, "go")
    heard.wait(lambda: heard.of(ApprovalAsked))
    [asked] = heard.of(ApprovalAsked)
    [low] = [row for row in heard.engine.agents() if row.name == "low"]
    assert (asked.agent, low.depth, low.needs) == (low.id, depth, asked.request)
    assert [event.request for event in heard.engine.broker.pending()] == [asked.request]
    assert heard.engine.answer(asked.request, Answer("once"))
    heard.wait(lambda: any(e.session == heard.session for e in heard.of(TurnFinished)))
    assert (heard.cwd / "made").exists()
    assert heard.results()["ok"] == 1


def test_f3_14_where_nobody_can_answer_the_child_is_told_at_once(hear: Hear) -> None:
    heard = hear(by_prompt({
        "go": [spawn("low"), say("ok")],
        "low": [call("terminal", {"command": "rm -rf somewhere"}), say("it was denied")],
    }), mode="auto")  # fmt: skip
    heard.ask("go")
    denied = next(e for e in heard.of(ToolFinished) if e.name == "terminal")
    assert denied.status == "denied"
    assert "nobody is here to answer" in denied.text
    told = next(seen for seen in heard.server.requests if first_user(seen) == "low" and answered(seen))
    assert told.last["content"] == denied.text
    assert heard.results()["results"][0]["answer"] == "it was denied"


def test_f3_14_a_stop_withdraws_the_question(hear: Hear) -> None:
    script = {"go": [spawn("low"), say("ok")], "low": [call("terminal", {"command": "touch made"}), say("x")]}
    heard = hear(by_prompt(script), attended=True, mode="ask")
    heard.engine.send(heard.session, "go")
    heard.wait(lambda: heard.of(ApprovalAsked))
    heard.engine.interrupt(heard.session)
    heard.wait(lambda: any(e.session == heard.session for e in heard.of(TurnFinished)))
    assert heard.engine.broker.pending() == ()
    assert not (heard.cwd / "made").exists()


def test_f3_15_fifty_children_leave_nothing_behind(hear: Hear, configure: Configure) -> None:
    configure("limits: {max_turns: 200}\n")
    me = psutil.Process()

    def go(seen: Seen) -> Any:
        done, wanted = answered(seen), int(first_user(seen).split()[1])
        return say("ok") if done >= wanted else call("spawn_agent", {"prompt": f"low {done}"})

    def low(seen: Seen) -> Any:
        behind = first_user(seen).endswith("5")
        return say("done") if answered(seen) else calls([
            ("terminal", {"command": "sleep 320.5 & echo there" if behind else "true", "background": behind}),
            ("write_file", {"path": "x", "content": "y"}),
        ])  # fmt: skip

    heard = hear(by_prompt({"go": go, "low": low}), mode="auto")
    heard.ask("go 6", 60)  # pools, connections and files that are opened once
    before = (me.num_fds(), threading.active_count(), len(me.children(recursive=True)))
    heard.session = heard.engine.open_session(heard.cwd).id
    assert heard.ask("go 50", 60).answer == "ok"
    assert len(heard.of(AgentFinished)) == 56
    assert soon(lambda: len(me.children(recursive=True)) == before[2])
    assert soon(lambda: me.num_fds() <= before[0] + 10), "pools may grow, but not by one for each child"
    assert threading.active_count() <= before[1] + 8
    assert running("sleep 320.5") == []


KILLED = """
import sys, time
from pathlib import Path
from hermes_engine.events import ToolStarted
from hermes_engine.profiles import resolve
from hermes_engine.session import Engine
from hermes_engine.settings import Overrides

def hear(event):
    if isinstance(event, ToolStarted):
        print(event.name, flush=True)

engine = Engine(resolve(Overrides(base_url=sys.argv[1], model="m", mode="auto")), hear, attended=False)
engine.start()
session = engine.open_session(Path(sys.argv[2])).id
print(session, flush=True)
engine.tasks.start(session, "low 3", kind="background")
engine.send(session, "go")
time.sleep(60)
"""


def test_f3_16_after_kill_9_children_are_interrupted_and_told_of_once(serve: Serve, hear: Hear, tmp_path: Path) -> None:
    script = by_prompt({
        "go": [spawn("quick", "low 1", "low 2"), say("never")],
        "low": call("terminal", {"command": "sleep 330.5"}), "hello": say("hi"),
    })  # fmt: skip
    server = serve(script)
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(KILLED), server.base_url, str(tmp_path)],
        stdout=subprocess.PIPE, text=True, env=dict(os.environ),
    )  # fmt: skip
    assert process.stdout is not None
    session = process.stdout.readline().strip()
    assert [process.stdout.readline().strip() for _ in range(3)] == ["terminal", "spawn_parallel", "terminal"]
    assert soon(lambda: len(running("sleep 330.5")) == 3)
    time.sleep(0.3)  # the recorder gathers for a tenth of a second
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()

    heard = hear(script, mode="auto")
    assert soon(lambda: running("sleep 330.5") == []), "what the dead program ran is ended"
    tasks = heard.engine.tasks
    past = {record.title: record for record in tasks.past()}
    assert {title: record.state for title, record in past.items()} == {
        "quick": "done", "low 1": "interrupted", "low 2": "interrupted", "low 3": "interrupted",
    }  # fmt: skip
    view = heard.engine.open_session(tmp_path, resume=session)
    assert closed(view.messages) == list(view.messages)
    assert [m.role for m in view.messages] == ["user", "assistant", "tool"]
    assert view.messages[-1].status == "cancelled"
    for record in past.values():
        kept = tasks.messages(record.session)
        assert closed(kept) == list(kept)
    results = tasks.results(session)
    assert [record.title for record in results] == ["low 3"], "what a person started; the call's own are in the call"
    tasks.seen([record.id for record in results])
    assert tasks.results(session) == ()
    assert all(row.kind == "chat" for row in heard.engine.agents())
    heard.session = session
    heard.engine.send(session, "hello")
    heard.wait(lambda: any(e.session == session for e in heard.of(TurnFinished)))
    assert heard.of(TurnFinished)[-1].status == "ok"


def test_every_start_has_one_end_with_the_same_name(hear: Hear) -> None:
    heard = hear(by_prompt({"go": [spawn("alpha", "beta"), say("ok")]}))
    heard.ask("go")
    started = {e.agent: (e.name, e.title, e.owner, e.parent) for e in heard.of(AgentStarted) if e.kind == "child"}
    ended = [e.agent for e in heard.of(AgentFinished)]
    assert sorted(ended) == sorted(started)
    [chat] = [e.agent for e in heard.of(AgentStarted) if e.kind == "chat"]
    assert set(started.values()) == {("alpha", "alpha", heard.session, chat), ("beta", "beta", heard.session, chat)}
    tool = next(e for e in heard.of(ToolFinished) if e.session == heard.session)
    assert sorted(tool.data["agents"]) == sorted(started)
    assert heard.of(ToolStarted)[0].display.verb == "Spawn"
    assert json.loads(tool.text)["ok"] == 2


def test_what_a_stopped_turn_has_cost_is_kept_with_its_conversation(hear: Hear) -> None:
    heard = hear(by_prompt({
        "go": [spawn("quick"), spawn("low"), say("ok")], "quick": say("done"),
        "low": [call("terminal", {"command": "true"}), hang(60)],
    }), mode="auto")  # fmt: skip
    heard.engine.send(heard.session, "go")
    assert heard.server.wait_until(lambda: len(heard.server.requests) == 5)
    heard.engine.interrupt(heard.session)
    heard.wait(lambda: any(e.session == heard.session for e in heard.of(TurnFinished)))
    heard.rest()
    assert heard.engine.agents()[0].usage.total_tokens == 4 * 15
    [low] = [row for row in heard.engine.agents() if row.name == "low"]
    sessions = heard.engine.sessions()
    assert soon(lambda: sessions.find(low.session).usage.total_tokens == 15)
    assert soon(lambda: sessions.find(heard.session).usage.total_tokens == 4 * 15)


def test_f9_17_a_child_told_something_in_its_last_moment_goes_on_before_its_parent_does(hear: Hear) -> None:
    heard = hear(by_prompt({"go": [spawn("low"), say("ok")], "low": lambda seen: say(f"after {seen.last['content']}")}))
    told: list[str] = []
    hearing = heard._hear

    def tell(event: Any) -> None:
        hearing(event)
        if isinstance(event, TurnFinished) and event.session != heard.session and not told:
            told.append(event.agent)
            heard.engine.tasks.tell(event.agent, "one thing more")

    heard.on_event = tell
    assert heard.ask("go").answer == "ok"
    [entry] = heard.results()["results"]
    assert (entry["status"], entry["answer"]) == ("ok", "after one thing more")
    assert (entry["tokens"], entry["turns"]) == (30, 2)
    assert len([seen for seen in heard.server.requests if first_user(seen) == "low"]) == 2
    assert len(heard.of(AgentFinished)) == 2


def test_f9_17_a_message_that_is_stopped_at_once_is_not_lost(hear: Hear) -> None:
    heard = hear(by_prompt({}))
    for number in range(10):
        heard.engine.send(heard.session, f"message {number}")
        heard.engine.interrupt(heard.session)
        heard.rest()
    assert [event.status for event in heard.of(TurnFinished)] == ["cancelled"] * 10
    said = [m.content for m in heard.engine.view(heard.session).messages if m.role == "user"]
    assert said == [f"message {number}" for number in range(10)]


def test_a_stopped_turn_counts_what_its_stopped_children_had_cost(hear: Hear) -> None:
    heard = hear(by_prompt({"go": [spawn("low", "mid", "quick"), say("ok")],
                            "low": [call("todo", {"items": ["x"]}), hang(60)],
                            "mid": [spawn("deep"), say("ok")], "deep": [call("todo", {"items": ["x"]}), hang(60)]}),
                 toolsets=("todo", "delegation"))  # fmt: skip
    heard.engine.send(heard.session, "go")
    assert heard.server.wait_until(lambda: len(heard.server.requests) == 7 and heard.server.open_requests == 2)
    heard.engine.interrupt(heard.session)
    heard.wait(lambda: any(event.session == heard.session for event in heard.of(TurnFinished)))
    [end] = [event for event in heard.of(TurnFinished) if event.session == heard.session]
    assert (end.status, end.usage.total_tokens) == ("cancelled", 5 * 15)
    heard.rest()
    assert heard.engine.agents()[0].usage.total_tokens == 5 * 15
