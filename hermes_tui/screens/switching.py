"""Which screen is in view. The chat lies at the bottom and lives on under the others; going to it takes them away.

Screens beside the chat are loaded when they are first gone to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hermes_engine.errors import HermesError
from hermes_tui.screens.steady import SteadyModal, SteadyScreen
from hermes_tui.texts import _

if TYPE_CHECKING:
    from textual.app import App
    from textual.screen import Screen

    from hermes_engine.events import Event
    from hermes_tui.screens.agents.book import AgentsBook
    from hermes_tui.screens.batch.book import BatchBook
    from hermes_tui.screens.host import Host
    from hermes_tui.screens.kanban.book import BoardBook
    from hermes_tui.widgets.facts import BoardFact


class Switching:
    """Goes to screens, and tells those beside the chat what the engine says. `drain` shows at once all it has said."""

    def __init__(self, app: App[Any], host: Host, drain: Callable[[], object]) -> None:
        self._app, self._host, self._drain = app, host, drain
        host.desk.board = self._board_in_short

    @cached_property
    def book(self) -> AgentsBook:
        """What the screens about agents know."""
        from hermes_tui.screens.agents.book import AgentsBook
        from hermes_tui.screens.agents.steps import OpenSteps

        return AgentsBook(self._host.desk, OpenSteps(), self._drain)

    @cached_property
    def board(self) -> BoardBook:
        """What is known of the board."""
        from hermes_tui.screens.kanban.book import BoardBook

        return BoardBook(self._host.desk, self.book, self._board_changed)

    @cached_property
    def batch(self) -> BatchBook:
        """What is known of batch runs."""
        from hermes_tui.screens.batch.book import BatchBook

        return BatchBook(self._host.desk)

    def _board_in_short(self) -> BoardFact | None:
        """The board for header and sidebar, once it was opened or is worked; watched while the sidebar shows it."""
        engine, chat = self._host.desk.engine, self._host.chat
        if "board" not in self.__dict__:
            if engine is None or not engine.kanban.dispatched():
                return None
            self.board.read_soon()
        fact = self.board.fact()
        self.board.look_at("side", not self._beside and chat.sidebar.display and fact is not None and fact.open > 0)
        return fact

    def _board_changed(self) -> None:
        if not self._beside:
            self._host.chat.showing.refresh(soon=True)

    async def ask_to_go_on(self) -> None:
        """Says which boards were worked when the app was left; none of them is before the person wants it."""
        from hermes_tui.commands.kanban import left_off
        from hermes_tui.widgets.blocks import NoticeBlock

        engine, found = self._host.desk.engine, []
        with suppress(HermesError):  # the board says so itself, where somebody looks at it
            found = await self._host.desk.off_loop(lambda: left_off(engine)) if engine is not None else []
        for slug in found:
            words = _("The board {board} was worked here. Go on? /kanban start {board} · /kanban stop {board}")
            self._host.chat.say(NoticeBlock(words.format(board=slug)))

    @property
    def _beside(self) -> list[SteadyScreen[Any]]:
        return [screen for screen in self._app.screen_stack[1:] if isinstance(screen, SteadyScreen)]

    def hear(self, events: Sequence[Event]) -> None:
        """Events of all agents, as they come."""
        for event in events:
            self.book.steps.take(event)
        if "board" in self.__dict__:
            self.board.hear(events)
        for screen in self._beside:
            screen.hear(events)

    def recolour(self) -> None:
        """Colours of code have arrived, or the theme is another one."""
        for screen in self._beside:
            screen.recolour()

    @property
    def edited(self) -> float:
        """When the person typed last on a screen beside the chat, in monotonic seconds."""
        return max((screen.edited for screen in self._beside), default=0.0)

    def go(self, name: str, goal: str = "") -> None:
        """Goes to a screen: chat, agents, kanban (a `goal` is planned into cards) or batch (a `goal` names the run that
        is shown). While a card or a list lies over it, nothing happens.
        """
        if isinstance(self._app.screen, SteadyModal):
            return
        if name == "chat":
            self._back_to(lambda screen: screen is self._app.screen_stack[0])
        elif name == "agents":
            from hermes_tui.screens.agents.screen import AgentsScreen

            if not self._back_to(lambda screen: isinstance(screen, AgentsScreen)):
                self._back_to(lambda screen: screen is self._app.screen_stack[0])
                self._app.push_screen(AgentsScreen(self._host, self.book))
        elif name == "kanban":
            self._go_to_board(goal)
        elif name == "batch":
            self._go_to_batch(goal)

    def _go_to_batch(self, run: str) -> None:
        from hermes_tui.screens.batch.runs import RunsScreen

        if not self._back_to(lambda screen: isinstance(screen, RunsScreen)):
            self._back_to(lambda screen: screen is self._app.screen_stack[0])
            self._app.push_screen(RunsScreen(self._host, self.book, self.batch))
        if run and isinstance(screen := self._app.screen, RunsScreen):
            screen.call_after_refresh(screen.show_run, self.batch.place(run))

    def _go_to_board(self, goal: str) -> None:
        from hermes_tui.screens.kanban.screen import KanbanScreen

        if not self._back_to(lambda screen: isinstance(screen, KanbanScreen)):
            self._back_to(lambda screen: screen is self._app.screen_stack[0])
            self._app.push_screen(KanbanScreen(self._host, self.board))
        else:
            self._app.run_worker(self.board.follow_choice(), exit_on_error=False)
        if goal and isinstance(screen := self._app.screen, KanbanScreen):
            screen.call_after_refresh(screen.plan, goal)

    def _back_to(self, wanted: Callable[[Screen[Any]], bool]) -> bool:
        """Takes away what lies over the screen that is wanted; whether there is one."""
        stack = self._app.screen_stack
        if not any(wanted(screen) for screen in stack):
            return False
        while not wanted(self._app.screen):
            self._app.pop_screen()
        return True

    async def show_agent(self, agent: str) -> None:
        """Shows one agent."""
        from hermes_tui.screens.agents.agent import AgentScreen

        item = await self.book.fetch(agent)
        top = self._app.screen
        if item is None:
            self._host.chat.sending.remark(_("Nothing is known of {agent} any more").format(agent=agent))
        elif isinstance(top, AgentScreen):
            top.show(item)
        elif item.kind not in ("chat", "batch"):
            self._app.push_screen(AgentScreen(self._host, self.book, item))
