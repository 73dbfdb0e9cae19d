"""Answers what a row asks, from the batch screens. Free text is for the chat, where the same question stands.

A yes for the session covers the rest of the row; there is no yes for good, since rows write no rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_engine.events import ApprovalAsked
from hermes_engine.requests import Answer
from hermes_tui.presenter.requests import request_block
from hermes_tui.screens.overlays import card
from hermes_tui.texts import _

if TYPE_CHECKING:
    from typing import Any

    from textual.app import App

    from hermes_engine.session import Engine

_LINES = 8


async def answered(app: App[Any], engine: Engine, request: str, asker: str) -> str:
    """Shows a request and has it answered; what is to be said."""
    event = next((event for event in engine.broker.pending() if event.request == request), None)
    if event is None:
        return _("It no longer asks")
    block = request_block(event, asker)
    told = [one for one in block.options if one.choice == "no" or not (one.asks_text or one.choice == "always")]
    if not told:
        return _("It wants words: answer it in the chat, Alt+1")
    lines = [event.title if isinstance(event, ApprovalAsked) else event.question]
    if isinstance(event, ApprovalAsked):
        lines += [line for line in (*event.detail.splitlines(), event.reason) if line.strip() and line not in lines]
    if len(lines) > _LINES:
        lines = [*lines[:_LINES], _("… and {count} lines more").format(count=len(lines) - _LINES)]
    choices = [
        card.Choice(str(place), _("No") if option.choice == "no" else option.label) for place, option in enumerate(told)
    ]
    taken = await app.push_screen_wait(card.Card(_("{name} asks").format(name=asker), lines, choices))
    if not taken:
        return ""
    option = told[int(taken)]
    done = engine.answer(request, Answer(option.choice, option.note))  # type: ignore[arg-type]
    return "" if done else _("It no longer asks")
