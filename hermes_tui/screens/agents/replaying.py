"""Plays a recorded run on an agent's screen: its conversation, and the agents it started as they came and went."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hermes_engine.errors import HermesError
from hermes_engine.events import AgentFinished, AgentStarted, Event, TextDelta, ToolStarted
from hermes_tui.outcomes import state_words
from hermes_tui.screens.agents.items import AgentItem
from hermes_tui.screens.agents.replay import Replay, began_and_ended
from hermes_tui.texts import _
from hermes_tui.widgets.blocks import NoticeBlock

if TYPE_CHECKING:
    from hermes_engine.session import Engine
    from hermes_tui.desk import Desk
    from hermes_tui.screens.agents.book import AgentsBook
    from hermes_tui.screens.agents.talk import Talk


class Replaying:
    """At most one replay, on one `talk`."""

    def __init__(self, desk: Desk, book: AgentsBook, talk: Talk) -> None:
        self._desk, self._book, self._talk = desk, book, talk
        self.replay: Replay | None = None
        self.doing: dict[str, str] = {}
        """What each agent of the tree below did last, by its id."""
        self.states: dict[str, str] = {}
        """State of each agent of the tree below, as of now in the replay."""
        self._moment = 0.0

    async def begin(self, item: AgentItem) -> bool:
        """Reads what was recorded and begins; False when nothing was."""
        engine = self._desk.engine
        if engine is None:
            return False
        below = self._below(item)
        events = await self._desk.off_loop(lambda: _recorded(engine, item, below))
        if not any(event.session == item.session for event in events):
            return False
        self.replay, self.doing, self.states = Replay(events), {}, {}
        self._moment = time.monotonic()
        self._talk.restart()
        return True

    def end(self) -> None:
        """Ends it."""
        self.replay = None

    def _below(self, item: AgentItem) -> list[AgentItem]:
        found: list[AgentItem] = []
        waiting = [item]
        while waiting:
            children = [child for child in self._book.children(waiting.pop()) if child not in found]
            found += children
            waiting += children
        return found

    def beat(self) -> None:
        """Some time went by."""
        now = time.monotonic()
        passed, self._moment = now - self._moment, now
        if self.replay is not None:
            for event in self.replay.advance(passed):
                self._show(event)

    def _show(self, event: Event) -> None:
        talk, item = self._talk, self._talk.item
        if item is not None and event.session == item.session:
            talk.take([event])
            return
        match event:
            case AgentStarted(agent=agent, name=name, title=title):
                self.states[agent] = "running"
                talk.transcript.add(NoticeBlock(_("{name} begins: {task}").format(name=name, task=title)))
            case AgentFinished(agent=agent, name=name, state=state):
                self.states[agent] = state
                self.doing.pop(agent, None)
                words = _("{name}: {state}").format(name=name, state=state_words(state))
                talk.transcript.add(NoticeBlock(words, "info" if state == "done" else "warning"))
            case ToolStarted(agent=agent, display=display):
                self.doing[agent] = f"{display.verb} {display.title}".strip()
            case TextDelta(agent=agent):
                self.doing[agent] = _("writing")
            case _:
                pass


def _recorded(engine: Engine, item: AgentItem, below: list[AgentItem]) -> list[Event]:
    """Blocks."""
    try:
        events = list(engine.tasks.events(item.session))
        for child in below:
            events += began_and_ended(child)
            events += engine.tasks.events(child.session) if child.session != item.session else ()
    except HermesError:
        return []
    return events
