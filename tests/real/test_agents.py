"""The real model starts agents and works in the background. Its words vary, so only the course of things is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes_engine.events import AgentFinished, Event
from hermes_engine.messages import closed
from hermes_engine.profiles import resolve
from hermes_engine.session import Engine
from hermes_engine.settings import Overrides
from tests.e2e.program import hermes
from tests.real.conftest import Wait

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]


def test_one_delegation_end_to_end(tmp_path: Path) -> None:
    """The model calls spawn_agent through the schema, its child answers, the answer comes back and is used."""
    prompt = "spawn_agent: write a poem about the sea"
    words = [
        "chat",
        "-q",
        prompt,
        "--model",
        "local",
        "-t",
        "delegation,terminal,file",
        "--mode",
        "auto",
        "--stream-json",
    ]
    done = hermes(*words, "--max-turns", "4", cwd=tmp_path, timeout=200)
    events = [json.loads(line) for line in done.out.splitlines()]
    spawned = [event for event in events if event["type"] == "ToolFinished" and event["name"] == "spawn_agent"]
    assert spawned, done.err
    results = json.loads(spawned[0]["text"])
    assert (results["ok"], results["failed"]) == (1, 0)
    [entry] = results["results"]
    assert entry["answer"].strip()
    assert entry["tokens"] > 0
    child = next(event for event in events if event["type"] == "AgentFinished" and event["kind"] == "child")
    assert (child["agent"], child["state"], child["answer"]) == (entry["agent_id"], "done", entry["answer"])


def test_three_tasks_in_the_background_at_once(tmp_path: Path, wait: Wait) -> None:
    """One small server answers them in turn; each ends, each conversation is valid, whatever the model said."""
    heard: list[Event] = []
    engine = Engine(resolve(Overrides(model="local", max_turns=2)), heard.append, attended=False)
    engine.start()
    try:
        chat = engine.open_session(tmp_path).id
        tasks = [engine.tasks.start(chat, f"Say the number {number}.", kind="background") for number in range(3)]
        wait(lambda: sum(isinstance(event, AgentFinished) for event in heard) == 3)
        ended = {event.agent: event for event in heard if isinstance(event, AgentFinished)}
        assert set(ended) == {task.id for task in tasks}
        assert {event.state for event in ended.values()} <= {"done", "failed", "max_turns"}
        assert {record.id for record in engine.tasks.results(chat)} == set(ended)
        for task in tasks:
            messages = list(engine.tasks.messages(task.session))
            assert closed(messages) == messages
    finally:
        engine.close()
