"""Random trees of agents, run to their end or stopped at a random moment: what must hold whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import time
from dataclasses import dataclass
from typing import Any

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_engine.errors import UsageError
from hermes_engine.events import (
    AgentFinished,
    AgentStarted,
    Event,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from hermes_engine.messages import closed
from tests.server.answers import Answer, Seen, hang, status
from tests.work.conftest import Configure, Hear
from tests.work.support import Heard, answered, call, first_user, say

PLACES = 3
EXAMPLES = max(8, settings.default.max_examples // 4 if settings.default else 15)
EXPECTED = {"ok": "ok", "tool": "ok", "spawn": "ok", "fail": "error", "hang": "timeout"}


@dataclass(frozen=True)
class Node:
    """What one agent of a tree does."""

    kind: str
    children: tuple[Node, ...] = ()


def nodes(depth: int) -> st.SearchStrategy[Node]:
    leaf = st.sampled_from(["ok", "ok", "tool", "fail", "hang"]).map(Node)
    if not depth:
        return leaf
    below = st.lists(nodes(depth - 1), min_size=1, max_size=4 if depth > 1 else 3)
    return st.one_of(leaf, below.map(lambda children: Node("spawn", tuple(children))))


TREES = st.lists(nodes(2), min_size=1, max_size=4).map(lambda children: Node("spawn", tuple(children)))


class Play:
    """The script of one tree; its agents are known by their place in it (`7:0.2`)."""

    def __init__(self, name: str, root: Node, *, endless: bool) -> None:
        self.name, self.root, self.endless = name, root, endless

    def node(self, prompt: str) -> Node:
        node = self.root
        for step in prompt.partition(":")[2].split(".")[1:]:
            node = node.children[int(step)]
        return node

    def __call__(self, seen: Seen) -> Answer:
        prompt = first_user(seen)
        node = self.node(prompt)
        if node.kind == "fail":
            return status(401, "bad key")
        if node.kind == "hang":
            return hang(60)
        if node.kind == "ok" or answered(seen):
            return say(f"done {prompt}", first_delay=0.01)
        if node.kind == "tool":
            return call("terminal", {"command": "sleep 370.5" if self.endless else "echo hello"})
        tasks = [
            {"prompt": f"{prompt}.{number}"}
            | ({"timeout_seconds": 0.3} if child.kind == "hang" and not self.endless else {})
            for number, child in enumerate(node.children)
        ]
        return call("spawn_parallel", {"agents": tasks})


def most_at_once(requests: list[Seen]) -> int:
    """Requests open at the same time; a client that has gone is noticed a moment later."""
    spans = [(seen.started, (seen.ended or time.monotonic()) - (0.05 if seen.aborted else 0)) for seen in requests]
    return max((sum(a[0] <= b[0] < a[1] for a in spans) for b in spans), default=0)


def nothing_is_left(heard: Heard, events: list[Event], requests: list[Seen]) -> None:
    """No request, process, row or task of a tree that has ended; valid conversations, and places kept."""
    assert heard.server.wait_until(lambda: heard.server.open_requests == 0, 2.0)
    assert [p for p in psutil.Process().children() if p.status() != psutil.STATUS_ZOMBIE] == []
    assert [row for row in heard.engine.agents() if row.kind != "chat" and row.live] == []
    started = [event.agent for event in events if isinstance(event, AgentStarted) and event.kind != "chat"]
    finished = [event.agent for event in events if isinstance(event, AgentFinished)]
    assert sorted(started) == sorted(finished)
    assert most_at_once([seen for seen in requests if "." in first_user(seen)]) <= PLACES
    for session in {event.session for event in events if event.session}:
        kept = heard.engine.tasks.messages(session)
        assert closed(kept) == list(kept)

    for run in {event.run for event in events if event.run}:
        own = [event for event in events if event.run == run]
        assert [isinstance(event, TurnFinished) for event in own].index(True) == len(own) - 1
        assert sum(isinstance(event, TurnStarted) for event in own) == 1
        began = [event.call_id for event in own if isinstance(event, ToolStarted)]
        assert sorted(began) == sorted(event.call_id for event in own if isinstance(event, ToolFinished))
    tree = heard.engine._delegation._trees.get(heard.engine.view(heard.session).agent)
    assert tree is None or tree._free == PLACES

    async def names() -> list[str]:
        return [task.get_name() for task in asyncio.all_tasks() if "ag_" in task.get_name()]

    loop = heard.engine._loop
    assert loop is not None
    assert asyncio.run_coroutine_threadsafe(names(), loop).result(5) == []


@pytest.fixture
def trees(hear: Hear, configure: Configure) -> Heard:
    configure(f"delegation: {{max_depth: 3, max_concurrent: {PLACES}}}\n")
    heard: Heard = hear(lambda seen: say("no tree yet"), mode="auto")
    return heard


def begin(heard: Heard, root: Node, number: int, *, endless: bool) -> tuple[str, int, int]:
    """Sends the root's prompt in a new chat; where its events and requests begin."""
    name = f"{number}:0"
    heard.server.script = Play(name, root, endless=endless)
    heard.session = heard.engine.open_session(heard.cwd).id
    places = (len(heard.events), len(heard.server.requests))
    heard.engine.send(heard.session, name)
    return (name, *places)


def chat_ended(heard: Heard) -> bool:
    return any(isinstance(e, TurnFinished) and e.session == heard.session for e in heard.events[-40:])


