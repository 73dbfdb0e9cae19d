"""The demo model at a board: it plans a goal in three cards, and ends a card it works with what it played. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from hermes_engine.messages import Message

COMPLETE = "kanban_complete"
"""On offer to nobody but who works a card."""

_PLAN = '{"type": "object", "properties": {"cards":'
_CARD = re.compile(r"Card \S+: (.*)")
_LONGEST_SUMMARY = 1_000


def planned(messages: Sequence[Message], topic: str, label: str, titles: Sequence[str]) -> str:
    """A plan in JSON, "" when the instructions ask for none. Who may be given a card stands in their schema.

    Args:
        messages: the conversation.
        topic: of the goal.
        label: what every card tells about its author.
        titles: of the cards, each behind the one before it, with {topic}.
    """
    system = messages[0].content if messages and messages[0].role == "system" else ""
    start = system.find(_PLAN)
    if start < 0:
        return ""
    schema: dict[str, Any] = json.JSONDecoder().raw_decode(system, start)[0]
    names: list[str] = schema["properties"]["cards"]["items"]["properties"]["assignee"]["enum"]
    cards = [
        {"title": title.format(topic=topic), "body": label, "assignee": names[0], "after": [place] if place else []}
        for place, title in enumerate(titles)
    ]
    return json.dumps({"cards": cards}, ensure_ascii=False)


def worked(messages: Sequence[Message]) -> str:
    """The title of the card that is worked, "" when the first message is no card."""
    first = next((message.content for message in messages if message.role == "user"), "")
    found = _CARD.match(first)
    return found[1] if found else ""


def ended(text: str, label: str) -> tuple[str, dict[str, Any]]:
    """The call that ends a card with a text as its result."""
    return COMPLETE, {"summary": f"{label}\n\n{text}"[:_LONGEST_SUMMARY]}
