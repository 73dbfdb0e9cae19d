"""The states of a card and every legal move between them: one table. docs/kanban.md draws it; no other place decides.

Where a move has several targets, one rule (`writing.resting`) chooses: a card under review rests in `review`; any
other in `todo` while a parent is unfinished, else in `ready`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hermes_engine.board.values import STATES, IllegalMove, State

Verb = Literal[
    "create",
    "sort",
    "settle",
    "link",
    "claim",
    "complete",
    "review",
    "accept",
    "send_back",
    "block",
    "unblock",
    "retry",
    "give_up",
    "reclaim",
    "archive",
    "reopen",
]


@dataclass(frozen=True, slots=True)
class Move:
    """One verb.

    Attributes:
        verb: its name.
        sources: states it starts from; () for a new card.
        targets: states it may lead to.
        who: person | worker | board; several, joined by a comma.
        meaning: one line for the document.
    """

    verb: Verb
    sources: tuple[State, ...]
    targets: tuple[State, ...]
    who: str
    meaning: str


_UNBLOCKED: tuple[State, ...] = ("triage", "todo", "ready", "running", "review")

MOVES: tuple[Move, ...] = (
    Move("create", (), ("triage", "todo", "ready"), "person, worker", "a new card"),
    Move("sort", ("triage",), ("todo", "ready"), "person", "a person says that it is to be worked"),
    Move("settle", ("todo", "ready"), ("todo", "ready"), "board", "a parent was finished, reopened or unlinked"),
    Move("link", ("ready",), ("todo",), "person, worker", "it now waits for an unfinished parent"),
    Move("claim", ("ready", "review"), ("running",), "board", "a worker takes it and a run begins"),
    Move("complete", _UNBLOCKED, ("done",), "person, worker", "the work is done; an open run of another ends"),
    Move("review", ("todo", "ready", "running"), ("review",), "person, worker", "somebody is to judge it"),
    Move("accept", ("review", "running"), ("done",), "person, worker", "the review is passed"),
    Move(
        "send_back", ("review", "running"), ("todo", "ready"), "person, worker", "the review asks for more, in a note"
    ),
    Move("block", _UNBLOCKED, ("blocked",), "person, worker", "it must not go on until somebody unblocks it"),
    Move("unblock", ("blocked",), ("todo", "ready", "review"), "person", "it may go on; tries count anew"),
    Move("retry", ("running",), ("todo", "ready", "review"), "board", "the run ended without a result; tries are left"),
    Move("give_up", ("running",), ("blocked",), "board", "the run ended without a result; no tries are left"),
    Move("reclaim", ("running",), ("todo", "ready", "review"), "person", "the run is taken away, the card waits anew"),
    Move("archive", (*_UNBLOCKED, "blocked", "done"), ("archived",), "person", "put away; an open run ends"),
    Move("reopen", ("done", "archived"), ("todo", "ready"), "person", "to be worked once more"),
)
BY_VERB: dict[str, Move] = {move.verb: move for move in MOVES}


def check(verb: Verb, card: str, status: State) -> None:
    """Raises IllegalMove when a card in this state does not allow the verb."""
    sources = BY_VERB[verb].sources
    if status not in sources:
        told = f"{card} is {status}: {verb.replace('_', ' ')} needs {' or '.join(sources)}"
        raise IllegalMove(told, hint=_WAY_OUT.get(status, ""))


_WAY_OUT: dict[State, str] = {
    "triage": "sort it first",
    "running": "block or reclaim it first",
    "blocked": "unblock it first",
    "done": "reopen it first",
    "archived": "reopen it first",
}


def legal(verb: str, source: str, target: str) -> bool:
    """Whether the table has this move; `source` "" for a new card."""
    move = BY_VERB.get(verb)
    return move is not None and target in move.targets and (source in move.sources or (not source and not move.sources))


def as_markdown() -> str:
    """The table and its drawing as they stand in docs/kanban.md."""
    lines = ["| verb | from | to | who | meaning |", "|---|---|---|---|---|"]
    for move in MOVES:
        cells = (f"`{move.verb}`", ", ".join(move.sources) or "new", ", ".join(move.targets), move.who, move.meaning)
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "```mermaid", "stateDiagram-v2"]
    arrows: dict[tuple[str, str], list[str]] = {}
    for move in MOVES:
        for source in move.sources or ("[*]",):
            for target in move.targets:
                if source != target:
                    arrows.setdefault((source, target), []).append(move.verb)
    order = ["[*]", *STATES]
    for (start, end), verbs in sorted(arrows.items(), key=lambda item: [order.index(name) for name in item[0]]):
        lines.append(f"    {start} --> {end}: {', '.join(verbs)}")
    return "\n".join([*lines, "```"])
