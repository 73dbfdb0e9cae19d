"""One agent: its conversation as it goes, what there is to know of it, a line to tell it something; its keys."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal

from hermes_engine.events import AgentStarted
from hermes_tui.cleaning import one_line
from hermes_tui.screens.agents.answering import Answering
from hermes_tui.screens.agents.base import BESIDE, AgentsBase, Words
from hermes_tui.screens.agents.beside import beside, header, keys
from hermes_tui.screens.agents.letters import LETTERS, AgentTranscript
from hermes_tui.screens.agents.replaying import Replaying
from hermes_tui.screens.agents.talk import Talk
from hermes_tui.texts import _
from hermes_tui.widgets import chrome
from hermes_tui.widgets.bar import Bar, Part
from hermes_tui.widgets.facts import WorkFacts
from hermes_tui.widgets.look import Look, look_of
from hermes_tui.widgets.menu import Menu
from hermes_tui.widgets.prompt import History, Prompt
from hermes_tui.widgets.transcript import Transcript

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_engine.events import Event
    from hermes_engine.requests import Answer
    from hermes_engine.work.supervisor import AgentRow
    from hermes_tui.screens.agents.book import AgentsBook
    from hermes_tui.screens.agents.items import AgentItem
    from hermes_tui.screens.host import Host
    from hermes_tui.widgets.blocks import RequestBlock

FRAME_SECONDS = 0.1
"""Between two pictures of a replay."""


class AgentScreen(AgentsBase):
    """One agent. `purpose` ∈ answer | say | changes: what it was opened for."""

    AUTO_FOCUS = "AgentTranscript"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "interrupt_and_say", _("Stop its step, then say it"), show=False, id="agent.interrupt"),
        Binding("tab", "switch_focus", _("Prompt and back"), show=False, id="agent.focus"),
        Binding("pageup", "page(-1)", _("Page up"), show=False, id="agent.page_up", priority=True),
        Binding("pagedown", "page(1)", _("Page down"), show=False, id="agent.page_down", priority=True),
    ]

    def __init__(self, host: Host, book: AgentsBook, item: AgentItem, *, purpose: str = "") -> None:
        super().__init__(host, book)
        self.item = item
        self._purpose = purpose
        self.transcript = AgentTranscript(id="transcript")
        self.prompt = Prompt(Menu(), History(), id="prompt")
        self.words = Words(id="beside")
        self.ask = Bar(id="ask")
        self.talk = Talk(self.desk, self.transcript, book)
        self.asking = Answering(self.desk, self.talk.waiting, self.transcript, self.prompt, self._answer)
        self.replaying = Replaying(self.desk, book, self.talk)
        self._frame = 0
        self._seen = ""
        """Ended agent whose result was in view."""

    def compose(self) -> ComposeResult:
        yield self.header
        with Horizontal(id="middle"):
            yield self.transcript
            yield self.words
        yield self.ask
        yield self.prompt
        yield self.status

    def on_mount(self) -> None:
        """The first picture; the conversation follows."""
        self.transcript.intercept = self._request_key
        self.prompt.intercept = self.asking.digits.take
        self.prompt.pasting = self.asking.digits.write
        self.asking.changed = self.draw
        self.set_interval(FRAME_SECONDS, self._play)
        self.show(self.item, purpose=self._purpose)

    # Which agent

    def show(self, item: AgentItem, *, purpose: str = "") -> None:
        """Shows an agent, with what was written for it before."""
        self.replaying.end()
        self.item = item
        self.book.chosen = item.id
        self.prompt.label = one_line(item.name)
        self.prompt.redraw()
        self.prompt.set_draft(self.book.drafts.get(item.session, ""))
        if purpose == "say":  # what is typed next is for it, also before its conversation is there
            self.action_say()
        self.draw()
        self.run_worker(self._open(item, purpose), exclusive=True, group="open", exit_on_error=False)

    async def _open(self, item: AgentItem, purpose: str) -> None:
        await self.talk.open(item)
        for block in self.talk.waiting():
            self.asking.offer(block)
        if purpose == "answer":
            self.action_answer()
        elif purpose == "changes":
            self.action_changes()
        self.draw()

    def recolour(self) -> None:
        self.transcript.recolour()
        self.prompt.redraw()

    def hear(self, events: Sequence[Event]) -> None:
        if self.replaying.replay is not None:
            return
        known = set(self.talk.presenter.requests)
        self.talk.hear(events)
        self.asking.settled()
        for event in events:
            # it was told something after its end: the same conversation, another agent
            if isinstance(event, AgentStarted) and event.session == self.item.session:
                self.item = self.book.find(event.agent) or self.item
        if set(self.talk.presenter.requests) != known:
            for key, block in list(self.talk.presenter.requests.items()):
                if key not in known:
                    self.asking.offer(block)
            self.draw()

    # Drawing

    def beat(self) -> None:
        self._frame += 1
        self.item = self.book.find(self.item.id) or self.item
        self.transcript.tick(self._frame)
        self.talk.follow(self.item)
        self.asking.settled()
        if not self.item.live and self.item.id != self._seen and self.talk.shows(self.item):
            self._seen = self.item.id
            if self.item.owner == self.desk.session:
                self.desk.see([self.item.id])
        super().beat()

    def _play(self) -> None:
        if self.replaying.replay is not None:
            self.replaying.beat()
            self.draw()

    def draw(self) -> None:
        """Bars and the column beside."""
        if not self.is_attached or not self.prompt.is_mounted:
            return
        look, width, now = look_of(self), self.app.size.width, self.book.now()
        replay = self.replaying.replay
        self.header.show(*header(self.item, replay, width, now, look))
        typing = self.prompt.area.has_focus
        self.show_status(*keys(self.item, replay, look, typing=typing, answering=self.asking.enter_words()))
        fact = self.asking.fact() if replay is None else None
        self.ask.show(*(chrome.ask_line(WorkFacts(ask=fact), width, look.glyphs) if fact else self._working(look)))
        self.ask.display = fact is not None or (replay is None and self.item.busy)
        if self.asking.hint:
            self.asking.hint, hint = "", self.asking.hint
            self.remark(hint)
        self.prompt.hint(self._hint())
        if width >= BESIDE:
            column = max(10, self.words.content_size.width)
            self.words.show(beside(self.item, self.book, self.talk.talked(), self.replaying, column, now, look))

    def _working(self, look: Look) -> chrome.Sides:
        """What it does now."""
        spinner = look.glyphs.spinner
        sign = spinner[self._frame % len(spinner)] if look.motion else look.glyphs.running
        return [Part(sign, "accent", gap=2, weight=9), Part(self.item.doing(), "soft", gap=1, weight=5, shrinks=8)], []

    def _hint(self) -> str:
        """What can be said to it, and how."""
        typing = self.prompt.area.has_focus
        if words := self.asking.enter_words():
            return words
        if self.item.live:
            words = (
                _("Enter tells {name} at its next step · ^S stops its step first")
                if typing
                else _("m tells {name} something")
            )
        else:
            words = _("Enter goes on with {name}, in the same conversation") if typing else _("m goes on with {name}")
        return words.format(name=self.item.name)

    # Keys

    def _request_key(self, key: str, character: str | None) -> bool:
        return self.replaying.replay is None and self.asking.key(key, character)

    async def on_transcript_typed(self, message: Transcript.Typed) -> None:
        """A letter that the transcript has no use for."""
        if self.replaying.replay is None and self.asking.intercept(message.character):
            self.draw()
        elif action := LETTERS.get(message.character):
            await self.run_action(action)

    def action_back(self) -> None:
        """Ends the replay, or gives the keys back to the transcript, or goes back."""
        if self.replaying.replay is not None:
            self._end_replay()
        elif self.prompt.area.has_focus:
            self.transcript.focus()
            self.draw()
        else:
            super().action_back()

    def on_prompt_escaped(self) -> None:
        """Esc in the prompt."""
        self.action_back()

    def drop_draft(self) -> bool:
        dropped = bool(self.prompt.lent) or not self.prompt.empty
        if self.prompt.lent:
            self.prompt.give_back()
        else:
            self.prompt.clear()
        return dropped

    def action_switch_focus(self) -> None:
        """The keys go to the prompt, or back."""
        if self.prompt.area.has_focus:
            self.transcript.focus()
        else:
            self.prompt.focus_input()

    def on_descendant_focus(self) -> None:
        """What the keys do has changed."""
        self.draw()

    def action_page(self, step: int) -> None:
        """Scrolls the transcript."""
        self.transcript.action_page(step)

    def on_prompt_edited(self) -> None:
        """The draft changed."""
        if not self.prompt.lent:
            self.book.drafts[self.item.session] = self.prompt.text
        self.edited = time.monotonic()

    def on_prompt_edge(self, message: Prompt.Edge) -> None:
        """Home or End on an empty prompt."""
        self.transcript.action_edge(newest=message.newest)

    def on_transcript_view_end_shown(self) -> None:
        """A request may be answered now."""
        self.draw()

    def on_transcript_chosen(self, message: Transcript.Chosen) -> None:
        """A choice of a request was clicked."""
        if self.replaying.replay is None:
            self.asking.choose(message.block, message.option)

    def on_paste(self, event: events.Paste) -> None:
        """What is pasted goes to the prompt."""
        event.stop()
        self.prompt.focus_input()
        self.prompt.take_paste(event.text)

    def on_text_selected(self) -> None:
        """The mouse marked text: it is copied at once."""
        text = self.get_selected_text()
        if text and text.strip():
            self.remark(self.host.copy(text))

    # Acting

    def action_say(self) -> None:
        """The keys go to the prompt."""
        self.prompt.focus_input()

    def action_answer(self) -> None:
        """Goes to what it asks."""
        if not self.asking.look():
            self.remark(_("{name} asks nothing").format(name=self.item.name))
        self.draw()

    def action_next_request(self) -> None:
        """Goes to what it asks, then to the next agent that asks."""
        if not (self.talk.waiting() and self.asking.focused is None and self.asking.look()):
            self.go_to_needy(self.item.id)

    def show_agent(self, item: AgentItem, purpose: str) -> None:
        if item.id == self.item.id and purpose == "answer":
            self.action_answer()
        else:
            self.show(item, purpose=purpose)

    def _answer(self, block: RequestBlock, answer: Answer) -> None:
        self.run_worker(self.acting.answer(self.item, block.request, answer), exit_on_error=False)
        if self.item.place == "elsewhere":
            self.talk.answered(block)

    async def on_prompt_sent(self, message: Prompt.Sent) -> None:
        """Enter."""
        if message.purpose:
            self.asking.answer(message.text, message.about)
        else:
            await self._say(message.text, stop=message.now)

    def action_interrupt_and_say(self) -> None:
        """Stops what it does, then says what is written."""
        self.prompt.send_now()

    async def _say(self, text: str, *, stop: bool) -> None:
        if not text.strip():
            return
        if self._is_command(text):
            self.remark(_("Commands are for the chat (Alt+1). A blank before the / makes it a message."))
            self.prompt.put_back(text)
            return
        self.transcript.action_newest()
        if self.item.busy and self.item.place == "here" and not stop:
            self.talk.presenter.steered(text)
        elif stop and self.item.busy:
            self.remark(_("Stopping its step, then it is told"))
        self._go_to(await self.acting.tell(self.item, text, stop=stop))

    @staticmethod
    def _is_command(text: str) -> bool:
        from hermes_tui.commands import find

        return text.startswith("/") and find(text[1:].split(" ", 1)[0]) is not None

    def _go_to(self, row: AgentRow | None) -> None:
        """Follows to another agent that goes on with it, or does it again."""
        found = self.book.find(row.id) if row is not None else None
        if found is None:
            return
        if found.session == self.item.session:
            self.item = found
            self.draw()
        else:
            self.show(found)

    async def action_stop(self, subtree: bool = False) -> None:
        """Stops it."""
        await self.acting.stop(self.item, subtree=subtree)

    async def action_retry(self) -> None:
        """Runs its task again."""
        self._go_to(await self.acting.retry(self.item))

    def action_copy(self) -> None:
        """Copies its result."""
        self.acting.copy(self.item, self.talk.said)

    def action_changes(self) -> None:
        """What its tools changed."""
        from hermes_tui.screens.agents.changes import Changes

        note = self.item.record.note if self.item.record else ""
        self.app.push_screen(Changes(self.item.name, self.talk.changes, note, self.host.copy))

    def action_promote(self) -> None:
        """Opens it as the chat."""
        if self.acting.promote(self.item):
            self.app.call_later(self.app.run_action, "screen('chat')")

    def action_sibling(self, step: int) -> None:
        """The agent before or after this one."""
        siblings = self.book.siblings(self.item)
        ids = [item.id for item in siblings]
        if len(ids) < 2 or self.item.id not in ids:
            self.remark(_("There is no other agent beside it"))
        else:
            self.show(siblings[(ids.index(self.item.id) + step) % len(ids)])

    # Replay

    async def action_replay(self) -> None:
        """Plays its recorded run again; while it plays, stops and goes on."""
        if (replay := self.replaying.replay) is not None and not replay.ended:
            replay.paused = not replay.paused
            self.draw()
        elif self.item.live:
            self.remark(_("It is still going on; p plays it when it has ended"))
        elif not await self.replaying.begin(self.item):
            self.remark(_("Nothing was recorded of it"))

    def action_speed(self, step: int) -> None:
        """The replay faster or slower."""
        if self.replaying.replay is not None:
            self.replaying.replay.hasten(step)
            self.draw()

    def _end_replay(self) -> None:
        self.replaying.end()
        self.run_worker(self._open(self.item, ""), exclusive=True, group="open", exit_on_error=False)
