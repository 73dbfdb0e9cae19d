"""Keeps bars, queue, sidebar and peek pane up to date with what the desk knows. Knows the parts of one chat screen."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING

from hermes_tui.screens.host import SCREENS
from hermes_tui.texts import _
from hermes_tui.widgets import chrome
from hermes_tui.widgets.blocks import ResultBlock
from hermes_tui.widgets.look import look_of

if TYPE_CHECKING:
    from textual.timer import Timer

    from hermes_tui.screens.chat.screen import ChatScreen
    from hermes_tui.widgets.facts import WorkFacts

PAUSE = 0.25
"""Least seconds between two drawings of the sidebar that nobody asked for."""


class Showing:
    """What stands round the transcript."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen
        self._drawn = 0.0
        self._later: Timer | None = None

    def refresh(self, *, soon: bool = False) -> None:
        """Draws what has changed; everything else is left alone. `soon`: the sidebar may wait a moment."""
        screen, desk = self._screen, self._screen.desk
        look, width, bars = look_of(screen), screen.app.size.width, screen.bars
        work = desk.work_facts(screen.asking.fact())
        place = desk.place_facts(
            doing=_("waiting for you") if work.ask is not None else screen.doing or _("working"),
            escape=self._escape_words(),
            hint=screen.asking.hint or screen.sending.hint or self._leaving_words() or self._side_words(width),
            unseen=screen.transcript.unseen,
        )
        prompt = screen.prompt
        writing = prompt.area.has_focus and not prompt.lent and not screen.menu.is_open
        place = dataclasses.replace(place, screens=SCREENS, writing=writing)
        self._tell_terminal(work)
        glyphs = look.glyphs
        bars["header"].show(*chrome.header(place, work, width, glyphs))
        bars["status"].show(*chrome.status(place, work, width, glyphs))
        bars["ask"].show(*chrome.ask_line(work, width, glyphs))
        bars["ask"].display = work.ask is not None
        spinner = glyphs.spinner[screen.frame % len(glyphs.spinner)] if look.motion else glyphs.running
        bars["working"].show(*chrome.working(place, spinner))
        bars["working"].display = place.busy
        if screen.queue.items != desk.queued:
            screen.queue.show(desk.queued, busy=place.busy)
            screen.presenter.queued(screen.queue.items)
        wait = self._drawn + PAUSE - time.monotonic() if soon else 0.0
        if wait <= 0:
            self._show_work(work, width)
        elif self._later is None:
            self._later = screen.set_timer(wait, self.refresh)

    def _tell_terminal(self, work: WorkFacts) -> None:
        """The percent of the runs at work, where the terminal shows such a thing beside its title."""
        if set_progress := getattr(self._screen.app._driver, "set_progress", None):
            set_progress(work.batch_percent)

    def _show_work(self, work: WorkFacts, width: int) -> None:
        """Draws the sidebar and the peek pane."""
        screen = self._screen
        self._drawn = time.monotonic()
        if self._later is not None:
            self._later.stop()
            self._later = None
        if any(agent.over for agent in work.agents):
            screen.call_after_refresh(self._see, work)
        if screen.sidebar.display:
            screen.sidebar.tall = width >= chrome.VERY_WIDE
            screen.sidebar.show(work)
        if width < chrome.PEEK:
            return
        if not work.agents or (screen.sidebar.chosen is None and all(agent.over for agent in work.agents)):
            screen.peek.display = screen.peek.show(screen.transcript.detailed())
            return
        tails = screen.desk.work.tails
        last = next((agent for agent in work.agents if agent.id == tails.last), work.agents[0])
        agent = screen.sidebar.chosen or last
        screen.peek.show_agent(agent, *tails.of(agent.id))
        screen.peek.display = True

    def _see(self, work: WorkFacts) -> None:
        """Results whose blocks are on the screen have been seen."""
        screen = self._screen
        if screen.is_current:
            over = {agent.id for agent in work.agents if agent.over}
            shown = [block.agent for block in screen.transcript.in_view() if isinstance(block, ResultBlock)]
            screen.desk.tell(sorted(over.intersection(shown)))

    def relook(self) -> None:
        """Another theme: what keeps styles of the old one is drawn again."""
        screen, desk = self._screen, self._screen.desk
        screen.prompt.redraw()
        screen.queue.show(desk.queued, busy=desk.busy)
        screen.sidebar.show(desk.work_facts(screen.asking.fact()))
        screen.refresh(layout=True)

    def _leaving_words(self) -> str:
        closing = self._screen.sending.stay_open is not None
        return _("quits when it is done · Esc keeps it open") if closing else ""

    def _side_words(self, width: int) -> str:
        """What the keys do while they act on agents, where there is room to say it."""
        chosen = self._screen.sidebar.chosen
        if chosen is None or width < chrome.WIDE:
            return ""
        if chosen.over:
            return _("Enter open · Space last words · r run again · x put away · Esc back")
        answer = _("a answer") + " · " if chosen.needs else ""
        return _("Enter open · Space last words · {answer}m tell · x stop · Esc back").format(answer=answer)

    def _escape_words(self) -> str:
        screen = self._screen
        if screen.menu.is_open:
            return _("closes the list")
        if screen.sidebar.has_focus or screen.transcript.has_focus:
            return _("goes back to the prompt")
        if screen.tending.out:
            return _("closes the sidebar")
        if screen.prompt.lent:
            return _("goes back to your draft")
        return _("stops") if screen.desk.busy else ""
