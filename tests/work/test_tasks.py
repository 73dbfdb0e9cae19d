"""Work a person starts beside a chat, through the engine's front door (faults, section 4)."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from hermes_engine.errors import UsageError
from hermes_engine.events import AgentFinished, AgentStarted, ToolFinished, ToolStarted, TurnFinished
from hermes_engine.messages import closed
from hermes_engine.work.supervisor import AgentRow
from tests.server.answers import Seen, hang, status
from tests.work.conftest import Configure, Hear
from tests.work.support import Heard, by_prompt, call, first_user, say, spawn


def ended(heard: Heard, count: int = 1) -> list[Any]:
    heard.wait(lambda: len(heard.of(AgentFinished)) >= count)
    return heard.of(AgentFinished)


def told(heard: Heard, agent: str, text: str) -> AgentRow:
    """What now works on the text."""
    row = heard.engine.tasks.tell(agent, text)
    assert row is not None
    return row


def users(seen: Seen) -> list[str]:
    return [str(m["content"]) for m in seen.messages if m["role"] == "user"]


@pytest.mark.parametrize("kind", ["background", "child"])
def test_f11_10_a_task_starts_and_ends_while_a_turn_is_held_open(hear: Hear, kind: Any) -> None:
    heard = hear(by_prompt({"hold": hang(60), "work": say("result")}))
    heard.engine.send(heard.session, "hold")
    assert heard.server.wait_until(lambda: heard.server.open_requests == 1)
    row = heard.engine.tasks.start(heard.session, "work", kind=kind)
    assert (row.kind, row.owner, row.bound, row.depth) == (kind, heard.session, False, int(kind == "child"))
    [end] = ended(heard)
    assert (end.agent, end.state, end.answer, end.owner) == (row.id, "done", "result", heard.session)
    assert heard.engine.busy(heard.session)
    assert [record.answer for record in heard.engine.tasks.results(heard.session)] == ["result"]


@pytest.mark.parametrize("kind", ["background", "child"])
def test_f3_7_stopping_the_turn_does_not_stop_what_a_person_started(hear: Hear, kind: Any) -> None:
    heard = hear(by_prompt({"hold": hang(60), "work": say("result", first_delay=0.5)}))
    heard.engine.send(heard.session, "hold")
    assert heard.server.wait_until(lambda: heard.server.open_requests == 1)
    heard.engine.tasks.start(heard.session, "work", kind=kind)
    assert heard.server.wait_until(lambda: heard.server.open_requests == 2)
    heard.engine.interrupt(heard.session)
    [end] = ended(heard)
    assert (end.state, end.answer) == ("done", "result")
    assert [e.status for e in heard.of(TurnFinished) if e.session == heard.session] == ["cancelled"]


def test_f4_2_a_result_belongs_to_the_session_that_started_it(hear: Hear) -> None:
    heard = hear(by_prompt({"work": say("result", first_delay=0.2)}))
    first = heard.session
    heard.engine.tasks.start(first, "work", kind="background")
    second = heard.engine.open_session(heard.cwd).id
    [end] = ended(heard)
    assert end.owner == first
    assert [record.answer for record in heard.engine.tasks.results(first)] == ["result"]
    assert heard.engine.tasks.results(second) == ()
    heard.engine.tasks.seen([end.agent])
    assert heard.engine.tasks.results(first) == ()


def test_f4_4_a_result_is_no_message_of_the_chat(hear: Hear) -> None:
    heard = hear(by_prompt({"work": say("result"), "hello": say("hi")}))
    heard.engine.tasks.start(heard.session, "work", kind="background")
    ended(heard)
    assert heard.engine.view(heard.session).messages == ()
    heard.ask("hello")
    assert users(heard.server.requests[-1]) == ["hello"]


def test_f4_3_ended_exactly_while_it_is_polled_it_is_told_of_once(hear: Hear) -> None:
    heard = hear(by_prompt({"work": lambda seen: say(first_user(seen))}))
    tasks, stop = heard.engine.tasks, threading.Event()
    faults: list[Exception] = []

    def poll() -> None:
        while not stop.is_set():
            try:
                for record in tasks.past():
                    assert record.state in ("waiting", "running", "done")
                heard.engine.agents()
            except Exception as error:
                faults.append(error)

    poller = threading.Thread(target=poll)
    poller.start()
    for number in range(12):
        tasks.start(heard.session, f"work {number}", kind="background")
    ends = ended(heard, 12)
    stop.set()
    poller.join()
    assert faults == []
    assert len({end.agent for end in ends}) == len(ends) == 12
    assert sorted(record.answer for record in tasks.results(heard.session)) == sorted(f"work {n}" for n in range(12))


def test_f4_6_stopped_failed_and_done_are_told_apart(hear: Hear) -> None:
    heard = hear(by_prompt({"slow": hang(60), "bad": status(401, "bad key"), "good": say("fine")}))
    tasks = heard.engine.tasks
    slow = tasks.start(heard.session, "slow", kind="background")
    tasks.start(heard.session, "bad", kind="background")
    tasks.start(heard.session, "good", kind="background")
    ended(heard, 2)
    assert heard.engine.stop_agent(slow.id)
    assert not heard.engine.stop_agent("ag_nobody")
    ended(heard, 3)
    states = {record.name: record.state for record in tasks.results(heard.session)}
    assert states == {"slow": "cancelled", "bad": "failed", "good": "done"}
    assert "401" in tasks.record("bad").error


def test_told_something_while_it_works_it_reads_it_before_its_next_step(hear: Hear) -> None:
    heard = hear(by_prompt({"work": [call("terminal", {"command": "sleep 0.5"}), say("done")]}), mode="auto")
    row = heard.engine.tasks.start(heard.session, "work", kind="background")
    heard.wait(lambda: heard.of(ToolStarted))
    assert told(heard, row.id, "mind this").id == row.id
    ended(heard)
    assert users(heard.server.requests[-1]) == ["work", "mind this"]
    assert len(heard.of(AgentFinished)) == 1


def test_told_something_while_it_waits_for_its_place_it_reads_it_with_its_task(
    hear: Hear, configure: Configure
) -> None:
    configure("delegation: {max_concurrent: 1}\n")
    heard = hear(by_prompt({"first": say("done", first_delay=0.5), "second": say("done")}))
    heard.engine.tasks.start(heard.session, "first", kind="child")
    row = heard.engine.tasks.start(heard.session, "second", kind="child")
    assert heard.engine.agents()[-1].state == "waiting"
    heard.engine.tasks.tell(row.id, "mind this")
    assert len(ended(heard, 2)) == 2
    assert "\n".join(users(heard.server.requests[-1])).split() == ["second", "mind", "this"]
    assert len([seen for seen in heard.server.requests if first_user(seen).startswith("second")]) == 1


def test_f9_17_told_something_in_its_last_moment_it_goes_on_with_it(hear: Hear) -> None:
    heard = hear(by_prompt({"work": say("word " * 20, chunks=20, delay=0.02)}))
    row = heard.engine.tasks.start(heard.session, "work", kind="background")
    for number in range(1, 4):
        last = ended(heard, number)[-1].agent
        heard.engine.tasks.tell(last, f"more {number}")
    heard.wait(lambda: len(heard.of(AgentFinished)) == 4)
    assert users(heard.server.requests[-1]) == ["work", "more 1", "more 2", "more 3"]
    rows = [r for r in heard.engine.agents() if r.kind == "background"]
    assert len(rows) == 4
    assert {r.session for r in rows} == {row.session}
    assert heard.engine.tasks._open.keys() == {heard.session}, "nothing of it is kept at hand"


def test_told_twice_after_its_end_both_are_said_in_one_conversation(hear: Hear) -> None:
    heard = hear(by_prompt({"work": say("word " * 10, chunks=10, delay=0.03)}))
    row = heard.engine.tasks.start(heard.session, "work", kind="background")
    ended(heard)
    first = told(heard, row.id, "more 1")
    assert told(heard, row.id, "more 2").id == first.id
    ended(heard, 2)
    heard.wait(lambda: not [r for r in heard.engine.agents() if r.kind == "background" and r.live])
    kept = heard.engine.tasks.messages(row.session)
    assert [m.content for m in kept if m.role == "user"] == ["work", "more 1", "more 2"]
    assert closed(kept) == list(kept)


def test_told_something_after_its_conversation_was_opened_as_a_chat_it_is_said_there(hear: Hear) -> None:
    heard = hear(by_prompt({"work": say("done")}))
    row = heard.engine.tasks.start(heard.session, "work", kind="background")
    ended(heard)
    chat = heard.engine.open_session(heard.cwd, resume=row.session)
    assert chat.id == row.session
    assert told(heard, row.id, "more").kind == "chat"
    heard.wait(lambda: any(event.session == chat.id and event.agent != row.id for event in heard.of(TurnFinished)))
    said = [m.content for m in heard.engine.view(chat.id).messages if m.role == "user"]
    assert said == ["work", "more"]


def test_a_failed_task_goes_on_when_it_is_told_something(hear: Hear) -> None:
    def work(seen: Seen) -> Any:
        return status(401, "bad key") if len(users(seen)) == 1 and "again" not in users(seen)[0] else say("now fine")

    heard = hear(by_prompt({"work": work}))
    row = heard.engine.tasks.start(heard.session, "work", kind="background")
    assert ended(heard)[0].state == "failed"
    following = told(heard, row.id, "again")
    assert following.id != row.id
    assert ended(heard, 2)[1].answer == "now fine"
    kept = heard.engine.tasks.messages(row.session)
    assert closed(kept) == list(kept)


def test_a_retry_begins_anew_in_another_conversation(hear: Hear) -> None:
    tries = iter([status(401, "bad key"), say("second try")])
    heard = hear(by_prompt({"work": lambda seen: next(tries)}))
    row = heard.engine.tasks.start(heard.session, "work", kind="background")
    ended(heard)
    again = heard.engine.tasks.retry(row.id)
    assert (again.session != row.session, again.owner, again.prompt) == (True, heard.session, "work")
    assert ended(heard, 2)[1].answer == "second try"
    assert users(heard.server.requests[-1]) == ["work"]


def test_a_retry_keeps_folder_model_and_tools(hear: Hear, configure: Configure) -> None:
    configure("toolsets: [file]\n")
    heard = hear(by_prompt({"work": [call("write_file", {"path": "made.txt", "content": "x"}), say("ok")]}),
                 mode="auto")  # fmt: skip
    row = heard.engine.tasks.start(heard.session, "work", kind="child", model="m2")
    ended(heard)
    (heard.cwd / "made.txt").unlink()
    heard.engine.tasks.retry(row.id)
    assert ended(heard, 2)[1].state == "done"
    assert (heard.cwd / "made.txt").exists()
    assert {tuple(seen.tools) for seen in heard.server.requests} == {tuple(heard.server.requests[0].tools)}


def test_unknown_agents_and_empty_tasks_are_refused_in_words(hear: Hear) -> None:
    heard = hear(by_prompt({"slow": hang(60)}))
    tasks = heard.engine.tasks
    for ask in (tasks.retry, tasks.resume, tasks.record, lambda name: tasks.tell(name, "x")):
        with pytest.raises(UsageError, match="no task"):
            ask("ag_nobody")
        with pytest.raises(UsageError):
            ask("")
    for prompt in ("", "  \n"):
        with pytest.raises(UsageError, match="empty"):
            tasks.start(heard.session, prompt, kind="background")
    with pytest.raises(UsageError):
        tasks.start("nochat", "work", kind="background")
    with pytest.raises(UsageError):
        tasks.start(heard.session, "work", kind="background", profile="nobody")
    slow = tasks.start(heard.session, "slow", kind="background")
    with pytest.raises(UsageError, match="at work"):
        tasks.retry(slow.id)
    with pytest.raises(UsageError, match="nothing to go on"):
        tasks.resume(slow.id)
    with pytest.raises(UsageError, match="empty"):
        tasks.tell(slow.id, "  ")
    assert len([row for row in heard.engine.agents() if row.kind != "chat"]) == 1


def test_a_worktree_without_a_repository_is_refused_and_nothing_is_left(hear: Hear) -> None:
    heard = hear(by_prompt({}))
    with pytest.raises(UsageError, match="repository"):
        heard.engine.tasks.start(heard.session, "work", kind="background", worktree=True)
    assert [row.kind for row in heard.engine.agents()] == ["chat"]
    assert heard.engine.tasks.past() == ()


@pytest.mark.parametrize("kind", ["background", "child"])
def test_a_task_of_a_chat_in_plan_mode_is_not_freer(hear: Hear, kind: Any) -> None:
    script = {"work": [call("terminal", {"command": "touch made"}), call("terminal", {"command": "touch made2"}),
                       say("ok")]}  # fmt: skip
    heard = hear(by_prompt(script), mode="plan")
    heard.engine.tasks.start(heard.session, "work", kind=kind)
    ended(heard)
    denied = heard.of(ToolFinished)
    assert [event.status for event in denied] == ["denied", "denied"]
    assert "plan mode" in denied[0].text
    heard.engine.set_mode(heard.session, "yolo")
    again = told(heard, heard.of(AgentFinished)[0].agent, "more")
    ended(heard, 2)
    assert again.session == heard.of(AgentFinished)[0].session
    assert not (heard.cwd / "made").exists(), "and stays so when it is given more to do"


def test_spawned_agents_of_a_fresh_chat_wait_for_a_place_in_one_tree(hear: Hear, configure: Configure) -> None:
    configure("delegation: {max_concurrent: 2, max_depth: 1}\n")
    heard = hear(by_prompt({"low": say("done", first_delay=0.15)}))
    for number in range(6):
        heard.engine.tasks.start(heard.session, f"low {number}", kind="child")
    ended(heard, 6)
    requests = heard.server.requests
    assert max(sum(a.started <= b.started < (a.ended or 0) for a in requests) for b in requests) == 2


def test_a_spawned_agent_and_the_chats_own_children_share_the_places(hear: Hear, configure: Configure) -> None:
    configure("delegation: {max_concurrent: 2}\n")
    heard = hear(by_prompt({"low": say("done", first_delay=0.2), "go": [spawn("low 4", "low 5", "low 6"), say("ok")]}))
    for number in range(3):
        heard.engine.tasks.start(heard.session, f"low {number}", kind="child")
    heard.ask("go")
    ended(heard, 6)
    requests = [seen for seen in heard.server.requests if first_user(seen).startswith("low")]
    assert max(sum(a.started <= b.started < (a.ended or 0) for a in requests) for b in requests) == 2


def test_a_task_may_start_children_and_hands_their_results_to_itself_alone(hear: Hear) -> None:
    heard = hear(by_prompt({"work": [spawn("low 1", "low 2"), say("both in")]}))
    row = heard.engine.tasks.start(heard.session, "work", kind="background")
    heard.wait(lambda: any(event.agent == row.id for event in heard.of(AgentFinished)))
    parents = {event.agent: event.parent for event in heard.of(AgentStarted)}
    assert sorted(parents.values()) == ["", "", row.id, row.id]
    assert [record.id for record in heard.engine.tasks.results(heard.session)] == [row.id]
    assert heard.engine.agents()[1].usage.total_tokens == 4 * 15


def test_the_ceiling_of_a_turn_does_not_add_up_over_what_a_person_starts(hear: Hear, configure: Configure) -> None:
    configure("delegation: {max_per_turn: 2}\n")
    heard = hear(by_prompt({"work": [spawn("low 1", "low 2"), say("done")]}))
    for number in range(3):
        heard.engine.tasks.start(heard.session, f"work {number}", kind="child")
        ended(heard, 3 * (number + 1))
    assert len([seen for seen in heard.server.requests if first_user(seen).startswith("low")]) == 6


def test_f12_3_tasks_and_the_chat_each_keep_their_own_folder(hear: Hear) -> None:
    script = {"work": [call("terminal", {"command": "mkdir -p one && cd one"}),
                       call("terminal", {"command": "pwd; sleep 0.2"}), say("ok")],
              "other": [call("terminal", {"command": "mkdir -p two && cd two"}),
                        call("terminal", {"command": "pwd; sleep 0.2"}), say("ok")],
              "chat": [call("terminal", {"command": "pwd"}), say("ok")]}  # fmt: skip
    heard = hear(by_prompt(script), mode="auto")
    heard.engine.tasks.start(heard.session, "work", kind="background")
    heard.engine.tasks.start(heard.session, "other", kind="child")
    ended(heard, 2)
    heard.ask("chat")
    shown = [event.text.strip().splitlines()[0] for event in heard.of(ToolFinished) if "pwd" in event.display.title]
    assert sorted(shown[:2]) == [str(heard.cwd / "one"), str(heard.cwd / "two")]
    assert shown[2] == str(heard.cwd)


def test_closing_the_engine_ends_tasks_within_its_time(hear: Hear) -> None:
    heard = hear(by_prompt({"work": call("terminal", {"command": "sleep 340.5"})}), mode="auto")
    row = heard.engine.tasks.start(heard.session, "work", kind="background")
    heard.wait(lambda: heard.of(ToolStarted))
    began = time.monotonic()
    heard.engine.close()
    assert time.monotonic() - began < 4
    assert [event.agent for event in heard.of(AgentFinished) if event.kind == "background"] == [row.id]
