"""What a person does to a card, on the board and on the card's own screen alike: keys and the verbs behind them.

Every verb runs off the loop; what the board refuses is told as one line.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType

from hermes_engine.errors import HermesError
from hermes_tui.person import person
from hermes_tui.screens.agents.base import AgentsBase
from hermes_tui.screens.agents.items import AgentItem
from hermes_tui.screens.kanban import moves
from hermes_tui.screens.kanban.forms import CardForm, OneLine, Written, as_number
from hermes_tui.screens.overlays.card import Card as Choosing
from hermes_tui.screens.overlays.card import Choice
from hermes_tui.screens.overlays.picker import Item, Picker
from hermes_tui.texts import _
from hermes_tui.widgets.cards import shown

if TYPE_CHECKING:
    from hermes_engine.board import Board, Card, Run
    from hermes_tui.screens.host import Host
    from hermes_tui.screens.kanban.book import BoardBook


class KanbanBase(AgentsBase):
    """A screen about cards; `chosen_card` is the one the keys act on."""

    CSS_PATH = Path(__file__).with_name("kanban.tcss")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "new", _("New card"), show=False, id="board.new"),
        Binding("e", "edit", _("Edit"), show=False, id="board.edit"),
        Binding("H", "move(-1)", _("Move to the left"), show=False, id="board.move_left"),
        Binding("L", "move(1)", _("Move to the right"), show=False, id="board.move_right"),
        Binding("a", "answer", _("Answer, or unblock with a comment"), show=False, id="board.answer"),
        Binding("m", "message", _("Tell its worker something"), show=False, id="board.message"),
        Binding("A", "accept", _("Accept the review"), show=False, id="board.accept"),
        Binding("b", "send_back", _("Send back with a note"), show=False, id="board.send_back"),
        Binding("c", "comment", _("Comment"), show=False, id="board.comment"),
        Binding("p", "priority", _("Priority"), show=False, id="board.priority"),
        Binding("g", "assign", _("Give it to a profile"), show=False, id="board.assign"),
        Binding("r", "again", _("Try again, take back, reopen"), show=False, id="board.again"),
        Binding("x", "stop", _("Stop it: block with a reason"), show=False, id="board.stop"),
        Binding("d", "changes", _("What its worker changed"), show=False, id="board.changes"),
        Binding("y", "copy", _("Copy its result"), show=False, id="board.copy"),
        Binding("q", "back", _("Back"), show=False, id="board.quit"),
        Binding("question_mark", "keys", _("Keys"), show=False, id="board.keys"),
    ]

    def __init__(self, host: Host, deck: BoardBook) -> None:
        super().__init__(host, deck.agents)
        self.deck = deck

    @property
    def chosen_card(self) -> Card | None:
        """The card the keys act on."""
        return None

    # What stands behind the keys

    def doing(self, work: Coroutine[Any, Any, object]) -> None:
        """Runs what may ask something first; a fault is one line."""

        async def run() -> None:
            try:
                await self.deck.there()  # a key pressed while the program starts is not lost
                await work
            except HermesError as error:
                self.remark(error.line)
            except Exception as error:
                self.host.report(error)

        self.run_worker(run(), group="card", exit_on_error=False)

    async def change(self, work: Callable[[Board], object], told: str = "") -> None:
        """Changes the board and shows what came of it. Raises HermesError."""
        await self.desk.off_loop(lambda: work(self.deck.board()))
        if told:
            self.remark(told)
        await self.deck.read()
        self.draw()

    async def ask(self, title: str, label: str, value: str = "", *, must: bool = False) -> str | None:
        """Asks for one line; None when the person thought better of it."""
        return await self.app.push_screen_wait(OneLine(title, label, value, must=must))

    def on_card(self, work: Callable[[Card], Coroutine[Any, Any, object]]) -> None:
        """Does something with the chosen card, where there is one."""
        if (card := self.chosen_card) is None:
            self.remark(_("No card is chosen; n makes one"))
        else:
            self.doing(work(card))

    async def take(self, card: Card, step: moves.Step) -> None:
        """One step of a card, after what it asks for. Raises HermesError."""
        note: str | None = None
        if step.asks:
            note = await self.ask(f"{card.id} {shown(card.title)}", step.asks, must=step.must)
            if note is None:
                return
        from hermes_engine.work.remains import end_remains

        verb = step.verb

        def act(board: Board) -> None:
            by = person()
            if verb == "assign":
                board.assign(card.id, card.assignee, by=by)
            elif note is None:
                getattr(board, verb)(card.id, by=by)
            else:
                getattr(board, verb)(card.id, note, by=by)
            if card.run is not None:
                end_remains(board, card.id)

        await self.change(act, step.done.format(card=card.id))

    # Its worker

    def worker_of(self, card: Card) -> AgentItem | None:
        """The living agent that works it."""
        return self.agent_of(card.run) if card.run is not None else None

    def agent_of(self, run: Run) -> AgentItem | None:
        """The agent of a run, the newest one where it was told something after its end."""
        found = [item for item in self.book.items() if item.session and item.session == run.session]
        return max(found, key=lambda item: item.started, default=None)

    def open_run(self, run: Run, *, purpose: str = "") -> None:
        """Shows a run's conversation."""
        if not run.session:
            self.remark(_("That run has no conversation"))
            return
        self.show_agent(self.agent_of(run) or _of_run(run), purpose)

    # Keys

    def action_new(self) -> None:
        """Writes a card."""
        self.doing(self._write(None))

    def action_edit(self) -> None:
        """Changes what a card says."""
        self.on_card(self._write)

    async def _write(self, card: Card | None) -> None:
        before = _written(card) if card is not None else Written()
        names = [name for name, _about in await self.desk.off_loop(self.deck.engine.kanban.profiles)]
        title = _("New card") if card is None else f"{card.id} {shown(card.title)}"
        found: Written | None = before
        fault = ""
        while True:
            found = await self.app.push_screen_wait(CardForm(title, found or before, profiles=names, fault=fault))
            if found is None or (card is not None and found == before):
                return
            try:
                await self._save(card, before, found)
            except HermesError as error:
                fault = error.line
            else:
                return

    async def _save(self, card: Card | None, before: Written, found: Written) -> None:
        from hermes_tui.screens.kanban.saving import create, edit

        if card is None:
            made = await self.desk.off_loop(lambda: create(self.deck.board(), found, person()))
            await self.change(lambda board: None, _("{card} is on the board").format(card=made))
            self.choose(made)
        else:
            told = _("{card} was changed").format(card=card.id)
            await self.change(lambda board: edit(board, card, before, found, person()), told)

    def choose(self, card: str) -> None:
        """Chooses a card, where cards are chosen."""

    def action_move(self, way: int) -> None:
        """Moves the card: at once where there is one way, else the person chooses."""

        async def move(card: Card) -> None:
            steps, no = moves.steps(card, way), moves.no_step(card, way)
            if not steps:
                self.remark(no)
                return
            if len(steps) == 1 and steps[0].verb != "archive":
                await self.take(card, steps[0])
                return
            choices = [Choice(step.verb, step.label) for step in steps]
            title = _("Move {card}: {title}").format(card=card.id, title=shown(card.title))
            chosen = await self.app.push_screen_wait(Choosing(title, [], choices, no or _("Esc closes")))
            for step in steps:
                if step.verb == chosen:
                    await self.take(card, step)

        self.on_card(move)

    def action_answer(self) -> None:
        """Answers what its worker asks, or unblocks it with a comment."""

        async def answer(card: Card) -> None:
            worker = self.worker_of(card)
            if worker is not None and worker.needs:
                self.open_agent(worker, purpose="answer")
                return
            if card.status != "blocked":
                judged = card.status == "review"
                words = _("A accepts {card}, b sends it back") if judged else _("{card} asks nothing")
                self.remark(words.format(card=card.id))
                return
            note = await self.ask(
                f"{card.id} {_('blocked')}: {shown(card.reason)}", _("Your answer; it may go on then")
            )
            if note is None:
                return

            def go_on(board: Board) -> None:
                if note:
                    board.comment(card.id, note, by=person())
                board.unblock(card.id, by=person())

            await self.change(go_on, _("{card} may go on").format(card=card.id))

        self.on_card(answer)

    def action_message(self) -> None:
        """Tells its worker something."""

        async def tell(card: Card) -> None:
            if (worker := self.worker_of(card)) is not None:
                self.open_agent(worker, purpose="say")
            else:
                self.remark(_("Nobody works {card}; c writes a comment for the next worker").format(card=card.id))

        self.on_card(tell)

    def action_accept(self) -> None:
        """Passes the review."""
        self.on_card(lambda card: self.take(card, moves.step("accept")))

    def action_send_back(self) -> None:
        """Has it worked again, with a note."""
        self.on_card(lambda card: self.take(card, moves.step("send_back")))

    def action_stop(self) -> None:
        """Blocks it with a reason; its worker ends."""
        self.on_card(lambda card: self.take(card, moves.step("block")))

    def action_again(self) -> None:
        """Unblocks, takes back, reopens: what fits."""

        async def again(card: Card) -> None:
            step, why = moves.again(card, self.deck.now())
            if step is None:
                self.remark(why)
            else:
                await self.take(card, step)

        self.on_card(again)

    def action_comment(self) -> None:
        """Adds a note."""

        async def comment(card: Card) -> None:
            note = await self.ask(f"{card.id} {shown(card.title)}", _("A comment; its next worker reads it"), must=True)
            if note is not None:
                told = _("Noted on {card}").format(card=card.id)
                await self.change(lambda board: board.comment(card.id, note, by=person()), told)

        self.on_card(comment)

    def action_priority(self) -> None:
        """Another priority."""

        async def rank(card: Card) -> None:
            title = f"{card.id} {shown(card.title)}"
            typed = await self.ask(title, _("Priority, higher is worked first"), str(card.priority), must=True)
            if typed is not None:
                value = as_number(typed)
                told = _("{card} has priority {n}").format(card=card.id, n=value)
                await self.change(lambda board: board.edit(card.id, priority=value, by=person()), told)

        self.on_card(rank)

    def action_assign(self) -> None:
        """Gives it to another profile."""

        async def assign(card: Card) -> None:
            known = await self.desk.off_loop(self.deck.engine.kanban.profiles)
            items = [Item(name, name, about) for name, about in known]
            title = _("Who works {card}?").format(card=card.id)
            chosen = await self.app.push_screen_wait(Picker(title, items, chosen=card.assignee, typed=True))
            if chosen is not None:
                told = _("{card} is for {name}").format(card=card.id, name=chosen)
                await self.change(lambda board: board.assign(card.id, chosen, by=person()), told)

        self.on_card(assign)

    def action_changes(self) -> None:
        """What its worker changed."""

        async def show(card: Card) -> None:
            runs = await self.desk.off_loop(lambda: self.deck.board().runs(card.id))
            if runs:
                self.open_run(last_work(runs), purpose="changes")
            else:
                self.remark(_("Nobody has worked {card} yet").format(card=card.id))

        self.on_card(show)

    def action_copy(self) -> None:
        """Copies its result, else its task."""
        if (card := self.chosen_card) is not None:
            self.remark(self.host.copy(card.result or card.body or card.title))


def last_work(runs: Sequence[Run]) -> Run:
    """The newest of a card's runs that worked it: who judged the work, or never began, changed nothing."""
    return [run for run in runs if (run.role == "work" and run.session) or run is runs[0]][-1]


def _written(card: Card) -> Written:
    return Written(
        card.title, card.body, card.assignee, str(card.priority) if card.priority else "", " ".join(card.parents),
        card.reviewer,
    )  # fmt: skip


def _of_run(run: Run) -> AgentItem:
    """An agent of which nothing is left but its run."""
    state = (
        "done" if run.state in ("done", "review", "sent_back") else "cancelled" if run.state == "stopped" else "failed"
    )
    name = f"{run.profile}-{run.card}"
    return AgentItem(
        f"run {run.id}", name, name, "worker", state, run.activity, run.session, "", "", 0, "", run.profile, "", "past",
        run.started, run.ended or run.heartbeat, tokens=run.tokens,
    )  # fmt: skip
