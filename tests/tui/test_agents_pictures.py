"""Pictures of the agents' screen and of one agent's, at the sizes they are made for (see `test_pictures`)."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from hermes_engine import events as ev
from hermes_engine.messages import Display
from hermes_engine.store.agents import AgentRecord
from hermes_tui.screens.agents.agent import AgentScreen
from hermes_tui.screens.agents.book import AgentsBook
from hermes_tui.screens.agents.items import AgentItem, of_record
from hermes_tui.screens.agents.screen import AgentsScreen
from hermes_tui.screens.agents.steps import OpenSteps
from tests.tui.stage import Script, StageApp, screen_lines, settle, stage
from tests.tui.test_pictures import DIFF, same_as_kept, still

NOW = 10_000.0


def item(agent: str, name: str, title: str, state: str, activity: str, seconds: float, tokens: int) -> AgentItem:
    """An agent of this program, started so many seconds ago by `main`."""
    return AgentItem(
        agent, name, title, "child", state, activity, f"s-{agent}", "s1", "main", 1, "qwen/qwen3-32b", "default", title,
        "here", NOW - seconds, heard=NOW - 1, tokens=tokens, cost=tokens / 400_000, steps=5, tools=9, busy=True,
    )  # fmt: skip


FIXER = dataclasses.replace(
    item("a1", "fixer", "login route", "running", "asks: Change the signature of login()?", 242, 21_000), needs="q"
)
RECORDS = (
    AgentRecord("p1", "", "sp1", "i0", "docs", "write the docs page", "background", "done", created=NOW - 900,
                started=NOW - 900, ended=NOW - 660, answer="Written.", note="branch hermes/docs-1: 2 files changed"),
    AgentRecord("p2", "", "sp2", "i0", "spike", "try the other parser", "child", "failed", created=NOW - 1900,
                started=NOW - 1900, ended=NOW - 1880, error="HTTP 429, tried 3 times"),
)  # fmt: skip
MAIN = AgentItem(
    "main", "main", "Split the auth refactor", "chat", "running", "Spawn", "s1", "", "", 0, "qwen/qwen3-32b", "default",
    "", "here", NOW - 300, heard=NOW, tokens=38_000, cost=0.11, busy=True,
)  # fmt: skip
SCOUT = item("a3", "scout", "find callers of login", "running", "Grep login(", 51, 12_000)
READER = item("a4", "reader", "read the old docs", "waiting", "", 12, 0)
EVALS = item("b1", "evals-nov", "evals.jsonl", "running", "126/300", 782, 2_100_000)
NIGHTLY = AgentRecord("e1", "", "se1", "i9", "nightly", "check all links", "background", "running", "Fetch example.org",
                      created=NOW - 400, started=NOW - 400)  # fmt: skip
ITEMS = (
    MAIN,
    item("a2", "tester", "write tests", "running", "Run pytest -q", 160, 9_000),
    FIXER,
    dataclasses.replace(SCOUT, heard=NOW - 95),
    dataclasses.replace(READER, steps=0, tools=0),
    dataclasses.replace(EVALS, kind="batch", parent=""),
    *(of_record(record, "past") for record in RECORDS),
    of_record(NIGHTLY, "elsewhere", "pid 4711 in ~/site"),
)


class ToldBook(AgentsBook):
    """A book the test tells what there is."""

    def items(self) -> tuple[AgentItem, ...]:
        return ITEMS

    def look(self) -> None:
        pass


def talk(say: Script) -> list[ev.Event]:
    """What fixer has done so far."""
    task = "Make login() use the new token store. Keep the public API. Run tests/auth before you report."
    return [
        say(ev.TurnStarted, prompt=task),
        say(ev.StepStarted, step=1),
        say(ev.ThoughtDelta, text="I look first."),
        say(ev.ReplyFinished, after=2.0, step=1, reasoning="I look first.", calls=2),
        *say.tool("c1", Display("Read", "src/auth/login.py", "64 lines", body="a\nb")),
        *say.tool("c2", Display("Edit", "src/auth/login.py", "+9 −3", "diff", DIFF), seconds=0.01),
        say.usage(20_000, 1_000, 60_000),
        say(ev.StepStarted, step=2),
        say(ev.TextDelta, text="The route is done. I push it now."),
        say(ev.ReplyFinished, step=2, text="The route is done. I push it now.", calls=1),
        say(ev.ToolStarted, call_id="c3", name="terminal", display=Display("Run", "git push origin login")),
        say(
            ev.ApprovalAsked,
            request="q",
            call_id="c3",
            name="terminal",
            title="Run git push",
            detail="git push origin login",
            reason="it reaches the network",
            rule="git push",
        ),
    ]


Show = Callable[[StageApp, Pilot[int]], Awaitable[None]]
STATES: dict[str, Show] = {}


def state(show: Show) -> Show:
    """Registers a state under its name."""
    STATES[show.__name__] = show
    return show


def feed(app: StageApp) -> None:
    """Everything fixer has done is heard."""
    app.switching.hear(talk(Script(session=FIXER.session, agent=FIXER.id, run="rf")))


@state
async def agents(app: StageApp, pilot: Pilot[int]) -> None:
    await pilot.press("alt+2")
    await settle(pilot)
    screen = app.screen
    assert isinstance(screen, AgentsScreen)
    end = time.monotonic() + 10
    while screen.query_one("#detail").display and not screen.talk.shows(FIXER) and time.monotonic() < end:
        await pilot.pause(0.02)
    feed(app)
    screen.draw()


@state
async def agent(app: StageApp, pilot: Pilot[int]) -> None:
    app.push_screen(screen := AgentScreen(app.host, app.switching.book, FIXER))
    end = time.monotonic() + 10
    while not screen.talk.shows(FIXER) and time.monotonic() < end:
        await pilot.pause(0.02)
    feed(app)
    screen.draw()


SIZES = [(name, *size) for name in STATES for size in ((80, 24), (120, 36), (200, 50), (40, 12))]


@pytest.mark.parametrize(("name", "width", "height"), SIZES)
async def test_picture_of_agents(name: str, width: int, height: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.delenv("LC_ALL", raising=False)
    async with stage(width, height, cwd=Path("/work/project")) as (app, pilot):
        book = ToldBook(app.desk, OpenSteps(), lambda: None)
        book.now = lambda: NOW
        app.switching.book = book
        app.look = dataclasses.replace(app.look, motion=False)
        await STATES[name](app, pilot)
        svg = await still(app, pilot)
        lines = screen_lines(app)
    assert len(lines) == height
    same_as_kept(f"{name}-{width}x{height}", lines, svg)
