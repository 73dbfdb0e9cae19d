"""Turns engine events into lines of text, append-only: what the plain shell, `--linear` and one-shot print.

A pure fold over events: it writes nothing and knows no terminal. The answer comes out line by line as lines
complete, every tool call is one line, thinking is one short line.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from hermes_engine import events
from hermes_engine.events import Event
from hermes_engine.messages import Display
from hermes_tui.cleaning import escaped, one_line
from hermes_tui.commands.listing import span
from hermes_tui.outcomes import TASK_KINDS, Outcome, heard, state_words, told
from hermes_tui.printing.streams import Style
from hermes_tui.texts import _, ngettext

_BESIDE = (events.BatchStarted, events.BatchFinished, events.AgentStarted, events.AgentFinished)
"""Events that have a session of their own."""

_TIME = re.compile(r"[\d.]+ s")
"""A summary that is a time: how long the tool itself took, without what it waited for an answer."""
MARKS = {"ok": "▸", "error": "✗", "denied": "✗", "cancelled": "✗"}


@dataclass(frozen=True, slots=True)
class Line:
    """One line to print; `answer` marks words of the model."""

    text: str
    style: Style = ""
    answer: bool = False


@dataclass(slots=True)
class EventLines:
    """The fold for one session. `feed` an event, print what comes back.

    Attributes:
        session: whose events count; batch runs are heard too, and the beginning and end of agents that work for it.
        answers: whether the model's words and how the turn ended come out (one-shot prints these elsewhere).
        starts: whether a tool call also gets a line when it begins (where nothing else shows that it runs).
        children: whether the calls of agents that work for it get lines too, with their names.
        clock: seconds, for how long thinking took.
    """

    session: str
    answers: bool = True
    starts: bool = False
    children: bool = False
    clock: Callable[[], float] = time.monotonic
    _run: str = ""
    _pending: str = ""
    _printed: bool = False
    _thinking_since: float | None = None
    _model: str = ""
    _names: dict[str, str] = field(default_factory=dict)

    def feed(self, event: Event) -> list[Line]:
        """Lines this event adds."""
        handler = _HANDLERS.get(type(event))
        if handler is None:
            return []
        if isinstance(event, _BESIDE) or event.session in (self.session, ""):
            return list(handler(self, event))
        name = self._names.get(event.agent, "") if self.children else ""
        if name and isinstance(event, (events.ToolFinished, events.StepRetried)):
            return [replace(line, text=f"  {name}: {line.text}") for line in handler(self, event)]
        return []

    def turn_started(self, event: events.TurnStarted) -> Iterator[Line]:
        self._run, self._pending, self._printed, self._thinking_since = event.run, "", False, None
        if event.model and event.model != self._model:
            self._model = event.model
            yield Line(f"· {_('model')} {one_line(event.model)}", "dim")

    def step_retried(self, event: events.StepRetried) -> Iterator[Line]:
        void = bool(self._pending) or self._printed
        self._pending, self._printed, self._thinking_since = "", False, None
        text = _("try {n} in {delay:.1f} s: {reason}").format(
            n=event.attempt + 1, delay=event.delay, reason=one_line(event.reason, 300)
        )
        yield Line(f"· {_('the answer so far is void; ') if void and self.answers else ''}{text}", "yellow")

    def thought(self, event: events.ThoughtDelta) -> Iterator[Line]:
        if self._thinking_since is None and event.text.strip():
            self._thinking_since = self.clock()
        return iter(())

    def text(self, event: events.TextDelta) -> Iterator[Line]:
        yield from self._thought_done()
        if not self.answers:
            return
        *whole, self._pending = (self._pending + event.text).split("\n")
        for line in whole:
            yield from self._say(line)

    def reply(self, event: events.ReplyFinished) -> Iterator[Line]:
        yield from self._thought_done()
        if not self.answers:
            return
        if not self._printed and not self._pending and event.text:
            self._pending = event.text
        rest, self._pending = self._pending, ""
        if rest:
            for line in rest.split("\n"):
                yield from self._say(line)
        self._printed = False

    def tool_started(self, event: events.ToolStarted) -> Iterator[Line]:
        if self.starts:
            yield Line(f"▸ {_title(event.display)} …", "dim")

    def tool_finished(self, event: events.ToolFinished) -> Iterator[Line]:
        good = event.status == "ok"
        parts = [_title(event.display)]
        if event.status == "denied" and event.text:
            parts.append(one_line(event.text, 200))
        elif event.display.summary:
            parts.append(one_line(event.display.summary, 120))
        elif not good:
            parts.append(event.status)
        if event.seconds >= 0.1 and not _TIME.fullmatch(event.display.summary):
            parts.append(f"{event.seconds:.1f} s")
        yield Line(f"{MARKS.get(event.status, '✗')} {'  '.join(parts)}", "dim" if good else "yellow")

    def compacted(self, event: events.ContextCompacted) -> Iterator[Line]:
        line = _("context shortened from {before:,} to {after:,} tokens")
        yield Line("· " + line.format(before=event.before_tokens, after=event.after_tokens), "dim")

    def notice(self, event: events.Notice) -> Iterator[Line]:
        style: dict[str, Style] = {"warning": "yellow", "error": "red"}
        yield Line(f"· {one_line(event.text)}", style.get(event.level, "dim"))

    def agent_started(self, event: events.AgentStarted) -> Iterator[Line]:
        if event.kind in TASK_KINDS and event.owner == self.session:
            self._names[event.agent] = one_line(event.name, 40)
            yield Line(f"▸ {_('started')} {self._names[event.agent]}: {one_line(event.title, 80)}", "dim")

    def agent_finished(self, event: events.AgentFinished) -> Iterator[Line]:
        if event.session == self.session:
            return
        own = event.owner == self.session
        if own and told(event):
            yield from outcome_lines(heard(event))
        elif own and self._names.get(event.agent):
            good = event.state == "done"
            reason = f": {one_line(event.error, 200)}" if event.error else ""
            name, state = self._names[event.agent], state_words(event.state)
            yield Line(f"{'✓' if good else '✗'} {name} {state}  {span(event.seconds)}{reason}", _mood(good))
        elif not own and told(event):
            words = _("{name}, a task of another chat: {state}")
            text = words.format(name=one_line(event.name, 40), state=state_words(event.state))
            yield Line(f"· {text}", _mood(event.state == "done"))
        self._names.pop(event.agent, None)

    def batch_started(self, event: events.BatchStarted) -> Iterator[Line]:
        rows = ngettext("{n} row", "{n} rows", event.total).format(n=event.total)
        yield Line(f"▸ {_('batch')} {one_line(event.name)}: {rows}", "dim")

    def batch_finished(self, event: events.BatchFinished) -> Iterator[Line]:
        good = event.state == "done"
        reason = f" — {one_line(event.reason, 300)}" if event.reason else ""
        counts = counts_line(event.counts)
        yield Line(f"{'✓' if good else '✗'} {_('batch')} {one_line(event.name)}: {event.state}, {counts}{reason}")

    def turn_finished(self, event: events.TurnFinished) -> Iterator[Line]:
        yield from self._thought_done()
        if self._pending and self.answers:
            rest, self._pending = self._pending, ""
            yield from self._say(rest)
        if not self.answers:
            return
        if event.status != "ok":
            why = f": {one_line(event.error)}" if event.error not in ("", event.status) else ""
            yield Line(f"✗ {_(event.status)}{why}", "red")
        yield Line("")

    def _say(self, line: str) -> Iterator[Line]:
        self._printed = True
        yield Line(line, answer=True)

    def _thought_done(self) -> Iterator[Line]:
        if self._thinking_since is not None:
            seconds = self.clock() - self._thinking_since
            self._thinking_since = None
            yield Line(f"· {_('thought')} {seconds:.0f} s" if seconds >= 1 else f"· {_('thought')}", "dim")


_HANDLERS: dict[type[Event], Callable[[EventLines, Any], Iterator[Line]]] = {
    events.TurnStarted: EventLines.turn_started,
    events.StepRetried: EventLines.step_retried,
    events.ThoughtDelta: EventLines.thought,
    events.TextDelta: EventLines.text,
    events.ReplyFinished: EventLines.reply,
    events.ToolStarted: EventLines.tool_started,
    events.ToolFinished: EventLines.tool_finished,
    events.ContextCompacted: EventLines.compacted,
    events.Notice: EventLines.notice,
    events.AgentStarted: EventLines.agent_started,
    events.AgentFinished: EventLines.agent_finished,
    events.BatchStarted: EventLines.batch_started,
    events.BatchFinished: EventLines.batch_finished,
    events.TurnFinished: EventLines.turn_finished,
}


def _title(display: Display) -> str:
    return f"{one_line(display.verb, 20)} {one_line(display.title, 120)}".rstrip()


def counts_line(counts: Any) -> str:
    """A run's counts in words, zeros left out but for `kept`."""
    return ", ".join(f"{value} {name}" for name, value in counts.items() if value or name == "kept") or "0 rows"


