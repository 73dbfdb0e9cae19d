"""The tree of agents: true rows, stopping with all below, usage that counts upwards."""

from __future__ import annotations

import asyncio
import time

from hermes_engine.errors import StateError
from hermes_engine.events import (
    AgentChanged,
    AgentFinished,
    AgentStarted,
    ApprovalAsked,
    Event,
    RequestSettled,
    TextDelta,
    ToolStarted,
    UsageReported,
)
from hermes_engine.messages import Display, Usage
from hermes_engine.work.supervisor import Ending, Supervisor


async def forever() -> Ending:
    await asyncio.sleep(3600)
    return Ending()


def supervisor() -> tuple[Supervisor, list[Event]]:
    heard: list[Event] = []
    return Supervisor(heard.append), heard


async def test_an_agent_tells_its_life_once() -> None:
    tree, heard = supervisor()
    agent = tree.add(name="scout", kind="child", title="find callers")

    async def work() -> Ending:
        return Ending("done", answer="3 callers")

    ending = await tree.start(agent, work)
    tree.finish(agent, ending)
    tree.finish(agent, Ending("failed"))
    assert [type(event) for event in heard] == [AgentStarted, AgentChanged, AgentFinished]
    row = tree.row(agent)
    assert row is not None
    assert (row.state, row.live, row.ended > 0) == ("done", False, True)


async def test_stopping_a_parent_stops_everything_below_it() -> None:
    tree, _ = supervisor()
    top = tree.add(name="main", kind="chat")
    child = tree.add(name="a", kind="child", parent=top)
    below = tree.add(name="b", kind="child", parent=child)
    other = tree.add(name="c", kind="background")
    tasks = [tree.start(agent, forever) for agent in (top, child, below, other)]
    await asyncio.sleep(0)
    assert tree.stop(top)
    endings = await asyncio.gather(*tasks[:3])
    assert [ending.state for ending in endings] == ["cancelled"] * 3
    assert not tasks[3].done()
    assert await tree.close(1.0)
    assert tasks[3].done()
    assert not tree.stop(top)


async def test_children_end_with_their_parents_work() -> None:
    tree, _ = supervisor()
    top = tree.add(name="main", kind="chat")
    child = tree.add(name="a", kind="child", parent=top, bound=True)
    free = tree.add(name="b", kind="child", parent=top)

    async def work() -> Ending:
        tree.start(child, forever)
        tree.start(free, forever)
        await asyncio.sleep(0)
        return Ending("done")

    assert (await tree.start(top, work)).state == "done"
    assert not tree.at_work(child)
    assert tree.at_work(free), "what a person started outlives the turn"
    assert tree.stop(top, below="bound") is False
    assert tree.stop(top)
    assert await tree.close(5)
    assert not tree.at_work(free)


async def test_foreseen_and_unforeseen_faults_end_as_failed() -> None:
    tree, _ = supervisor()

    async def known() -> Ending:
        raise StateError("disk full", hint="make room")

    async def unknown() -> Ending:
        raise ZeroDivisionError("x")

    one = await tree.start(tree.add(name="1", kind="child"), known)
    two = await tree.start(tree.add(name="2", kind="child"), unknown)
    assert (one.state, one.error) == ("failed", "disk full — make room")
    assert (two.state, two.error) == ("failed", "ZeroDivisionError: x")


async def test_who_waits_for_an_agent_that_works_is_not_quiet() -> None:
    tree, _ = supervisor()
    top = tree.add(name="main", kind="chat")
    leader = tree.add(name="leader", kind="child", parent=top, bound=True)
    child = tree.add(name="child", kind="child", parent=leader, bound=True)
    beside = tree.add(name="beside", kind="child", parent=top)
    began = time.time()

    def heard(agent: str) -> float:
        row = tree.row(agent)
        return row.heard - began if row else 0.0

    tree.observe(TextDelta(agent=beside, text="x", time=began + 50))
    assert heard(top) < 50, "what a person started goes its own way"
    tree.observe(TextDelta(agent=child, text="x", time=began + 100))
    assert (heard(child), heard(leader), heard(top)) == (100, 100, 100)
    tree.observe(TextDelta(agent=child, text="x", time=began + 100.5))
    assert (heard(child), heard(leader), heard(top)) == (100.5, 100, 100)


async def test_rows_follow_what_agents_say() -> None:
    tree, heard = supervisor()
    top = tree.add(name="main", kind="chat")
    agent = tree.add(name="a", kind="child", parent=top)
    tree.start(agent, forever)
    tree.observe(ToolStarted(agent=agent, display=Display("Run", "pytest -q"), time=5.0))
    row = tree.row(agent)
    assert row is not None
    assert (row.activity, row.heard) == ("Run pytest -q", 5.0)
    tree.observe(ApprovalAsked(agent=agent, request="req_1", title="Run rm x"))
    assert tree.row(agent).needs == "req_1"  # type: ignore[union-attr]
    tree.observe(RequestSettled(agent=agent, request="req_1"))
    assert tree.row(agent).needs == ""  # type: ignore[union-attr]
    tree.observe(UsageReported(agent=agent, usage=Usage(10, 5, cost_usd=0.5)))
    tree.observe(UsageReported(agent=agent, usage=Usage(20, 5, cost_usd=0.5)))
    tree.stop(agent)
    await tree.close(1.0)
    tree.finish(agent, Ending("cancelled"))
    tree.observe(ToolStarted(agent=agent, display=Display("Run", "late")))
    parent = tree.row(top)
    assert parent is not None
    assert parent.usage == Usage(30, 10, cost_usd=1.0)
    activities = [event.activity for event in heard if isinstance(event, AgentChanged) and event.agent == agent]
    assert activities == ["", "Run pytest -q", "asks: Run rm x", "Run rm x"]
    tree.forget(agent)
    assert [row.id for row in tree.rows()] == [top]
