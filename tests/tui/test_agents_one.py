"""One agent on the screen: watched from the middle of its run, told, stopped, answered, run again, opened as a chat,
replayed. Real engine, real store, a scripted server at the network.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from hermes_engine.work.supervisor import AgentRow
from hermes_tui.screens.agents.agent import AgentScreen
from hermes_tui.screens.agents.screen import AgentsScreen
from hermes_tui.screens.chat.sending import BACK_SECONDS
from hermes_tui.widgets.blocks import AnswerBlock, RequestBlock, ToolBlock, UserBlock
from tests.conftest import Serve
from tests.server.answers import Seen
from tests.server.scripted import call, hang, say
from tests.tui.live import Live, live, settings
from tests.work.support import by_prompt, spawn

pytestmark = pytest.mark.slow

ECHO = call("terminal", {"command": "echo hi"})
WRITE = call("write_file", {"path": "x.txt", "content": "one\ntwo\n"})


def shown(app: Live) -> AgentScreen:
    """The agent's screen that is in view."""
    screen = app.app.screen
    assert isinstance(screen, AgentScreen)
    return screen


def row_of(app: Live, name: str) -> AgentRow:
    """The newest agent of that name."""
    assert app.desk.engine is not None
    return [row for row in app.desk.engine.agents() if row.name == name][-1]


async def started(app: Live, prompt: str, kind: str = "background") -> AgentRow:
    """Starts a task and opens it."""
    await app.ready()
    engine = app.desk.engine
    assert engine is not None
    row = await asyncio.to_thread(engine.tasks.start, app.desk.session, prompt, kind=kind)  # type: ignore[arg-type]
    assert app.chat.host.open_screen("agents", agent=row.id)
    await app.until(lambda: isinstance(app.app.screen, AgentScreen))
    return row


def said(app: Live) -> list[str]:
    """What stands in the agent's transcript, a word or text each."""
    told: list[str] = []
    for block in shown(app).transcript.blocks:
        match block:
            case UserBlock() | AnswerBlock():
                told.append(block.copy_text())
            case ToolBlock():
                told += [f"{block.verb} {call.status or 'runs'}" for call in block.calls]
            case RequestBlock():
                told.append("asks" if block.waiting else "settled")
            case _:
                told.append(type(block).__name__)
    return told


async def test_opened_at_any_moment_of_a_run_it_shows_everything_once(serve: Serve, tmp_path: Path) -> None:
    text = " ".join(f"word{number}" for number in range(60))
    server = serve(
        by_prompt({"work": [ECHO, call("terminal", {"command": "echo ho"}), say(text, chunks=60, delay=0.04)]})
    )
    async with live(settings(server), tmp_path, mode="auto") as app:
        row = await started(app, "work on it")
        whole = ["work on it", "Run ok", "Run ok", text]
        for _look in range(40):
            now = said(app)
            assert now[:3] == whole[: len(now[:3])] or now[-1].endswith("runs") or now == ["NoticeBlock"], now
            assert len(now) < 4 or text.startswith(now[3]), now
            await app.pilot.press("escape")
            app.chat.host.open_screen("agents", agent=row.id)
            await app.until(lambda: isinstance(app.app.screen, AgentScreen))
            await app.until(lambda: shown(app).talk.shows(shown(app).item))
            if len(said(app)) == 4 and not app.desk.engine.supervisor.at_work(row.id):  # type: ignore[union-attr]
                break
        await app.until(lambda: said(app) == whole)
        await app.shows("✓ done")


async def test_told_at_its_next_step_and_after_its_end(serve: Serve, tmp_path: Path) -> None:
    def answer(seen: Seen) -> object:
        words = [str(message["content"]) for message in seen.messages if message["role"] == "user"]
        if len(seen.messages) == 2:
            return call("terminal", {"command": "until test -e go; do sleep 0.05; done"})
        return say(f"heard {words[-1]}")

    server = serve(by_prompt({"work": answer}))  # type: ignore[dict-item]
    async with live(settings(server), tmp_path, mode="auto", width=120) as app:
        row = await started(app, "work on it")
        await app.until(lambda: server.requests)
        await app.until(lambda: "Run runs" in said(app))
        await app.pilot.press("m", *"mind the gap", "enter")
        await app.shows("goes in at the next step")
        (tmp_path / "go").touch()
        await app.until(lambda: "heard mind the gap" in said(app))
        assert said(app) == ["work on it", "Run ok", "mind the gap", "heard mind the gap"]
        await app.until(lambda: not shown(app).item.live)
        await app.pilot.press(*"and now?", "enter")
        await app.until(lambda: "heard and now?" in said(app))
        assert said(app)[-2:] == ["and now?", "heard and now?"]
        assert said(app).count("and now?") == 1
        assert shown(app).item.id != row.id
        assert shown(app).item.session == row.session
        await app.pilot.press(*"/stop", "enter")
        await app.shows("Commands are for the chat")


