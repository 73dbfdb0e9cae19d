"""What recorded events know of a saved conversation beyond its messages: how long things took, what was allowed, how
turns ended, how large the model's window is. Knows events and blocks, no store.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hermes_engine.events import (
    ApprovalAsked,
    ContextCompacted,
    Event,
    Notice,
    QuestionAsked,
    ReplyFinished,
    RequestSettled,
    ThoughtDelta,
    ToolFinished,
    TurnFinished,
    TurnStarted,
    UsageReported,
)
from hermes_tui.presenter.requests import request_block, settled_words
from hermes_tui.texts import _
from hermes_tui.widgets.blocks import Block, NoticeBlock
from hermes_tui.widgets.times import count_short

KINDS: tuple[type[Event], ...] = (
    TurnStarted, ThoughtDelta, ReplyFinished, ToolFinished, ApprovalAsked, QuestionAsked, RequestSettled,
    ContextCompacted, Notice, UsageReported, TurnFinished,
)  # fmt: skip
"""The events that are of use here."""

_HANDED_OVER = "handed over"
"""How a turn ends that another process goes on with."""


@dataclass(slots=True)
class Turn:
    """One turn's prompt, and the lines that stood after so many of its replies, and at its end."""

    prompt: str
    started: float = 0.0
    lines: dict[int, list[Block]] = field(default_factory=dict)
    end: list[Block] = field(default_factory=list)


class Past:
    """The recorded turns of one chat, oldest first. Calls are known by their ids, thoughts by their words.

    `over`: nothing runs in it, so that a last turn without an end was cut off with its program.
    """

    def __init__(self, events: Iterable[Event] = (), *, over: bool = True) -> None:
        self.turns: list[Turn] = []
        self.before: list[Block] = []
        """What stood before the first turn."""
        self.results: dict[str, ToolFinished] = {}
        self.answered: dict[str, list[Block]] = {}
        self.thought: dict[str, float] = {}
        self.windows: dict[str, int] = {}
        self._asked: dict[str, ApprovalAsked | QuestionAsked] = {}
        self._model = ""
        self._replies = 0
        self._thinking: tuple[float, float] | None = None
        self._begun = False
        self._broken: Block | None = None
        """The line about the end of the last turn, when that was the end of its program."""
        for event in events:
            self._take(event)
        if over:
            self._cut()

    def _cut(self) -> None:
        """A turn whose end nobody told: its program died first."""
        if self._begun and self.turns:
            block = NoticeBlock(_("Cut off: the program ended. What was said so far stays."), "stopped")
            self.turns[-1].end.append(block)
            self._broken = block
        self._begun = False

    def _goes_on(self) -> None:
        """The last turn is gone on with, if its program ended it: the line that says so stands where it was cut."""
        turn = self.turns[-1]
        if self._broken is not None and self._broken in turn.end:
            turn.end.remove(self._broken)
            turn.lines.setdefault(self._replies, []).append(self._broken)

    def _take(self, event: Event) -> None:
        match event:
            case TurnStarted(prompt=prompt, model=model, time=when):
                self._cut()
                self._begun = True
                self._model, self._thinking = model, None
                if prompt or not self.turns:
                    self.turns.append(Turn(prompt, when))
                    self._replies = 0
                else:
                    self._goes_on()
                self._broken = None
            case ThoughtDelta(time=when):
                self._thinking = (self._thinking[0] if self._thinking else when, when)
            case ReplyFinished(reasoning=words):
                if self._thinking is not None and words:
                    self.thought[words] = self._thinking[1] - self._thinking[0]
                self._replies, self._thinking = self._replies + 1, None
            case ToolFinished(call_id=call):
                self.results[call] = event
            case ApprovalAsked(request=request) | QuestionAsked(request=request):
                self._asked[request] = event
            case RequestSettled():
                self._settled(event)
            case UsageReported(context_window=window) if window:
                self.windows[self._model] = window
            case _:
                self._line(event)

    def _settled(self, event: RequestSettled) -> None:
        asked = self._asked.pop(event.request, None)
        if asked is not None:
            block = request_block(asked, "Hermes")
            words, well = settled_words(event.choice, event.note)
            block.settle(words, well=well)
            self.answered.setdefault(asked.call_id, []).append(block)

    def _line(self, event: Event) -> None:
        self._begun = self._begun and not isinstance(event, TurnFinished)
        block = line_of(event)
        if block is None or not self.turns:
            return
        turn = self.turns[-1]
        if turn.end or isinstance(event, TurnFinished):
            turn.end.append(block)
            if isinstance(event, TurnFinished) and event.error == _HANDED_OVER:
                self._broken = block
        else:
            turn.lines.setdefault(self._replies, []).append(block)

    def add_result(self, ended: float, block: Block) -> None:
        """A task's result, which stood behind the turn in which it came."""
        turn = next((turn for turn in reversed(self.turns) if turn.started <= ended), None)
        if turn is None:
            self.before.append(block)
        else:
            turn.end.append(block)

    def by_message(self, said: Sequence[str]) -> dict[int, Turn]:
        """Which turn began with which of the person's messages: the newest turns are matched first, since a chat
        that was rewound or shortened has more turns than messages.
        """
        found: dict[int, Turn] = {}
        place = len(said)
        for turn in reversed(self.turns):
            at = next((number for number in range(place - 1, -1, -1) if said[number] == turn.prompt), None)
            if at is not None:
                found[at], place = turn, at
        return found


def line_of(event: Event) -> NoticeBlock | None:
    """The line of an event that is nobody's words, None where it has none."""
    match event:
        case Notice(text=text, level=level):
            return NoticeBlock(text, level)
        case ContextCompacted(before_tokens=before, after_tokens=after, dropped=dropped):
            words = _("Context shortened from {before} to {after} tokens; {dropped} messages became a summary")
            return NoticeBlock(words.format(before=count_short(before), after=count_short(after), dropped=dropped))
        case TurnFinished(status="cancelled", error=error) if error == _HANDED_OVER:
            return NoticeBlock(_("Left working when the program was left."), "stopped")
        case TurnFinished(status="cancelled"):
            return NoticeBlock(_("Stopped. What was said so far stays."), "stopped")
        case TurnFinished(status=status, error=error) if status != "ok":
            return NoticeBlock(error or status, "error")
    return None
