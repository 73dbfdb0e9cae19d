"""One agent's conversation on a transcript: what is saved of it, then what its running turn has brought since, then its
events as they come. The drawing is the chat's own presenter. Knows the desk; no screen.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermes_engine.errors import HermesError
from hermes_engine.events import (
    AgentChanged,
    AgentFinished,
    AgentStarted,
    ApprovalAsked,
    Event,
    QuestionAsked,
    ToolFinished,
    TurnFinished,
    UsageReported,
)
from hermes_engine.messages import CANCELLED_RESULT, Message
from hermes_tui.presenter.chat import ChatPresenter
from hermes_tui.presenter.history import blocks_of
from hermes_tui.presenter.past import Past
from hermes_tui.screens.agents.drawing import Talked
from hermes_tui.screens.agents.steps import left_of
from hermes_tui.texts import _
from hermes_tui.widgets.blocks import AnswerBlock, Block, NoticeBlock, RequestBlock, ToolBlock, UserBlock

if TYPE_CHECKING:
    from hermes_engine.session import SessionView
    from hermes_tui.desk import Desk
    from hermes_tui.screens.agents.book import AgentsBook
    from hermes_tui.screens.agents.items import AgentItem
    from hermes_tui.widgets.transcript import Transcript

FOLLOW_SECONDS = 1.0
"""Between two looks at what an agent of another program does."""

ROW_EVENTS = (AgentStarted, AgentChanged, AgentFinished)
"""Events about agents as such: the list's business, not the transcript's."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a tool changed in a file: `title` names it, `summary` counts, `body` is the difference."""

    title: str
    summary: str
    body: str


