"""Maps the events of one chat to blocks of its transcript, in one `match`. Knows no engine and no screen.

Only the chat's own turns write into the transcript, and the ends of tasks that were started from it. What other
agents ask is shown there too, since a person must be able to answer wherever they look.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from hermes_engine.events import (
    AgentFinished,
    ApprovalAsked,
    BatchFinished,
    ContextCompacted,
    Event,
    Notice,
    QuestionAsked,
    ReplyFinished,
    RequestSettled,
    StepRetried,
    StepStarted,
    TextDelta,
    ThoughtDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from hermes_tui.outcomes import Outcome, heard, state_words, told
from hermes_tui.presenter.batch_counts import ended_words
from hermes_tui.presenter.past import line_of
from hermes_tui.presenter.requests import request_block, settled_words
from hermes_tui.presenter.results import result_block
from hermes_tui.texts import _
from hermes_tui.widgets.blocks import (
    AnswerBlock,
    Block,
    NoticeBlock,
    RequestBlock,
    ThoughtBlock,
    ToolBlock,
    UserBlock,
    WaitBlock,
)


class BlockList(Protocol):
    """The transcript as the presenter sees it."""

    @property
    def blocks(self) -> list[Block]:
        """The blocks, oldest first."""
        ...

    def add(self, block: Block) -> None:
        """Adds a block at the end."""

    def take_out(self, block: Block) -> None:
        """Takes a block out."""


class ChatPresenter:
    """One chat on one transcript. `session` and `agent` are whose turns are shown; `name_of` names other agents,
    `seen` is told of each agent whose result was shown.
    """

    def __init__(
        self, view: BlockList, name_of: Callable[[str], str], seen: Callable[[str], None] = lambda agent: None
    ) -> None:
        self._view, self._name_of, self._seen = view, name_of, seen
        self.requests: dict[str, RequestBlock] = {}
        self._results: set[str] = set()
        self.own_name = "Hermes"
        """Who asks, when it is the agent whose turns are shown."""
        self.show("", "")

    def show(self, session: str, agent: str) -> None:
        """Another chat is on the screen now; its transcript is empty or filled from its history."""
        self.session, self.agent = session, agent
        self.forget_blocks()
        self.doing = ""
        self.requests.clear()

    def forget_blocks(self) -> None:
        """The transcript was emptied: what comes of things under way is shown in new blocks."""
        self._answer: AnswerBlock | None = None
        self._thought: ThoughtBlock | None = None
        self._thought_began = 0.0
        self._retry: WaitBlock | None = None
        self._tools: dict[str, ToolBlock] = {}
        self._steered: list[UserBlock] = []

    def adopt(self, blocks: Iterable[Block]) -> None:
        """Blocks of a conversation that was opened in the middle of a turn: what comes of their calls goes there."""
        for block in blocks:
            if isinstance(block, ToolBlock):
                self._tools |= {call.call_id: block for call in block.calls if not call.status}

    def steered(self, text: str) -> None:
        """The person sent a message into the running turn."""
        block = UserBlock(text, _("goes in at the next step"))
        self._steered.append(block)
        self._view.add(block)

    def queued(self, texts: Collection[str]) -> None:
        """What waits to be sent has changed: what was sent into a turn that ended first is there again, not here."""
        for block in [block for block in self._steered if block.text in texts]:
            self._steered.remove(block)
            self._view.take_out(block)

    def waiting(self) -> list[RequestBlock]:
        """Requests without an answer, oldest first."""
        return [block for block in self.requests.values() if block.waiting]

    def take(self, event: Event) -> None:
        """Shows one event."""
        match event:
            case ApprovalAsked() | QuestionAsked():
                self.ask(event)
            case RequestSettled(request=request):
                self._settle(event, request)
            case Notice(session=session) if session in ("", self.session):
                self._line(event)
            case Notice(level=level, session=session, run=run) if session == run and level != "info":
                self._view.add(NoticeBlock(_("Batch {name}: {words}").format(name=session, words=event.text), level))
            case BatchFinished():
                self._run_ended(event)
            case AgentFinished() if told(event):
                self._ended(event)
            case _ if event.session == self.session and event.agent == self.agent:
                self._own(event)
            case _:
                pass

    def _own(self, event: Event) -> None:
        match event:
            case TurnStarted():
                self._begin(event)
            case StepStarted():
                self._step()
            case StepRetried():
                self._retried(event)
            case ThoughtDelta(text=text):
                self._think(text, event.time)
            case TextDelta(text=text):
                self._write(text)
            case ReplyFinished():
                self._replied(event)
            case ToolStarted() | ToolProgress() | ToolFinished():
                self._tool(event)
            case ContextCompacted():
                self._line(event)
            case TurnFinished():
                self._end(event)
            case _:
                pass

    # Tasks

    def _ended(self, event: AgentFinished) -> None:
        if event.owner == self.session:
            self.result(heard(event))
            return
        words = _("{name}, a task of another chat: {state} · /tasks")
        level = "info" if event.state == "done" else "warning"
        self._view.add(NoticeBlock(words.format(name=event.name, state=state_words(event.state)), level))

    def result(self, outcome: Outcome) -> None:
        """Shows what a task of this chat brought, once."""
        if outcome.id in self._results:
            return
        self._results.add(outcome.id)
        self._seen(outcome.id)
        self._view.add(result_block(outcome))

    def _run_ended(self, event: BatchFinished) -> None:
        words, well = ended_words(event)
        self._view.add(NoticeBlock(words, "info" if well else "warning"))

    def _line(self, event: Event) -> None:
        block = line_of(event)
        if block is not None:
            self._view.add(block)

    # A turn

    def _begin(self, event: TurnStarted) -> None:
        self.doing = _("waiting for the model")
        for block in self._steered:
            if block.text == event.prompt:
                # what could not be delivered in the turn it was meant for has become this one
                block.settle()
                self._steered.remove(block)
                return
        if event.prompt:
            self._view.add(UserBlock(event.prompt))

    def _step(self) -> None:
        self._answer = self._thought = None
        self._drop_retry()
        self.doing = _("waiting for the model")
        for block in self._steered:
            block.settle()
        self._steered.clear()

    def _retried(self, event: StepRetried) -> None:
        for block in (self._answer, self._thought):
            if block is not None:
                self._view.take_out(block)
        self._answer = self._thought = None
        self._drop_retry()
        reason, which = event.reason.rstrip(".") + ".", f"{event.attempt + 1}"
        if event.tries:
            which = _("{number} of {tries}").format(number=which, tries=event.tries)

        def words(left: str) -> str:
            return _("{reason} Trying again in {delay} (try {attempt})").format(
                reason=reason, delay=left, attempt=which
            )

        self.doing = _("waiting to try again")
        self._retry = WaitBlock(words, event.delay)
        self._view.add(self._retry)

    def _drop_retry(self) -> None:
        if self._retry is not None:
            self._view.take_out(self._retry)
            self._retry = None

    def _think(self, text: str, time: float) -> None:
        self._drop_retry()
        if self._thought is None:
            self._thought = ThoughtBlock(live=True)
            self._thought_began = time
            self._view.add(self._thought)
        self._thought.feed(text, max(0.0, time - self._thought_began))
        self.doing = _("thinking")

    def _write(self, text: str) -> None:
        self._drop_retry()
        if self._thought is not None:
            self._thought.finish()
        if self._answer is None:
            if not text.strip():
                return
            self._answer = AnswerBlock(live=True)
            self._view.add(self._answer)
        self._answer.feed(text)
        self.doing = _("writing")

    def _replied(self, event: ReplyFinished) -> None:
        if self._thought is not None:
            self._thought.finish(event.reasoning or None)
        elif event.reasoning:
            self._view.add(ThoughtBlock(event.reasoning))
        note = _("cut off here") if event.partial else ""
        if self._answer is not None:
            self._answer.finish(event.text, note)
        elif event.text.strip():
            answer = AnswerBlock(event.text)
            answer.note = note
            self._view.add(answer)
        self._answer = self._thought = None

    def _end(self, event: TurnFinished) -> None:
        self._drop_retry()
        if self._thought is not None:
            self._thought.finish()
        if self._answer is not None:
            self._answer.finish()
        for block in self._tools.values():
            for call in block.calls:
                if not call.status:
                    call.status = "cancelled"
                    block.touch()
        self._tools.clear()
        self._answer = self._thought = None
        self.doing = ""
        self._line(event)

    # Tools

    def _tool(self, event: ToolStarted | ToolProgress | ToolFinished) -> None:
        match event:
            case ToolStarted():
                self._tool_began(event)
            case ToolProgress(call_id=call_id, text=text):
                if call_id in self._tools:
                    self._tools[call_id].progress(call_id, text)
            case ToolFinished():
                self._tool_ended(event)

    def _tool_began(self, event: ToolStarted) -> None:
        display = event.display
        self.doing = f"{display.verb} {display.title}".strip()
        if event.call_id in self._tools:
            return
        last = self._view.blocks[-1] if self._view.blocks else None
        if isinstance(last, ToolBlock) and last.may_join(display.verb):
            last.join(event.call_id, display.title)
            self._tools[event.call_id] = last
            return
        block = ToolBlock(event.call_id, display.verb, display.title)
        self._tools[event.call_id] = block
        self._view.add(block)

    def _tool_ended(self, event: ToolFinished) -> None:
        block = self._tools.pop(event.call_id, None)
        display = event.display
        if block is None:
            block = ToolBlock(event.call_id, display.verb, display.title)
            self._view.add(block)
        block.finish(
            event.call_id,
            verb=display.verb,
            title=display.title,
            summary=display.summary,
            kind=display.kind,
            body=display.body,
            status=event.status,
            seconds=event.seconds,
        )

    # Requests

    def ask(self, event: ApprovalAsked | QuestionAsked) -> None:
        """Shows what waits for an answer, once."""
        if event.request in self.requests:
            return
        own = event.agent == self.agent
        name = _row_name(event) or self._name_of(event.agent)
        block = request_block(event, self.own_name if own else name)
        block.beside = not own
        self.requests[event.request] = block
        self._view.add(block)

    def _settle(self, event: RequestSettled, request: str) -> None:
        block = self.requests.pop(request, None)
        if block is not None:
            words, well = settled_words(event.choice, event.note)
            block.settle(words, well=well)


def _row_name(event: Event) -> str:
    """The name of a row of a batch run; "" for any other agent."""
    kind, _dash, which = event.agent.partition("-")
    place, _dot, sample = which.partition(".")
    if kind != "row" or not place.isdecimal() or not event.session:
        return ""
    row = place if sample == "0" else which
    return _("row {row} of {run}").format(row=row, run=event.session)
