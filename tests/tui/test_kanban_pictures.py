"""Pictures of the board at the sizes it is made for (see `test_pictures`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from hermes_engine import events as ev
from hermes_engine.board import Attachment, Card, CardDraft, CardEvent, Comment, Details
from hermes_tui.screens.agents.book import AgentsBook
from hermes_tui.screens.agents.items import AgentItem
from hermes_tui.screens.agents.steps import OpenSteps
from hermes_tui.screens.kanban.book import BoardBook
from hermes_tui.screens.kanban.card import CardScreen
from hermes_tui.screens.kanban.forms import CardForm, Written
from hermes_tui.screens.kanban.planning import PlanPreview
from hermes_tui.screens.kanban.screen import KanbanScreen
from tests.tui.cards import NOW, card, run
from tests.tui.drawing import WIDE
from tests.tui.stage import StageApp, screen_lines, settle, stage
from tests.tui.test_pictures import same_as_kept, still

ROUTE = run(9, "k9", "fixer", 242)
CARDS = (
    card("k12", "rate limits", "todo", "waits for k9", 300, priority=2, parents=("k9",), assignee="coder"),
    card("k13", f"docs page {WIDE}", "ready", "no profile writer here", 40, assignee="writer"),
    card("k14", "[bold]markup[/] and \x1b[31m codes", "triage", "not sorted yet: a person says when it is ready"),
    card("k9", "login route", "running", run=ROUTE, assignee="fixer", children=("k12",)),
    card("k10", "write tests", "running", run=run(10, "k10", "tester", 160, activity="Run pytest -q", tokens=9_000)),
    card("k8", "signature of login", "running", run=run(8, "k8", "fixer", 70), assignee="fixer", children=("k9",),
         body="Change login() so that it takes the token store."),
    card("k4", "release notes", "blocked", "no key for the tracker", 4000, assignee="writer", priority=1),
    card("k7", "token store", "review", "waits for a person's review", 600, result="✓ tests  +14 −6", assignee="coder"),
    card("k6", "audit log", "done", seconds=720, result="merged", assignee="coder"),
    card("k5", "spike", "done", seconds=7200, result="notes in docs/spike.md", assignee="coder"),
)  # fmt: skip


def worker(name: str, session: str, activity: str, seconds: float, needs: str = "") -> AgentItem:
    """A worker of this program."""
    return AgentItem(
        f"a-{session}", name, name, "worker", "running", activity, session, "", "", 0, "qwen/qwen3-32b", name, "",
        "here", NOW - seconds, heard=NOW - 1, tokens=21_000, cost=0.06, steps=3, tools=4, needs=needs, busy=True,
    )  # fmt: skip


WORKERS = (
    worker("fixer-k9", "s-k9", "Edit src/auth/login.py", 242),
    worker("fixer-k8", "s-k8", "asks: May I change the signature of login()?", 70, "q"),
)
ASKED = ev.QuestionAsked(
    session="s-k8", run="r", agent="a-s-k8", seq=1, time=NOW, request="q",
    question="May I change the signature of login()? 4 callers.", choices=("yes", "no"),
)  # fmt: skip


class ToldAgents(AgentsBook):
    """Agents as the test tells."""

    def items(self) -> tuple[AgentItem, ...]:
        return WORKERS

    def look(self) -> None:
        pass


class ToldBoard(BoardBook):
    """A board as the test tells."""

    told: tuple[Card, ...] = CARDS

    def look_at(self, who: str, wanted: bool) -> None:
        pass

    async def follow_choice(self) -> None:
        await self.read()

    async def read(self) -> None:
        self._take("auth", self.told, 3, "")


Show = Callable[[StageApp, Pilot[int], ToldBoard], Awaitable[None]]
STATES: dict[str, Show] = {}


def state(show: Show) -> Show:
    """Registers a state under its name."""
    STATES[show.__name__] = show
    return show


async def opened(app: StageApp, pilot: Pilot[int], book: ToldBoard) -> KanbanScreen:
    app.push_screen(screen := KanbanScreen(app.host, book))
    await settle(pilot)
    screen.draw()
    return screen


@state
async def board(app: StageApp, pilot: Pilot[int], book: ToldBoard) -> None:
    screen = await opened(app, pilot, book)
    screen.asked.follow(WORKERS[1], [ASKED])
    await settle(pilot)
    screen.draw()


@state
async def board_empty(app: StageApp, pilot: Pilot[int], book: ToldBoard) -> None:
    book.told = ()
    await opened(app, pilot, book)


@state
async def board_card(app: StageApp, pilot: Pilot[int], book: ToldBoard) -> None:
    done = dataclasses.replace(
        run(3, "k7", "coder", 4000), state="review", ended=NOW - 3000, summary="✓ tests  +14 −6", tokens=38_000,
        commit="hermes/k7-ab12cd",
    )  # fmt: skip
    failed = dataclasses.replace(
        run(2, "k7", "coder", 5000), state="provider_error", ended=NOW - 4100, error="provider error: HTTP 503"
    )
    told = dataclasses.replace(
        CARDS[7], body="Make the token store.\nKeep the public API; run tests/auth before you hand it in.",
        parents=("k6",), children=("k9",), created=NOW - 9000,
    )  # fmt: skip
    file = Attachment(1, "k7", "design.md", "/work/project/docs/design.md", "ann", NOW - 8000)
    comment = Comment(1, "k7", None, "ann", "Mind the [lock].", NOW - 4500)
    details = Details(told, (failed, done), (comment,), (file,))
    happened = (CardEvent(1, "k7", None, "create", "", "ready", "ann", "", NOW - 9000),
                CardEvent(2, "k7", 3, "review", "running", "review", "coder", "✓ tests", NOW - 3000))  # fmt: skip

    class ToldCard(CardScreen):
        """A card as the test tells."""

        def _look(self) -> tuple[Details, tuple[CardEvent, ...]]:
            return details, happened

    await opened(app, pilot, book)
    app.push_screen(screen := ToldCard(app.host, book, "k7"))
    await settle(pilot)
    await screen._read()


@state
async def board_form(app: StageApp, pilot: Pilot[int], book: ToldBoard) -> None:
    await opened(app, pilot, book)
    before = Written("rate limits", "Ten a minute.\nTest it.", "coder", "2", "k9")
    app.push_screen(CardForm("k12 rate limits", before, profiles=("coder", "writer")))


@state
async def board_plan(app: StageApp, pilot: Pilot[int], book: ToldBoard) -> None:
    await opened(app, pilot, book)
    drafts = (
        CardDraft("Collect the sources", "Three papers on caching, with links.", "researcher"),
        CardDraft("Write the report", "Two pages.", "writer", parents=("@0",)),
        CardDraft("Check the numbers", "", "reviewer", parents=("@0", "@1")),
    )
    app.push_screen(PlanPreview("a report on caching", drafts, "auth", (("writer", "writes"),)))
    await settle(pilot)
    await pilot.press("down")


SIZES = [
    (name, *size)
    for name in STATES
    for size in ((80, 24), (120, 36), (200, 50), (40, 12))
    if name in ("board", "board_card") or size[0] in (80, 120)
]


@pytest.mark.parametrize(("name", "width", "height"), SIZES)
async def test_picture_of_the_board(name: str, width: int, height: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("LC_ALL", raising=False)
    async with stage(width, height, cwd=Path("/work/project")) as (app, pilot):
        agents = ToldAgents(app.desk, OpenSteps(), lambda: None)
        agents.now = lambda: NOW
        book = ToldBoard(app.desk, agents, lambda: None)
        book.now = lambda: NOW
        app.look = dataclasses.replace(app.look, motion=False)
        monkeypatch.setattr("hermes_tui.screens.kanban.about.Asked.follow", _keeps_what_is_asked)
        await STATES[name](app, pilot, book)
        svg = await still(app, pilot)
        lines = screen_lines(app)
    assert len(lines) == height
    same_as_kept(f"{name}-{width}x{height}", lines, svg)


def _keeps_what_is_asked(asked: object, worker: AgentItem | None, pending: object) -> None:
    """The stage has no broker; what is asked there is this."""
    from hermes_tui.presenter.requests import request_block

    asks = worker is not None and bool(worker.needs)
    if not asks or getattr(asked, "block", None) is None:
        asked.block = request_block(ASKED, worker.name) if asks and worker is not None else None  # type: ignore[attr-defined]
