"""What a person does, through the whole app: real engine, real store, a scripted server at the network."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import pytest

from hermes_engine.events import Notice
from hermes_engine.messages import Message, ToolCall
from hermes_engine.paths import Home
from hermes_engine.profiles import Resolved
from hermes_tui.desk import git_branch, short_folder
from hermes_tui.widgets.blocks import AnswerBlock, UserBlock
from tests.conftest import Serve
from tests.server.scripted import call, hang, say
from tests.tui.live import live, settings

pytestmark = pytest.mark.slow


async def test_the_demo_model_answers_offline(tmp_path: Path) -> None:
    (tmp_path / "readme.md").write_text("# Hello\n")
    async with live(settings(), tmp_path) as app:
        await app.ready()
        await app.say("what is in this folder?")
        await app.shows("demo model: scripted, no intelligence")
        await app.shows("readme.md")
        await app.idle()


async def test_typing_before_the_engine_is_up_is_not_lost(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("an answer")])
    load = settings(server)

    gate = threading.Event()

    def slow() -> Resolved:
        gate.wait(20)
        return load()

    async with live(slow, tmp_path) as app:
        await app.say("early bird")
        await app.shows("goes out when the model is ready")
        gate.set()
        await app.shows("an answer")
        assert app.screen.count("early bird") >= 1
        assert "goes out when" not in app.screen
    assert [message["content"] for message in server.requests[0].body["messages"] if message["role"] == "user"] == [
        "early bird"
    ]


async def test_a_saved_chat_opens_again_with_all_it_had(serve: Serve, tmp_path: Path) -> None:
    server = serve([call("terminal", {"command": "echo hi there"}), say("All **done**."), say("Still here.")])
    async with live(settings(server), tmp_path, mode="auto") as app:
        await app.ready()
        await app.say("do it")
        await app.shows("All done.")
        await app.idle()
        session = app.desk.session
    async with live(settings(server), tmp_path, resume=session) as app:
        await app.ready()
        await app.shows("All done.")
        assert "▌ do it" in app.screen
        assert "echo hi there" in app.screen
        await app.say("and now?")
        await app.shows("Still here.")
    roles = [message["role"] for message in server.requests[-1].body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]


async def test_what_was_steered_into_a_turn_that_was_stopped_waits_in_the_queue(serve: Serve, tmp_path: Path) -> None:
    server = serve([hang(60), say("and the answer")])
    async with live(settings(server), tmp_path) as app:
        await app.ready()
        await app.say("go")
        await app.until(lambda: server.requests)
        await app.pilot.press(*"also this", "ctrl+s")
        await app.say("/steer and that")
        await app.until(lambda: app.screen.count("goes in at the next step") == 2)
        assert "▌ and that" in app.screen
        await app.pilot.press("escape")
        await app.shows("queued 2  and that")
        assert "queued 1  also this" in app.screen
        assert "▌ also this" not in app.screen
        assert "next step" not in app.screen
        await app.pilot.press("enter")
        await app.shows("and the answer")
        assert app.screen.count("also this") == 1


async def test_new_and_resume_change_the_chat_on_the_screen(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("first answer"), say("second answer")])
    async with live(settings(server), tmp_path) as app:
        await app.ready()
        await app.say("one")
        await app.shows("first answer")
        await app.idle()
        first = app.desk.session
        await app.say("/new")
        await app.until(lambda: app.desk.session != first)
        await app.until(lambda: "first answer" not in app.screen)
        await app.say("two")
        await app.shows("second answer")
        await app.idle()
        await app.say("/resume")
        await app.shows("Saved chats")
        await app.pilot.press(*"one", "enter")
        await app.until(lambda: app.desk.session == first)
        await app.shows("first answer")
    assert len(server.requests[1].body["messages"]) == 2


async def test_the_size_of_the_context_goes_with_the_model(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("an answer")])
    async with live(settings(server), tmp_path, width=130) as app:
        await app.ready()
        await app.say("a question")
        await app.shows("15 / 131k")
        await app.idle()
        before = app.desk.session
        await app.say("/fork")
        await app.until(lambda: app.desk.session != before)
        await app.shows("/ 131k")
        assert "size unknown" not in app.screen
        await app.say("/model demo")
        await app.shows("/ size unknown")
        await app.say("/model scripted")
        await app.shows("/ 131k")


async def test_an_empty_chat_proposes_only_what_the_folder_has(tmp_path: Path) -> None:
    async with live(settings(), tmp_path) as app:
        await app.shows("/spawn say what is unfinished here")
        await app.shows("/batch ")
        assert "examples" not in app.screen
        (tmp_path / "examples").mkdir()
        (tmp_path / "examples/prompts.jsonl").write_text('{"prompt": "hello"}\n')
        first = app.desk.session
        await app.say("/new")
        await app.until(lambda: app.desk.session != first)
        await app.shows("/batch examples/prompts.jsonl")


async def test_saved_chats_of_other_folders_name_theirs(tmp_path: Path) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        async with live(settings(), tmp_path / name) as app:
            await app.ready()
            await app.say(f"hello from {name}")
            await app.shows("demo model: scripted")
            await app.idle()
    async with live(settings(), tmp_path / "here") as app:
        await app.ready()
        await app.say("/resume")
        await app.shows("Saved chats")
        await app.shows("demo · there")
        assert "demo · here" not in app.screen


async def test_f4_4_a_notice_leaves_the_draft_alone(serve: Serve, tmp_path: Path) -> None:
    server = serve([hang(0.5)])
    async with live(settings(server), tmp_path) as app:
        await app.ready()
        await app.say("go")
        await app.pilot.press(*"hello wor")
        app.desk.bridge.put(Notice(text="something ended"))
        await app.shows("something ended")
        assert app.chat.prompt.text == "hello wor"


async def test_a_long_output_is_read_from_its_beginning(tmp_path: Path) -> None:
    async with live(settings(), tmp_path, width=80, height=24) as app:
        await app.ready()
        await app.say("hello")
        await app.shows("demo model: scripted")
        await app.idle()
        await app.say("/help")
        await app.shows("/agents")
        assert "/quit" not in app.screen
        assert "↓ 1 new ^End" in app.screen
        await app.pilot.press("end")
        await app.shows("/quit")
        assert "new ^End" not in app.screen
        await app.say("/mode plan")
        await app.shows("plan: nothing that changes anything runs")
        await app.say("hello again")
        await app.shows("▌ hello again")
        await app.idle()
        assert app.chat.transcript.follow


async def test_unknown_commands_send_nothing_and_stay(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("x")])
    async with live(settings(server), tmp_path) as app:
        await app.ready()
        await app.say("/shwo")
        await app.shows("No /shwo.")
        assert app.chat.prompt.text == "/shwo"
        assert server.requests == []


async def test_enter_in_the_menu_runs_what_is_chosen(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("x")])
    async with live(settings(server), tmp_path) as app:
        await app.ready()
        await app.pilot.press(*"/stat")
        await app.until(lambda: app.chat.menu.is_open)
        await app.pilot.press("enter")
        await app.shows("scripted")
        await app.until(lambda: app.chat.prompt.empty)
        assert server.requests == []


async def test_files_complete_after_an_at(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "login_route.py").write_text("x")
    server = serve([say("x")])
    async with live(settings(server), tmp_path) as app:
        await app.ready()
        await app.pilot.press(*"look at @logrou")
        await app.until(lambda: app.chat.menu.is_open)
        await app.pilot.press("tab")
        assert app.chat.prompt.text == "look at @src/login_route.py"


async def test_shift_tab_goes_through_the_modes(serve: Serve, tmp_path: Path) -> None:
    async with live(settings(), tmp_path) as app:
        await app.ready()
        seen = []
        for _press in range(4):
            await app.pilot.press("shift+tab")
            assert app.desk.engine is not None
            seen.append(app.desk.engine.view(app.desk.session).mode)
        assert seen == ["edits", "plan", "auto", "ask"]
        assert "ask first" in app.screen


async def test_model_and_theme_are_chosen_in_lists(serve: Serve, tmp_path: Path) -> None:
    async with live(settings(serve([say("x")])), tmp_path) as app:
        await app.ready()
        await app.say("/model")
        await app.shows("A name that is not listed")
        await app.pilot.press(*"no-such-thing", "enter")
        await app.until(lambda: "no-such-thing" in app.screen)
        await app.say("/theme")
        await app.shows("shows it · Enter keeps it")
        await app.pilot.press("down")
        assert app.app.theme == "hermes-dark"
        await app.pilot.press("escape")
        await app.until(lambda: app.app.theme == "terminal")
        await app.say("/theme nord")
        await app.until(lambda: app.app.theme == "nord")
        config = Home.from_env().config
        await app.until(lambda: config.exists() and "nord" in config.read_text())


async def test_a_theme_that_there_is_not_is_named(tmp_path: Path) -> None:
    config = Home.from_env().ensure().config
    config.write_text("ui: {theme: nosuch}\n")
    async with live(settings(), tmp_path) as app:
        await app.shows("ui.theme: there is no theme 'nosuch'")


async def test_the_sidebar_is_shown_and_hidden_by_name_and_stays_so(tmp_path: Path) -> None:
    async with live(settings(), tmp_path, width=130) as app:
        await app.ready()
        await app.shows("Nothing runs.")
        await app.say("/sidebar off")
        await app.until(lambda: "Nothing runs." not in app.screen)
        await app.say("/sidebar")
        await app.shows("always beside the chat")
        await app.pilot.press("enter")
        await app.shows("Nothing runs.")
        config = Home.from_env().config
        await app.until(lambda: config.exists() and 'sidebar: "auto"' in config.read_text())


async def test_f9_14_typing_works_while_the_context_is_shortened(serve: Serve, tmp_path: Path) -> None:
    answers = [say("one " * 9000), say("two " * 9000), hang(30)]
    server = serve(answers)
    async with live(settings(server), tmp_path) as app:
        await app.ready()
        for number, text in enumerate(("first", "second"), 1):
            await app.say(text)
            await app.until(lambda wanted=number: len(server.requests) == wanted)  # type: ignore[misc]
            await app.idle()
        await app.say("/compact")
        await app.until(lambda: app.desk.busy)
        await app.pilot.press(*"typing goes on")
        assert app.chat.prompt.text == "typing goes on"
        await app.pilot.press("enter")
        await app.shows("queued 1  typing goes on")
        await app.pilot.press("escape")
        await app.until(lambda: not app.desk.busy, 3)
        assert app.desk.queued == ("typing goes on",)


async def test_a_batch_runs_beside_the_chat_and_shows_its_line(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    server = serve([say("row answer", reasoning="hm")])
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text("".join(json.dumps({"prompt": f"number {n}"}) + "\n" for n in range(6)))
    async with live(settings(server), tmp_path, width=130, height=40) as app:
        await app.ready()
        await app.say("/batch prompts.jsonl")
        await app.shows("BATCH", 30)
        await app.shows("6/6", 60)
        await app.say("still chatting")
        await app.shows("row answer")


async def test_f9_18_a_session_with_a_huge_result_opens_quickly(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("x")])
    async with live(settings(server), tmp_path) as app:
        await app.ready()
        engine = app.desk.engine
        assert engine is not None
        await app.say("hello")
        await app.shows("  x")
        await app.idle()
        store, session = engine.sessions(), app.desk.session
        messages = [
            Message("assistant", "", (ToolCall("c", "terminal", '{"command": "yes"}'),)),
            Message("tool", "y\n" * 10_000_000, tool_call_id="c", name="terminal"),
            Message("assistant", "the end of it"),
        ]
        await asyncio.to_thread(store.append, session, messages)
    async with live(settings(server), tmp_path, resume=session) as app:
        await app.ready()
        await app.shows("the end of it", 5)


async def test_a_thousand_messages_open_and_scroll(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("x")])
    async with live(settings(server), tmp_path) as app:
        await app.ready()
        app.chat.transcript.extend([UserBlock("q") if n % 2 else AnswerBlock(f"Answer {n}") for n in range(1000)])
        await app.pilot.pause()
        assert "Answer 998" in app.screen
        await app.pilot.press("pageup")
        await app.pilot.pause()
        assert "Answer 998" not in app.screen


def test_folders_are_short_and_branches_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert short_folder(tmp_path) == "~"
    assert short_folder(tmp_path / "a" / "b") == "~/a/b"
    assert short_folder(Path("/usr")) == "/usr"
    assert git_branch(tmp_path) in ("", git_branch(tmp_path.parent))
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/feature/x\n")
    (tmp_path / "sub").mkdir()
    assert git_branch(tmp_path / "sub") == "feature/x"
    (tmp_path / ".git" / "HEAD").write_text("0123456789abcdef\n")
    assert git_branch(tmp_path) == "01234567"