def _mood(good: bool) -> Style:
    return "dim" if good else "yellow"


def outcome_lines(outcome: Outcome) -> list[Line]:
    """What a task brought: who, its task, its answer as the model's own words, and what is to be known besides."""
    good = outcome.state == "done"
    lines = [Line(f"{'✓' if good else '✗'} {one_line(outcome.name, 40)} {outcome.heading}", "bold")]
    lines += [Line(f"  {one_line(part, 160)}", "dim") for part in outcome.task.split("\n") if part.strip()]
    lines += [Line(part, answer=True) for part in outcome.answer.strip("\n").split("\n") if outcome.answer.strip()]
    lines += [Line(f"  {part}", _mood(good)) for part in outcome.remains()]
    return [*lines, Line("")]


def request_lines(
    event: events.ApprovalAsked | events.QuestionAsked, asker: str = "", *, worded: bool = True
) -> list[Line]:
    """A waiting request with its numbered answers; `asker` names another agent, `worded` is whether what is typed
    answers a question. Nothing of what is to be approved is hidden or cut.
    """
    who = _("{name} asks: ").format(name=one_line(asker, 40)) if asker else ""
    if isinstance(event, events.QuestionAsked):
        lines = [Line(f"◆ {who}{one_line(event.question)}", "bold")]
        lines += [Line(f"  {n} {one_line(choice)}") for n, choice in enumerate(event.choices, 1)]
        how = _("a number, or your own words") if event.choices else _("type the answer")
        if not worded:
            apart = _("/attach {name} takes your own words").format(name=one_line(asker, 40))
            how = _("a number; {apart}").format(apart=apart) if event.choices else apart
        return [*lines, Line(f"  {how}")]
    lines = [Line(f"◆ {who}{escaped(event.title).replace(chr(10), ' ')}", "bold")]
    if event.detail and event.detail.strip() != event.title.strip():
        lines += [Line(f"  │ {part}") for part in escaped(event.detail).split("\n")]
    if event.reason:
        lines.append(Line(f"  {_('asks because')} {one_line(event.reason)}", "dim"))
    lines.append(Line(f"  1 {_('yes, this once')}"))
    if event.rule:
        lines.append(Line(f"  2 {_('yes, and for the rest of this session')}: {one_line(event.rule)}"))
    lines.append(Line(f"  3 {_('no; words after it say why')}"))
    if event.rule:
        lines.append(Line(f"  4 {_('yes, always')}: {one_line(event.rule)}"))
    return lines