async def test_ctrl_s_stops_its_step_and_then_tells_it(serve: Serve, tmp_path: Path) -> None:
    def answer(seen: Seen) -> object:
        return say("at once") if "hurry" in str(seen.messages[-1]["content"]) else hang(60)

    server = serve(by_prompt({"work": answer}))  # type: ignore[dict-item]
    async with live(settings(server), tmp_path) as app:
        await started(app, "work on it")
        await app.until(lambda: server.open_requests == 1)
        await app.pilot.press("tab", *"hurry", "ctrl+s")
        await app.until(lambda: "at once" in said(app))
        assert said(app) == ["work on it", "NoticeBlock", "hurry", "at once"]
        assert shown(app).prompt.empty


async def test_stopped_run_again_and_opened_as_a_chat(serve: Serve, tmp_path: Path) -> None:
    first = [hang(60), say("the result")]
    server = serve(by_prompt({"work": lambda seen: first.pop(0) if len(first) > 1 else first[0], "go on": say("more")}))
    async with live(settings(server), tmp_path, width=120) as app:
        row = await started(app, "work on it")
        await app.until(lambda: server.open_requests == 1)
        await app.pilot.press("o")
        await app.shows("m tells it something")
        await app.pilot.press("x")
        await app.until(lambda: not shown(app).item.live)
        await app.shows("■ cancelled")
        await app.pilot.press("r")
        await app.until(lambda: shown(app).item.id != row.id)
        await app.until(lambda: said(app) == ["work on it", "the result"])
        await app.pilot.press("y")
        assert app.app.clipboard == "the result"
        session = shown(app).item.session
        await app.until(lambda: not shown(app).item.live)
        await app.pilot.press("o")
        await app.until(lambda: app.app.screen is app.chat and app.desk.session == session)
        await app.shows("the result")
        await app.idle()
        await app.say("go on")
        await app.until(lambda: len(server.requests) == 3)
        assert server.requests[-1].messages[-1]["content"] == "go on"
        await app.idle()
        app.chat.host.open_screen("agents", agent=row_of(app, "work").id)
        await app.until(lambda: isinstance(app.app.screen, AgentScreen))
        await app.pilot.press("m", *"you too", "enter")
        await app.shows("is open as a chat")


async def test_what_it_asks_is_answered_in_place(serve: Serve, tmp_path: Path) -> None:
    server = serve(by_prompt({"work": [WRITE, WRITE, say("written")]}))
    async with live(settings(server), tmp_path, width=120) as app:
        await started(app, "work on it")
        await app.until(lambda: "asks" in said(app))
        await app.shows("asks: Write x.txt")
        await app.pilot.press("a")
        block = shown(app).asking.focused
        assert block is not None
        await app.until(lambda: block.takes_keys(time.monotonic()))
        await app.pilot.press("3", *"not there", "enter")
        await app.until(lambda: "settled" in said(app))
        await app.until(lambda: said(app)[-1] == "asks")
        refused = server.requests[1].messages[-1]
        assert "not there" in str(refused["content"])
        assert not (tmp_path / "x.txt").exists()
        again = shown(app).asking.asked()
        assert again is not None
        await app.until(lambda: again.takes_keys(time.monotonic()))
        await app.pilot.press("1")
        await app.until(lambda: (tmp_path / "x.txt").exists())
        await app.until(lambda: said(app)[-1] == "written")
        await app.pilot.press("d")
        await app.shows("1 + one")
        await app.pilot.press("escape")
        await app.until(lambda: isinstance(app.app.screen, AgentScreen))


async def test_while_a_refusal_is_written_everything_says_that_enter_refuses(serve: Serve, tmp_path: Path) -> None:
    server = serve(by_prompt({"work": [WRITE, say("written")]}))
    async with live(settings(server), tmp_path, width=120) as app:
        await started(app, "work on it")
        await app.shows("asks: Write x.txt")
        await app.until(lambda: shown(app).asking.asked())
        await app.pilot.press("a")
        await app.until(lambda: (block := shown(app).asking.focused) and block.takes_keys(time.monotonic()))
        await app.pilot.press("3")
        await app.until(lambda: app.screen.count("Enter refuses it · Esc goes back") == 3)
        assert "at its next step" not in app.screen
        assert "tells it" not in app.screen


