"""What a person can do with a card: where it may go from here, and what the one key for it means. Pure; the engine's
table of moves decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hermes_engine.board.moves import BY_VERB
from hermes_tui.texts import _

if TYPE_CHECKING:
    from hermes_engine.board import Card

Verb = Literal[
    "sort", "block", "unblock", "review", "complete", "accept", "send_back", "reclaim", "archive", "reopen", "assign"
]


@dataclass(frozen=True, slots=True)
class Step:
    """A verb of the board.

    Attributes:
        verb: method of `Board`.
        label: what it does, in words.
        done: what is said afterwards.
        asks: what the person is asked for, "" for nothing.
        must: whether an empty answer will not do.
    """

    verb: Verb
    label: str
    done: str
    asks: str = ""
    must: bool = False


def step(verb: Verb) -> Step:
    """The verb in words."""
    words: dict[Verb, Step] = {
        "sort": Step("sort", _("to be worked"), _("{card} is to be worked")),
        "block": Step("block", _("block it…"), _("{card} is blocked"), _("Why it must wait"), must=True),
        "unblock": Step("unblock", _("let it go on"), _("{card} may go on")),
        "review": Step("review", _("have it reviewed…"), _("{card} waits for a review"), _("A note, or nothing")),
        "complete": Step("complete", _("done…"), _("{card} is done"), _("Its result, or nothing")),
        "accept": Step("accept", _("accept it"), _("{card} is accepted")),
        "send_back": Step(
            "send_back", _("send it back…"), _("{card} is worked again"), _("What is missing"), must=True
        ),
        "reclaim": Step("reclaim", _("take it from its worker"), _("{card} was taken from its worker")),
        "archive": Step("archive", _("put it away"), _("{card} is put away")),
        "reopen": Step("reopen", _("have it worked once more"), _("{card} is to be worked once more")),
        "assign": Step("assign", _("try it again now"), _("{card} may be tried at once")),
    }
    return words[verb]


_LEFT: tuple[Verb, ...] = ("reclaim", "unblock", "send_back", "reopen")
_RIGHT: tuple[Verb, ...] = ("sort", "block", "review", "accept", "complete", "archive")


def steps(card: Card, way: int) -> tuple[Step, ...]:
    """Where the card may be moved to the left (`way` < 0) or to the right."""
    verbs = [verb for verb in (_LEFT if way < 0 else _RIGHT) if card.status in BY_VERB[verb].sources]
    if card.status == "review":
        verbs = [verb for verb in verbs if verb != "complete"]
        if way < 0:
            verbs.append("block")
        else:
            verbs.remove("block")
    elif card.status == "running":
        judged = card.run is not None and card.run.role == "review"
        verbs = [verb for verb in verbs if judged or verb not in ("accept", "send_back")]
    return tuple(step(verb) for verb in verbs)


def no_step(card: Card, way: int) -> str:
    """Why the card may not be moved there, or what else it may not."""
    if way < 0 and card.status in ("triage", "todo", "ready"):
        return _("{card} stands in the first column").format(card=card.id)
    if card.status == "blocked":
        return _("{card} is blocked: let it go on first (H)").format(card=card.id)
    if card.status in ("triage", "todo", "ready"):
        return _("Only a worker makes a card run: s starts this board")
    return ""


def again(card: Card, now: float) -> tuple[Step | None, str]:
    """What `r` means for it; None and why not."""
    by_state: dict[str, Verb] = {"blocked": "unblock", "running": "reclaim", "done": "reopen", "triage": "sort"}
    if verb := by_state.get(card.status):
        return step(verb), ""
    if card.status == "ready" and card.retry_at > now:
        return step("assign"), ""
    return None, card.reason or _("{card} is {state}").format(card=card.id, state=card.status)
