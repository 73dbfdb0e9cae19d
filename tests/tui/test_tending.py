"""Agents in the sidebar of the real app: what they ask is answered here, and keys and clicks do what they say."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.work.supervisor import AgentRow
from tests.conftest import Serve
from tests.server.answers import Answer, Seen, call, say
from tests.tui.live import Live, live, settings
from tests.tui.stage import screen_lines
from tests.work.support import by_prompt, spawn


def rows(tui: Live, kind: str = "child") -> list[AgentRow]:
    """Agents of a kind."""
    engine = tui.desk.engine
    return [row for row in engine.agents() if row.kind == kind] if engine is not None else []


def holding(gate: threading.Event) -> Callable[[Seen], Answer]:
    """Answers when the gate opens."""

    def script(seen: Seen) -> Answer:
        gate.wait(30)
        return say("held and done")

    return script


def opening(opened: list[dict[str, str]]) -> Callable[..., bool]:
    """Stands where screens are opened and keeps what was asked for."""

    def open_screen(name: str, **options: str) -> bool:
        opened.append(options)
        return name == "agents"

    return open_screen


async def old_enough(tui: Live) -> None:
    """Waits until the oldest request takes keys."""

    def takes() -> bool:
        block = tui.chat.asking.asked()
        return block is not None and block.takes_keys(time.monotonic())

    await tui.until(takes)


async def test_f3_14_a_childs_question_is_answered_by_one_key(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "old").write_text("x")
    server = serve(
        by_prompt(
            {
                "go": [spawn("remove what is old"), say("all is done")],
                "remove": [call("terminal", {"command": "rm old"}), say("removed")],
            }
        )
    )
    async with live(settings(server, toolsets=("terminal", "delegation")), tmp_path, width=120, height=36) as tui:
        await tui.ready()
        await tui.say("go")
        await tui.shows("remove asks")
        assert "◆ remove" in tui.screen
        assert "◆ 1 need you" in screen_lines(tui.app)[0]
        await old_enough(tui)
        await tui.pilot.press("1")
        await tui.shows("all is done")
        assert not (tmp_path / "old").exists()
        await tui.until(lambda: "✓ 1 done" in tui.screen)
        assert "need you" not in tui.screen
        await tui.idle()
        await tui.say("and now?")
        await tui.until(lambda: "✓ 1 done" not in tui.screen)


async def test_a_task_of_another_chat_is_answered_here(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "old").write_text("x")
    server = serve(by_prompt({"remove": [call("terminal", {"command": "rm old"}), say("removed")]}))
    async with live(settings(server), tmp_path, width=80, height=24) as tui:
        await tui.ready()
        first, engine = tui.desk.session, tui.desk.engine
        assert engine is not None
        tui.app.host.new_session()
        await tui.until(lambda: tui.desk.session != first)
        await tui.desk.off_loop(lambda: engine.tasks.start(first, "remove what is old", kind="background"))
        await tui.shows("remove asks")
        assert "◆ 1" in screen_lines(tui.app)[0]
        await old_enough(tui)
        await tui.pilot.press("1")
        await tui.until(lambda: not (tmp_path / "old").exists())
        await tui.until(lambda: rows(tui, "background")[0].state == "done")


async def test_keys_of_the_sidebar_do_what_they_say(serve: Serve, tmp_path: Path, monkeypatch: Any) -> None:
    gate = threading.Event()
    server = serve(by_prompt({"first": holding(gate), "second": holding(gate)}))
    async with live(settings(server), tmp_path, width=120, height=36) as tui:
        await tui.ready()
        session, engine, opened = tui.desk.session, tui.desk.engine, list[dict[str, str]]()
        assert engine is not None
        monkeypatch.setattr(tui.app.host, "open_screen", opening(opened))
        for prompt in ("first task", "second task"):
            await tui.desk.off_loop(partial(engine.tasks.start, session, prompt, kind="background"))
        await tui.shows("⚙ second")
        assert "BACKGROUND  2" in tui.screen
        one, two = rows(tui, "background")
        await tui.pilot.press(*"draft", "ctrl+t", "j", "m")
        assert tui.chat.prompt.text == f"/steer {two.name} draft"
        tui.chat.prompt.clear()
        await tui.pilot.press("ctrl+t", "down", "enter")
        assert opened == [{"agent": two.id}]
        await tui.pilot.press("up", "x")
        await tui.until(lambda: rows(tui, "background")[0].state == "cancelled")
        gate.set()
        await tui.until(lambda: rows(tui, "background")[1].state == "done")
        await tui.pilot.press("escape")
        assert tui.chat.prompt.area.has_focus
        assert one.state != "done"


async def test_a_click_opens_and_r_runs_an_ended_one_again(serve: Serve, tmp_path: Path, monkeypatch: Any) -> None:
    server = serve(by_prompt({"go": [spawn("look around"), say("over")], "look": say("seen")}))
    async with live(settings(server, toolsets=("terminal", "delegation")), tmp_path, width=120, height=36) as tui:
        await tui.ready()
        opened: list[dict[str, str]] = []
        monkeypatch.setattr(tui.app.host, "open_screen", opening(opened))
        await tui.say("go")
        await tui.shows("✓ 1 done")
        await tui.idle()
        line = next(number for number, text in enumerate(screen_lines(tui.app)) if "✓ 1 done" in text)
        await tui.pilot.click(offset=(90, line))
        await tui.shows("✓ look")
        (child,) = rows(tui)
        await tui.pilot.press("ctrl+t", "down", "r")
        await tui.until(lambda: len(rows(tui)) == 2)
        await tui.until(lambda: not any(row.live for row in rows(tui)))
        line = next(number for number, text in enumerate(screen_lines(tui.app)) if "✓ look" in text)
        await tui.pilot.click(offset=(90, line))
        await tui.until(lambda: opened)
        assert opened[0]["agent"] in [row.id for row in rows(tui)]
        assert child.id in [row.id for row in rows(tui)]


async def test_the_peek_pane_follows_who_did_something_last(serve: Serve, tmp_path: Path) -> None:
    gate = threading.Event()
    server = serve(by_prompt({"look": holding(gate)}))
    async with live(settings(server), tmp_path, width=200, height=40) as tui:
        await tui.ready()
        session, engine = tui.desk.session, tui.desk.engine
        assert engine is not None
        await tui.desk.off_loop(lambda: engine.tasks.start(session, "look for callers", kind="background"))
        await tui.shows("▌ look for callers")
        gate.set()
        await tui.until(lambda: "▌ look for callers" not in tui.screen)


async def test_what_a_task_asks_takes_no_words_that_were_meant_for_the_chat(serve: Serve, tmp_path: Path) -> None:
    asks = call("clarify", {"question": "Which branch?"})
    server = serve(by_prompt({"fix": [asks, say("fixed")], "hello": say("hi")}))
    load = settings(server, mode="auto", toolsets=("clarify",))
    async with live(load, tmp_path, width=80, height=24) as tui:
        await tui.ready()
        await tui.say("/background fix it")
        await tui.shows("◆ fix asks: Which branch?")
        assert tui.chat.prompt.lent == ""
        await tui.say("hello there")
        await tui.until(lambda: len(server.requests) == 2)
        assert server.requests[-1].last["content"] == "hello there"
        await tui.pilot.press("ctrl+n", *"main", "enter")
        await tui.shows("fixed")
        assert "main" in server.requests[-1].last["content"]


@pytest.mark.parametrize("width", [80, 130])
async def test_esc_does_what_the_status_line_says_also_after_the_sidebar(
    serve: Serve, tmp_path: Path, width: int
) -> None:
    gate = threading.Event()
    server = serve(by_prompt({"split": [spawn("alpha reads"), say("x")], "alpha": holding(gate)}))
    async with live(settings(server, mode="auto"), tmp_path, width=width, height=24) as tui:
        await tui.ready()
        await tui.say("split it")
        await tui.shows("Esc stops")
        await tui.pilot.press("ctrl+t")
        await tui.until(lambda: tui.chat.sidebar.has_focus)
        tui.chat.prompt.focus_input()
        if width < 120:
            await tui.shows("Esc closes the sidebar")
            await tui.pilot.press("escape")
        await tui.shows("Esc stops")
        assert tui.desk.busy
        await tui.pilot.press("escape")
        gate.set()
        await tui.shows("Stopped.")
