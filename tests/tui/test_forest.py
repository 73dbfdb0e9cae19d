"""Which agents are shown, in which order and how far below whom; when they are shown no more."""

from __future__ import annotations

from typing import Any

from hermes_engine import events as ev
from hermes_engine.messages import Display, Usage
from hermes_engine.work.supervisor import AgentRow
from hermes_tui.presenter.forest import Forest
from hermes_tui.presenter.tails import Tails
from tests.tui.stage import Script

CHAT = "s1"


def row(agent: str, **values: Any) -> AgentRow:
    """An agent of the chat on the screen."""
    given = {"kind": "child", "name": agent, "parent": "main", "owner": CHAT, "started": 900.0, "heard": 999.0}
    return AgentRow(agent, **{**given, **values})


def forest() -> Forest:
    made = Forest()
    made.show(CHAT)
    return made


def test_rows_of_agents_say_what_is_true() -> None:
    rows = (
        row("m", kind="chat", state="running", owner=""),
        row("b", kind="batch", state="running", owner=""),
        row("done", state="done", started=10.0, ended=40.0),
        row("busy", state="running", heard=990.0, activity="Run make"),
        row("mute", state="running", started=100.0, heard=905.0),
        row("asks", state="running", needs="q", started=990.0, heard=800.0),
        row("cut", state="interrupted", ended=50.0),
        row("bad", state="max_turns", ended=60.0, usage=Usage(5, 5, tokens_known=False)),
        row("late"),
    )
    facts = {fact.name: fact for fact in forest().facts(rows, now=1000.0)}
    assert list(facts) == ["asks", "busy", "mute", "late", "bad", "cut", "done"]
    assert [facts[name].sign for name in ("done", "busy", "asks", "cut", "bad")] == [
        "good", "running", "needs", "stopped", "bad",
    ]  # fmt: skip
    assert facts["done"].seconds == 30
    assert facts["busy"].quiet == facts["asks"].quiet == 0
    assert facts["mute"].quiet == 95
    assert facts["bad"].tokens is None
    assert facts["late"].activity == "waits for a place"


def test_children_stand_below_their_parents_and_lift_them() -> None:
    rows = (
        row("calm", state="running"),
        row("boss", state="running"),
        row("kid", parent="boss", state="running", needs="q"),
        row("task", kind="background", parent="", state="running"),
        row("helper", parent="task", state="done", ended=950.0),
    )
    facts = forest().facts(rows, now=1000.0)
    assert [(fact.name, fact.depth, fact.beside) for fact in facts] == [
        ("boss", 0, False), ("kid", 1, False), ("calm", 0, False), ("task", 0, True), ("helper", 1, True),
    ]  # fmt: skip
    assert [fact.over for fact in facts] == [False, False, False, False, True]


def test_agents_of_another_chat_are_shown_only_while_they_need_the_person() -> None:
    rows = (
        row("calm", owner="s2", state="running"),
        row("asks", owner="s2", state="running", needs="q"),
        row("task", owner="s2", kind="background", parent="", state="running"),
    )
    assert [fact.name for fact in forest().facts(rows, now=1000.0)] == ["asks", "task"]


def test_what_has_ended_goes_when_it_was_seen_or_the_next_turn_begins() -> None:
    rows = (
        row("bound", state="done", ended=950.0, bound=True),
        row("free", state="done", ended=960.0),
        row("parent", state="done", ended=940.0),
        row("kid", parent="parent", state="running"),
    )
    wood = forest()
    assert [fact.name for fact in wood.facts(rows, now=1000.0)] == ["parent", "kid", "free", "bound"]
    wood.began(CHAT, 1000.0)
    assert [fact.name for fact in wood.facts(rows, now=1001.0)] == ["parent", "kid", "free"]
    wood.see(["free", "parent"])
    assert [fact.name for fact in wood.facts(rows, now=1001.0)] == ["parent", "kid"], "its child still works"
    assert wood.seen(rows) == ["bound", "free", "parent"]


def test_what_a_result_tells_of_counts_until_the_next_turn() -> None:
    rows = (row("task", kind="background", parent="", state="done", ended=950.0), row("kid", state="done", ended=950.0))
    wood = forest()
    assert wood.tell(["task", "kid"]) == {"task", "kid"}
    assert wood.tell(["task"]) == set()
    assert [fact.name for fact in wood.facts(rows, now=1000.0)] == ["task", "kid"]
    wood.began(CHAT, 1000.0)
    assert wood.facts(rows, now=1001.0) == ()


def test_nothing_is_computed_until_a_row_or_the_second_changes() -> None:
    rows = tuple(row(f"a{number}", state="running") for number in range(50))
    wood = forest()
    first = wood.facts(rows, now=1000.1)
    assert wood.facts(tuple(rows), now=1000.9) is first
    assert wood.facts(rows, now=1001.0)[0].seconds == 101
    assert wood.facts((*rows[:-1], row("new", state="running")), now=1001.0)[-1].name == "new"


def test_a_tail_is_what_was_said_and_done_last() -> None:
    tails, say = Tails(), Script(session="s2", agent="kid", run="r")
    tails.take(say(ev.TurnStarted, prompt="find callers"))
    tails.take(say(ev.TextDelta, text="I look "))
    tails.take(say(ev.TextDelta, text="first."))
    tails.take(say(ev.ToolStarted, call_id="c", name="grep", display=Display("Grep", "login(")))
    version, pieces = tails.of("kid")
    assert [(piece.kind, piece.text) for piece in pieces] == [
        ("prompt", "find callers"), ("text", "I look first."), ("tool", "Grep login("),
    ]  # fmt: skip
    tails.take(say(ev.ToolFinished, call_id="c", name="grep", display=Display("Grep", "login(", "4 callers")))
    later, pieces = tails.of("kid")
    assert pieces[-1].text == "Grep login(  4 callers"
    assert later > version
    assert tails.last == "kid"
    tails.forget("kid")
    assert tails.of("kid") == (0, ())
