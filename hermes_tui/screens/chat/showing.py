"""Keeps bars, queue, sidebar and peek pane up to date with what the desk knows. Knows the parts of one chat screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_tui.texts import _
from hermes_tui.widgets import chrome
from hermes_tui.widgets.look import look_of

if TYPE_CHECKING:
    from hermes_tui.screens.chat.screen import ChatScreen


class Showing:
    """What stands round the transcript."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen

    def refresh(self) -> None:
        """Draws what has changed; everything else is left alone."""
        screen, desk = self._screen, self._screen.desk
        look, width, bars = look_of(screen), screen.app.size.width, screen.bars
        work = desk.work_facts(screen.asking.fact())
        place = desk.place_facts(
            doing=_("waiting for you") if work.ask is not None else screen.doing or _("working"),
            escape=self._escape_words(),
            hint=screen.asking.hint or screen.sending.hint or self._leaving_words(),
            unseen=screen.transcript.unseen,
        )
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
        if screen.sidebar.display:
            screen.sidebar.show(work)
        if width >= chrome.PEEK:
            screen.peek.display = screen.peek.show(screen.transcript.detailed())

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

    def _escape_words(self) -> str:
        screen = self._screen
        if screen.menu.is_open:
            return _("closes the list")
        if screen.prompt.lent:
            return _("goes back to your draft")
        if screen.sidebar.has_focus or screen.transcript.has_focus:
            return _("goes back to the prompt")
        return _("stops") if screen.desk.busy else ""
