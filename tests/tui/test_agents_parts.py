"""Parts of the agents' screens without a screen: order, tree and filter, what a running turn has beyond its messages,
the clock of a replay.
"""

from __future__ import annotations

import dataclasses

import pytest

from hermes_engine import events as ev
from hermes_engine.messages import Message, ToolCall, user
from hermes_engine.store.agents import AgentRecord
from hermes_engine.work.supervisor import AgentRow
from hermes_tui.screens.agents.drawing import list_line, name_width
from hermes_tui.screens.agents.items import AgentItem, Line, arranged, counts, gathered, matching
from hermes_tui.screens.agents.replay import Replay
from hermes_tui.screens.agents.steps import OpenSteps, left_of
from tests.tui.drawing import CONTROLS, LOOK, MARKUP, WIDE, has_control
from tests.tui.stage import Script

CHAT = AgentRow("c", name="main", session="s", state="running", started=10)
CHILD = AgentRow("k", "c", "scout", "find callers", "child", "running", session="sk", owner="s", started=20)
DEEPER = dataclasses.replace(CHILD, id="d", parent="k", name="digger", needs="q", started=30)
TASK = dataclasses.replace(CHILD, id="b", parent="", name="eval", kind="background", state="waiting", started=5)
REST = dataclasses.replace(CHAT, id="r", name="other", session="s2", state="waiting")
GONE = AgentRecord("p", name="old", kind="child", state="failed", error="401", created=1, ended=9)
AWAY = AgentRecord("e", name="far", kind="background", state="running", instance="i", created=3)


def drawn(lines: list[Line]) -> list[str]:
    return [line.heading or ("  " * line.level + line.item.name if line.item else "") for line in lines]


def everything() -> tuple[AgentItem, ...]:
    rows = (CHAT, CHILD, DEEPER, TASK, REST)
    return gathered(rows, ["c", "k", "d", "b"], [GONE], [AWAY], {"i": (7, "/home")})


def test_the_list_begins_with_what_needs_the_person() -> None:
    there = ["digger", "scout", "main", "eval", "", "In other programs", "far", "", "Ended", "old"]
    assert drawn(arranged(everything())) == there
    assert counts(everything()) == {"needs": 1, "running": 1, "waiting": 1}


def test_the_tree_shows_who_started_whom() -> None:
    assert drawn(arranged(everything(), "tree"))[:4] == ["main", "  eval", "  scout", "    digger"]


def test_a_chat_that_rests_is_listed_only_with_agents_that_live() -> None:
    over = dataclasses.replace(CHILD, state="done", ended=40)
    assert [item.name for item in gathered((REST, CHAT, over), [], [], [], {})] == ["scout"]
    resting = AgentRecord("e2", name="main", kind="chat", state="waiting", created=3)
    assert gathered((), [], [], [resting], {}) == ()


def test_what_ended_in_other_folders_is_counted_until_it_is_asked_for() -> None:
    there = dataclasses.replace(GONE, id="p2", name="stranger", owner="s9")
    items = gathered((), [], [dataclasses.replace(GONE, owner="s1"), there], [], {}, {"s9": "~/site"})
    lines = arranged(items, every=False)
    assert drawn(lines) == ["Ended", "old", ""]
    assert lines[-1].note == "1 more of other folders · o shows it"
    assert list_line(lines[-1], 60, 50.0, LOOK).plain == " 1 more of other folders · o shows it"
    assert drawn(arranged(items)) == ["Ended", "old", "stranger"]
    assert "failed: 401 · ~/site" in list_line(arranged(items)[-1], 80, 50.0, LOOK).plain


@pytest.mark.parametrize("state", ["interrupted", "handed over"])
def test_what_was_gone_on_with_is_listed_once(state: str) -> None:
    old = dataclasses.replace(GONE, state=state, session="sx")
    goes_on = dataclasses.replace(CHILD, id="n", session="sx", started=30)
    assert [item.id for item in gathered((goes_on,), ["n"], [old], [], {})] == ["n"]
    assert [item.id for item in gathered((CHILD,), ["k"], [old], [], {})] == ["k", "p"]
    ended = AgentRecord("n", session="sx", state="done", created=30, ended=31)
    assert [item.id for item in gathered((), [], [ended, old], [], {})] == ["n"]


def test_what_it_does_stays_in_a_narrow_list() -> None:
    def line(item: AgentItem, width: int) -> str:
        return list_line(Line(item=item), width, 50.0, LOOK).plain

    waits = gathered((dataclasses.replace(TASK, title="a task"),), ["b"], [], [], {})[0]
    failed = gathered((), [], [dataclasses.replace(GONE, title="try it")], [], {})[0]
    for width in (36, 54, 100):
        assert "waits for" in line(waits, width)
        assert "failed: 401" in line(failed, width)
    assert "a task" in line(waits, 54)
    assert "find callers" in line(gathered((CHILD,), ["k"], [], [], {})[0], 36)


