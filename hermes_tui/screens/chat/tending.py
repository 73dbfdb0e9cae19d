"""What a person asks of agents from the sidebar: open, answer, tell, stop, run again. Knows the parts of one chat
screen; where the sidebar lies over the chat it gets out of the way of what follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from hermes_tui.texts import _

if TYPE_CHECKING:
    from textual import events

    from hermes_engine.session import Engine
    from hermes_tui.screens.chat.screen import ChatScreen
    from hermes_tui.widgets.facts import AgentFact


class Tending:
    """`drawer`: the sidebar was asked for; where there is no room beside the chat it lies over it."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen
        self.drawer = False

    @property
    def out(self) -> bool:
        """Whether the sidebar lies over the chat."""
        return self.drawer and self._screen.has_class("-drawer")

    def switch(self) -> None:
        """Shows the sidebar and gives it the keys; again: back to the prompt."""
        screen = self._screen
        if screen.sidebar.has_focus or self.out:
            self.close()
            screen.prompt.focus_input()
            return
        self.drawer = True
        screen.fit()
        screen.call_after_refresh(screen.sidebar.focus)

    def close(self) -> bool:
        """Puts the drawer away; whether it was out."""
        was, self.drawer = self.out, False
        if was:
            self._screen.fit()
        return was

    def typed(self, event: events.Key) -> bool:
        """A key for which the sidebar has no use: a digit may answer the agent under the cursor, or whoever
        waits longest.
        """
        chosen = self._screen.sidebar.chosen
        return self._screen.asking.digits.take(event, chosen.needs if chosen is not None else "")

    def do(self, verb: str, agents: Sequence[AgentFact]) -> None:
        """Does what was asked; `verb` as in `Sidebar.Asked`."""
        screen = self._screen
        engine = screen.desk.engine
        if engine is None or not agents:
            return
        agent = agents[0]
        if verb in ("open", "see"):
            screen.desk.see([one.id for one in agents if one.over])
        if verb == "open":
            if not screen.host.open_screen("agents", agent=agent.id):
                screen.sidebar.peek(agent.id)
        elif verb == "answer":
            self.close()
            if not screen.asking.go_to(agent.needs):
                screen.sending.remark(_("{name} asks nothing").format(name=agent.name))
        elif verb == "message":
            self.close()
            screen.prompt.set_draft(f"/steer {agent.name} {screen.prompt.draft}")
            screen.prompt.focus_input()
        elif verb in ("stop", "stop_all"):
            stopped = engine.stop_agent(agent.id, subtree=verb == "stop_all")
            words = _("Stopping {name}") if stopped else _("{name} is not at work")
            screen.sending.remark(words.format(name=agent.name))
        elif verb == "retry":
            screen.host.in_background(partial(_again, engine, agent.id))
        screen.refresh_facts()


def _again(engine: Engine, agent: str) -> None:
    """Runs an ended agent's task once more. Blocks; raises HermesError."""
    engine.tasks.retry(agent)