async def test_one_esc_too_many_stops_no_turn(serve: Serve, tmp_path: Path) -> None:
    server = serve([hang(30)])
    async with live(settings(server), tmp_path) as app:
        await app.ready()
        await app.say("work")
        await app.until(lambda: len(server.requests) == 1)
        await app.pilot.press("alt+2")
        await app.until(lambda: app.app.screen is not app.chat)
        await app.pilot.press("escape")
        await app.until(lambda: app.app.screen is app.chat)
        await app.pilot.press("escape", "escape")
        assert app.desk.busy
        assert app.chat.doing != "stopping"
        await asyncio.sleep(BACK_SECONDS)
        await app.pilot.press("escape")
        await app.until(lambda: not app.desk.busy)


async def test_ctrl_n_goes_from_one_that_asks_to_the_next(serve: Serve, tmp_path: Path) -> None:
    server = serve(
        by_prompt({"split": [spawn("alpha", "beta"), say("all")], "alpha": [WRITE, say("a")], "beta": WRITE})
    )
    async with live(settings(server), tmp_path) as app:
        await app.ready()
        await app.say("split it")
        await app.until(lambda: app.desk.engine and len(app.desk.engine.broker.pending()) == 2)
        await app.pilot.press("alt+2", "ctrl+n")
        await app.until(lambda: isinstance(app.app.screen, AgentScreen))
        first = shown(app).item.name
        assert first == "alpha", "who waits longest"
        await app.until(lambda: shown(app).asking.focused)
        await app.pilot.press("ctrl+n")
        await app.until(lambda: shown(app).item.name != first and shown(app).asking.focused)
        await app.pilot.press("left_square_bracket")
        await app.until(lambda: shown(app).item.name == first)
        await app.pilot.press("escape")
        await app.until(lambda: isinstance(app.app.screen, AgentsScreen))


async def test_a_recorded_tree_is_played_again(serve: Serve, tmp_path: Path) -> None:
    server = serve(
        by_prompt({"split": [spawn("alpha reads"), say("all in")], "alpha": [ECHO, say("read it all")]})
    )  # fmt: skip
    async with live(settings(server), tmp_path, mode="auto", width=120) as app:
        await started(app, "split it")
        await app.until(lambda: "all in" in said(app))
        await app.until(lambda: not shown(app).item.live)
        await app.until(lambda: "Spawned ok" in said(app))
        before = said(app)
        await app.until(lambda: (item := app.app.switching.book.find(row_of(app, "alpha").id)) and not item.live)
        await app.pilot.press("p", "p")  # it would be over soon
        await app.until(lambda: shown(app).replaying.replay)
        replay = shown(app).replaying.replay
        assert replay is not None
        await app.pilot.press("plus", "plus")
        assert (replay.speed, replay.paused) == (4.0, True)
        await app.pilot.press("minus", "p")
        await app.shows("alpha begins: alpha reads")
        await app.shows("×2")
        await app.until(lambda: replay.ended)
        await app.shows("alpha: done")
        assert [word for word in said(app) if word != "NoticeBlock"] == before
        await app.shows("p plays it again")
        await app.pilot.press("p")
        await app.until(lambda: (anew := shown(app).replaying.replay) is not replay and anew and anew.position > 0)
        await app.pilot.press("escape")
        await app.until(lambda: "begins" not in app.screen and said(app) == before)
        assert isinstance(app.app.screen, AgentScreen)


async def test_an_agent_nobody_knows_is_said_to_be_gone(serve: Serve, tmp_path: Path) -> None:
    async with live(settings(serve([say("hello")])), tmp_path) as app:
        await app.ready()
        app.chat.host.open_screen("agents", agent="ag_gone")
        await app.shows("Nothing is known of ag_gone")
        assert app.app.screen is app.chat


async def test_the_draft_for_an_agent_is_kept(serve: Serve, tmp_path: Path) -> None:
    server = serve(by_prompt({"work": hang(60)}))
    async with live(settings(server), tmp_path) as app:
        row = await started(app, "work on it")
        await app.pilot.press("m", *"half", "escape", "escape")
        await app.until(lambda: app.app.screen is app.chat)
        app.chat.host.open_screen("agents", agent=row.id)
        await app.until(lambda: isinstance(app.app.screen, AgentScreen))
        assert shown(app).prompt.text == "half"
        await app.pilot.press("ctrl+c")
        await app.shows("Cleared")
        assert app.desk.engine is not None
        assert app.desk.engine.supervisor.at_work(row.id)
