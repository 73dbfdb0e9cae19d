"""The sidebar with the keys: its cursor, what it asks for, how often it is drawn, what a short window keeps."""

from __future__ import annotations

import dataclasses
import time
from itertools import pairwise
from typing import Any

import pytest

from hermes_engine import events as ev
from hermes_engine.messages import Display
from hermes_tui.screens.chat import showing
from hermes_tui.widgets.facts import AgentFact
from hermes_tui.widgets.sidebar import Sidebar
from tests.tui.stage import Script, StageApp, screen_lines, screen_text, settle, stage

ASKS = AgentFact("1", "fixer", "login route", "needs", "asks: change it?", 242, needs="q")
RUNS = AgentFact("2", "tester", "write tests", "running", "Run pytest", 160)
OVER = AgentFact("3", "scout", "callers", "good", seconds=9, over=True)
TASK = AgentFact("4", "evals", "full suite", "running", "thinking", 60, beside=True)


def tell(app: StageApp, *agents: AgentFact) -> None:
    """These agents there are now."""
    app.desk.told_agents = agents
    app.chat.refresh_facts()


def chosen(app: StageApp) -> str:
    """Name of the agent under the cursor."""
    agent = app.chat.sidebar.chosen
    return agent.name if agent is not None else ""


def listen(app: StageApp, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """What is asked for, as it comes."""
    asked: list[tuple[str, list[str]]] = []

    def do(verb: str, agents: tuple[AgentFact, ...]) -> None:
        asked.append((verb, [agent.name for agent in agents]))

    monkeypatch.setattr(app.chat.tending, "do", do)
    return asked


@pytest.mark.parametrize("theme", ["hermes-dark", "terminal"])
async def test_the_cursor_goes_over_agents_and_keys_ask_for_the_one_under_it(
    monkeypatch: pytest.MonkeyPatch, theme: str
) -> None:
    async with stage(120, 36, theme=theme) as (app, pilot):
        asked = listen(app, monkeypatch)
        tell(app, ASKS, RUNS, OVER, TASK)
        await pilot.press("ctrl+t")
        await settle(pilot)
        assert "a answer · m tell · x stop" in screen_text(app)
        await pilot.press("a", "j", "x", "X", "r", "m", "down", "x", "end", "enter", "home", "enter")
        assert asked == [
            ("answer", ["fixer"]), ("stop", ["tester"]), ("stop_all", ["tester"]), ("retry", ["tester"]),
            ("message", ["tester"]), ("see", ["scout"]), ("open", ["evals"]), ("open", ["fixer"]),
        ]  # fmt: skip
        await pilot.press("down", "down", "enter")
        await settle(pilot)
        assert "✓ scout" in screen_text(app)
        assert app.chat.prompt.empty


async def test_the_chosen_row_can_be_read() -> None:
    async with stage(120, 36) as (app, pilot):
        tell(app, ASKS)
        await pilot.press("ctrl+t")
        await settle(pilot)
        rows = [strip for strip in app.screen._compositor.render_strips() if "fixer    login" in strip.text]
        styles = {segment.text: segment.style for segment in rows[0] if "login route" in segment.text}
        style = styles.popitem()[1]
        assert style is not None
        assert (style.color, style.bgcolor) == (app.look.text.color, app.look.picked.bgcolor)


async def test_the_cursor_stays_on_its_agent_and_goes_with_it() -> None:
    async with stage(120, 36) as (app, pilot):
        tell(app, RUNS, TASK)
        await pilot.press("ctrl+t", "down")
        tell(app, ASKS, RUNS, TASK)
        assert chosen(app) == "evals"
        tell(app, ASKS, RUNS)
        assert chosen(app) == ""
        await pilot.press("down", "escape")
        assert chosen(app) == ""
        assert app.chat.prompt.area.has_focus


async def test_space_shows_the_last_words_under_the_row() -> None:
    async with stage(120, 36) as (app, pilot):
        kid = Script(session="s2", agent="2", run="r2")
        app.feed(kid(ev.AgentStarted, name="tester", kind="child", owner="s1"), kid(ev.TextDelta, text="I [look] now"))
        tell(app, RUNS)
        await pilot.press("ctrl+t", "space")
        await settle(pilot)
        assert "I [look] now" in screen_text(app)
        app.feed(kid(ev.ToolStarted, call_id="c", name="grep", display=Display("Grep", "login(")))
        await settle(pilot)
        assert "▸ Grep login(" in screen_text(app)
        await pilot.press("space")
        await settle(pilot)
        assert "Grep" not in screen_text(app)


async def test_a_digit_answers_the_agent_under_the_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage(120, 36) as (app, pilot):
        given: list[tuple[str, str]] = []
        monkeypatch.setattr(app.chat.asking, "_send", lambda block, choice, note: given.append((block.request, choice)))
        for agent, request in (("1", "q"), ("5", "later")):
            say = Script(session=f"s{agent}", agent=agent, run=f"r{agent}")
            app.feed(say(ev.AgentStarted, name=f"a{agent}", kind="child", owner="s1"))
            app.feed(say(ev.ApprovalAsked, request=request, title="Run", detail="rm x", reason="removes"))
        for block in app.chat.presenter.waiting():
            block.end_shown(-10.0)
        tell(app, ASKS, dataclasses.replace(ASKS, id="5", name="other", needs="later"))
        await settle(pilot)
        await pilot.press("ctrl+t", "down")
        await pilot.pause(0.1)  # a key of its own, not one of a burst
        await pilot.press("1")
        deadline = time.monotonic() + 5
        while not given and time.monotonic() < deadline:
            await pilot.pause(0.02)
        assert given == [("later", "once")]


async def test_what_was_asked_is_gone_to(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage(80, 24) as (app, pilot):
        say = Script(session="s1", agent="1", run="r1")
        app.feed(say(ev.ApprovalAsked, request="q", title="Run", detail="rm x", reason="removes"))
        tell(app, ASKS)
        monkeypatch.setattr(app.desk, "engine", Engine())
        await pilot.press("ctrl+t")
        app.chat.tending.do("answer", [ASKS])
        await settle(pilot)
        assert not app.chat.tending.drawer
        assert app.chat.asking.focused is not None
        app.chat.tending.do("answer", [RUNS])
        await settle(pilot)
        assert "tester asks nothing" in screen_text(app)


class Engine:
    """Stands where the engine is; nothing of it is asked."""

    supervisor = tasks = None

    def agents(self) -> tuple[Any, ...]:
        return ()

    def queued(self, session: str) -> tuple[str, ...]:
        return ()

    @property
    def broker(self) -> Engine:
        return self

    def pending(self) -> tuple[Any, ...]:
        return ()

    @property
    def kanban(self) -> Engine:
        return self

    def dispatched(self) -> tuple[str, ...]:
        return ()


async def test_a_flood_draws_the_sidebar_four_times_a_second_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock:
        now = time.monotonic() + 100

        def monotonic(self) -> float:
            return self.now

    async with stage(120, 36) as (app, pilot):
        clock, drawn = Clock(), list[float]()
        show = Sidebar.show

        def count(side: Sidebar, facts: Any) -> None:
            drawn.append(clock.now)
            show(side, facts)

        monkeypatch.setattr(showing, "time", clock)
        monkeypatch.setattr(Sidebar, "show", count)
        say = Script()
        for _piece in range(100):
            clock.now += 0.02
            app.chat.take([say(ev.TextDelta, text="x")])
        assert 6 <= len(drawn) <= 9
        assert all(later - before >= 0.25 for before, later in pairwise(drawn))
        app.desk.told_agents = (RUNS,)
        app.chat.take([say(ev.TextDelta, text="x")])
        end = time.monotonic() + 10
        while "tester" not in screen_text(app):
            assert time.monotonic() < end, "what came last is shown without more events"
            await pilot.pause(0.01)


async def test_a_short_window_keeps_who_needs_the_person() -> None:
    async with stage(60, 14) as (app, pilot):
        tell(app, *(dataclasses.replace(RUNS, id=f"r{n}", name=f"run{n}") for n in range(9)), ASKS)
        await pilot.press("ctrl+t")
        await settle(pilot)
        assert "◆ fixer" in screen_text(app)
        assert "more" in screen_text(app)


async def test_a_screen_is_named_with_what_goes_on_there_and_opens_by_a_click() -> None:
    async with stage(120, 36) as (app, pilot):
        tell(app, ASKS, RUNS, OVER, TASK)
        await settle(pilot)
        top = screen_lines(app)[0]
        assert "1 Chat  2 Agents·3" in top
        await pilot.click(offset=(top.index("Agents"), 0))
        await settle(pilot)
        assert app.screen is not app.chat


async def test_a_drawer_that_became_narrow_has_its_sections_one_under_the_other() -> None:
    async with stage(80, 24) as (app, pilot):
        tell(app, RUNS, dataclasses.replace(RUNS, id="5", name="reader"), TASK)
        await pilot.press("ctrl+t")
        await settle(pilot)
        assert "BACKGROUND  1" in screen_text(app)
        await pilot.resize_terminal(40, 12)
        await settle(pilot)
        rows = [line.removeprefix("│").split()[:2] for line in screen_lines(app)[2:10]]
        assert rows[:2] == [["AGENTS", "2"], ["●", "tester"]]
        assert rows[3:7] == [["+1", "more"], [], ["BACKGROUND", "1"], ["⚙", "evals"]]
