"""The board's cards in their columns, and what each card shows. Pure data: reads nothing, draws nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hermes_tui.texts import _
from hermes_tui.widgets.cards import COLUMNS, CardFace, shown
from hermes_tui.widgets.facts import BoardFact

if TYPE_CHECKING:
    from hermes_engine.board import Card, Run
    from hermes_tui.screens.agents.items import AgentItem

SIDE_CARDS = 6
"""Cards that are named in the sidebar."""

_COLUMN = {
    "triage": "todo", "todo": "todo", "ready": "todo", "running": "running", "blocked": "needs", "review": "review",
    "done": "done",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Deck:
    """A board at one moment.

    Attributes:
        columns: cards by column, those first that are to be looked at first.
        total: cards there are, filtered ones too.
        running: cards at work, wherever they stand.
    """

    columns: Mapping[str, tuple[Card, ...]] = field(default_factory=lambda: dict.fromkeys(COLUMNS, ()))
    total: int = 0
    running: int = 0

    def place_of(self, card: str) -> tuple[int, int] | None:
        """Column and place of a card, None where it is not."""
        for column, name in enumerate(COLUMNS):
            for place, found in enumerate(self.columns[name]):
                if found.id == card:
                    return column, place
        return None

    def at(self, column: int, place: int) -> Card | None:
        """The card at a place."""
        cards = self.columns[COLUMNS[column]]
        return cards[place] if 0 <= place < len(cards) else None

    def count(self, name: str, cap: int) -> str:
        """How many cards stand in a column; of RUNNING also how many may."""
        found = len(self.columns[name])
        return f"{found}/{cap}" if name == "running" else str(found)


def deck(cards: Sequence[Card], asking: Collection[str], typed: str = "") -> Deck:
    """The cards in columns.

    Args:
        cards: all of a board but archived ones, in the order in which they are worked.
        asking: conversations of agents that wait for a person.
        typed: words that every card shown must hold.
    """
    found: dict[str, list[Card]] = {name: [] for name in COLUMNS}
    for card in _matching(cards, typed):
        if name := _COLUMN.get(card.status):
            asks = card.run is not None and card.run.session in asking
            found["needs" if asks else name].append(card)
    orders: dict[str, Callable[[Card], tuple[float, ...]]] = {
        "todo": lambda card: (card.status != "triage",),
        "needs": lambda card: (card.status == "blocked",),
        "review": lambda card: (bool(card.reviewer),),
        "done": lambda card: (-(card.finished or 0.0),),
    }
    for name, order in orders.items():
        found[name].sort(key=order)
    return Deck(
        {name: tuple(column) for name, column in found.items()},
        len(cards),
        sum(card.status == "running" for card in cards),
    )


def _matching(cards: Iterable[Card], typed: str) -> Iterable[Card]:
    words = typed.lower().split()

    def text(card: Card) -> str:
        return " ".join((card.id, card.title, card.assignee, card.status, card.reason, card.body)).lower()

    return [card for card in cards if all(word in text(card) for word in words)] if words else cards


def workers(items: Iterable[AgentItem]) -> dict[str, AgentItem]:
    """The living agents that work cards, by their conversation."""
    return {item.session: item for item in items if item.kind == "worker" and item.live}


def face(card: Card, worker: AgentItem | None, now: float) -> CardFace:
    """What a card shows; `worker` is who is at it."""
    plain = CardFace(card.id, card.title, who=card.assignee, priority=card.priority)
    if card.run is not None:
        return _at_work(plain, card, card.run, worker, now)
    judged = card.status == "review" and not card.reviewer
    since = card.finished if card.status == "done" and card.finished else card.updated
    return replace(
        plain,
        sign={"blocked": "blocked", "review": "review", "done": "good"}.get(card.status, ""),
        seconds=max(0.0, now - since),
        told=(card.result if judged or card.status == "done" else "") or card.reason,
        after=card.parents if card.status == "todo" else (),
    )


def _at_work(plain: CardFace, card: Card, run: Run, worker: AgentItem | None, now: float) -> CardFace:
    known = replace(plain, who=run.profile, sign="running", seconds=max(0.0, now - run.started), tokens=run.tokens)
    if card.reason:
        return replace(known, sign="", seconds=max(0.0, now - run.heartbeat), told=card.reason)
    if worker is None:
        return replace(known, told=run.activity or _("begins"))
    silent = worker.quiet(now)
    return replace(
        known,
        sign="needs" if worker.needs else "running",
        told=_("quiet {n} s").format(n=int(silent)) if silent else worker.doing(),
        tokens=run.tokens if worker.tokens is None else worker.tokens,
    )


def in_short(slug: str, whole: Deck) -> BoardFact:
    """The board for header and sidebar."""
    told = [(card.id, "needs", shown(card.title)) for card in whole.columns["needs"]]
    told += [(card.id, "running", shown(card.title)) for card in whole.columns["running"]]
    counts = {name: len(cards) for name, cards in whole.columns.items()}
    return BoardFact(
        slug, counts["running"], counts["needs"], counts["review"], sum(counts.values()) - counts["done"],
        tuple(told[:SIDE_CARDS]),
    )  # fmt: skip
