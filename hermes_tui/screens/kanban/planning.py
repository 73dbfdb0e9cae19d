"""A goal becomes cards: the model is asked beside everything else, then the person sees what it proposes and says yes,
changes it, or leaves it. Nothing is on the board before that.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from hermes_engine.errors import HermesError
from hermes_tui.cleaning import one_line
from hermes_tui.screens.kanban.forms import STYLES, CardForm, Written
from hermes_tui.screens.overlays.picker import Item, Picker
from hermes_tui.screens.steady import SteadyModal
from hermes_tui.texts import _
from hermes_tui.widgets.blocks.request import QUIET_SECONDS
from hermes_tui.widgets.cards import shown
from hermes_tui.widgets.look import look_of
from hermes_tui.widgets.rows import list_row
from hermes_tui.widgets.times import seconds_short

if TYPE_CHECKING:
    from pathlib import Path

    from textual.app import App

    from hermes_engine.board import CardDraft
    from hermes_engine.session import Engine
    from hermes_tui.desk import Desk

Drafts = tuple["CardDraft", ...]


def without(drafts: Sequence[CardDraft], place: int) -> Drafts:
    """The plan without one card; what waited for it waits for what it waited for."""
    kept = []
    for number, draft in enumerate(drafts):
        if number == place:
            continue
        parents = [
            parent for one in draft.parents for parent in (drafts[place].parents if one == f"@{place}" else (one,))
        ]
        kept.append(replace(draft, parents=tuple(dict.fromkeys(_moved(parent, place) for parent in parents))))
    return tuple(kept)


def _moved(parent: str, place: int) -> str:
    number = int(parent[1:])
    return f"@{number - 1}" if number > place else parent


class PlanWait(SteadyModal["Drafts | str"]):
    """Asks the model; returns the plan, or why there is none ("" when the person gave up)."""

    CSS_PATH: ClassVar[Any] = STYLES
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "cancel", _("Give up"), show=False, id="plan.cancel", priority=True),
    ]

    def __init__(self, engine: Engine, goal: str, cwd: Path) -> None:
        super().__init__()
        self._engine, self._goal, self._cwd = engine, goal, cwd
        self._began = time.monotonic()
        self._given_up = False
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="hermes-plan")

    def compose(self) -> ComposeResult:
        with Vertical(id="card"):
            yield Static(Text(_("Planning")), id="title", markup=False)
            yield Static(Text(one_line(self._goal, 300)), classes="line", markup=False)
            yield Static("", id="wait", classes="note", markup=False)

    def on_mount(self) -> None:
        """Asks."""
        self.set_interval(0.25, self._tick)
        self._tick()
        self.run_worker(self._ask(), exit_on_error=False)

    def _tick(self) -> None:
        look = look_of(self)
        passed = time.monotonic() - self._began
        frames = look.glyphs.spinner
        sign = frames[int(passed * 4) % len(frames)] if look.motion else look.glyphs.running
        words = _("stopping") if self._given_up else _("Esc gives up")
        line = f"{sign} {_('the model makes cards of it')}  {seconds_short(int(passed))} · {words}"
        self.query_one("#wait", Static).update(Text(line))
        if self._given_up:
            self._stop()

    async def _ask(self) -> None:
        engine, goal, cwd = self._engine, self._goal, self._cwd
        found: Drafts | str = ""
        try:
            found = await asyncio.get_running_loop().run_in_executor(
                self._pool, lambda: engine.kanban.plan(goal, cwd=cwd)
            )
        except HermesError as error:
            found = error.line
        finally:
            self._pool.shutdown(wait=False)
        self.dismiss("" if self._given_up else found)

    def action_cancel(self) -> None:
        """Gives up."""
        self._given_up = True
        self._tick()

    def _stop(self) -> None:
        """Stops the agent that plans, as soon as there is one."""
        for row in self._engine.agents():
            if row.live and row.name == "plan" and row.prompt == self._goal:
                self._engine.stop_agent(row.id)


class DraftList(Widget, can_focus=True):
    """The cards of a plan, two lines each."""

    def __init__(self, drafts: Drafts) -> None:
        super().__init__()
        self.drafts = drafts
        self.place = self._top = 0

    def show(self, drafts: Drafts) -> None:
        """Other cards."""
        self.drafts = drafts
        self.place = max(0, min(self.place, len(drafts) - 1))
        self.refresh(layout=True)

    def move(self, step: int) -> None:
        """Another one is chosen."""
        self.place = max(0, min(len(self.drafts) - 1, self.place + step))
        self.refresh()

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        return 2 * len(self.drafts)

    def render_line(self, y: int) -> Strip:
        width, look = self.size.width, look_of(self)
        room = max(1, self.size.height // 2)
        self._top = max(0, min(max(min(self._top, self.place), self.place - room + 1), len(self.drafts) - room))
        place, second = self._top + y // 2, y % 2
        if place >= len(self.drafts):
            return Strip.blank(width, self.rich_style)
        draft = self.drafts[place]
        if second:
            after = ", ".join(str(int(parent[1:]) + 1) for parent in draft.parents)
            line = Text(f"     {shown(draft.assignee or 'default')}", look.soft)
            line.append(f"  {look.glyphs.forked} {_('after {cards}').format(cards=after)}" if after else "", look.faint)
            line.append(f"  {shown(draft.body)}", look.faint)
        else:
            line = Text(f" {place + 1:>2}  ", look.soft).append(shown(draft.title), look.text)
        return list_row(line, width, self.rich_style, look, chosen=place == self.place and not second)

    def on_click(self, event: events.Click) -> None:
        """Chooses a card."""
        self.move(self._top + event.y // 2 - self.place)


class PlanPreview(SteadyModal["Drafts | None"]):
    """The plan; returns what is to be created, None for nothing."""

    CSS_PATH: ClassVar[Any] = STYLES
    AUTO_FOCUS = "DraftList"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", _("Up"), show=False, id="preview.up"),
        Binding("down,j", "move(1)", _("Down"), show=False, id="preview.down"),
        Binding("enter,A", "accept", _("Create these cards"), show=False, id="preview.accept"),
        Binding("x", "drop", _("Leave one out"), show=False, id="preview.drop"),
        Binding("e", "edit", _("Change one"), show=False, id="preview.edit"),
        Binding("g", "assign", _("Give one to a profile"), show=False, id="preview.assign"),
        Binding("escape,q,ctrl+c", "close", _("Create nothing"), show=False, id="preview.close"),
    ]

    def __init__(self, goal: str, drafts: Drafts, board: str, profiles: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._goal, self._board, self._profiles = goal, board, profiles
        self._came = 0.0
        self.list = DraftList(drafts)

    def compose(self) -> ComposeResult:
        with Vertical(id="card"):
            yield Static("", id="title", markup=False)
            yield Static(Text(one_line(self._goal, 200)), classes="line", markup=False)
            yield self.list
            yield Static(
                Text(
                    _("Enter creates all · x leaves one out · e changes one · g gives it to a profile · Esc: nothing")
                ),
                classes="note",
                markup=False,
            )

    def on_mount(self) -> None:
        """How many there are."""
        self._came = time.monotonic()
        self._count()

    def _count(self) -> None:
        words = _("{n} cards for the board {board}").format(n=len(self.list.drafts), board=self._board)
        self.query_one("#title", Static).update(Text(words))

    def action_move(self, step: int) -> None:
        """Another card."""
        self.list.move(step)

    def action_accept(self) -> None:
        """Creates what stands here; not by a key that was meant for something else."""
        if time.monotonic() - self._came >= QUIET_SECONDS:
            self.dismiss(self.list.drafts)

    def action_drop(self) -> None:
        """Leaves the chosen card out; without the last one there is no plan."""
        self.list.show(without(self.list.drafts, self.list.place))
        self._count()
        if not self.list.drafts:
            self.dismiss(None)

    def action_edit(self) -> None:
        """Changes title, task, profile."""
        self.run_worker(self._edit(), exit_on_error=False)

    async def _edit(self) -> None:
        draft = self.list.drafts[self.list.place]
        before = Written(draft.title, draft.body, draft.assignee or "")
        names = [name for name, _about in self._profiles]
        form = CardForm(_("Card of the plan"), before, profiles=names, only=("body", "assignee"))
        if (found := await self.app.push_screen_wait(form)) is not None:
            self._put(replace(draft, title=found.title, body=found.body, assignee=found.assignee or None))

    def action_assign(self) -> None:
        """Gives the chosen card to a profile."""
        self.run_worker(self._assign(), exit_on_error=False)

    async def _assign(self) -> None:
        draft = self.list.drafts[self.list.place]
        items = [Item(name, name, about) for name, about in self._profiles]
        chosen = await self.app.push_screen_wait(Picker(_("Who works it?"), items, chosen=draft.assignee or ""))
        if chosen is not None:
            self._put(replace(draft, assignee=chosen))

    def _put(self, draft: CardDraft) -> None:
        place = self.list.place
        self.list.show((*self.list.drafts[:place], draft, *self.list.drafts[place + 1 :]))

    def action_close(self) -> None:
        """Creates nothing."""
        self.dismiss(None)


async def planned(app: App[Any], desk: Desk, engine: Engine, goal: str, board: str) -> Drafts:
    """The cards the person said yes to, none when they did not. Raises HermesError when no plan was made."""
    found = await app.push_screen_wait(PlanWait(engine, goal, desk.cwd))
    if isinstance(found, str):
        if found:
            raise HermesError(found)
        return ()
    profiles = await desk.off_loop(engine.kanban.profiles)
    return await app.push_screen_wait(PlanPreview(goal, found, board, profiles)) or ()
