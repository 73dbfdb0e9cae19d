"""The slash commands about tasks and agents on a real engine, seen through a host that keeps what is said."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.errors import UsageError
from hermes_engine.events import AgentFinished, ToolFinished
from hermes_engine.profiles import resolve
from hermes_engine.settings import Overrides
from hermes_tui.commands import complete
from hermes_tui.commands.agents import named
from hermes_tui.commands.tasks import Wish, wish
from tests.conftest import Serve
from tests.server.scripted import ScriptedServer, call, hang, say
from tests.tui.command_desk import Desk, said
from tests.work.dead import at_work
from tests.work.support import by_prompt, first_user, spawn

Sit = Callable[[Any], tuple[Desk, ScriptedServer]]


@pytest.fixture
def sit(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sit]:
    """`sit(script)` opens a desk on a scripted server, in a folder with one file."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "notes.md").write_text("x")
    monkeypatch.chdir(folder)
    desks: list[Desk] = []

    def open_one(script: Any) -> tuple[Desk, ScriptedServer]:
        server = serve(script)
        desks.append(Desk(resolve(Overrides(model="scripted", base_url=server.base_url, mode="yolo")), folder))
        return desks[-1], server

    yield open_one
    for desk in desks:
        desk.engine.close()


def ended(desk: Desk) -> list[AgentFinished]:
    return [event for event in desk.events if isinstance(event, AgentFinished)]


def test_a_task_starts_at_once_while_a_turn_runs_in_a_session_of_its_own(sit: Sit) -> None:
    desk, server = sit(by_prompt({"wait": hang(60), "look": say("found it")}))
    desk.engine.send(desk.session, "wait")
    desk.until(lambda: server.requests)
    assert said(desk.do("/bg look around\nand further")).strip() == "⚙ look runs in the background · /tasks"
    desk.until(lambda: ended(desk))
    assert desk.engine.busy(desk.session)
    end = ended(desk)[0]
    assert (end.kind, end.owner, end.answer, end.prompt) == (
        "background", desk.session, "found it", "look around\nand further",
    )  # fmt: skip
    assert end.session != desk.session
    rows = desk.do("/tasks").rows
    assert [(row[0], row[1], row[2], row[3]) for row in rows] == [(end.agent, "look", "background", "done")]
    assert desk.do("/background").rows == rows, "alone it lists"


def test_spawn_starts_an_agent_below_the_chat(sit: Sit) -> None:
    desk, _server = sit(by_prompt({}))
    assert "works beside this chat" in said(desk.do("/spawn count the files"))
    desk.until(lambda: ended(desk))
    row = next(row for row in desk.engine.agents() if row.kind == "child")
    assert (row.parent, row.bound) == (desk.engine.view(desk.session).agent, False)
    assert desk.do("/spawn").kind == "error"


def test_options_stand_before_the_task() -> None:
    assert wish("do --this  now") == Wish("do --this  now", None, None, False)
    assert wish("--worktree --profile reviewer --model=a/b x\ny") == Wish("x\ny", "reviewer", "a/b", True)
    assert wish("-- --worktree") == Wish("--worktree", None, None, False)
    for wrong in ("--nosuch x", "--model", "--worktree=1 x", "--profile= x"):
        with pytest.raises(UsageError):
            wish(wrong)


def test_files_and_profiles_are_proposed(sit: Sit) -> None:
    desk, _server = sit([say("x")])
    found = complete("/bg read @not", desk)
    assert [(item.text, item.start) for item in found] == [("@notes.md", len("/bg read "))]
    assert "reviewer" in [item.text for item in complete("/spawn --profile ", desk)]
    assert [item.text for item in complete("/background --w", desk)] == ["--worktree"]
    assert complete("/background read the", desk) == []


def test_a_worktree_outside_a_repository_is_refused(sit: Sit) -> None:
    desk, server = sit([say("x")])
    fault = desk.do("/background --worktree fix it").text
    assert "git" in fault
    assert fault.endswith("leave out --worktree")
    assert desk.do("/background --profile nosuch fix it").kind == "error"
    assert server.requests == []


