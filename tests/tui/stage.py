"""A stage for the app without an engine: real screens and presenter, fed with events by the test.

Used where the subject is what is shown; tests of what happens use the real engine.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from hermes_engine import events as ev
from hermes_engine.messages import Display, Usage
from hermes_tui.app import HermesApp
from hermes_tui.desk import Desk, Start
from hermes_tui.widgets.facts import AgentFact, AskFact, PlaceFacts, WorkFacts

SESSION, AGENT, RUN = "s1", "a1", "r1"
Event = ev.Event


def _no_settings() -> Any:
    raise AssertionError("the stage reads no settings")


class StageDesk(Desk):
    """A desk the test tells what goes on."""

    def __init__(self, cwd: Path) -> None:
        super().__init__(Start(_no_settings, cwd))
        self.told_busy = False
        self.told_queue: tuple[str, ...] = ()
        self.told_agents: tuple[AgentFact, ...] = ()

    @property
    def busy(self) -> bool:
        return self.told_busy

    @property
    def queued(self) -> tuple[str, ...]:
        return self.told_queue

    def work_facts(self, ask: AskFact | None) -> WorkFacts:
        facts = super().work_facts(ask)
        # runs end in the time of the test's own events
        return dataclasses.replace(facts, agents=self.told_agents, batches=self.work.batches())

    def place_facts(self, *, doing: str, escape: str, hint: str, unseen: int) -> PlaceFacts:
        facts = super().place_facts(doing=doing, escape=escape, hint=hint, unseen=unseen)
        return dataclasses.replace(facts, seconds=12.0 if self.told_busy else 0.0)


class StageApp(HermesApp):
    """The app that waits for the test instead of starting an engine."""

    desk: StageDesk

    async def _boot(self) -> None:
        self.desk.session, self.desk.agent = SESSION, AGENT
        self.desk.model, self.desk.title = "scripted", "a chat"
        self.desk.work.show(SESSION, AGENT)
        self.chat.presenter.show(SESSION, AGENT)
        self.chat.refresh_facts()

    def feed(self, *given: Event) -> None:
        """Shows events as the drain does, and at once what a drain may show a moment later."""
        for event in given:
            self.desk.work.take(event)
        self.chat.take(given)
        self.chat.refresh_facts()


class Script:
    """Makes events of one run with growing numbers and a clock that stands."""

    def __init__(self, *, session: str = SESSION, agent: str = AGENT, run: str = RUN, time: float = 1000.0) -> None:
        self.common = {"session": session, "agent": agent, "run": run}
        self.time = time
        self._seq = itertools.count(1)

    def __call__(self, event: type[Event], /, after: float = 0.0, **values: Any) -> Event:
        """The next event, `after` seconds later than the one before."""
        self.time += after
        return event(seq=next(self._seq), time=self.time, **self.common, **values)

    def answer(self, text: str, *, pieces: int = 7) -> list[Event]:
        """A whole turn that says something."""
        made = [self(ev.TurnStarted, prompt="hello"), self(ev.StepStarted, step=1)]
        made += [self(ev.TextDelta, text=text[at : at + pieces]) for at in range(0, len(text), pieces)]
        made += [self(ev.ReplyFinished, step=1, text=text), self(ev.TurnFinished, answer=text)]
        return made

    def tool(self, call: str, display: Display, *, status: str = "ok", seconds: float = 0.2) -> list[Event]:
        """A call and its result."""
        begun = Display(display.verb, display.title)
        return [
            self(ev.ToolStarted, call_id=call, name=display.verb, display=begun),
            self(ev.ToolFinished, call_id=call, name=display.verb, status=status, seconds=seconds, display=display),
        ]

    def usage(self, prompt: int, completion: int, window: int = 0) -> Event:
        """Figures after a reply."""
        used = Usage(prompt, completion, cost_usd=0.0123)
        return self(ev.UsageReported, usage=used, context_tokens=prompt + completion, context_window=window)


@asynccontextmanager
async def stage(
    width: int = 80, height: int = 24, *, theme: str = "hermes-dark", cwd: Path = Path("/work/project")
) -> AsyncIterator[tuple[StageApp, Pilot[int]]]:
    """A running app of that size."""
    app = StageApp(StageDesk(cwd), theme=theme)
    async with app.run_test(size=(width, height)) as pilot:
        while not app.desk.session:
            await pilot.pause(0.005)
        yield app, pilot


async def settle(pilot: Pilot[Any]) -> None:
    """Returns when everything posted has been handled and drawn."""
    for _turn in range(3):
        await pilot.pause()


def screen_lines(app: HermesApp) -> list[str]:
    """What is on the screen, row by row, without blanks at the ends."""
    width, height = app.size
    lines = app.screen._compositor.render_strips()
    return [strip.text.rstrip() for strip in lines[:height]] if width else []


def screen_text(app: HermesApp) -> str:
    """What is on the screen as one text."""
    return "\n".join(screen_lines(app))


def feed_all(app: StageApp, batches: Sequence[Sequence[Event]]) -> None:
    """Feeds several lists of events."""
    for batch in batches:
        app.feed(*batch)


def normal_svg(svg: str) -> str:
    """A picture without what changes from run to run (ids of its styles) and without the fonts it would fetch."""
    found = re.search(r"terminal-(\d+)-", svg)
    svg = svg.replace(found[1], "0") if found else svg
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
