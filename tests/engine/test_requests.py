"""Questions to a person: answered by id from any thread, withdrawn, or denied at once where nobody is."""

from __future__ import annotations

import asyncio
import threading

import pytest

from hermes_engine.events import ApprovalAsked, Emitter, Event, RequestSettled
from hermes_engine.requests import Answer, Approval, Broker, Question

APPROVAL = Approval("call_1", "terminal", "Run rm x", "rm x", "it deletes", "rm")


def emitter(heard: list[Event], agent: str = "ag_1") -> Emitter:
    return Emitter(heard.append, session="s", run="r", agent=agent)


async def waiting(broker: Broker) -> str:
    while not broker.pending():
        await asyncio.sleep(0)
    return broker.pending()[0].request


async def test_an_answer_from_another_thread_reaches_the_asker() -> None:
    broker, heard = Broker(attended=True), list[Event]()
    task = asyncio.create_task(broker.ask(APPROVAL, emitter(heard)))
    key = await waiting(broker)
    threading.Thread(target=broker.answer, args=(key, Answer("session"))).start()
    assert (await task).yes
    asked, settled = heard
    assert isinstance(asked, ApprovalAsked)
    assert (asked.title, asked.rule, asked.agent) == ("Run rm x", "rm", "ag_1")
    assert isinstance(settled, RequestSettled)
    assert (settled.request, settled.choice) == (key, "session")
    assert not broker.answer(key, Answer("no"))


async def test_f10_2_where_nobody_can_answer_it_is_denied_at_once_and_nothing_is_asked() -> None:
    heard: list[Event] = []
    answer = await Broker(attended=False).ask(APPROVAL, emitter(heard))
    assert not answer.yes
    assert not answer.answered
    assert heard == []


async def test_withdrawing_answers_no_for_one_agent_only() -> None:
    broker, heard = Broker(attended=True), list[Event]()
    one = asyncio.create_task(broker.ask(APPROVAL, emitter(heard, "one")))
    two = asyncio.create_task(broker.ask(Question("c", "which?", ("a", "b")), emitter(heard, "two")))
    while len(broker.pending()) < 2:
        await asyncio.sleep(0)
    assert broker.withdraw("one") == 1
    assert not (await one).yes
    assert broker.answer(await waiting(broker), Answer("answer", "b"))
    assert (await two).note == "b"


async def test_a_cancelled_asker_leaves_nothing_waiting_and_settles_with_no() -> None:
    broker, heard = Broker(attended=True), list[Event]()
    task = asyncio.create_task(broker.ask(APPROVAL, emitter(heard)))
    await waiting(broker)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert broker.pending() == ()
    assert isinstance(heard[-1], RequestSettled)
    assert heard[-1].choice == "no"
