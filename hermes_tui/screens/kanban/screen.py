"""The board: cards in columns, the chosen one in short below them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from hermes_tui.person import person
from hermes_tui.screens.agents.base import Words
from hermes_tui.screens.host import SCREENS
from hermes_tui.screens.kanban.about import Asked, about
from hermes_tui.screens.kanban.base import KanbanBase
from hermes_tui.screens.kanban.deck import Deck, deck, face, workers
from hermes_tui.screens.kanban.view import BoardView
from hermes_tui.screens.overlays.picker import Item, Picker
from hermes_tui.texts import _, ngettext
from hermes_tui.widgets import chrome
from hermes_tui.widgets.bar import Part
from hermes_tui.widgets.cards import CardFace, shown
from hermes_tui.widgets.look import look_of

if TYPE_CHECKING:
    from hermes_engine.board import Card
    from hermes_tui.screens.agents.items import AgentItem
    from hermes_tui.screens.host import Host
    from hermes_tui.screens.kanban.book import BoardBook
    from hermes_tui.widgets.blocks import Option, RequestBlock


class KanbanScreen(KanbanBase):
    """A board."""

    AUTO_FOCUS = "BoardView"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", _("Open the card"), show=False, id="board.open"),
        Binding("slash", "filter", _("Filter"), show=False, id="board.filter"),
        Binding("s", "work", _("Start or stop working this board"), show=False, id="board.work"),
        Binding("B", "boards", _("Another board"), show=False, id="board.boards"),
        Binding("space", "peek", _("More of the chosen card"), show=False, id="board.peek"),
    ]

    def __init__(self, host: Host, deck: BoardBook) -> None:
        super().__init__(host, deck)
        self.view = BoardView()
        self.about = Words(id="about")
        self.asked = Asked()
        self._filter: str | None = None
        self._typing = self._tall = False
        self._deck = Deck()
        self._dealt: object = None
        self._cards: dict[str, Card] = {}
        self._workers: dict[str, AgentItem] = {}

    def compose(self) -> ComposeResult:
        yield self.header
        yield self.view
        yield self.about
        yield self.status

    def on_mount(self) -> None:
        """The board that is chosen now, from here on watched."""
        self.deck.look_at("screen", True)
        self.run_worker(self.deck.follow_choice(), exit_on_error=False)

    def on_unmount(self) -> None:
        """Nobody looks any more; the chat says what became of the board."""
        self.deck.look_at("screen", False)
        chat = self.host.chat
        chat.call_later(chat.refresh_facts)

    def on_screen_suspend(self) -> None:
        """Something lies over it; what that is looks for itself."""
        self.deck.look_at("screen", False)

    def on_screen_resume(self) -> None:
        """It is looked at again."""
        self.deck.look_at("screen", True)

    def recolour(self) -> None:
        self.view.redraw()

    @property
    def chosen_card(self) -> Card | None:
        return self._cards.get(self.view.chosen)

    def choose(self, card: str) -> None:
        self.view.choose(card)
        self.draw()

    # Drawing

    def draw(self) -> None:
        """The cards as they are now; what looks the same is left alone."""
        if not self.is_attached:
            return
        self._workers = workers(self.book.items())
        asking = frozenset(session for session, item in self._workers.items() if item.needs)
        dealt = (self.deck.version, asking, self._filter)
        if dealt != self._dealt:
            self._dealt = dealt
            self._deck = deck(self.deck.cards, asking, self._filter or "")
            self._cards = {card.id: card for card in self.deck.cards}
        self.view.show(self._deck, self._face, self.deck.cap, self._words())
        self._draw_about()
        self._draw_bars()

    def _face(self, card: str) -> CardFace | None:
        found = self._cards.get(card)
        if found is None:
            return None
        worker = self._workers.get(found.run.session) if found.run is not None else None
        return face(found, worker, self.deck.now())

    def _words(self) -> Text | None:
        look = look_of(self)
        if self.deck.fault:
            return Text(shown(self.deck.fault), look.bad).append(f"  {_('B: boards')}", look.soft)
        if not self.deck.ready:
            return Text(_("reading the board…"), look.faint)
        if self._deck.total and not any(self._deck.columns.values()):
            return Text(_("0 of {count}. Esc clears.").format(count=self._deck.total), look.soft)
        return None

    def _draw_about(self) -> None:
        card = self.chosen_card
        look, (width, height) = look_of(self), self.app.size
        self.about.display = card is not None and height >= chrome.SHORT
        engine = self.desk.engine
        worker = self.worker_of(card) if card is not None else None
        self.asked.follow(worker, engine.broker.pending() if engine is not None else ())
        if card is None or not self.about.display:
            self.asked.lines(width, 0, look)
            return
        most = height // 2 - 2 if self._tall else 4 if height >= 30 else 3
        lines = about(card, worker, self.deck.now(), width, most, look)
        if asked := self.asked.lines(width - 1, height // 2 - 2, look):
            lines = [*lines[:1], *asked]
        self.about.show(lines)

    def _draw_bars(self) -> None:
        look, width = look_of(self), self.app.size.width
        work = self.desk.work_facts(None)
        place = self.desk.place_facts(doing="", escape="", hint="", unseen=0)
        place = dataclasses.replace(place, screens=SCREENS, title="", folder="", branch="")
        left, right = chrome.header(place, work, width, look.glyphs, "kanban")
        board = _("board: {name}") if width >= chrome.WIDE else "{name}"
        words = f"{board.format(name=self.deck.slug)} {look.glyphs.more}"
        told = [Part(words, "soft", "boards", weight=8, shrinks=6)] if self.deck.slug else []
        if self.deck.worked:
            told.append(Part(_("worked here"), "accent", "work", weight=3))
        self.header.show(left, [*told, *right])
        if self._typing:
            hint = [Part(_("Enter keeps it · Esc clears"), "faint", weight=4)]
            self.status.show([Part(f"/{self._filter or ''}▏", "text", gap=1, weight=9)], hint)
        else:
            self.show_status(self._keys(), [])

    def _keys(self) -> list[Part]:
        card = self.chosen_card
        keys: list[tuple[str, str, int]] = []
        if self._filter:
            keys.append((_("Esc clears /{filter}").format(filter=self._filter), "back", 9))
        if card is not None:
            keys += [(_("Enter open"), "open", 8), (_("H/L move"), "move(1)", 4)]
            if self.asked.block is not None or card.status == "blocked":
                keys.append((_("a answer"), "answer", 8))
            if card.status == "review":
                keys += [(_("A accept"), "accept", 8), (_("b back"), "send_back", 7), (_("d diff"), "changes", 5)]
            keys += [(_("r retry"), "again", 2), (_("x stop"), "stop", 2)]
        stop = self.deck.worked
        keys += [(_("n new"), "new", 7), (_("s stop work") if stop else _("s start work"), "work", 6)]
        keys += [(_("/ filter"), "filter", 3), (_("Esc back"), "back", 2)]
        dot = look_of(self).glyphs.dot
        return [
            Part(f"{dot} {text}" if number else text, "soft", action, weight=weight, gap=1)
            for number, (text, action, weight) in enumerate(keys)
        ]

    def on_board_view_chosen(self) -> None:
        """Another card is chosen."""
        self.draw()

    def on_board_view_opened(self) -> None:
        """A click on the chosen card."""
        self.action_open()

    # Keys

    def on_key(self, event: events.Key) -> None:
        """Letters of the filter, while it is typed; digits that answer what is asked below the board."""
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
        found = self.asked.option(event.character) if event.character else None
        if found is not None:
            event.stop()
            event.prevent_default()
            self._take_option(*found)

    def on_click(self, event: events.Click) -> None:
        """A choice below the board."""
        block = self.asked.block
        if event.widget is self.about and block is not None:
            # a line of the border and the card's title stand above the block
            option = block.option_at(event.y - 2, event.x)
            if option is not None:
                self._take_option(block, option)

    def _take_option(self, block: RequestBlock, option: Option) -> None:
        worker = self.worker_of(card) if (card := self.chosen_card) is not None else None
        if worker is None:
            return
        if option.asks_text or not self.asked.takes_keys():
            self.open_agent(worker, purpose="answer")
            return
        from hermes_engine.requests import Answer

        answer = Answer(option.choice, option.note)  # type: ignore[arg-type]
        self.run_worker(self.acting.answer(worker, block.request, answer), exit_on_error=False)

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
        """Clears the filter, then goes back."""
        if self.drop_draft():
            self.draw()
        else:
            super().action_back()

    def action_next_request(self) -> None:
        """The next card that needs the person; where there is no other, the next agent that asks."""
        needy = [card.id for card in self._deck.columns["needs"]]
        others = [card for card in needy if card != self.view.chosen]
        if not others:
            super().action_next_request()
        elif self.view.chosen in needy:
            self.choose(needy[(needy.index(self.view.chosen) + 1) % len(needy)])
        else:
            self.choose(needy[0])

    def action_peek(self) -> None:
        """More of the chosen card below the board, or less again."""
        self._tall = not self._tall
        self.draw()

    def action_open(self) -> None:
        """The card in full."""
        from hermes_tui.screens.kanban.card import CardScreen

        if (card := self.chosen_card) is not None:
            self.app.push_screen(CardScreen(self.host, self.deck, card.id))

    def action_boards(self) -> None:
        """Another board; a name that is typed and not there makes one."""

        async def choose() -> None:
            boards = self.deck.engine.kanban.boards
            found = await self.desk.off_loop(boards.list)
            items = [
                Item(info.slug, info.slug, info.fault or " ".join(f"{n} {s}" for s, n in info.counts.items() if n))
                for info in found
            ]
            hint = _("Enter goes there · a new name makes a board")
            chosen = await self.app.push_screen_wait(
                Picker(_("Boards"), items, chosen=self.deck.slug, hint=hint, typed=True)
            )
            if chosen is None:
                return
            if chosen not in [info.slug for info in found]:
                await self.desk.off_loop(lambda: boards.create(chosen))
            await self.deck.choose(chosen)
            self.remark(_("Board {name}").format(name=chosen))

        self.doing(choose())

    def action_work(self) -> None:
        """Starts working this board, or stops."""

        from hermes_tui.commands.kanban import have_worked

        async def turn() -> None:
            kanban, slug, cwd = self.deck.engine.kanban, self.deck.slug, self.desk.cwd
            if self.deck.worked:
                self.remark(_("Stopping; cards at work wait anew"))
                await self.desk.off_loop(lambda: kanban.stop(slug))
                self.remark(_("This board is no longer worked here"))
            else:
                await self.desk.off_loop(lambda: have_worked(self.deck.engine, slug, cwd))
                self.remark(_("This board is worked; s stops it"))
            await self.deck.read()

        self.doing(turn())

    def plan(self, goal: str) -> None:
        """Has a model make cards of a goal; the person says yes first."""

        async def ask() -> None:
            from hermes_tui.screens.kanban.planning import planned

            drafts = await planned(self.app, self.desk, self.deck.engine, goal, self.deck.slug or _("of now"))
            if not drafts:
                self.remark(_("Nothing was created"))
                return
            made = await self.desk.off_loop(lambda: self.deck.board().create_all(drafts, by=person()))
            words = ngettext("{n} card is on the board", "{n} cards are on the board", len(made)).format(n=len(made))
            await self.change(lambda board: None, words if self.deck.worked else f"{words}; {_('s starts work')}")
            self.choose(made[0].id)

        self.doing(ask())
