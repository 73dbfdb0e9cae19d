"""Whose result waits for a person: that of what a person started, never that of a model's call, whose results are told
also when it is stopped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.events import AgentFinished, ToolFinished, TurnFinished
from tests.conftest import Serve
from tests.server.answers import hang
from tests.work.conftest import Configure
from tests.work.support import Heard, by_prompt, call, say, spawn


@pytest.fixture
def hear(serve: Serve, tmp_path: Path) -> Iterator[Callable[..., Heard]]:
    started: list[Heard] = []
    work = tmp_path / "work"
    work.mkdir()

    def start(script: Any, **options: Any) -> Heard:
        started.append(Heard(serve(script), work, **options))
        return started[-1]

    yield start
    for heard in started:
        heard.engine.close()


def test_children_of_a_stopped_turn_wait_for_nobody(hear: Callable[..., Heard]) -> None:
    heard = hear(by_prompt({"split": spawn("silent 1", "silent 2"), "silent": hang(30)}))
    heard.engine.send(heard.session, "split it")
    assert heard.server.wait_until(lambda: len(heard.server.requests) == 3)
    heard.engine.interrupt(heard.session)
    heard.wait(lambda: len(heard.of(AgentFinished)) == 2)
    assert [(end.state, end.bound) for end in heard.of(AgentFinished)] == [("cancelled", True)] * 2
    heard.rest()
    tasks = heard.engine.tasks
    assert heard.server.wait_until(lambda: {record.state for record in tasks.past()} == {"cancelled"})
    assert tasks.results(heard.session) == ()


def test_f4_2_what_a_person_started_waits_for_that_chat_until_it_was_seen(hear: Callable[..., Heard]) -> None:
    heard = hear(by_prompt({"look": say("found it")}))
    other = heard.engine.open_session(heard.cwd).id
    row = heard.engine.tasks.start(heard.session, "look for it", kind="background")
    heard.wait(lambda: heard.of(AgentFinished))
    end = heard.of(AgentFinished)[0]
    assert (end.agent, end.owner, end.answer, end.bound) == (row.id, heard.session, "found it", False)
    tasks = heard.engine.tasks
    assert heard.server.wait_until(lambda: [record.answer for record in tasks.results(heard.session)] == ["found it"])
    assert tasks.results(other) == ()
    tasks.seen([row.id])
    assert tasks.results(heard.session) == ()


def test_a_stopped_turn_knows_what_its_children_had_brought(hear: Callable[..., Heard], configure: Configure) -> None:
    configure("delegation: {max_concurrent: 2}\n")
    half = [call("write_file", {"path": "a.txt", "content": "x"}, text="half of it"), hang(60)]
    tasks = spawn("quick", "slow", "slow too", "never begun")
    heard = hear(by_prompt({"go": [tasks, say("seen")], "quick": say("quick answer"), "slow": half}), mode="auto")
    heard.engine.send(heard.session, "go")
    heard.wait(lambda: len(heard.of(ToolFinished)) == 2)
    assert heard.server.wait_until(lambda: heard.server.open_requests == 2)
    heard.engine.interrupt(heard.session)
    heard.wait(lambda: any(event.status == "cancelled" for event in heard.of(TurnFinished)))
    heard.rest()
    entries = heard.results()["results"]
    assert [entry["status"] for entry in entries] == ["ok", "cancelled", "cancelled", "cancelled"]
    assert [entry["answer"] for entry in entries] == ["quick answer", "half of it", "half of it", ""]
    assert [entry["error"] for entry in entries] == [None, "stopped", "stopped", "stopped"]
    assert ["a.txt"] in [entry["files_changed"] for entry in entries]
    [card] = [event for event in heard.of(ToolFinished) if event.name == "spawn_parallel"]
    assert (card.status, card.display.summary) == ("cancelled", "1 ok, 3 stopped")
    assert heard.ask("go on").status == "ok"
    [told] = [message for message in heard.server.requests[-1].messages if message["role"] == "tool"]
    assert json.loads(told["content"])["results"] == entries
