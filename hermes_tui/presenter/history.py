"""A saved conversation as blocks. What a tool returned is clipped: a stored 20 MB result opens in no time."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from hermes_engine.events import ToolFinished
from hermes_engine.messages import CANCELLED_RESULT, Display, Message, ToolCall
from hermes_tui.presenter.past import Past, Turn
from hermes_tui.texts import _
from hermes_tui.widgets.blocks import AnswerBlock, Block, ThoughtBlock, ToolBlock, UserBlock

MAX_RESULT = 20_000
"""Characters kept of a saved result; the model's copy is whole."""

_VERBS = {
    "terminal": "Run",
    "process": "Process",
    "read_file": "Read",
    "write_file": "Write",
    "patch": "Edit",
    "search_files": "Search",
    "web_fetch": "Fetch",
    "web_search": "Search",
    "todo": "Plan",
    "clarify": "Ask",
    "spawn_agent": "Spawn",
    "spawn_parallel": "Spawn",
}
_MAIN_ARGUMENTS = ("command", "path", "pattern", "url", "query", "question", "prompt", "action")


def blocks_of(messages: Sequence[Message], past: Past | None = None) -> list[Block]:
    """The blocks of a conversation, oldest first, with what the recorded events know besides."""
    return _History(past or Past()).run(messages)


class _History:
    def __init__(self, past: Past) -> None:
        self._past = past
        self._blocks: list[Block] = []
        self._turn: Turn | None = None
        self._replies = 0

    def run(self, messages: Sequence[Message]) -> list[Block]:
        self._blocks += self._past.before
        said = [place for place, message in enumerate(messages) if message.role == "user"]
        begun = self._past.by_message([messages[place].content for place in said])
        turns = {said[number]: turn for number, turn in begun.items()}
        for place, message in enumerate(messages):
            if message.role == "user":
                if turn := turns.get(place):
                    self._end()
                    self._turn, self._replies = turn, 0
                self._blocks.append(UserBlock(message.content))
                if turn:
                    self._lines()
            elif message.role == "assistant":
                self._reply(message, _results(messages, place))
        self._end()
        return self._blocks

    def _end(self) -> None:
        if self._turn is not None:
            later = [line for number in sorted(self._turn.lines) for line in self._turn.lines[number]
                     if number > self._replies]  # fmt: skip
            self._blocks += [*later, *self._turn.end]

    def _lines(self) -> None:
        if self._turn is not None:
            self._blocks += self._turn.lines.get(self._replies, ())

    def _reply(self, message: Message, results: Mapping[str, Message]) -> None:
        blocks = self._blocks
        if message.reasoning:
            blocks.append(ThoughtBlock(message.reasoning, seconds=self._past.thought.get(message.reasoning)))
        if message.content.strip():
            answer = AnswerBlock(message.content)
            answer.note = _("cut off here") if message.partial else ""
            blocks.append(answer)
        for call in message.tool_calls:
            self._call(call, results.get(call.id))
        self._replies += 1
        self._lines()

    def _call(self, call: ToolCall, result: Message | None) -> None:
        told = self._past.results.get(call.id)
        display = told.display if told is not None else Display(_VERBS.get(call.name, call.name), main_argument(call))
        last = self._blocks[-1] if self._blocks else None
        if isinstance(last, ToolBlock) and told is not None and last.may_join(display.verb):
            card = last
            card.join(call.id, display.title)
        else:
            card = ToolBlock(call.id, display.verb, display.title)
            self._blocks.append(card)
        if result is None and told is None:
            return
        body = display.body if told is not None else result.content if result is not None else ""
        card.finish(
            call.id,
            verb=display.verb,
            title=display.title,
            summary=display.summary,
            kind=display.kind,
            body=_clipped(body),
            status=_status(result, told),
            seconds=told.seconds if told is not None else 0.0,
        )
        self._blocks += self._past.answered.get(call.id, ())


def _results(messages: Sequence[Message], place: int) -> dict[str, Message]:
    """The results that follow a reply."""
    following = itertools.takewhile(lambda message: message.role == "tool", messages[place + 1 :])
    return {message.tool_call_id: message for message in following}


def _clipped(text: str) -> str:
    if len(text) <= MAX_RESULT:
        return text
    return text[:MAX_RESULT] + "\n" + _("… {count:,} more characters").format(count=len(text) - MAX_RESULT)


def _status(result: Message | None, told: ToolFinished | None) -> str:
    """How a call ended: as saved with its result, else as recorded."""
    if result is not None and result.status:
        return result.status
    if told is not None:
        return told.status
    return "cancelled" if result is not None and result.content == CANCELLED_RESULT else "ok"


def main_argument(call: ToolCall) -> str:
    """The argument that says most about a call."""
    arguments = call.parsed()
    if arguments is None:
        return call.arguments[:200]
    for name in _MAIN_ARGUMENTS:
        value = arguments.get(name)
        if isinstance(value, str) and value:
            return value[:400]
    return next((str(value)[:200] for value in arguments.values() if isinstance(value, str)), "")
