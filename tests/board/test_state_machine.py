"""Any order of any verbs, by people and workers, current and outdated: what must hold, holds after each of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from hermes_engine.board import Board, Card, Claim, Hold, IllegalMove, RunOver, this_owner
from hermes_engine.board.moves import BY_VERB, legal
from hermes_engine.errors import UsageError
from tests.board.invariants import above, right
from tests.board.support import HERE, Place, draft, shift, state, tables

ME = this_owner()
PROFILES = st.sampled_from(["default", "researcher", "nobody"])
PERSON: dict[str, Callable[[Board, str], object]] = {
    "sort": lambda board, card: board.sort(card),
    "complete": lambda board, card: board.complete(card, "r"),
    "review": lambda board, card: board.review(card),
    "accept": lambda board, card: board.accept(card),
    "send_back": lambda board, card: board.send_back(card, "more"),
    "block": lambda board, card: board.block(card, "why"),
    "unblock": lambda board, card: board.unblock(card),
    "reclaim": lambda board, card: board.reclaim(card),
    "archive": lambda board, card: board.archive(card),
    "reopen": lambda board, card: board.reopen(card),
}
WORKER: dict[str, Callable[[Hold], object]] = {
    "complete": lambda hold: hold.complete("r"),
    "block": lambda hold: hold.block("why"),
    "request_review": lambda hold: hold.request_review("r"),
    "send_back": lambda hold: hold.send_back("more"),
    "failed": lambda hold: hold.end("failed", "x"),
    "gave_up": lambda hold: hold.end("gave_up", "x"),
    "provider_error": lambda hold: hold.end("provider_error", "x"),
    "stopped": lambda hold: hold.end("stopped", "x"),
    "comment": lambda hold: hold.comment("x"),
    "heartbeat": lambda hold: hold.heartbeat(activity="x"),
}
ONLY_IN = {"request_review": "work", "send_back": "review"}


class Everything(RuleBasedStateMachine):
    """A board and all who write to it."""

    cards = Bundle("cards")
    claims = Bundle("claims")

    def __init__(self, board: Board) -> None:
        super().__init__()
        self.board = board
        self.made: set[str] = set()
        self.seen = 0

    def teardown(self) -> None:
        """Closes the board."""
        self.board.close()

    def refused(self, act: Callable[[], object], *kinds: type[Exception]) -> None:
        """The verb must be refused, and nothing may be changed by it."""
        before = tables(self.board)
        try:
            act()
        except kinds:
            assert tables(self.board) == before
        else:
            raise AssertionError("this should have been refused")

    @initialize(target=cards)
    def begin(self) -> str:
        """There is a card."""
        return self.created(self.board.create(draft()))

    def created(self, card: Card) -> str:
        """Counts a new card."""
        assert card.id not in self.made
        self.made.add(card.id)
        return card.id

    @rule(
        target=cards,
        parents=st.lists(cards, max_size=2),
        assignee=PROFILES,
        reviewer=st.sampled_from(["", "reviewer"]),
        priority=st.integers(0, 2),
        retries=st.sampled_from([None, 0, 1]),
        triage=st.booleans(),
    )
    def create(
        self, parents: list[str], assignee: str, reviewer: str, priority: int, retries: int | None, triage: bool
    ) -> object:
        """A new card, unless one of its parents can never be finished."""
        made = draft(
            parents=tuple(parents),
            assignee=assignee,
            reviewer=reviewer,
            priority=priority,
            max_retries=retries,
            triage=triage,
        )
        now = state(self.board)
        if any(now[card].status == "archived" and now[card].finished is None for card in parents):
            self.refused(lambda: self.board.create(made), UsageError)
            return multiple()
        return self.created(self.board.create(made))

    @rule(card=cards, verb=st.sampled_from(sorted(PERSON)))
    def person(self, card: str, verb: str) -> None:
        """A person's verb, as the table allows it."""
        now = self.board.card(card)
        handed_in = verb not in ("accept", "send_back") or now.status != "running" or now.run is None
        handed_in = handed_in or (now.run is not None and now.run.role == "review")
        if now.status in BY_VERB[verb].sources and handed_in:
            PERSON[verb](self.board, card)
        else:
            self.refused(lambda: PERSON[verb](self.board, card), IllegalMove)

    @rule(card=cards, away=st.booleans())
    def finish(self, card: str, away: bool) -> None:
        """Done, and perhaps put away: what other cards wait for."""
        if legal("complete", self.board.card(card).status, "done"):
            self.board.complete(card)
            if away:
                self.board.archive(card)

    @rule(parent=cards, child=cards)
    def link(self, parent: str, child: str) -> None:
        """A link, unless it closes a circle or comes too late."""
        now = state(self.board)
        lost = now[parent].status == "archived" and now[parent].finished is None
        begun = now[child].status not in ("triage", "todo", "ready", "blocked")
        if lost or begun or child in above(now, parent) | {parent}:
            self.refused(lambda: self.board.link(parent, child), UsageError)
        else:
            self.board.link(parent, child)

    @rule(card=cards, data=st.data())
    def unlink(self, card: str, data: st.DataObject) -> None:
        """One link less."""
        parents = self.board.card(card).parents
        if parents:
            self.board.unlink(data.draw(st.sampled_from(parents)), card)

    @rule(card=cards, profile=PROFILES)
    def assign(self, card: str, profile: str) -> None:
        """Another profile, unless it runs."""
        if self.board.card(card).status == "running":
            self.refused(lambda: self.board.assign(card, profile), IllegalMove)
        else:
            self.board.assign(card, profile)

    @rule(target=claims, cap=st.integers(0, 3))
    def claim(self, cap: int) -> object:
        """The next card that may be claimed, and no other."""
        cards = self.board.cards()
        running = [card for card in cards if card.status == "running"]
        free = [
            card
            for card in cards
            if (card.status == "ready" and card.assignee in HERE) or (card.status == "review" and card.reviewer in HERE)
        ]
        claim = self.board.claim(ME, profiles=HERE, cap=cap)
        if len(running) >= cap or not free:
            assert claim is None
            return multiple()
        assert claim is not None
        assert claim.card.id == free[0].id
        return claim

    @rule(claim=claims, verb=st.sampled_from(sorted(WORKER)))
    def worker(self, claim: Claim, verb: str) -> None:
        """A worker's verb: it counts while its run is the card's, and never again."""
        hold = Hold(self.board, claim.token)
        if not self.board.standing([claim.token]):
            self.refused(lambda: WORKER[verb](hold), RunOver)
        elif ONLY_IN.get(verb, claim.run.role) != claim.run.role:
            self.refused(lambda: WORKER[verb](hold), IllegalMove)
        else:
            WORKER[verb](hold)

    @rule(target=cards, claim=claims)
    def worker_creates(self, claim: Claim) -> object:
        """A worker makes a card that waits for its own."""
        hold = Hold(self.board, claim.token)
        child = draft(parents=(claim.card.id,))
        if not self.board.standing([claim.token]):
            self.refused(lambda: hold.create(child), RunOver)
            return multiple()
        return self.created(hold.create(child))

    @rule(claim=consumes(claims), alive=st.sampled_from([True, False, None]), late=st.booleans())
    def reclaim(self, claim: Claim, alive: bool | None, late: bool) -> None:
        """The owners are judged."""
        if late:
            shift(self.board, 5000)
        before = {run.id for run in self.board.open_runs()}
        found = self.board.reclaim_expired(alive=lambda run: alive if run.id == claim.run.id else True)
        lost = {run.id for run in found.lost}
        assert lost == ({claim.run.id} & before if alive is False or (late and alive is None) else set())

    @precondition(lambda self: len(self.made) > 3)
    @rule()
    def reopened_board(self) -> None:
        """Another process opens the same board and sees the same."""
        assert self.board.details(archived=True) == self.board.details(archived=True)

    @invariant()
    def no_card_is_lost(self) -> None:
        """Every card that was made is there, and no other."""
        assert set(state(self.board)) == self.made

    @invariant()
    def the_board_is_right(self) -> None:
        """One owner, reasons, resting places, legal moves."""
        right(self.board)


def test_whatever_is_done_in_whatever_order_the_board_stays_right(place: Place) -> None:
    boards, numbers = place.boards(), itertools.count()

    class Here(Everything):
        def __init__(self) -> None:
            slug = f"b{next(numbers)}"
            boards.create(slug)
            super().__init__(boards.open(slug))

    examples = settings().max_examples if place.url is None else max(10, settings().max_examples // 4)
    run_state_machine_as_test(Here, settings=settings(max_examples=examples, stateful_step_count=40, deadline=None))
