"""Turns a goal into drafts of cards: one question to a model, whose answer must follow a schema; nothing is created."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from hermes_engine.board import CardDraft
from hermes_engine.cleaning import one_line
from hermes_engine.errors import HermesError
from hermes_engine.work.answers import checked_answer
from hermes_engine.work.cards import Described

MOST_CARDS = 40


def planner_role(profiles: Described) -> str:
    """What the planner is told besides its profile's instructions."""
    known = "\n".join(f"- {name}: {one_line(text or 'no description', 300)}" for name, text in profiles)
    return (
        "You plan and do nothing else. Split the goal of the person into cards that workers can work without this"
        " conversation: each with everything its worker must know, one clear outcome, and the places of the cards whose"
        " results it needs. Few cards are better than many. Give each to the profile whose description fits:\n"
        f"{known}\nAnswer with one JSON value that follows this schema, and nothing else: "
        f"{json.dumps(plan_schema(profiles), ensure_ascii=False)}"
    )


def plan_schema(profiles: Described) -> dict[str, Any]:
    """The form of a plan."""
    card = {
        "type": "object",
        "properties": {
            "title": {"type": "string", "minLength": 1, "maxLength": 200},
            "body": {"type": "string"},
            "assignee": {"enum": [name for name, _ in profiles]},
            "after": {"type": "array", "items": {"type": "integer", "minimum": 1}},
        },
        "required": ["title", "body", "assignee"],
        "additionalProperties": False,
    }
    cards = {"type": "array", "minItems": 1, "maxItems": MOST_CARDS, "items": card}
    return {"type": "object", "properties": {"cards": cards}, "required": ["cards"]}


def circle_in(plan: str) -> str:
    """Which cards of a plan wait for each other, in words for the model; "" when none do."""
    try:
        TopologicalSorter(_waits(json.loads(plan)["cards"])).prepare()
    except CycleError as error:
        places = " → ".join(str(place + 1) for place in reversed(error.args[1]))
        return f"the cards wait for each other in a circle ({places}); `after` may only name cards that come before"
    return ""


def _waits(cards: Sequence[Mapping[str, Any]]) -> dict[int, set[int]]:
    """The cards that each waits for, by their places from 0."""
    return {
        place: {after - 1 for after in card.get("after", ()) if after - 1 < len(cards)} - {place}
        for place, card in enumerate(cards)
    }


def drafts_of(answer: str, profiles: Described) -> tuple[CardDraft, ...]:
    """The cards of a plan, each behind those it waits for; `@0` among parents is the first.

    Raises:
        HermesError: the answer is no plan.
    """
    text, fault = checked_answer(answer, plan_schema(profiles))
    if fault:
        raise HermesError(f"the model gave no usable plan: {fault}", hint="try again, or another model")
    cards: Sequence[Mapping[str, Any]] = json.loads(text)["cards"]
    waits = _waits(cards)
    try:
        order = list(TopologicalSorter(waits).static_order())
    except CycleError:
        raise HermesError("the model's plan goes in a circle", hint="try again, or another model") from None
    places = {place: number for number, place in enumerate(order)}
    return tuple(
        CardDraft(
            title=cards[place]["title"],
            body=cards[place]["body"],
            assignee=cards[place]["assignee"],
            parents=tuple(f"@{places[parent]}" for parent in sorted(waits[place], key=places.__getitem__)),
        )
        for place in order
    )