def test_one_is_stopped_by_name_or_id_and_run_again(sit: Sit) -> None:
    desk, server = sit(by_prompt({"silent": hang(60), "other": hang(60)}))
    for line in ("/background silent one", "/background other one"):
        desk.do(line)
    desk.until(lambda: len(server.requests) == 2)
    assert {"silent", "other", "all"} <= {item.text for item in complete("/stop ", desk)}
    assert "still at work" in desk.do("/retry silent").text
    other = next(row for row in desk.engine.agents() if row.name == "other")
    desk.do("/stop silent")
    desk.do(f"/stop {other.id}")
    desk.until(lambda: len(ended(desk)) == 2)
    assert [end.state for end in ended(desk)] == ["cancelled", "cancelled"]
    server.script = by_prompt({"silent": say("fine now")})
    assert said(desk.do("/retry silent")).strip() == "⚙ silent runs again · /tasks"
    desk.until(lambda: len(ended(desk)) == 3)
    assert ended(desk)[-1].answer == "fine now"
    assert first_user(server.requests[-1]) == "silent one"


def test_what_is_told_reaches_a_task_and_a_model_s_child_before_their_next_step(sit: Sit) -> None:
    waits = call("terminal", {"command": "while [ ! -e go ]; do sleep 0.05; done"})
    script = by_prompt(
        {"split": [spawn("child work"), say("x")], "child": [waits, say("ok")], "task": [waits, say("ok")]}
    )
    desk, server = sit(script)
    desk.engine.send(desk.session, "split")
    desk.do("/background task here")
    desk.until(lambda: sum(row.tools for row in desk.engine.agents() if row.kind != "chat") == 2)
    for name in ("child", "task"):
        assert "hears before its next step: mind the gap" in desk.do(f"/steer {name} mind the gap").text
    assert desk.do("/steer ag_nosuch x").kind == "error"
    Path("go").touch()
    desk.until(lambda: len(ended(desk)) == 2 and not desk.engine.busy(desk.session))
    heard = [first_user(seen) for seen in server.requests if seen.messages[-1]["content"] == "mind the gap"]
    assert sorted(heard) == ["child work", "task here"]


def test_a_name_that_several_have_lists_their_ids_and_stops_nobody(sit: Sit) -> None:
    script = by_prompt({"split": [spawn("child one", "child two"), say("x")], "child": hang(60)})
    desk, _server = sit(script)
    desk.engine.send(desk.session, "split")
    at_work = desk.engine.supervisor.at_work
    desk.until(lambda: sum(row.kind == "child" and at_work(row.id) for row in desk.engine.agents()) == 2)
    rows = [dataclasses.replace(row, name="child") for row in desk.engine.agents() if row.kind == "child"]
    with pytest.raises(UsageError, match="several are called child") as caught:
        named(rows, "child")
    assert f"{rows[0].id} child one, {rows[1].id} child two" in caught.value.line
    assert "give the id" in caught.value.line
    assert named(rows, rows[1].id) == rows[1]
    one = next(row for row in desk.engine.agents() if row.kind == "child")
    assert desk.do(f"/stop {one.name}").text == f"Stopping {one.name} ({one.title})."
    desk.until(lambda: len(ended(desk)) == 1)
    assert ended(desk)[0].agent == one.id


def test_children_that_a_person_stopped_are_told_as_stopped(sit: Sit) -> None:
    desk, _server = sit(by_prompt({"split": [spawn("asker2 one", "child two"), say("x")], "asker2": hang(60)}))
    desk.engine.send(desk.session, "split")
    desk.until(lambda: len(ended(desk)) == 1)
    assert desk.do("/stop asker2").text == "Stopping asker2 (asker2 one)."
    desk.until(lambda: not desk.engine.busy(desk.session))
    (done,) = [event for event in desk.events if isinstance(event, ToolFinished)]
    assert done.display.summary == "1 ok, 1 stopped"


def test_of_ended_ones_of_a_name_the_same_task_counts_once(sit: Sit) -> None:
    desk, _server = sit(by_prompt({}))
    for number, line in enumerate(("/background look here", "/retry look", "/background look there"), 1):
        desk.do(line)
        desk.until(lambda number=number: len(ended(desk)) == number)  # type: ignore[misc]
    fault = desk.do("/retry look").text
    assert "several are called look" in fault
    again, there = ended(desk)[1].agent, ended(desk)[2].agent
    assert f"{there} look there, {again} look here" in fault