class Talk:
    """The conversation of one agent after another."""

    def __init__(self, desk: Desk, transcript: Transcript, book: AgentsBook) -> None:
        self._desk, self._book = desk, book
        self.transcript = transcript
        self.presenter = ChatPresenter(transcript, desk.work.name_of)
        self.item: AgentItem | None = None
        self._changes: dict[tuple[str, str], Change] = {}
        self._context = (0, 0)
        self._opening = 0
        self._opened = False
        self._notice: NoticeBlock | None = None
        self._away = False
        self._followed = 0.0
        self._following: asyncio.Task[None] | None = None
        self._read: dict[str, int] = {}
        """Last number read of each run of another program."""

    # Opening

    async def open(self, item: AgentItem) -> None:
        """Shows another agent; a later call makes an earlier one void."""
        self._opening += 1
        opening = self._opening
        self.item, self._opened = item, False
        recorded = await self._desk.off_loop(lambda: self._recorded(item))
        messages: tuple[Message, ...] = ()
        live: list[Event] | None = None
        while opening == self._opening:
            view = self._view(item)
            if view is None:
                messages = await self._desk.off_loop(lambda: self._messages(item))
                if self._view(item) is not None:
                    continue
                self._book.drain()
            else:
                # what is saved first, then what was heard: so nothing is in neither of them
                messages = view.messages
                self._book.drain()
                live = self._book.steps.of(item.session)
                if live is None:
                    view = self._view(item)
                    if view is None:
                        continue
                    messages = view.messages
            break
        if opening != self._opening:
            return
        self._away = item.place == "elsewhere" and item.live
        if self._away:
            live = _last_turn(recorded)
            self._read = {event.run: event.seq for event in recorded}
        self._fill(item, messages, recorded, live)
        for event in self._asked(item):
            self.presenter.ask(event)
        self._opened = True

    def _recorded(self, item: AgentItem, since: dict[str, int] | None = None) -> list[Event]:
        """Blocks. What is recorded of it, all of it or `since` then."""
        engine = self._desk.engine
        if engine is None or not item.session or item.kind == "batch":
            return []
        try:
            return list(engine.tasks.events(item.session, since))
        except HermesError:
            return []

    def _messages(self, item: AgentItem) -> tuple[Message, ...]:
        """Blocks. What is saved of it."""
        if item.kind == "batch" or not item.session:
            return ()
        try:
            messages = self._desk.engine.tasks.messages(item.session) if self._desk.engine else ()
        except HermesError:
            return ()
        if item.place == "elsewhere":
            # calls that are at work over there count as cut off in what is saved
            while messages and messages[-1].role == "tool" and messages[-1].content == CANCELLED_RESULT:
                messages = messages[:-1]
        return messages

    def _view(self, item: AgentItem) -> SessionView | None:
        """The conversation as it is at work here, None where it is not."""
        engine = self._desk.engine
        if engine is None or not item.session or item.kind == "batch" or item.place == "elsewhere":
            return None
        try:
            return engine.view(item.session)
        except HermesError:
            return None

    def _fill(
        self, item: AgentItem, messages: Sequence[Message], recorded: Sequence[Event], live: Sequence[Event] | None
    ) -> None:
        presenter, transcript = self.presenter, self.transcript
        blocks = blocks_of(messages, Past(recorded, over=False))
        first = next((block for block in blocks if isinstance(block, UserBlock)), None)
        if first is not None and item.kind != "chat":
            first.mark = _("its task")
        transcript.empty()
        self._notice = None
        presenter.show(item.session, item.id)
        presenter.own_name = item.name
        transcript.extend(blocks)
        self._changes = {}
        for event in recorded:
            self._note(event)
        calls = [
            (call.call_id, call.status) for block in blocks if isinstance(block, ToolBlock) for call in block.calls
        ]
        if live is not None:
            presenter.adopt(blocks)
            begun = {call for call, _status in calls}
            self.take(left_of(live, messages, begun, {call for call, status in calls if status}))
        else:
            _cut_off(blocks)
        if not transcript.blocks:
            words = _("Nothing was kept of this conversation.") if not item.live else _("It has not begun yet.")
            self._notice = NoticeBlock(words)
            transcript.add(self._notice)

    def restart(self) -> None:
        """Shows an empty conversation, to be filled again from its first event."""
        item = self.item
        if item is not None:
            self.transcript.empty()
            self.presenter.show(item.session, item.id)

    def _asked(self, item: AgentItem) -> list[ApprovalAsked | QuestionAsked]:
        """What it waits to be told."""
        if item.place == "elsewhere":
            request = request_of(item)
            return [request] if request is not None else []
        engine = self._desk.engine
        return [event for event in engine.broker.pending() if event.session == item.session] if engine else []

    # As it comes

    def hear(self, events: Iterable[Event]) -> None:
        """Events of all agents: those of this conversation are shown."""
        item = self.item
        if item is None or not item.session:
            return
        if self._opened:
            self.take(event for event in events if event.session == item.session)

    def take(self, events: Iterable[Event]) -> None:
        """Shows events of this conversation, whichever of its agents they are of."""
        for event in events:
            self._note(event)
            if isinstance(event, ROW_EVENTS):
                continue
            if event.run:
                self.presenter.agent = event.agent
                if self._notice is not None:
                    self.transcript.take_out(self._notice)
                    self._notice = None
            self.presenter.take(event)

    def _note(self, event: Event) -> None:
        match event:
            case ToolFinished(status="ok", display=display) if display.kind == "diff" and display.body:
                self._changes[event.run, event.call_id] = Change(display.title, display.summary, display.body)
            case UsageReported(context_tokens=tokens, context_window=window):
                self._context = (tokens, window)
            case _:
                pass

    def follow(self, item: AgentItem) -> None:
        """Reads on, now and then, what an agent of another program does, up to its end. Returns at once."""
        due = time.monotonic() - self._followed >= FOLLOW_SECONDS
        if self._away and self._opened and due and (self._following is None or self._following.done()):
            self._followed = time.monotonic()
            self._following = asyncio.create_task(self._read_on(item), name="agent elsewhere")

    async def _read_on(self, item: AgentItem) -> None:
        opening, before = self._opening, dict(self._read)
        fresh = await self._desk.off_loop(lambda: self._recorded(item, before))
        if opening != self._opening:
            return
        self._read.update({event.run: event.seq for event in fresh})
        self.take(fresh)
        self._away = item.live
        if (request := request_of(item)) is not None:
            self.presenter.ask(request)

    def answered(self, block: RequestBlock) -> None:
        """An answer is on its way to another program: it is asked no more here."""
        block.settle(_("Answered"), well=True)

    # Told

    def shows(self, item: AgentItem) -> bool:
        """Whether its conversation is on the transcript."""
        return self.item is not None and self.item.session == item.session and self._opened

    def waiting(self) -> list[RequestBlock]:
        """What waits for an answer."""
        return self.presenter.waiting()

    @property
    def changes(self) -> list[Change]:
        """What its tools changed, in order."""
        return list(self._changes.values())

    @property
    def said(self) -> str:
        """What it said last."""
        answers = (block for block in reversed(self.transcript.blocks) if isinstance(block, AnswerBlock))
        return next((block.copy_text() for block in answers), "")

    def talked(self) -> Talked:
        """What the conversation tells of its agent."""
        view = self._view(self.item) if self.item is not None else None
        tokens, window = (view.context_tokens, view.context_window) if view else self._context
        changed = {change.title: change.summary for change in self.changes}
        return Talked(view.mode if view else "", tokens, window, tuple(changed.items()))


def _last_turn(recorded: Sequence[Event]) -> list[Event] | None:
    """The events of the newest turn, None where it has ended."""
    if not recorded or isinstance(recorded[-1], TurnFinished):
        return None
    return [event for event in recorded if event.run == recorded[-1].run]


def request_of(item: AgentItem) -> ApprovalAsked | QuestionAsked | None:
    """What an agent's record says that it asks."""
    return item.record.asks if item.record else None


def _cut_off(blocks: Iterable[Block]) -> None:
    """Calls without a result, of a conversation that is not at work, will never have one."""
    for block in blocks:
        for call in block.calls if isinstance(block, ToolBlock) else ():
            call.status = call.status or "cancelled"