def test_every_task_of_a_tree_has_one_result_in_its_place(trees: Heard) -> None:
    numbers = itertools.count()

    @settings(max_examples=EXAMPLES)
    @given(TREES)
    def holds(root: Node) -> None:
        name, event, request = begin(trees, root, next(numbers), endless=False)
        play = trees.server.script
        assert isinstance(play, Play)
        trees.wait(lambda: chat_ended(trees), 60)
        trees.rest()
        events = trees.events[event:]
        prompts = {e.agent: e.prompt for e in events if isinstance(e, AgentStarted)}
        calls = [e for e in events if isinstance(e, ToolFinished) and e.name == "spawn_parallel"]
        for done in calls:
            prompt = prompts.get(done.agent) or name
            told: list[dict[str, Any]] = json.loads(done.text)["results"]
            children = play.node(prompt).children
            assert [entry["index"] for entry in told] == list(range(len(children)))
            assert [entry["status"] for entry in told] == [EXPECTED[child.kind] for child in children]
            assert [prompts[entry["agent_id"]] for entry in told] == [f"{prompt}.{n}" for n in range(len(children))]
            assert all(
                entry["answer"] == f"done {prompt}.{n}" for n, entry in enumerate(told) if entry["status"] == "ok"
            )
        nothing_is_left(trees, events, trees.server.requests[request:])

    holds()


def test_f3_6_a_stop_at_any_moment_leaves_nothing(trees: Heard) -> None:
    numbers = itertools.count()

    @settings(max_examples=EXAMPLES)
    @given(TREES, st.integers(1, 8), st.sampled_from([0.0, 0.003, 0.02]), st.integers(1, 2))
    def holds(root: Node, requests: int, wait: float, stops: int) -> None:
        _, event, request = begin(trees, root, next(numbers), endless=True)
        trees.server.wait_until(lambda: len(trees.server.requests) >= request + requests or chat_ended(trees), 1.0)
        time.sleep(wait)
        began = time.monotonic()
        for _ in range(stops):
            trees.engine.interrupt(trees.session)
        trees.wait(lambda: chat_ended(trees), 10)
        trees.rest()
        rested = time.monotonic()
        assert rested - began < 4, "2 s, and as much for a busy machine"
        nothing_is_left(trees, trees.events[event:], trees.server.requests[request:])
        assert all(seen.started < rested + 0.2 for seen in trees.server.requests), "what was on its way, nothing new"

    holds()


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["background", "child", "send", "tell", "stop", "retry", "interrupt", "steer"]),
        st.sampled_from(["ok", "tool", "fail", "hang", "spawn"]),
        st.integers(0, 20),
        st.sampled_from([0.0, 0.0, 0.004, 0.03]),
    ),
    min_size=2,
    max_size=12,
)


def deed(seen: Seen) -> Answer:
    """An agent does what the last word of its first message says."""
    kind = first_user(seen).split()[-1]
    if seen.last["role"] == "tool" or kind == "ok":
        return say("done", first_delay=0.01)
    if kind == "spawn":
        return call(
            "spawn_parallel", {"agents": ["low ok", "low tool", {"prompt": "low hang", "timeout_seconds": 0.2}]}
        )
    if kind == "tool":
        return call("terminal", {"command": "sleep 0.05"})
    return hang(60) if kind == "hang" else status(401, "bad key")


def do(heard: Heard, action: str, kind: str, number: int) -> None:
    agents = [row.id for row in heard.engine.agents() if row.kind != "chat"]
    agent = agents[number % len(agents)] if agents else ""
    tasks = heard.engine.tasks
    match action:
        case "background" | "child":
            tasks.start(heard.session, f"work {kind}", kind="child" if action == "child" else "background")
        case "send":
            heard.engine.send(heard.session, f"chat {kind}")
        case "steer":
            heard.engine.steer(heard.session, f"mind {kind}")
        case "interrupt":
            heard.engine.interrupt(heard.session)
        case "tell" if agent:
            tasks.tell(agent, f"more {kind}")
        case "stop" if agent:
            heard.engine.stop_agent(agent)
        case "retry" if agent:
            with contextlib.suppress(UsageError):  # it is still at work
                tasks.retry(agent)


def test_whatever_a_person_does_meanwhile_everything_comes_to_one_end(trees: Heard) -> None:
    trees.server.script = deed

    @settings(max_examples=EXAMPLES)
    @given(ACTIONS)
    def holds(actions: list[tuple[str, str, int, float]]) -> None:
        trees.engine.tasks.forget([row.id for row in trees.engine.agents()])
        trees.session = trees.engine.open_session(trees.cwd).id
        event, request = len(trees.events), len(trees.server.requests)
        for action, kind, number, wait in actions:
            do(trees, action, kind, number)
            time.sleep(wait)
        end = time.monotonic() + 20

        def works() -> bool:
            trees.engine._do_and_wait(lambda: None)  # what was asked for has begun
            at_work = trees.engine.supervisor.at_work
            live = [row for row in trees.engine.agents() if at_work(row.id) or (row.live and row.kind != "chat")]
            return bool(live) or trees.engine.busy(trees.session)

        while works():
            assert time.monotonic() < end
            trees.engine.set_queue(trees.session, [])
            trees.engine.interrupt(trees.session)
            for row in trees.engine.agents():
                trees.engine.stop_agent(row.id)
            time.sleep(0.01)
        trees.rest()
        nothing_is_left(trees, trees.events[event:], trees.server.requests[request:])
        assert {talk.spec.kind for talk in trees.engine._open.values()} == {"chat"}

    holds()
