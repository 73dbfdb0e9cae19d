"""The agents' screen, driven as a person does: real engine, real store, a scripted server at the network."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual._compositor import Compositor

from hermes_tui.screens.agents.agent import AgentScreen
from hermes_tui.screens.agents.screen import AgentsScreen
from tests.conftest import Serve
from tests.server.scripted import call, hang, say
from tests.tui.drawing import MARKUP
from tests.tui.live import Live, live, settings
from tests.tui.stage import Script, screen_text, settle, stage
from tests.work.support import by_prompt, spawn

pytestmark = pytest.mark.slow

WRITE = call("write_file", {"path": "x.txt", "content": "one\ntwo\n"})


def listed(app: Live) -> list[str]:
    """The lines of the list."""
    screen = app.app.screen
    assert isinstance(screen, AgentsScreen)
    return screen.list.plain


def chosen(app: Live) -> str:
    """Name of the chosen agent."""
    screen = app.app.screen
    assert isinstance(screen, AgentsScreen)
    return screen.list.chosen.name if screen.list.chosen else ""


def names(app: Live) -> list[str]:
    """Signs and names of the list, headings in capitals."""
    lines = [line for line in listed(app) if line.strip()]
    return [" ".join(line.split()[:2]) if not line.strip().isupper() else line.strip() for line in lines]


async def split(app: Live, count: int) -> None:
    """Sends the prompt that starts agents and goes to them."""
    await app.ready()
    await app.say("split it")
    assert app.desk.engine is not None
    await app.until(lambda: len(app.desk.engine.agents()) == count + 1)  # type: ignore[union-attr]
    await app.pilot.press("alt+2")
    await app.until(lambda: isinstance(app.app.screen, AgentsScreen))


def script(*tasks: str, **answers: object) -> Callable[..., object]:
    return by_prompt({"split": [spawn(*tasks), say("all in")], **answers})  # type: ignore[dict-item]


async def test_the_list_is_sorted_by_need_and_says_what_each_does(serve: Serve, tmp_path: Path) -> None:
    server = serve(script("alpha reads", "beta writes", beta=[WRITE, say("written")], alpha=hang(60)))
    async with live(settings(server), tmp_path, width=120) as app:
        await split(app, 2)
        await app.until(lambda: listed(app)[:1] and "needs" not in names(app))
        await app.until(lambda: names(app) == ["◆ beta", "● alpha", "● main"])
        assert "asks: Write x.txt" in listed(app)[0]
        await app.shows("2 Agents·2")
        assert "◆1 ●1" in app.screen
        await app.shows("╭─ ◆ beta asks")
        await app.pilot.press("s")
        await app.until(lambda: names(app) == ["● main", "● alpha", "◆ beta"])
        assert listed(app)[1].startswith("   ●"), "a child stands below what started it"
        await app.pilot.press("end", "x")
        await app.shows("Stopping beta")
        await app.until(lambda: "■ beta" in names(app))
        await app.pilot.press("s", "s")
        await app.until(lambda: names(app) == ["● alpha", "● main", "ENDED", "■ beta"])
        await app.shows("1 Chat  2 Agents·1")


async def test_esc_goes_back_and_stops_nothing_and_the_chat_is_as_it_was(serve: Serve, tmp_path: Path) -> None:
    server = serve(script("alpha reads", alpha=hang(60)))
    async with live(settings(server), tmp_path, width=90) as app:
        await app.ready()
        await app.say("split it")
        await app.until(lambda: len(server.requests) == 2)
        await app.pilot.press(*"half a dra")
        for key in ("alt+2", "f3"):
            await app.pilot.press(key)
            await app.until(lambda: isinstance(app.app.screen, AgentsScreen))
            await app.shows("alpha")
            await app.pilot.press("enter")
            await app.until(lambda: isinstance(app.app.screen, AgentScreen))
            await app.pilot.press("escape", "escape")
            await app.until(lambda: app.app.screen is app.chat)
        assert app.chat.prompt.text == "half a dra"
        assert app.chat.prompt.area.has_focus
        assert app.desk.busy
        assert server.open_requests == 1
        await app.pilot.press("alt+2", "2", "1")
        await app.until(lambda: app.app.screen is app.chat)
        await app.pilot.press("ctrl+u", "tab", "2")
        await app.until(lambda: isinstance(app.app.screen, AgentsScreen))
        await app.pilot.press("f2")
        await app.until(lambda: app.app.screen is app.chat)
        assert app.chat.prompt.text == ""


async def test_a_digit_answers_what_is_asked_beside_the_list(serve: Serve, tmp_path: Path) -> None:
    server = serve(script("alpha reads", "beta writes", alpha=hang(60), beta=[WRITE, say("written")]))
    async with live(settings(server), tmp_path, width=120) as app:
        await split(app, 2)
        await app.shows("╭─ ◆ beta asks")
        screen = app.app.screen
        assert isinstance(screen, AgentsScreen)
        block = screen.talk.waiting()[0]
        await app.until(lambda: block.takes_keys(time.monotonic()))
        await app.pilot.press("1")
        await app.until(lambda: (tmp_path / "x.txt").exists())
        await app.until(lambda: names(app) == ["● alpha", "● main", "ENDED", "✓ beta"])
        assert app.app.screen is screen
        await app.pilot.press("1")
        await app.until(lambda: app.app.screen is app.chat)


async def test_what_happens_in_the_chat_meanwhile_is_drawn_when_it_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    painted: list[object] = []
    whole = Compositor.render_full_update

    def counted(self: Compositor, *given: Any, **named: Any) -> Any:
        painted.append(self)
        return whole(self, *given, **named)

    async with stage(80, 24, cwd=tmp_path) as (app, pilot):
        await pilot.press("alt+2")
        await settle(pilot)
        monkeypatch.setattr(Compositor, "render_full_update", counted)
        app.feed(*Script().answer("said meanwhile"))
        await settle(pilot)
        assert painted == []
        assert "said meanwhile" not in screen_text(app)
        await pilot.press("escape")
        await settle(pilot)
        assert "said meanwhile" in screen_text(app)


async def test_the_header_and_the_command_go_there_too(serve: Serve, tmp_path: Path) -> None:
    async with live(settings(serve([say("hello")])), tmp_path) as app:
        await app.ready()
        await app.say("/agents")
        await app.shows("/spawn TASK starts a helper")
        await app.pilot.click("#header", offset=(11, 0))
        await app.until(lambda: app.app.screen is app.chat)
        await app.pilot.click("#header", offset=(20, 0))
        await app.until(lambda: isinstance(app.app.screen, AgentsScreen))
        await app.pilot.press("question_mark")
        await app.shows("type to narrow")
        await app.pilot.press("alt+1")
        await app.pilot.press("escape", "q")
        await app.until(lambda: app.app.screen is app.chat)


async def test_opened_again_the_first_that_lives_is_chosen(serve: Serve, tmp_path: Path) -> None:
    server = serve(script("alpha reads", "beta reads", alpha=say("read"), beta=hang(60)))
    async with live(settings(server), tmp_path, width=120) as app:
        await split(app, 2)
        await app.until(lambda: names(app) == ["● beta", "● main", "ENDED", "✓ alpha"])
        await app.pilot.press("end")
        await app.until(lambda: chosen(app) == "alpha")
        await app.pilot.press("escape", "alt+2")
        await app.until(lambda: isinstance(app.app.screen, AgentsScreen) and chosen(app))
        assert chosen(app) == "beta"


async def test_ended_ones_of_other_folders_wait_behind_a_line(serve: Serve, tmp_path: Path) -> None:
    server = serve(script("alpha reads", alpha=say("read")))
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        async with live(settings(server), tmp_path / folder, width=120) as app:
            await split(app, 1)
            await app.until(lambda app=app: "✓ alpha" in names(app))  # type: ignore[misc]
            await app.until(lambda app=app: not app.desk.busy)  # type: ignore[misc]
    async with live(settings(server), tmp_path / "one", width=120) as app:
        await app.ready()
        await app.pilot.press("alt+2")
        await app.until(lambda: names(app)[:2] == ["ENDED", "✓ alpha"])
        assert listed(app)[-1] == " 1 more of other folders · o shows it"
        await app.pilot.press("o")
        await app.until(lambda: names(app) == ["ENDED", "✓ alpha", "✓ alpha"])
        assert f"done · {str(tmp_path)[:6]}" in listed(app)[1], "the newest, with its folder"
        assert "done · " not in listed(app)[2]
        await app.pilot.press("o", "slash", *"alph")
        await app.until(lambda: names(app) == ["ENDED", "✓ alpha", "✓ alpha"])


async def test_a_filter_narrows_and_esc_clears_it_first(serve: Serve, tmp_path: Path) -> None:
    server = serve(script("alpha reads", "beta writes", alpha=hang(60), beta=hang(60)))
    async with live(settings(server), tmp_path) as app:
        await split(app, 2)
        await app.pilot.press("slash", *"bet")
        await app.until(lambda: names(app) == ["● beta"])
        await app.pilot.press("enter")
        await app.shows("Esc clears /bet")
        await app.pilot.press("slash", *"xx", "enter")
        await app.shows("0 of 3. Esc clears.")
        await app.pilot.press("escape")
        await app.until(lambda: len(names(app)) == 3)
        assert isinstance(app.app.screen, AgentsScreen)


async def test_ended_agents_stay_listed_and_are_run_again(serve: Serve, tmp_path: Path) -> None:
    server = serve(script("alpha reads", alpha=say("read it all")))
    async with live(settings(server), tmp_path, width=120) as app:
        await split(app, 1)
        await app.until(lambda: names(app) == ["ENDED", "✓ alpha"])
        await app.shows("read it all")
        await app.pilot.press("y")
        await app.shows("Copied 1 line")
        assert app.app.clipboard == "read it all"
        await app.pilot.press("r")
        await app.until(lambda: names(app).count("✓ alpha") == 2)
        assert app.desk.engine is not None
        agents = [row.id for row in app.desk.engine.agents() if row.kind == "child"]
        app.desk.engine.tasks.forget(agents)
        await app.until(lambda: app.desk.engine and len(app.desk.engine.agents()) == 1)
        await app.until(lambda: names(app) == ["ENDED", "✓ alpha", "✓ alpha"])
        await app.pilot.press("enter")
        await app.until(lambda: isinstance(app.app.screen, AgentScreen))
        await app.shows("read it all")
    async with live(settings(server), tmp_path, width=120) as app:
        await app.ready()
        await app.pilot.press("alt+2")
        await app.until(lambda: names(app) == ["ENDED", "✓ alpha", "✓ alpha"])
        await app.shows("read it all")


async def test_f9_1_f9_10_titles_are_shown_as_they_are_in_every_size(serve: Serve, tmp_path: Path) -> None:
    task = "look " + " ".join(MARKUP)
    server = serve(by_prompt({"split": [spawn(task), say("all in")], "look": hang(60)}))
    async with live(settings(server), tmp_path, width=160) as app:
        await split(app, 1)
        await app.until(lambda: '[/] [00] {"a":' in "".join(listed(app)))
        await app.shows("[@click=app.quit]x[/]")
        for size in ((40, 12), (20, 5), (1, 1), (200, 50), (40, 12)):
            await app.pilot.resize_terminal(*size)
            await app.pilot.pause()
            await app.pilot.press("space", "s", "s", "s", "home", "enter")
            await app.pilot.pause()
            await app.pilot.press("m", *"hi", "escape", "escape")
            await app.until(lambda: isinstance(app.app.screen, AgentsScreen))
        await app.until(lambda: any("look" in line for line in listed(app)))
        await app.pilot.press("escape", "escape")
        await app.pilot.resize_terminal(100, 30)
        await app.until(lambda: app.app.screen is app.chat)
        await app.shows("split it")