def test_names_are_whole_where_there_is_room() -> None:
    lines = [Line(item=dataclasses.replace(item, name="investigate-2")) for item in everything()[:2]]
    assert name_width(lines, 70, LOOK) == 13
    assert "investigate-2 " in list_line(lines[0], 70, 50.0, LOOK, 13).plain
    assert name_width([], 70, LOOK) == name_width(lines, 50, LOOK) == 12


@pytest.mark.parametrize("width", [64, 66, 68, 100])
def test_a_long_name_leaves_room_for_what_its_agent_does(width: int) -> None:
    row = dataclasses.replace(CHILD, name="検査する全てのサーバーを順番", title="検査する", activity="writing")
    lines = [Line(item=item) for item in gathered((row,), ["k"], [], [], {})]
    shown = list_line(lines[0], width, 50.0, LOOK, name_width(lines, width, LOOK)).plain
    assert "writing" in shown
    assert "検査する全てのサーバ" in shown


@pytest.mark.parametrize(
    ("typed", "found"), [("SCOUT", ["scout"]), ("back eval", ["eval"]), ("pid 7", ["far"]), ("x y", [])]
)
def test_the_filter_finds_every_word(typed: str, found: list[str]) -> None:
    assert [item.name for item in matching(everything(), typed)] == found


@pytest.mark.parametrize("width", [1, 8, 20, 40, 63, 64, 100])
def test_f9_1_f9_2_f9_9_a_line_fits_and_is_literal(width: int) -> None:
    for text in (*MARKUP, *CONTROLS, WIDE):
        row = dataclasses.replace(CHILD, name=text, title=text, activity=text)
        line = list_line(Line(item=gathered((row,), ["k"], [], [], {})[0]), width, 50.0, LOOK)
        assert not has_control(line.plain)
        if width >= 40:
            assert line.cell_len <= width
    assert (
        "[red]x[/red]"
        in list_line(
            Line(item=gathered((dataclasses.replace(CHILD, title="[red]x[/red]"),), [], [], [], {})[0]), 100, 50.0, LOOK
        ).plain
    )


def test_only_what_the_messages_do_not_have_is_left_of_a_turn() -> None:
    say, steps = Script(), OpenSteps()
    first = ToolCall("c1", "terminal", "{}")
    made = [
        say(ev.TurnStarted, prompt="go"),
        say(ev.StepStarted, step=1),
        say(ev.ReplyFinished, step=1, text="", calls=1),
        say(ev.ToolStarted, call_id="c1"),
        say(ev.ToolFinished, call_id="c1"),
        say(ev.StepStarted, step=2),
        say(ev.TextDelta, text="half"),
    ]
    for event in made:
        steps.take(event)
    assert steps.of("s1") == made[1:], "the last two steps"
    done = [user("go"), Message("assistant", "", tool_calls=(first,)), Message("tool", "ok", tool_call_id="c1")]
    assert left_of(made, [], (), ()) == made
    assert left_of(made, done[:1], (), ()) == made[1:]
    assert left_of(made, done[:2], ("c1",), ()) == made[4:]
    assert left_of(made, done, ("c1",), ("c1",)) == made[5:]
    steps.take(say(ev.StepStarted, step=3))
    assert steps.of("s1") == [*made[5:], *(steps.of("s1") or [])[-1:]]
    steps.take(say(ev.TurnFinished))
    assert steps.of("s1") is None


def test_a_replay_cuts_silence_and_goes_as_fast_as_wished() -> None:
    say = Script()
    events = [
        say(ev.TurnStarted),
        say(ev.StepStarted, after=0.5),
        say(ev.TextDelta, after=60.0),
        say(ev.TurnFinished, 0.25),
    ]
    replay = Replay(reversed(events))
    assert replay.length == 1.75
    assert replay.advance(0.0) == events[:1]
    assert replay.advance(0.4) == []
    replay.paused = True
    assert replay.advance(9.0) == []
    replay.paused = False
    replay.hasten(1)
    assert replay.advance(0.1) == events[1:2]
    replay.hasten(-2)
    assert (replay.speed, replay.advance(2.0)) == (0.5, events[2:3])
    assert replay.advance(0.5) == events[3:]
    assert replay.ended
    replay.hasten(-9)
    assert replay.speed == 0.25
