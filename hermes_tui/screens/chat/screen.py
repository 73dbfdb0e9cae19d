"""The chat screen: lays out transcript, prompt and bars, and says what keys mean here. The engine is the desk's."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal

from hermes_tui.screens.chat.arriving import Arriving
from hermes_tui.screens.chat.asking import Asking
from hermes_tui.screens.chat.completing import Completing
from hermes_tui.screens.chat.sending import Sending
from hermes_tui.screens.chat.showing import Showing
from hermes_tui.screens.chat.tending import Tending
from hermes_tui.screens.host import SCREENS
from hermes_tui.screens.steady import SteadyScreen
from hermes_tui.texts import _
from hermes_tui.widgets import chrome, prompt
from hermes_tui.widgets.bar import Bar
from hermes_tui.widgets.blocks import Block, OutputBlock, RequestBlock, WelcomeBlock
from hermes_tui.widgets.menu import Menu
from hermes_tui.widgets.peek import Peek
from hermes_tui.widgets.prompt import History, Prompt
from hermes_tui.widgets.queue_list import QueueList
from hermes_tui.widgets.sidebar import Sidebar
from hermes_tui.widgets.transcript import Transcript

if TYPE_CHECKING:
    from hermes_engine.events import Event
    from hermes_engine.session import SessionView
    from hermes_tui.commands import CommandHost
    from hermes_tui.desk import Desk
    from hermes_tui.presenter.chat import ChatPresenter


SCREEN_DIGITS = {str(number): name for number, name in enumerate(SCREENS, 1)}
"""Keys that go to a screen where nothing is typed."""

STYLES: list[str | PurePath] = [Path(__file__).with_name("chat.tcss"), Path(prompt.__file__).with_name("prompt.tcss")]
"""The screen's style sheets. The app loads them: the toolkit passes over those of an app's first screen."""


class ChatScreen(SteadyScreen[None]):
    """One chat."""

    AUTO_FOCUS = "Area"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "escape", _("Stop the turn, or close"), show=False, id="chat.escape"),
        Binding("ctrl+s", "steer", _("Send now, into the running turn"), show=False, id="chat.steer"),
        Binding("ctrl+n", "next_request", _("Next that needs you"), show=False, id="chat.next_request", priority=True),
        Binding("ctrl+o", "details", _("Open or close details"), show=False, id="chat.details"),
        Binding("ctrl+t", "work", _("Work sidebar"), show=False, id="chat.work"),
        Binding("shift+tab", "mode", _("Next mode"), show=False, id="chat.mode", priority=True),
        Binding("ctrl+g", "editor", _("Write in $EDITOR"), show=False, id="chat.editor"),
        Binding("ctrl+r", "history", _("Search what was sent"), show=False, id="chat.history"),
        Binding("pageup", "page(-1)", _("Page up"), show=False, id="chat.page_up", priority=True),
        Binding("pagedown", "page(1)", _("Page down"), show=False, id="chat.page_down", priority=True),
        Binding("ctrl+end", "newest", _("Newest"), show=False, id="chat.newest"),
        Binding("tab", "switch_focus", _("Transcript and back"), show=False, id="chat.focus"),
    ]

    def __init__(self, desk: Desk, host: CommandHost) -> None:
        super().__init__()
        self.desk, self.host = desk, host
        self.transcript = Transcript(id="transcript")
        self.menu = Menu(id="menu")
        self.history = History()
        self.prompt = Prompt(self.menu, self.history, id="prompt")
        self.peek = Peek(id="peek")
        self.sidebar = Sidebar(id="side")
        self.bars = {name: Bar(id=name) for name in ("header", "working", "ask", "status")}
        self.queue = QueueList(id="queue")
        self._presenter: ChatPresenter | None = None
        self.asking = Asking(desk, self._waiting, self.transcript, self.prompt)
        self.completing = Completing(self.prompt, desk, host)
        self.sending = Sending(self)
        self.showing, self.tending, self.arriving = Showing(self), Tending(self), Arriving(self)
        self.side_mode = "auto"
        self.frame = 0
        self.edited = 0.0
        """When the draft changed last, in monotonic seconds."""
        self.welcome: WelcomeBlock | None = None

    def compose(self) -> ComposeResult:
        yield self.bars["header"]
        with Horizontal(id="middle"):
            yield self.transcript
            yield self.peek
            yield self.sidebar
        yield self.bars["working"]
        yield self.queue
        yield self.bars["ask"]
        yield self.menu
        yield self.prompt
        yield self.bars["status"]

    def on_mount(self) -> None:
        """The first picture."""
        self.prompt.intercept = self._intercept
        self.prompt.completes = self.completing.enter
        self.prompt.pasting = self.asking.digits.write
        self.asking.changed = self.refresh_facts
        self.transcript.intercept = self.asking.key
        self.sidebar.tail = lambda agent: self.desk.work.tails.of(agent)[1]
        self.prompt.queue_waits = lambda: bool(self.queue.items)
        self.prompt.hint(_("Ask something, or / for commands"))
        self.refresh_facts()

    @property
    def presenter(self) -> ChatPresenter:
        """What turns events into blocks; made when first needed, since the events cost 25 ms to load."""
        if self._presenter is None:
            from hermes_tui.presenter.chat import ChatPresenter

            self._presenter = ChatPresenter(self.transcript, self.desk.work.name_of, self.desk.seen)
        return self._presenter

    def _waiting(self) -> list[RequestBlock]:
        return self._presenter.waiting() if self._presenter is not None else []

    # From the app

    async def opened(self, view: SessionView) -> None:
        """A chat is open now: its blocks, and what waits for an answer."""
        from hermes_tui.presenter.history import blocks_of

        engine, past = self.desk.engine, None
        if engine is not None:
            past = await self.desk.off_loop(lambda: self.desk.past(view.id))
            view = engine.view(view.id)
            self.desk.remember_window(past.windows.get(view.model, 0))
        self.transcript.empty()
        self.peek.forget()
        self.presenter.show(view.id, view.agent)
        self.transcript.extend(blocks_of(view.messages, past))
        await self.arriving.look()
        for request in engine.broker.pending() if engine is not None else ():
            self.presenter.ask(request)
        if not view.messages and not self.transcript.blocks:
            self.welcome = WelcomeBlock(chrome.suggestions(await self.desk.off_loop(self.desk.sample)))
            self.transcript.add(self.welcome)
        self.sending.opened()
        self.refresh_facts()

    def take(self, events: Sequence[Event]) -> None:
        """Shows events."""
        from hermes_engine.events import TurnFinished, TurnStarted

        known = set(self.presenter.requests)
        if any(isinstance(event, (TurnStarted, TurnFinished)) for event in events):
            self.desk.refresh()
            if self.welcome is not None:
                self.transcript.take_out(self.welcome)
                self.welcome = None
        for event in events:
            self.presenter.take(event)
        self.asking.settled()
        for key, block in list(self.presenter.requests.items()):
            if key not in known:
                self.asking.offer(block)
        self.showing.refresh(soon=True)

    def clear_view(self) -> None:
        """Empties the transcript; the chat goes on, and what waits for an answer stays."""
        waiting, self.welcome = self._waiting(), None
        self.transcript.empty()
        self.presenter.forget_blocks()
        self.transcript.extend(waiting)

    def say(self, block: Block) -> None:
        """Shows a block that is nobody's turn."""
        self.transcript.add(block)

    def tick(self, frame: int) -> None:
        """A quarter of a second went by."""
        self.frame = frame
        self.transcript.tick(frame)
        self.refresh_facts()

    def refresh_facts(self) -> None:
        """Draws the bars and the sidebar; what has not changed is left alone."""
        self.showing.refresh()

    @property
    def doing(self) -> str:
        """What the model does, as its events tell."""
        return self._presenter.doing if self._presenter is not None else ""

    def relook(self) -> None:
        """Another theme: everything that keeps styles is drawn again."""
        self.showing.relook()

    # Layout

    def on_screen_resume(self) -> None:
        """The chat is in view again."""
        self.sending.came_back()

    def on_resize(self, event: events.Resize) -> None:
        """Another size: which parts there is room for."""
        self.fit()

    def fit(self) -> None:
        """Puts the parts where the size and the settings want them."""
        width, height = self.app.size
        for name, holds in chrome.layout(width, height, self.side_mode, drawer=self.tending.drawer).items():
            self.set_class(holds, name)
        self.peek.display = self.peek.display and width >= chrome.PEEK
        self.call_after_refresh(self.refresh_facts)

    def action_work(self) -> None:
        """Shows the sidebar and gives it the keys; again: back to the prompt."""
        self.tending.switch()

    # Keys

    def _intercept(self, event: events.Key) -> bool:
        if self.asking.digits.take(event):
            return True
        if event.character == "?" and self.prompt.empty and not self.prompt.lent:
            self.app.run_worker(self.app.run_action("keys"))
            return True
        return False

    def action_escape(self) -> None:
        """Keeps the app open, closes what is open here, gives the keys back to the prompt, or stops the turn."""
        if self.sending.stay_open is not None:
            self.sending.stay_open()
        elif self.tending.close():
            self.prompt.focus_input()
        elif not self.prompt.area.has_focus:
            self.transcript.select(None)
            self.prompt.focus_input()
        else:
            self.sending.escape()
        self.refresh_facts()

    def action_steer(self) -> None:
        """Sends the draft into the running turn."""
        self.prompt.send_now()

    def action_next_request(self) -> None:
        """Goes to the next request."""
        if not self.asking.look():
            self.sending.remark(_("Nothing waits for you"))
        self.refresh_facts()

    def action_details(self) -> None:
        """Opens the paste in the prompt, or the newest card."""
        if not self.prompt.show_paste():
            self.transcript.toggle_last()

    def action_page(self, step: int) -> None:
        """Scrolls the transcript, whatever has the focus."""
        self.transcript.action_page(step)

    def action_newest(self) -> None:
        """The newest line."""
        self.transcript.action_newest()

    def action_switch_focus(self) -> None:
        """The keys go to the transcript, or back."""
        if self.prompt.area.has_focus:
            self.transcript.focus()
            if self.transcript.cursor_block is None and self.transcript.blocks:
                self.transcript.select(self.transcript.blocks[-1], show=False)
        else:
            self.transcript.select(None)
            self.prompt.focus_input()
        self.refresh_facts()

    def action_mode(self) -> None:
        """The next approval mode."""
        self.sending.next_mode()

    async def action_editor(self) -> None:
        """Opens the draft in the person's editor."""
        await self.sending.edit_outside()

    def action_history(self) -> None:
        """Searches what was sent."""
        self.app.run_worker(self.sending.search_history())

    def on_key(self, event: events.Key) -> None:
        """Typing that nobody here has a use for goes to the prompt."""
        side = self.sidebar
        if event.is_printable and event.character and side.has_focus and not side.uses(event.key):
            event.stop()
            if not self.tending.typed(event):
                self._type(event.character)

    def on_sidebar_asked(self, message: Sidebar.Asked) -> None:
        """Something is wanted of agents."""
        self.tending.do(message.verb, message.agents)

    @on(events.DescendantFocus)
    @on(Sidebar.Moved)
    @on(Transcript.EndShown)
    @on(Transcript.Unseen)
    def _stands_differently(self) -> None:
        """What Esc does, whom the peek pane follows, whether a request may be answered or what is below has changed."""
        self.refresh_facts()

    def on_paste(self, event: events.Paste) -> None:
        """What is pasted goes to the prompt, wherever the keys are."""
        event.stop()
        self._type("")
        self.prompt.take_paste(event.text)

    def _type(self, text: str) -> None:
        if self.prompt.empty and not self._waiting() and text in SCREEN_DIGITS:
            self.app.run_worker(self.app.run_action(f"screen({SCREEN_DIGITS[text]!r})"))
            return
        self.transcript.select(None)
        self.prompt.focus_input()
        self.prompt.insert(text)

    # Messages of widgets

    def on_prompt_sent(self, message: Prompt.Sent) -> None:
        """Enter."""
        if message.purpose:
            self.asking.answer(message.text, message.about)
        else:
            self.sending.enter(message.text, now=message.now)
        self.refresh_facts()

    def on_prompt_edited(self) -> None:
        """The draft changed: proposals, and remarks are over."""
        self.edited = time.monotonic()
        if not self.prompt.empty:
            self.asking.hint = self.sending.hint = ""
        self.completing.edited()
        self.showing.refresh(soon=True)

    def on_prompt_edge(self, message: Prompt.Edge) -> None:
        """Home or End where there is no line to go to an edge of."""
        self.transcript.action_edge(newest=message.newest)

    def on_prompt_take_back(self) -> None:
        """The last queued message goes back into the prompt."""
        self.sending.take_back()
        self.refresh_facts()

    def on_prompt_escaped(self) -> None:
        """Esc in the prompt."""
        self.action_escape()

    def on_menu_picked(self, message: Menu.Picked) -> None:
        """A proposal was clicked."""
        self.prompt.accept(message.proposal)
        self.prompt.focus_input()

    def on_transcript_chosen(self, message: Transcript.Chosen) -> None:
        """A choice of a request was clicked."""
        self.asking.choose(message.block, message.option)

    def on_transcript_typed(self, message: Transcript.Typed) -> None:
        """Typing goes to the prompt."""
        self._type(message.character)

    def on_transcript_suggested(self, message: Transcript.Suggested) -> None:
        """A suggestion was clicked."""
        self.prompt.set_draft(message.text)
        self.prompt.focus_input()

    def on_transcript_opened(self, message: Transcript.Opened) -> None:
        """The agent behind a result is wanted."""
        self.host.open_screen("agents", agent=message.agent)

    def on_transcript_copied(self, message: Transcript.Copied) -> None:
        """A block's text is wanted."""
        self.sending.remark(self.host.copy(message.text))

    def on_text_selected(self) -> None:
        """The mouse marked text: it is copied at once, and Ctrl+C keeps its own meaning."""
        text = self.get_selected_text()
        if text and text.strip():
            self.sending.remark(self.host.copy(text))

    async def on_bar_clicked(self, message: Bar.Clicked) -> None:
        """A part of a bar was clicked."""
        if message.action in ("keys", "palette"):
            await self.app.run_action(message.action)
        elif message.action in ("model", "mode", "sessions"):
            self.host.open_screen(message.action)
        else:
            await self.run_action(message.action)

    def output(self, block: OutputBlock) -> None:
        """Shows what a command said, from its beginning."""
        self.transcript.add(block)
        self.transcript.reveal(block)
