"""What card tools take from a model and what they tell it, and whose hand writes to the board."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator

from hermes_engine.board import Board, Card, CardDraft, Hold, UnknownCard
from hermes_engine.board.writing import id_of, number_of
from hermes_engine.errors import ToolFault
from hermes_engine.messages import Display, ToolResult
from hermes_engine.tools.context import ToolContext
from hermes_engine.tools.registry import Effect, Tool, make_tool
from hermes_engine.work.card_text import summary
from hermes_engine.work.tasks import from_json, named

Ids = Annotated[list[str] | None, BeforeValidator(named)]
Files = Annotated[list[str] | None, BeforeValidator(lambda it: [m] if isinstance(m := from_json(it), str) else m)]
"""Cards and files in an argument: one text stands for a list, as models send it. A comma may be in a file's name."""

_TITLES = {"kanban_create": "title", "kanban_complete": "summary", "kanban_block": "reason", "kanban_link": "child"}
PLANNED = frozenset({"kanban_create", "kanban_link", "kanban_unblock"})
"""What makes work for others: in plan mode nobody may, a worker neither."""
OWN = frozenset({"kanban_block", "kanban_comment", "kanban_claim", "kanban_request_review"})
"""What a worker may always do with its own card, and a chat that plans with none."""


def card_tool(function: Callable[..., Any], changing: frozenset[str], title: str = "") -> Tool:
    """A card tool; in plan mode those among `changing` are refused."""
    name = function.__name__
    effect: Effect = "board" if name in changing else "none"
    return make_tool(function, "kanban", "Card", effect=effect, title=_TITLES.get(name, title))


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes cards for an agent: under the run of the `worker` it is or was started by, else as its profile `by`."""

    opened: Callable[[], Board]
    by: str
    worker: Hold | None

    def create(self, draft: CardDraft) -> Card:
        """Makes a card. Blocks."""
        return self.worker.create(draft) if self.worker is not None else self.opened().create(draft, by=self.by)

    def link(self, parent: str, child: str) -> Card:
        """Makes a card wait for another. Blocks."""
        if self.worker is not None:
            return self.worker.link(parent, child)
        return self.opened().link(parent, child, by=self.by)


def places(ctx: ToolContext, files: Iterable[str] | None) -> list[Path]:
    """The files a model named, in its folder."""
    return [ctx.workspace.resolve(file) for file in files or ()]


def own_card(given: str | None, own: str) -> None:
    """Raises ToolFault when a worker names another card than its own to be ended."""
    if given is not None and given.strip() and id_of(number_of(given)) != own:
        raise ToolFault(f"your card is {own}; you cannot end {given}")


def held_card(held: dict[str, Hold], card: str) -> Hold:
    """A chat's hold on a card. Raises ToolFault where it did not claim it."""
    with contextlib.suppress(KeyError, UnknownCard):
        return held[id_of(number_of(card))]
    raise ToolFault(f"you did not claim {card}; claimed: {', '.join(held) or 'none'}")


def told_card(card: Card, verb: str) -> ToolResult:
    """A card as a tool tells it after a verb."""
    return told(summary(card), f"{card.id} {verb}")


def told(value: Any, words: str) -> ToolResult:
    """Plain data as a tool tells it; `words` are for people."""
    return ToolResult(json.dumps(value, ensure_ascii=False), display=Display("Card", "", words))
