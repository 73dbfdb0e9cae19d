"""Whose result waits for a person: that of what a person started, never that of a model's call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.events import AgentFinished
from tests.conftest import Serve
from tests.server.answers import hang
from tests.work.support import Heard, by_prompt, say, spawn


@pytest.fixture
def hear(serve: Serve, tmp_path: Path) -> Iterator[Callable[..., Heard]]:
    started: list[Heard] = []
    work = tmp_path / "work"
    work.mkdir()

    def start(script: Any) -> Heard:
        started.append(Heard(serve(script), work))
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
