"""Pictures of the batch screens at the sizes they are made for (see `test_pictures`)."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from hermes_engine.messages import Message, ToolCall, tool_message
from hermes_tui.presenter.batch import TableRow
from hermes_tui.presenter.batch_counts import counters
from hermes_tui.screens.batch.book import BatchBook, Follow, RunItem
from hermes_tui.screens.batch.form import RunForm, Wanted
from hermes_tui.screens.batch.run import RunScreen
from hermes_tui.screens.batch.runs import RunsScreen
from hermes_tui.screens.batch.trace import TraceScreen
from tests.tui.batch_told import COUNTS, FOLDER, NOW, model, state
from tests.tui.stage import StageApp, screen_lines, settle, stage
from tests.tui.test_pictures import same_as_kept, still

INTERRUPTED = {"total": 300, "kept": 120, "rejected": 3, "failed": 5, "invalid": 3, "pending": 169}
DONE = {"total": 42, "kept": 40, "rejected": 2, "failed": 0, "invalid": 0, "pending": 0}
HOLDER = "process 4711 on gpu-3 since 2027-01-15T07:41:00Z"


def item(name: str, rows: dict[str, int], *, here: bool = False, holder: str = "", word: str = "done") -> RunItem:
    """A run of the list."""
    told = dataclasses.replace(state(rows, holder=holder, word=word), name=name, folder=FOLDER.parent / name)
    return RunItem(told, here, False, counters(rows, 5 if here or holder else 0))


class ToldBook(BatchBook):
    """Runs as the test tells."""

    def look(self) -> None:
        pass


class ToldFollow(Follow):
    """A run as the test tells."""

    def look(self) -> None:
        pass

    async def read(self) -> None:
        pass


Show = Callable[[StageApp, Pilot[int]], Awaitable[None]]
STATES: dict[str, Show] = {}


def shown(show: Show) -> Show:
    """Registers a state under its name."""
    STATES[show.__name__] = show
    return show


async def list_of_runs(app: StageApp, pilot: Pilot[int], *items: RunItem) -> None:
    """The list, with these runs."""
    app.switching.batch.items, app.switching.batch.ready = items, True
    await pilot.press("alt+4")
    await settle(pilot)
    screen = app.screen
    assert isinstance(screen, RunsScreen)
    screen.draw()


@shown
async def batches(app: StageApp, pilot: Pilot[int]) -> None:
    await list_of_runs(
        app,
        pilot,
        item("evals-nov", COUNTS, here=True),
        item("night-[b]", {**COUNTS, "kept": 60, "pending": 230}, holder=HOLDER),
        item("sft-coding", INTERRUPTED, word="interrupted"),
        item("smoke", DONE),
    )


@shown
async def batch_none(app: StageApp, pilot: Pilot[int]) -> None:
    await list_of_runs(app, pilot)


@shown
async def batch_form(app: StageApp, pilot: Pilot[int]) -> None:
    await list_of_runs(app, pilot)
    app.push_screen(RunForm(Wanted(file="prompts.jsonl", model="qwen3-32b"), "there is no file prompts.jsonl"))


async def run_of(app: StageApp, pilot: Pilot[int]) -> RunScreen:
    """One run."""
    screen = RunScreen(app.host, app.switching.book, app.switching.batch, FOLDER)
    screen.follow = ToldFollow(app.desk, FOLDER)
    screen.follow.model = model()
    app.push_screen(screen)
    await settle(pilot)
    screen.draw()
    await settle(pilot)
    screen.draw()
    return screen


@shown
async def batch(app: StageApp, pilot: Pilot[int]) -> None:
    await run_of(app, pilot)


@shown
async def batch_figures(app: StageApp, pilot: Pilot[int]) -> None:
    await run_of(app, pilot)
    await pilot.press("tab")
    await settle(pilot)


class ToldActing:
    """A row's conversation as the test tells."""

    async def recorded(self, row: TableRow) -> tuple[Message, ...]:
        call = ToolCall("c1", "terminal", '{"command": "pytest -q"}')
        return (
            Message("user", "Make the tests of [auth] pass."),
            Message("assistant", "I look first.", (call,), reasoning="What fails?"),
            tool_message(call, "3 failed, 9 passed"),
            Message("assistant", "Three tests fail:\n\n1. `login`\n2. `logout`\n3. [odd]"),
        )


@shown
async def batch_row(app: StageApp, pilot: Pilot[int]) -> None:
    below = await run_of(app, pilot)
    row = next(row for row in below.model.rows(NOW) if row.name[0] == 104)
    screen = TraceScreen(below, row)
    screen.acts = ToldActing()  # type: ignore[assignment]
    app.push_screen(screen)
    end = time.monotonic() + 10
    while not screen._opened and time.monotonic() < end:
        await pilot.pause(0.02)


SIZES = [(name, *size) for name in STATES for size in ((80, 24), (120, 36), (200, 50), (40, 12))]


@pytest.mark.parametrize(("name", "width", "height"), SIZES)
async def test_picture_of_batch(name: str, width: int, height: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in (("LANG", "C.UTF-8"), ("TZ", "UTC")):
        monkeypatch.setenv(key, value)
    monkeypatch.delenv("LC_ALL", raising=False)
    time.tzset()
    async with stage(width, height, cwd=Path("/work/project")) as (app, pilot):
        book = ToldBook(app.desk)
        book.now = lambda: NOW
        app.switching.batch = book
        app.look = dataclasses.replace(app.look, motion=False)
        await STATES[name](app, pilot)
        svg: Any = await still(app, pilot)
        lines = screen_lines(app)
    assert len(lines) == height
    same_as_kept(f"{name}-{width}x{height}", lines, svg)
