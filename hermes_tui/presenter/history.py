"""A saved conversation as blocks. What a tool returned is clipped: a stored 20 MB result opens in no time."""

from __future__ import annotations

from collections.abc import Iterable

from hermes_engine.messages import CANCELLED_RESULT, Message, ToolCall
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


def blocks_of(messages: Iterable[Message]) -> list[Block]:
    """The blocks of a conversation, oldest first."""
    blocks: list[Block] = []
    cards: dict[str, ToolBlock] = {}
    for message in messages:
        if message.role == "user":
            blocks.append(UserBlock(message.content))
        elif message.role == "assistant":
            blocks.extend(_reply(message, cards))
        elif message.role == "tool" and message.tool_call_id in cards:
            _finish(cards.pop(message.tool_call_id), message)
    return blocks


def _reply(message: Message, cards: dict[str, ToolBlock]) -> list[Block]:
    blocks: list[Block] = []
    if message.reasoning:
        blocks.append(ThoughtBlock(message.reasoning))
    if message.content.strip():
        answer = AnswerBlock(message.content)
        answer.note = _("cut off here") if message.partial else ""
        blocks.append(answer)
    for call in message.tool_calls:
        card = ToolBlock(call.id, _VERBS.get(call.name, call.name), main_argument(call))
        cards[call.id] = card
        blocks.append(card)
    return blocks


def _finish(card: ToolBlock, message: Message) -> None:
    text = message.content
    if len(text) > MAX_RESULT:
        text = text[:MAX_RESULT] + "\n" + _("… {count:,} more characters").format(count=len(text) - MAX_RESULT)
    status = message.status or ("cancelled" if text == CANCELLED_RESULT else "ok")
    card.finish(message.tool_call_id, verb="", title="", summary="", kind="text", body=text, status=status, seconds=0.0)


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
