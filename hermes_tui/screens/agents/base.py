"""What the screens about agents have in common: bars at their edges, a passing remark, a clock that runs while they are
looked at. Esc goes back and interrupts nothing.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.timer import Timer
from textual.widgets import Static

from hermes_tui.screens.agents.acts import Acting
from hermes_tui.screens.leaving import AGAIN_SECONDS
from hermes_tui.screens.steady import SteadyScreen
from hermes_tui.texts import _
from hermes_tui.widgets import chrome
from hermes_tui.widgets.bar import Bar, Part

if TYPE_CHECKING:
    from hermes_tui.screens.agents.book import AgentsBook
    from hermes_tui.screens.agents.items import AgentItem
    from hermes_tui.screens.host import Host

BEAT_SECONDS = 0.25
REMARK_SECONDS = 5.0

BESIDE = 100
"""From this width on there is room for a column beside the list or the transcript."""


class Words(Static):
    """Some lines, drawn again only when they look different."""

    def __init__(self, *, id: str) -> None:
        super().__init__("", id=id, markup=False)
        self._shown = Text()

    def show(self, lines: list[Text]) -> None:
        """Shows these lines."""
        text = Text("\n").join(lines)
        if text != self._shown or text.spans != self._shown.spans:
            taller = text.plain.count("\n") != self._shown.plain.count("\n") or not self._shown.plain
            self._shown = text
            self.update(text, layout=taller)


class AgentsBase(SteadyScreen[None]):
    """A screen about agents."""

    CSS_PATH = Path(__file__).with_name("agents.tcss")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", _("Back"), show=False, id="agents.back"),
        Binding("ctrl+c", "set_aside", _("Clear what is written; again: quit"), show=False, id="agents.set_aside"),
        Binding("ctrl+n", "next_request", _("Next that needs you"), show=False, id="agents.next", priority=True),
    ]

    def __init__(self, host: Host, book: AgentsBook) -> None:
        super().__init__()
        self.host, self.desk, self.book = host, host.desk, book
        self.acting = Acting(host.desk, host, self.remark)
        self.header, self.status = Bar(id="header"), Bar(id="status")
        self._remark = ""
        self._remarked = self._pressed = 0.0
        self._beats: Timer | None = None

    def on_mount(self) -> None:
        """Begins to look."""
        self._beats = self.set_interval(BEAT_SECONDS, self.beat)

    def on_screen_resume(self) -> None:
        """It is looked at again."""
        if self._beats is not None:
            self._beats.resume()
        self.call_after_refresh(self.beat)

    def on_screen_suspend(self) -> None:
        """Something lies over it."""
        if self._beats is not None:
            self._beats.pause()

    def on_resize(self) -> None:
        """Another size."""
        width, height = self.app.size
        self.set_class(width >= BESIDE, "-beside")
        self.set_class(height < chrome.SHORT, "-short")
        self.set_class(height < chrome.TINY, "-tiny")
        self.call_after_refresh(self.beat)

    def beat(self) -> None:
        """A quarter of a second went by, or something happened: shows what has changed."""
        self.book.look()
        self.draw()

    def draw(self) -> None:
        """Shows what is known now; what looks the same is left alone."""

    # The status line

    def remark(self, words: str) -> None:
        """A passing word in the status line."""
        self._remark, self._remarked = words, time.monotonic()
        if self.is_mounted:
            self.draw()

    def show_status(self, keys: list[Part], right: list[Part]) -> None:
        """The keys of the screen, or the remark while it is fresh."""
        end = [Part(_("? keys"), "faint", "app.keys", weight=5), Part("", gap=1, weight=9)]
        if self._remark and time.monotonic() - self._remarked < REMARK_SECONDS:
            self.status.show([Part(self._remark, "text", gap=1, weight=9, shrinks=8)], end)
        else:
            self.status.show(keys, [*right, *end])

    async def on_bar_clicked(self, message: Bar.Clicked) -> None:
        """A part of a bar was clicked."""
        await self.run_action(message.action)

    # Keys

    def action_back(self) -> None:
        """To where the person came from."""
        self.app.pop_screen()

    async def action_keys(self) -> None:
        """What the keys do."""
        await self.app.run_action("keys")

    def drop_draft(self) -> bool:
        """Clears what is written here; whether anything was."""
        return False

    async def action_set_aside(self) -> None:
        """Clears what is written; again within three seconds: leaves."""
        now = time.monotonic()
        again, self._pressed = now - self._pressed < AGAIN_SECONDS, now
        if again:
            await self.app.run_action("quit_or_ask")
        elif self.drop_draft():
            self.remark(_("Cleared. Ctrl+C again to quit"))
        else:
            self.remark(_("x stops an agent. Ctrl+C again to quit"))

    def action_next_request(self) -> None:
        """Goes to the first agent that needs the person."""
        self.go_to_needy()

    def go_to_needy(self, after: str = "") -> None:
        """Goes to the next agent that needs the person, behind the one of that id."""
        waiting = [item for item in self.book.items() if item.needs]
        if not waiting:
            self.remark(_("Nothing waits for you"))
            return
        ids = [item.id for item in waiting]
        place = ids.index(after) + 1 if after in ids else 0
        self.open_agent(waiting[place % len(waiting)], purpose="answer")

    def open_agent(self, item: AgentItem, *, purpose: str = "") -> None:
        """Shows one agent; a chat is gone to. `purpose` ∈ answer | say: what the keys are for at first."""
        self.book.chosen = item.id
        if item.kind == "batch":
            self.app.call_later(self.app.run_action, f"screen('batch', {item.name!r})")
        elif item.kind == "chat" and item.place == "here":
            if item.session == self.desk.session or self.acting.promote(item):
                self.app.call_later(self.app.run_action, "screen('chat')")
        else:
            self.show_agent(item, purpose)

    def show_agent(self, item: AgentItem, purpose: str) -> None:
        """Puts the agent on the screen."""
        from hermes_tui.screens.agents.agent import AgentScreen

        self.app.push_screen(AgentScreen(self.host, self.book, item, purpose=purpose))
