"""Every slash command on a real engine and a scripted server, seen through a host that keeps what is said."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from hermes_engine.events import TurnStarted
from hermes_engine.profiles import resolve
from hermes_engine.settings import Overrides
from hermes_tui.commands import Output, complete, dispatch
from tests.server.scripted import hang, say
from tests.tui.command_desk import Desk, Sit, said, sit

__all__ = ["sit"]


def test_help_lists_every_command_and_explains_one(sit: Sit) -> None:
    desk, _server = sit([say("x")])
    assert "/compact [what to keep]" in said(desk.do("/help"))
    assert "also: /exit, /q" in said(desk.do("/help quit"))
    assert desk.do("/help nosuch").kind == "error"


def test_an_unknown_command_sends_nothing(sit: Sit) -> None:
    desk, server = sit([say("x")])
    assert dispatch("/modell demo", desk) == "refused"
    assert "Did you mean /model?" in desk.shown[-1].text
    assert dispatch("/etc/hosts is wrong", desk) == "text"
    assert server.requests == []


def test_model_and_mode_change_this_chat(sit: Sit) -> None:
    desk, server = sit([say("x")])
    assert "scripted" in said(desk.do("/model"))
    desk.do("/model other")
    desk.do("/mode plan")
    assert desk.engine.view(desk.session).mode == "plan"
    assert desk.do("/mode wild").kind == "error"
    desk.turn("hello")
    assert server.requests[0].body["model"] == "other"
    assert [item.text for item in complete("/mode p", desk)] == ["plan"]
    assert "demo" in [item.text for item in complete("/model ", desk)]
    desk.has_screens = True
    desk.do("/model")
    assert "model" in desk.screens


def test_toolsets_change_this_chat_from_the_next_turn(sit: Sit) -> None:
    desk, server = sit([say("x")])
    desk.do("/toolsets file,todo")
    desk.turn("one")
    assert set(server.requests[-1].tools) == {"read_file", "write_file", "patch", "search_files", "todo"}
    desk.do("/tools disable todo")
    desk.do("/tools enable terminal")
    desk.turn("two")
    assert "todo" not in server.requests[-1].tools
    assert "terminal" in server.requests[-1].tools
    desk.do("/tools enable kanban")
    desk.turn("three")
    assert "kanban_create" in server.requests[-1].tools
    for none in ("none", "[]"):
        desk.do("/toolsets file")
        desk.do(f"/toolsets {none}")
        desk.turn(none)
        assert "tools" not in server.requests[-1].body
    for wrong in ("/toolsets nosuch", "/tools enable", "/tools frobnicate x"):
        assert desk.do(wrong).kind == "error"
    assert "web_fetch" in said(desk.do("/toolsets"))
    assert [item.text for item in complete("/tools enable ka", desk)] == ["kanban"]
    assert complete("/tools enable ka", desk)[0].start == len("/tools enable ")


def test_stop_steer_and_agents_work_while_a_turn_runs_others_wait(sit: Sit) -> None:
    desk, server = sit([hang(60)])
    desk.engine.send(desk.session, "wait")
    desk.until(lambda: server.requests)
    assert "running" in said(desk.do("/agents"))
    assert dispatch("/compact", desk) == "refused"
    assert "when this turn has ended" in desk.do("/retry").text
    desk.do("/steer look at a.py")
    began = time.monotonic()
    desk.do("/stop")
    desk.until(lambda: not desk.engine.busy(desk.session))
    assert time.monotonic() - began < 1
    assert desk.do("/stop").kind == "error"
    assert desk.do("/stop nosuch").kind == "error"


def test_stop_all_stops_every_agent(sit: Sit) -> None:
    desk, server = sit([hang(60)])
    desk.engine.send(desk.session, "wait")
    desk.until(lambda: server.requests)
    assert "all" in [item.text for item in complete("/stop ", desk)]
    assert "1 agent" in said(desk.do("/stop all"))
    desk.until(lambda: not desk.engine.busy(desk.session))


def test_the_queue_is_seen_and_edited(sit: Sit) -> None:
    desk, server = sit([hang(60), say("x")])
    assert "Nothing waits" in said(desk.do("/queue"))
    desk.engine.send(desk.session, "running")
    desk.until(lambda: server.requests)
    for text in ("a", "b", "c"):
        desk.engine.send(desk.session, text)
    assert [row[1] for row in desk.do("/queue").rows] == ["a", "b", "c"]
    assert [row[1] for row in desk.do("/queue up 3").rows] == ["a", "c", "b"]
    assert [row[1] for row in desk.do("/queue drop 1").rows] == ["c", "b"]
    desk.do("/queue edit 2")
    assert (desk.draft, desk.engine.queued(desk.session)) == ("b", ("c",))
    for wrong in ("/queue drop 9", "/queue drop x", "/queue drop", "/queue jump"):
        assert desk.do(wrong).kind == "error"
    desk.do("/queue clear")
    assert desk.engine.queued(desk.session) == ()


def test_retry_sends_the_last_message_again(sit: Sit) -> None:
    desk, server = sit([say("one"), say("two")])
    assert desk.do("/retry").kind == "error"
    desk.turn("the question")
    desk.do("/retry")
    desk.until(lambda: desk.finished == 2)
    assert server.requests[1].last["content"] == "the question"


def test_sessions_rename_resume_new(sit: Sit) -> None:
    desk, _server = sit([say("one")])
    assert "No saved chats" in said(desk.do("/sessions"))
    desk.turn("first words")
    desk.do("/rename  My\n title ")
    assert desk.engine.view(desk.session).title == "My title"
    desk.until(lambda: "My title" in said(desk.do("/sessions")))
    other = desk.engine.open_session(Path.cwd())
    desk.engine.send(other.id, "second chat")
    desk.until(lambda: desk.finished == 2)
    first, desk.session = desk.session, other.id
    desk.do("/resume my title")
    assert desk.opened == [first]
    assert [item.text for item in complete("/resume ", desk)] == [first]
    assert desk.do("/resume nosuch").kind == "error"
    assert desk.do(f"/resume {other.id}").kind == "error"
    desk.do("/new")
    assert desk.opened[-1] is None
    assert desk.do("/rename").kind == "error"


def test_compact_runs_as_a_turn_of_its_own(sit: Sit) -> None:
    desk, _server = sit([say("answer " * 50), say("a summary")])
    assert desk.do("/compact").kind == "error"
    for number in range(4):
        desk.turn(f"message {number} " + "word " * 200)
    desk.do("/compact keep the names")
    desk.until(lambda: desk.finished == 5)
    started = [event for event in desk.events if isinstance(event, TurnStarted)]
    assert len(started) == 5


def test_context_usage_status_settings_keys(sit: Sit) -> None:
    desk, _server = sit([say("hi", usage={"prompt_tokens": 1500, "completion_tokens": 20})])
    desk.turn("hello")
    assert "your messages\t1" in said(desk.do("/context"))
    usage = said(desk.do("/usage"))
    assert "1.5k" in usage
    assert "20" in usage
    assert "unknown" in usage, "the price is"
    assert desk.session in said(desk.do("/status"))
    assert "limits.max_turns\t90" in said(desk.do("/settings"))
    assert "Ctrl+C" in said(desk.do("/keys"))
    assert "terminal's own colours" in said(desk.do("/theme"))
    assert "Only the app has that" in said(desk.do("/mouse off"))
    assert desk.do("/sidebar perhaps").kind == "error"


def test_f9_13_copy_takes_the_source_text(sit: Sit) -> None:
    source = "Look:\n\n```python\nprint('a   b')\n\n" + "x" * 300 + "\n```\nand\n~~~\ntwo\n~~~\n"
    desk, _server = sit([say(source), say("short")])
    assert desk.do("/copy").kind == "error"
    desk.turn("a")
    desk.turn("b")
    desk.do("/copy")
    assert desk.copied == "short"
    desk.do("/copy 2")
    assert desk.copied == source
    desk.do("/copy code")
    assert desk.copied == "two"
    for wrong in ("/copy 3", "/copy x", "/copy 0"):
        assert desk.do(wrong).kind == "error"


def test_export_writes_markdown_and_json_and_never_over_a_file(sit: Sit) -> None:
    desk, _server = sit([say("the ``` answer")])
    assert desk.do("/export").kind == "error"
    desk.turn("the question")
    assert "Wrote 2 messages" in said(desk.do("/export"))
    (written,) = Path.cwd().glob("chat-*.md")
    assert "the question" in written.read_text()
    assert "the ``` answer" in written.read_text()
    desk.do("/export json out.json")
    roles = [message["role"] for message in json.loads(Path("out.json").read_text())["messages"]]
    assert roles == ["user", "assistant"]
    before = Path("out.json").read_bytes()
    assert desk.do("/export out.json").kind == "error"
    assert Path("out.json").read_bytes() == before


@pytest.mark.parametrize("name", ["../x.md", "/tmp/x.md", "a/../../x.md", "link/x.md", "a\0b", ".."])
def test_f10_6_an_export_goes_nowhere_else(name: str, sit: Sit, tmp_path: Path) -> None:
    desk, _server = sit([say("x")])
    desk.turn("a")
    outside = tmp_path / "outside"
    outside.mkdir()
    Path("link").symlink_to(outside)
    assert desk.do(f"/export md {name}").kind == "error"
    assert list(outside.iterdir()) == []
    assert not (tmp_path / "x.md").exists()


def test_init_asks_the_model(sit: Sit) -> None:
    desk, server = sit([say("written")])
    desk.do("/init")
    desk.until(lambda: desk.finished == 1)
    assert "AGENTS.md" in server.requests[0].last["content"]


def test_doctor_profile_quit_clear(sit: Sit, isolated_home: Path) -> None:
    desk, server = sit([say("x")])
    assert server.base_url in said(desk.do("/doctor"))
    assert server.others == []
    assert "reviewer" in said(desk.do("/profile"))
    assert "reviewer" in [item.text for item in complete("/profile rev", desk)]
    assert "next start" in said(desk.do("/profile reviewer"))
    assert "profile: reviewer" in (isolated_home / "config.yaml").read_text()
    assert desk.do("/profile nosuch").kind == "error"
    desk.do("/clear")
    assert "clear" in desk.screens
    desk.do("/quit")
    assert desk.quits == 1


@pytest.mark.parametrize("text", ["/new", "/compact", "/agents", "/model x"])
def test_commands_before_a_model_is_set_up_say_so(text: str, tmp_path: Path) -> None:
    desk = Desk(resolve(Overrides(model="demo")), None)
    dispatch(text, desk)
    assert desk.shown == [Output("error", "no model is set up yet")]
