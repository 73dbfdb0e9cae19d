"""Work that is handed over, interrupted or asked for by another program, and gone on with."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.errors import UsageError
from hermes_engine.events import AgentFinished, ApprovalAsked, TextDelta, ToolFinished, ToolStarted, TurnStarted
from hermes_engine.messages import INTERRUPTED_RESULT, closed
from hermes_engine.store.agents import AgentStore
from hermes_engine.store.migrations import open_state
from hermes_engine.store.orders import OrderBook
from hermes_tui.cli.headless import Work
from tests.conftest import Serve
from tests.server.answers import hang
from tests.work.support import Heard, by_prompt, call, first_user, say, spawn


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


def test_a_task_is_handed_over_at_a_step_and_gone_on_with(hear: Callable[..., Heard]) -> None:
    script = by_prompt({"count": [call("terminal", {"command": "sleep 0.5; echo one"}), say("counted")]})
    heard = hear(script, mode="auto")
    task = heard.engine.tasks.start(heard.session, "count to one", kind="background")
    heard.wait(lambda: heard.of(ToolStarted))
    assert heard.engine.leave() == [task.id]
    ended = heard.of(AgentFinished)[-1]
    assert (ended.agent, ended.state) == (task.id, "handed over")
    assert "one" in heard.of(ToolFinished)[-1].text, "the step was not cut off"
    heard.engine.close()
    again = hear(script, mode="auto")
    assert again.engine.tasks.record(task.id).state == "handed over"
    assert again.engine.tasks.results(heard.session) == (), "it has no result yet"
    following = again.engine.tasks.resume(task.id)
    again.wait(lambda: any(event.agent == following.id for event in again.of(AgentFinished)))
    assert again.of(AgentFinished)[-1].answer == "counted"
    assert len(again.server.requests) == 1, "nothing was asked twice"
    assert [m["role"] for m in again.server.requests[0].messages] == ["system", "user", "assistant", "tool"]
    [result] = again.engine.tasks.results(heard.session)
    assert (result.id, result.answer, result.owner) == (following.id, "counted", heard.session)


def test_a_turn_of_the_chat_that_hangs_is_cut_off_and_gone_on_with(hear: Callable[..., Heard]) -> None:
    heard = hear(by_prompt({"wait": hang(30)}))
    heard.engine.send(heard.session, "wait for me")
    assert heard.server.wait_until(lambda: heard.server.open_requests == 1)
    [agent] = heard.engine.leave(grace=0.2)
    assert heard.server.wait_until(lambda: heard.server.open_requests == 0)
    heard.engine.close()
    again = hear(by_prompt({"wait": say("here I am")}))
    again.engine.tasks.resume(agent)
    again.wait(lambda: again.of(AgentFinished))
    assert [m.content for m in again.engine.tasks.messages(heard.session)] == ["wait for me", "here I am"]
    assert [event.prompt for event in again.of(TurnStarted)] == [""], "no turn the person did not write"


def test_a_chat_whose_left_turn_has_ended_is_opened_while_its_program_still_works(hear: Callable[..., Heard]) -> None:
    begun = call("terminal", {"command": "sleep 0.5"})
    script = by_prompt({"first": begun, "long": begun})
    heard = hear(script, mode="auto")
    heard.engine.tasks.start(heard.session, "long work", kind="background")
    heard.engine.send(heard.session, "first question")
    heard.wait(lambda: len(heard.of(ToolStarted)) == 2)
    chat, task = sorted(heard.engine.leave(), key=lambda agent: heard.engine.tasks.record(agent).kind == "background")
    heard.engine.close()
    there = hear(by_prompt({"first": [begun, say("answered", first_delay=1)], "long": hang(60)}), mode="auto")
    following = there.engine.tasks.resume(chat)
    there.engine.tasks.resume(task)
    here = hear(by_prompt({}), mode="auto")
    with pytest.raises(UsageError, match=f"{heard.session} is still at work in process") as refused:
        here.engine.open_session(here.cwd, resume=heard.session)
    assert following.id in refused.value.hint
    there.wait(lambda: any(event.agent == following.id for event in there.of(AgentFinished)))
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        with suppress(UsageError):
            assert here.engine.open_session(here.cwd, resume=heard.session).messages[-1].content == "answered"
            break
    assert here.engine.tasks.elsewhere(), "the task still works there"


def test_orders_of_another_program_are_carried_out(hear: Callable[..., Heard]) -> None:
    asking = call("terminal", {"command": "touch made"})
    heard = hear(by_prompt({"hang": hang(30), "make": [asking, say("made")]}), attended=True, mode="ask")
    hanging = heard.engine.tasks.start(heard.session, "hang on", kind="background")
    making = heard.engine.tasks.start(heard.session, "make it", kind="background")
    heard.wait(lambda: heard.of(ApprovalAsked))
    assert heard.engine.tasks.record(making.id).request
    with closing(open_state(heard.engine.resolved.home.state_db)) as database:
        book, agents = OrderBook(database), AgentStore(database)
        record = agents.get(making.id)
        assert record is not None
        assert "touch made" in record.request
        book.post("cancel", agent=hanging.id)
        request = heard.of(ApprovalAsked)[0].request
        book.post("answer", agent=making.id, payload={"request": request, "choice": "once"})
        heard.wait(lambda: len(heard.of(AgentFinished)) == 2)
    states = {event.agent: event.state for event in heard.of(AgentFinished)}
    assert states == {hanging.id: "cancelled", making.id: "done"}
    assert (heard.cwd / "made").exists()


def test_children_stop_at_the_cost_cap_of_their_tree(hear: Callable[..., Heard], isolated_home: Path) -> None:
    isolated_home.mkdir(parents=True)
    (isolated_home / "config.yaml").write_text(
        "limits: {max_cost_usd: 0.05}\nprovider: {prices: {m: {input: 1000, output: 1000}}}\n"
    )
    looping = lambda seen: call("terminal", {"command": f"echo {time.time_ns()}"})  # noqa: E731
    heard = hear(by_prompt({"split": [spawn("loop 1", "loop 2"), say("never said")], "loop": looping}))
    ended = heard.ask("split the work")
    assert ended.status == "error"
    assert "cost cap" in ended.error
    told = heard.results()["results"]
    assert [entry["status"] for entry in told] == ["error", "error"]
    assert all("cost cap" in entry["error"] for entry in told)
    assert ended.usage.cost_usd < 0.05 + 3 * 0.015, "at most what was in flight comes on top"


def test_every_conversation_is_valid_after_leaving(hear: Callable[..., Heard]) -> None:
    heard = hear(by_prompt({"split": [spawn("slow a", "slow b")], "slow": hang(30)}))
    heard.engine.send(heard.session, "split it")
    assert heard.server.wait_until(lambda: heard.server.open_requests == 2)
    heard.engine.leave(grace=0.2)
    for seen in {event.session for event in heard.of(TurnStarted)}:
        messages = list(heard.engine.tasks.messages(seen))
        assert closed(messages) == messages
        assert messages[0].content in ("split it", "slow a", "slow b")
    assert first_user(heard.server.requests[0]) == "split it"


def test_what_a_killed_or_left_program_cut_off_is_asked_for_again(hear: Callable[..., Heard]) -> None:
    heard = hear(by_prompt({"nap": [call("terminal", {"command": "sleep 300"}), say("never")]}), mode="auto")
    task = heard.engine.tasks.start(heard.session, "nap", kind="background")
    heard.wait(lambda: heard.of(ToolStarted))
    assert heard.engine.leave(grace=1.0) == [task.id]
    heard.engine.close()
    again = hear(by_prompt({"nap": [say("x"), say("slept")]}), mode="auto")
    again.engine.tasks.resume(task.id)
    again.wait(lambda: again.of(AgentFinished))
    assert again.server.requests[0].messages[-1]["content"] == INTERRUPTED_RESULT


def test_a_task_that_becomes_a_chat_is_listed_as_one_and_its_result_stays_with_its_owner(
    hear: Callable[..., Heard],
) -> None:
    heard = hear(by_prompt({}))
    task = heard.engine.tasks.start(heard.session, "say hello", kind="background")
    heard.wait(lambda: heard.of(AgentFinished))
    [result] = heard.engine.tasks.results(heard.session)
    heard.engine.tasks.seen([result.id])
    heard.wait(lambda: not heard.engine.tasks.results(heard.session))
    assert [record.id for record in heard.engine.tasks.earlier(heard.session)] == [task.id]
    sessions = heard.engine.sessions()
    assert task.session not in {row.id for row in sessions.list()}
    heard.engine.open_session(heard.cwd, resume=task.session)
    assert task.session in {row.id for row in sessions.list()}


def test_a_default_mode_is_not_kept_so_a_chat_of_a_one_shot_asks_where_a_person_is(hear: Callable[..., Heard]) -> None:
    heard = hear(by_prompt({}))
    heard.ask("hi")
    assert heard.engine.view(heard.session).mode == "auto"
    heard.engine.close()
    again = hear(by_prompt({}), attended=True)
    view = again.engine.open_session(heard.cwd, resume=heard.session)
    assert view.mode == "ask"


def test_what_a_stopped_agent_used_is_unknown_not_nothing(hear: Callable[..., Heard]) -> None:
    heard = hear(by_prompt({"talk": say("word " * 400, chunks=400, delay=0.02)}))
    task = heard.engine.tasks.start(heard.session, "talk", kind="background")
    heard.wait(lambda: len(heard.of(TextDelta)) > 5)
    heard.engine.stop_agent(task.id)
    heard.wait(lambda: heard.of(AgentFinished))
    assert not heard.of(AgentFinished)[-1].usage.tokens_known


def test_a_wish_to_stop_that_comes_while_a_task_is_started_is_not_lost(hear: Callable[..., Heard]) -> None:
    heard = hear(by_prompt({"slow": hang(60)}))
    work = Work(heard.engine, queue.SimpleQueue())
    task = heard.engine.tasks.start(heard.session, "slow look", kind="background")
    work.stop()
    work.add(task)
    heard.wait(lambda: heard.of(AgentFinished))
    assert heard.of(AgentFinished)[-1].state == "cancelled"
