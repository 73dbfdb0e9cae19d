"""The agents' screen: all agents as a list, and the chosen one live beside it where there is room."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical

from hermes_tui.cleaning import one_line
from hermes_tui.screens.agents.base import BESIDE, AgentsBase, Words
from hermes_tui.screens.agents.drawing import amounts, clock, facts, sign_of
from hermes_tui.screens.agents.items import SORTS, AgentItem, arranged, counts, matching
from hermes_tui.screens.agents.list import AgentList
from hermes_tui.screens.agents.talk import Talk
from hermes_tui.screens.host import SCREENS
from hermes_tui.texts import _
from hermes_tui.widgets import chrome
from hermes_tui.widgets.bar import Part
from hermes_tui.widgets.blocks import Option, RequestBlock
from hermes_tui.widgets.look import look_of
from hermes_tui.widgets.transcript import Transcript

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_engine.events import Event
    from hermes_tui.screens.agents.book import AgentsBook
    from hermes_tui.screens.host import Host

CALM_SECONDS = 0.15
"""An agent is shown beside the list when the choice has rested on it for so long."""


class AgentsScreen(AgentsBase):
    """Every agent there is."""

    AUTO_FOCUS = "AgentList"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", _("Open"), show=False, id="agents.open"),
        Binding("space", "peek", _("Look at it here"), show=False, id="agents.peek"),
        Binding("a", "open('answer')", _("Answer"), show=False, id="agents.answer"),
        Binding("m", "open('say')", _("Tell it something"), show=False, id="agents.message"),
        Binding("x", "stop", _("Stop"), show=False, id="agents.stop"),
        Binding("X", "stop(True)", _("Stop it and all below"), show=False, id="agents.stop_all"),
        Binding("r", "retry", _("Run again"), show=False, id="agents.retry"),
        Binding("d", "open('changes')", _("What it changed"), show=False, id="agents.changes"),
        Binding("y", "copy", _("Copy the result"), show=False, id="agents.copy"),
        Binding("slash", "filter", _("Filter"), show=False, id="agents.filter"),
        Binding("s", "sort", _("Sort"), show=False, id="agents.sort"),
        Binding("o", "every", _("Ended ones of other folders"), show=False, id="agents.every"),
        Binding("q", "back", _("Back"), show=False, id="agents.quit"),
        Binding("question_mark", "keys", _("Keys"), show=False, id="agents.keys"),
    ]

    def __init__(self, host: Host, book: AgentsBook) -> None:
        super().__init__(host, book)
        self.list = AgentList()
        self.heading, self.facts = Words(id="heading"), Words(id="facts")
        self.transcript = Transcript(id="tail")
        self.transcript.can_focus = False
        self.talk = Talk(self.desk, self.transcript, book)
        self._filter: str | None = None
        self._typing = False
        self._sort = SORTS[0]
        self._every = False
        self._turned = False
        """Whether the person has turned the view beside the list on or off, against what is usual at this width."""
        self._opening: asyncio.Task[None] | None = None
        self._shown = ("", "")

    def compose(self) -> ComposeResult:
        yield self.header
        with Horizontal(id="middle"):
            yield self.list
            with Vertical(id="detail"):
                yield self.heading
                yield self.facts
                yield self.transcript
        yield self.status

    def on_mount(self) -> None:
        """The first picture."""
        last = self.book.find(self.book.chosen)
        if last is not None and last.live:
            self.list.choose(last.id)
        self.call_after_refresh(self.beat)

    def recolour(self) -> None:
        self.transcript.recolour()

    def hear(self, events: Sequence[Event]) -> None:
        if self.is_active:
            self.talk.hear(events)

    def on_screen_resume(self) -> None:
        """What was not heard meanwhile is read again."""
        self._shown = ("", "")

    def on_unmount(self) -> None:
        """Nothing is opened any more."""
        if self._opening is not None:
            self._opening.cancel()

    # Drawing

    def draw(self) -> None:
        """The list as it is now, and the chosen agent."""
        if not self.is_attached:
            return
        items = self.book.items()
        found = matching(items, self._filter) if self._filter else list(items)
        every = self._every or bool(self._filter)
        self.list.show(arranged(found, self._sort, every=every), self.book.now(), self._nothing(len(items)))
        self._draw_bars(items)
        item = self.list.chosen
        wide = self.app.size.width >= BESIDE
        self.query_one("#detail").display = item is not None and (wide != self._turned)
        if item is not None and self.query_one("#detail").display:
            self._detail(item)

    def _nothing(self, count: int) -> Text:
        look = look_of(self)
        if count:
            words = _("0 of {count}. Esc clears.").format(count=count)
            return Text(words, look.soft)
        return Text(_("Nothing runs. /spawn TASK starts a helper you can watch."), look.soft)

    def _draw_bars(self, items: Sequence[AgentItem]) -> None:
        look, width = look_of(self), self.app.size.width
        work = self.desk.work_facts(None)
        place = self.desk.place_facts(doing="", escape="", hint="", unseen=0)
        place = dataclasses.replace(place, screens=SCREENS)
        self.header.show(*chrome.header(place, work, width, look.glyphs, "agents"))
        if self._typing:
            words = f"/{self._filter or ''}▏"
            hint = [Part(_("Enter keeps it · Esc clears"), "faint", weight=4)]
            self.status.show([Part(words, "text", gap=1, weight=9)], hint)
            return
        self.show_status(self._keys(), self._figures(items))

    def _figures(self, items: Sequence[AgentItem]) -> list[Part]:
        glyphs, told = look_of(self).glyphs, counts(items)
        signs = (
            ("needs", glyphs.needs, "warning"),
            ("running", glyphs.running, "accent"),
            ("waiting", glyphs.waiting, "soft"),
        )
        return [Part(f"{sign}{told[name]}", role, weight=7, gap=1) for name, sign, role in signs if told[name]]

    def _keys(self) -> list[Part]:
        item = self.list.chosen
        words = {"need": _("who needs you"), "tree": _("tree"), "newest": _("newest")}[self._sort]
        keys: list[tuple[str, str, int]] = []
        if item is not None:
            keys.append((_("Enter open"), "open", 8))
            if item.needs:
                keys.append((_("a answer"), "open('answer')", 8))
            keys.append((_("m message"), "open('say')", 5))
            if item.live:
                keys += [(_("x stop"), "stop", 6), (_("X all below"), "stop(True)", 2)]
            else:
                again = _("r go on") if item.resumable else _("r again")
                keys.append((again, "retry", 6))
            keys += [(_("d diff"), "open('changes')", 3), (_("y copy"), "copy", 2)]
        keys += [(_("/ filter"), "filter", 3), (_("s sort: {by}").format(by=words), "sort", 3)]
        if self._filter:
            keys.append((_("Esc clears /{filter}").format(filter=self._filter), "back", 7))
        dot = look_of(self).glyphs.dot
        return [
            Part(f"{dot} {text}" if number else text, "soft", action, weight=weight, gap=1)
            for number, (text, action, weight) in enumerate(keys)
        ]

    def _detail(self, item: AgentItem) -> None:
        look, now = look_of(self), self.book.now()
        if self._shown != (item.id, item.session):
            self._shown = (item.id, item.session)
            self._later(item)
        width = max(10, self.heading.size.width)
        sign, style = sign_of(item, look)
        first = Text(f"{sign} ", style).append(one_line(item.name), look.strong).append(f"  {item.doing()}", look.soft)
        figures = [clock(item, now), *amounts(item)]
        lines = [first, Text("  " + "  ".join(part for part in figures if part), look.faint)]
        self.heading.show(lines)
        tall = self.app.size.height >= chrome.SHORT
        self.facts.show(facts(item, self.talk.talked(), width - 2, now, look) if tall else [])
        if self.talk.shows(item):
            self.talk.follow(item)

    def _later(self, item: AgentItem) -> None:
        """Opens its conversation when the choice rests on it."""
        if self._opening is not None:
            self._opening.cancel()

        async def show() -> None:
            await asyncio.sleep(CALM_SECONDS)
            await self.talk.open(item)

        self._opening = asyncio.create_task(show(), name="agent beside the list")

    # Keys

    def on_key(self, event: events.Key) -> None:
        """Letters of the filter, while it is typed; digits that answer what is asked beside the list."""
        if not self._typing:
            self._digit(event)
            return
        typed = self._filter or ""
        if event.key == "enter":
            self._typing = False
        elif event.key == "escape":
            self._typing, self._filter = False, None
        elif event.key == "backspace":
            self._filter = typed[:-1]
        elif event.key == "ctrl+u":
            self._filter = ""
        elif event.is_printable and event.character:
            self._filter = typed + event.character
        else:
            return
        event.stop()
        event.prevent_default()
        self.draw()

    def _digit(self, event: events.Key) -> None:
        block = self._asked()
        option = (
            block.option_for(event.character) if block and event.character and event.character.isdecimal() else None
        )
        if block is not None and option is not None:
            event.stop()
            event.prevent_default()
            self._choose(block, option)

    def _asked(self) -> RequestBlock | None:
        """What the chosen agent asks, if it is in view."""
        item = self.list.chosen
        shown = item is not None and self.query_one("#detail").display and self.talk.shows(item)
        return next(iter(self.talk.waiting()), None) if shown else None

    def _choose(self, block: RequestBlock, option: Option) -> None:
        item = self.list.chosen
        if item is None:
            return
        if option.asks_text or not block.takes_keys(time.monotonic()):
            self.open_agent(item, purpose="answer")
            return
        from hermes_engine.requests import Answer

        answer = Answer(option.choice, option.note)  # type: ignore[arg-type]
        self.run_worker(self.acting.answer(item, block.request, answer), exit_on_error=False)
        if item.place == "elsewhere":
            self.talk.answered(block)

    def on_transcript_chosen(self, message: Transcript.Chosen) -> None:
        """A choice of a request was clicked."""
        self._choose(message.block, message.option)

    def on_paste(self, event: events.Paste) -> None:
        """Pasted text is for the filter."""
        event.stop()
        self._typing, self._filter = True, (self._filter or "") + event.text.split("\n", 1)[0]
        self.draw()

    def action_filter(self) -> None:
        """Begins to type a filter."""
        self._typing, self._filter = True, self._filter or ""
        self.draw()

    def drop_draft(self) -> bool:
        dropped = bool(self._filter) or self._typing
        self._filter, self._typing = None, False
        return dropped

    def action_back(self) -> None:
        """Closes what is open here, then goes back."""
        if self.drop_draft():
            self.draw()
        elif self.app.size.width < BESIDE and self._turned:
            self.action_peek()
        else:
            super().action_back()

    def action_sort(self) -> None:
        """The next order."""
        self._sort = SORTS[(SORTS.index(self._sort) + 1) % len(SORTS)]
        self.draw()

    def action_every(self) -> None:
        """Shows ended agents of other folders, or no longer."""
        self._every = not self._every
        self.draw()

    def action_peek(self) -> None:
        """Shows the chosen agent beside the list, or takes it away."""
        self._turned = not self._turned
        self.draw()

    def action_open(self, purpose: str = "") -> None:
        """Shows the chosen agent alone."""
        if (item := self.list.chosen) is not None:
            self.open_agent(item, purpose=purpose)

    async def action_stop(self, subtree: bool = False) -> None:
        """Stops the chosen agent."""
        if (item := self.list.chosen) is not None:
            await self.acting.stop(item, subtree=subtree)

    async def action_retry(self) -> None:
        """Runs the chosen one's task again; the new agent is chosen then."""
        if (item := self.list.chosen) is not None and (row := await self.acting.retry(item)) is not None:
            self.draw()
            self.list.choose(row.id)

    def action_copy(self) -> None:
        """Copies what the chosen one brought."""
        if (item := self.list.chosen) is not None:
            self.acting.copy(item, self.talk.said if self.talk.shows(item) else "")

    def on_agent_list_chosen(self) -> None:
        """Another one is chosen."""
        if (item := self.list.chosen) is not None:
            self.book.chosen = item.id
        self.draw()

    def on_agent_list_opened(self) -> None:
        """A click on the chosen one."""
        self.action_open()