def test_a_mistyped_name_is_never_a_message_to_the_chat(sit: Sit) -> None:
    desk, server = sit(by_prompt({"slow": hang(60), "go": hang(60)}))
    fault = desk.do("/steer nosuch hello there")
    assert fault.kind == "error"
    assert "/steer main TEXT" in fault.text
    desk.engine.send(desk.session, "go")
    desk.do("/background slow look")
    desk.until(lambda: len(server.requests) == 2)
    fault = desk.do("/steer slwo hello there")
    assert fault.kind == "error"
    assert "did you mean slow?" in fault.text
    assert "/steer main TEXT tells this chat" in fault.text
    desk.do("/stop slow")
    desk.until(lambda: ended(desk))
    assert "slow (slow look) has ended — /open slow goes on" in desk.do("/steer slow hello there").text
    assert "slow (slow look) has ended" in desk.do("/stop slow").text
    before = len(desk.shown)
    desk.do("/steer main this is for you")
    desk.do("/steer and this")
    assert [shown for shown in desk.shown[before:] if shown.kind == "error"] == []
    desk.engine.interrupt(desk.session)
    desk.until(lambda: len(desk.engine.queued(desk.session)) == 2)
    assert desk.engine.queued(desk.session) == ("this is for you", "and this")
    assert len(server.requests) == 2


def test_unknown_names_tell_what_there_is(sit: Sit) -> None:
    desk, _server = sit(by_prompt({}))
    desk.do("/background look around")
    desk.until(lambda: ended(desk))
    for line in ("/retry lok", "/attach lok", "/open lok", "/stop lok"):
        assert "unknown" in desk.do(line).text
        assert desk.shown[-1].kind == "error"
    assert "look" in desk.do("/retry lok").text


def test_one_is_watched_and_made_a_chat(sit: Sit) -> None:
    desk, server = sit(by_prompt({"silent": hang(60)}))
    desk.do("/background silent one")
    desk.until(lambda: server.requests)
    row = next(row for row in desk.engine.agents() if row.kind == "background")
    assert desk.do("/attach silent").kind == "error", "nothing here can show it"
    desk.has_screens = True
    desk.do("/attach silent")
    assert desk.screens["agents"] == {"agent": row.id}
    assert "still at work" in desk.do("/open silent").text
    desk.do("/stop silent")
    desk.until(lambda: ended(desk))
    desk.do("/attach silent --chat")
    desk.do("/open silent")
    assert desk.opened == [row.session, row.session]
    view = desk.engine.open_session(Path.cwd(), resume=row.session)
    assert view.messages[0].content == "silent one"


def test_f4_10_stop_ends_a_task_with_what_it_runs_and_the_chat_goes_on(sit: Sit) -> None:
    sleeps = call("terminal", {"command": "echo $$ > pid; exec sleep 300"})
    desk, _server = sit(by_prompt({"look": [sleeps, say("never")], "hello": say("hi there")}))
    desk.do("/background look around")
    desk.until(lambda: Path("pid").exists() and Path("pid").read_text().strip())
    desk.do("/stop look")
    desk.until(lambda: ended(desk), timeout=5)
    assert ended(desk)[0].state == "cancelled"
    assert not Path(f"/proc/{int(Path('pid').read_text())}").exists()
    desk.turn("hello")
    assert desk.engine.view(desk.session).messages[-1].content == "hi there"
    assert next(row[3] for row in desk.do("/tasks").rows) == "cancelled"


def test_a_task_of_another_program_is_listed_and_stopped(sit: Sit, tmp_path: Path) -> None:
    desk, server = sit(by_prompt({"hello": say("hi"), "slow": hang(60)}))
    with at_work(server, tmp_path, ["slow look"]) as (_process, [slow, _chat]):
        assert [(row[0], row[1], row[3]) for row in desk.do("/tasks").rows] == [(slow, "slow", "running")]
        assert "another program" in desk.do("/stop slow").text
        desk.until(lambda: desk.engine.tasks.record(slow).state == "cancelled")
        assert desk.do("/stop slow").kind == "error"
        assert "slow (slow look) has ended" in desk.do(f"/steer {slow} go on").text
        server.script = by_prompt({"slow": say("at last")})
        assert "runs again" in desk.do(f"/retry {slow}").text, "its program still holds its conversation"
        desk.until(lambda: ended(desk))
        assert ended(desk)[0].answer == "at last"
