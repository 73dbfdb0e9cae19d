"""One card in full: its task, why it waits, what it waits for, its comments, its runs and what happened to it."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from hermes_engine.board import UnknownCard
from hermes_engine.errors import HermesError
from hermes_tui.cleaning import escaped
from hermes_tui.screens.host import SCREENS
from hermes_tui.screens.kanban.base import KanbanBase
from hermes_tui.screens.kanban.page import Page, PageLine
from hermes_tui.texts import _
from hermes_tui.widgets import chrome
from hermes_tui.widgets.bar import Part
from hermes_tui.widgets.cards import shown
from hermes_tui.widgets.look import Look, look_of
from hermes_tui.widgets.rows import fold
from hermes_tui.widgets.times import age_short, count_short, seconds_short

if TYPE_CHECKING:
    from hermes_engine.board import Card, CardEvent, Details, Run
    from hermes_tui.screens.host import Host
    from hermes_tui.screens.kanban.book import BoardBook

EVENTS = 30
"""Things that happened last, as they are listed."""


class CardScreen(KanbanBase):
    """One card."""

    AUTO_FOCUS = "Page"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", _("Open the run or card"), show=False, id="card.open"),
    ]

    def __init__(self, host: Host, deck: BoardBook, card: str) -> None:
        super().__init__(host, deck)
        self._card = card
        self.page = Page()
        self._details: Details | None = None
        self._events: tuple[CardEvent, ...] = ()
        self._version = -1
        self._reading: asyncio.Task[None] | None = None

    def compose(self) -> ComposeResult:
        yield self.header
        yield self.page
        yield self.status

    @property
    def chosen_card(self) -> Card | None:
        return self._details.card if self._details is not None else None

    def on_mount(self) -> None:
        """Begins to look."""
        self.deck.look_at(f"card {id(self)}", True)
        self.read()

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self.deck.look_at(f"card {id(self)}", False)
        if self._reading is not None:
            self._reading.cancel()

    def read(self) -> None:
        """Reads the card again, off the loop."""
        if self._reading is None or self._reading.done():
            self._version = self.deck.version
            self._reading = asyncio.create_task(self._read(), name="a card")

    async def _read(self) -> None:
        try:
            self._details, self._events = await self.desk.off_loop(self._look)
        except UnknownCard:
            self.remark(_("{card} is not on this board").format(card=self._card))
        except HermesError as error:
            self.remark(error.line)
        self.draw()

    def _look(self) -> tuple[Details, tuple[CardEvent, ...]]:
        board = self.deck.board()
        return board.show(self._card), board.events(card=self._card)

    def beat(self) -> None:
        if self._version != self.deck.version:
            self.read()
        super().beat()

    # Drawing

    def draw(self) -> None:
        """The card as it was last read."""
        if not self.is_attached:
            return
        look, width = look_of(self), self.app.size.width
        place = self.desk.place_facts(doing="", escape="", hint="", unseen=0)
        place = dataclasses.replace(place, screens=SCREENS, title="", folder="", branch="")
        left, right = chrome.header(place, self.desk.work_facts(None), width, look.glyphs, "kanban")
        self.header.show(left, [Part(f"{self.deck.slug} / {self._card}", "soft", weight=4), *right])
        self.show_status(self._keys(look), [Part(_("Esc board"), "faint", "back", weight=6)])
        if self._details is not None:
            self.page.show(self._lines(self._details, max(20, width - 2), look))

    def _keys(self, look: Look) -> list[Part]:
        card = self.chosen_card
        if card is None:
            return []
        opens = _("Enter opens the run") if self.page.chosen.startswith("run ") else _("Enter opens the card")
        keys = [(opens, "open", 8)] if self.page.chosen else []
        if card.status == "blocked" or (card.status == "running" and (worker := self.worker_of(card)) and worker.needs):
            keys.append((_("a answer"), "answer", 8))
        if card.status == "review":
            keys += [(_("A accept"), "accept", 8), (_("b back"), "send_back", 7)]
        keys += [(_("e edit"), "edit", 5), (_("H/L move"), "move(1)", 4), (_("c comment"), "comment", 5),
                 (_("d diff"), "changes", 3), (_("r retry"), "again", 3), (_("x stop"), "stop", 3)]  # fmt: skip
        return [
            Part(f"{look.glyphs.dot} {words}" if number else words, "soft", action, weight=weight, gap=1)
            for number, (words, action, weight) in enumerate(keys)
        ]

    def _lines(self, details: Details, width: int, look: Look) -> list[PageLine]:
        card, now = details.card, self.deck.now()
        title = Text(f"{card.id}  ", look.soft).append(shown(card.title), look.strong)
        lines = [PageLine(Text(" ").append_text(line)) for line, _joint in fold(title, width)]
        told = [card.status, card.assignee, f"p{card.priority}" if card.priority else ""]
        told += [_("reviewed by {name}").format(name=card.reviewer) if card.reviewer else ""]
        told += [
            _("made {ago} ago by {name}").format(ago=age_short(now - card.created), name=shown(card.created_by) or "?")
        ]
        told += [card.workspace if card.workspace != "scratch" else ""]
        lines.append(PageLine(Text(" " + "  ".join(part for part in told if part), look.soft)))
        if card.reason:
            style = look.warning if card.status == "blocked" else look.text
            lines += _block("", card.reason, width, look, style)
        lines += _block(_("Task"), card.body, width, look)
        lines += _block(_("Result"), card.result, width, look)
        if branch := next((run.commit for run in reversed(details.runs) if run.commit), ""):
            words = _("branch {branch}: `git merge {branch}` takes it over").format(branch=shown(branch))
            lines.append(PageLine(Text(f"   {words}", look.soft)))
        for heading, ids in ((_("Waits for"), card.parents), (_("Waited for by"), card.children)):
            if ids:
                lines += _heading(heading, look)
                lines += [PageLine(self._other(other, look), f"card {other}") for other in ids]
        if details.comments:
            lines += _heading(_("Comments"), look)
            for comment in details.comments:
                who = f"   {shown(comment.author) or '?'}  {age_short(now - comment.created)}"
                lines.append(PageLine(Text(who, look.faint)))
                lines += _text(comment.text, width, look.text, 5)
        lines += _heading(_("Files"), look) if details.attachments else []
        for attachment in details.attachments:
            lines.append(PageLine(Text(f"   {shown(attachment.name)}  {shown(attachment.path)}", look.soft)))
        if details.runs:
            lines += _heading(_("Runs"), look)
            for run in details.runs:
                lines += self._run(run, now, width, look)
        lines += _heading(_("What happened"), look)
        for event in self._events[-EVENTS:]:
            moved = event.target if event.source != event.target else ""
            parts = (age_short(now - event.at), event.verb, moved, shown(event.by), shown(event.text))
            lines.append(PageLine(Text("   " + "  ".join(part for part in parts if part), look.faint)))
        return lines

    def _other(self, card: str, look: Look) -> Text:
        found = next((other for other in self.deck.cards if other.id == card), None)
        line = Text(f"   {card}  ", look.soft)
        return line.append(shown(found.title), look.text).append(f"  {found.status}", look.faint) if found else line

    def _run(self, run: Run, now: float, width: int, look: Look) -> list[PageLine]:
        glyphs = look.glyphs
        good = run.state in ("done", "review")
        sign, style = (glyphs.running, look.accent) if run.ended is None else (
            (glyphs.good, look.good) if good else (glyphs.stopped, look.faint)
            if run.state in ("stopped", "sent_back", "blocked") else (glyphs.bad, look.bad)
        )  # fmt: skip
        took = seconds_short(int((run.ended or now) - run.started))
        began = time.strftime("%m-%d %H:%M", time.localtime(run.started))
        facts = [run.profile, _("review") if run.role == "review" else "", run.state, began, took]
        facts += [_("{n} tok").format(n=count_short(run.tokens)) if run.tokens else ""]
        if run.ended is None:
            facts.append(_("last sign of life {ago} ago").format(ago=age_short(now - run.heartbeat)))
        line = Text(f"   {sign} ", style).append("  ".join(fact for fact in facts if fact), look.text)
        lines = [PageLine(line, f"run {run.id}")]
        worker = self.agent_of(run) if run.ended is None else None
        words = run.error or run.summary or (worker.doing() if worker is not None else run.activity)
        return lines + _text(words, width, look.bad if sign == glyphs.bad else look.soft, 5)

    # Keys

    def action_open(self) -> None:
        """Shows the run's conversation, or the other card."""
        kind, _blank, name = self.page.chosen.partition(" ")
        if kind == "card":
            self.app.push_screen(CardScreen(self.host, self.deck, name))
        elif kind == "run" and self._details is not None:
            for run in self._details.runs:
                if str(run.id) == name:
                    self.open_run(run)

    def on_page_opened(self) -> None:
        """A click on a chosen line."""
        self.action_open()


def _heading(words: str, look: Look) -> list[PageLine]:
    return [PageLine(Text()), PageLine(Text(f" {words.upper()}", look.soft))]


def _text(words: str, width: int, style: object, indent: int) -> list[PageLine]:
    """Foreign text: its own lines, everything invisible as an escape."""
    text = Text(escaped(words).strip("\n"), style)  # type: ignore[arg-type]
    if not text.plain.strip():
        return []
    return [PageLine(Text(" " * indent).append_text(line)) for line, _joint in fold(text, width - indent)]


def _block(heading: str, words: str, width: int, look: Look, style: object = None) -> list[PageLine]:
    lines = _text(words, width, style or look.text, 3)
    return [*(_heading(heading, look) if heading else [PageLine(Text())]), *lines] if lines else []
