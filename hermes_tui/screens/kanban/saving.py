"""Puts what was written in a card's form on the board: only what is another value than before. Blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_engine.board import CardDraft
from hermes_engine.errors import UsageError

if TYPE_CHECKING:
    from hermes_engine.board import Board, Card
    from hermes_tui.screens.kanban.forms import Written


def create(board: Board, found: Written, by: str) -> str:
    """A new card; its id. Raises HermesError."""
    draft = CardDraft(
        found.title, found.body.strip(), found.assignee or None, found.reviewer, found.number(), found.parent_ids()
    )
    return board.create(draft, by=by).id


def edit(board: Board, card: Card, before: Written, found: Written, by: str) -> None:
    """Changes a card. Raises HermesError; what was changed before the fault stays changed."""
    title = found.title if found.title != before.title else None
    body = found.body if found.body != before.body else None
    reviewer = found.reviewer if found.reviewer != before.reviewer else None
    priority = found.number() if found.priority != before.priority else None
    if any(value is not None for value in (title, body, reviewer, priority)):
        board.edit(card.id, title=title, body=body, reviewer=reviewer, priority=priority, by=by)
    if found.assignee != before.assignee:
        if not found.assignee:
            raise UsageError("a card is for somebody", hint="default")
        board.assign(card.id, found.assignee, by=by)
    wanted = found.parent_ids()
    if wanted != before.parent_ids():
        for parent in wanted:  # first what may be refused, so that the form can be saved again as it comes back
            if parent not in before.parent_ids():
                board.link(parent, card.id, by=by)
        for parent in set(before.parent_ids()) - set(wanted):
            board.unlink(parent, card.id, by=by)
