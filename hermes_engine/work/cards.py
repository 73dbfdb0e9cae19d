"""The card tools: what an orchestrator may do with a board, and what a worker with its own card (contract, section 3).

A worker has its card's verbs whatever its profile lists; a chat with toolset kanban has an orchestrator's and never
"complete my card": what it claims itself it hands in for a person's review.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hermes_engine.board import STATES, Board, Card, CardDraft, Claim, Hold, Owner
from hermes_engine.errors import StateError, ToolFault, UnknownName
from hermes_engine.messages import ToolResult
from hermes_engine.protocols import AgentSpec
from hermes_engine.tools.context import ToolContext
from hermes_engine.tools.registry import Tool
from hermes_engine.work.boards_pool import on_board, on_board_at_last
from hermes_engine.work.card_text import as_data, summary
from hermes_engine.work.card_words import (
    OWN,
    PLANNED,
    Files,
    Ids,
    Writer,
    card_tool,
    held_card,
    own_card,
    places,
    told,
    told_card,
)
from hermes_engine.work.worktrees import Worktree

Described = Sequence[tuple[str, str]]
"""Names and descriptions of profiles."""


@dataclass(slots=True)
class Worker:
    """A worker's hold on its card; `verb` is how it ended it, "" while it has not; `place` its worktree, if any."""

    hold: Hold
    claim: Claim
    verb: str = ""
    place: Worktree | None = None


@dataclass(slots=True)
class Cards:
    """Makes the card tools of agents.

    Attributes:
        open_board: the board that is meant, opened at the first use; blocks.
        profiles: names and descriptions of the profiles here; blocks.
        owner: this process, for claims of chats.
        parent_of: who started an agent, "" for nobody's child.
        workers: workers at work, by the id of their agent.
    """

    open_board: Callable[[], Board]
    profiles: Callable[[], Described]
    owner: Owner
    parent_of: Callable[[str], str] = lambda agent: ""
    workers: dict[str, Worker] = field(default_factory=dict)
    _claimed: dict[str, dict[str, Hold]] = field(default_factory=dict)
    """What chats claimed for themselves, by the id of their agent: their tools are made anew with each change."""

    def tools(self, spec: AgentSpec, agent: str) -> tuple[Tool, ...]:
        """The card tools of an agent."""
        worker = self.workers.get(agent)
        listed = "kanban" in spec.toolsets
        if worker is not None:
            own = worker.hold.board
            return (*self._worker(worker), *(self._board_tools(spec, lambda: own, worker.hold) if listed else ()))
        if not listed:
            return ()
        if (above := self._above(agent)) is not None:  # of its card's board, and nothing that the worker has not
            return self._board_tools(spec, lambda: above.board, above, child=True)
        return (*self._board_tools(spec, self.open_board), *self._chat(spec, self._claimed.setdefault(agent, {})))

    def _above(self, agent: str) -> Hold | None:
        """The hold of the worker whose child an agent is."""
        while agent := self.parent_of(agent):
            if (worker := self.workers.get(agent)) is not None:
                return worker.hold
        return None

    # -- what an orchestrator has ---------------------------------------------------------------------------------

    def _board_tools(
        self, spec: AgentSpec, opened: Callable[[], Board], worker: Hold | None = None, *, child: bool = False
    ) -> tuple[Tool, ...]:
        """All of them, or what a `worker` whose profile lists the toolset has besides its own, or a `child` of it."""
        cards = self

        writer = Writer(opened, spec.profile, worker)

        async def kanban_list(ctx: ToolContext, status: str | None = None, assignee: str | None = None) -> ToolResult:
            """List the cards of the board.

            Args:
                status: Only this state: triage, todo, ready, running, blocked, review, done.
                assignee: Only of this profile.
            """
            if status is not None and status not in STATES:
                raise UnknownName("state", status, STATES)
            found = await on_board(lambda: opened().cards(archived=status == "archived"))
            chosen = [c for c in found if status in (None, c.status) and assignee in (None, c.assignee)]
            return told([summary(card) for card in chosen], f"{len(chosen)} cards")

        async def kanban_unblock(ctx: ToolContext, id: str) -> ToolResult:
            """Let a blocked card go on.

            Args:
                id: Card.
            """
            return told_card(await on_board(lambda: opened().unblock(id, by=spec.profile)), "unblocked")

        async def kanban_profiles(ctx: ToolContext) -> ToolResult:
            """List the profiles a card can be given to, with what each can do."""
            found = await on_board(cards.profiles)
            return told([{"name": n, "description": text} for n, text in found], f"{len(found)} profiles")

        async def kanban_link(ctx: ToolContext, parent: str, child: str) -> ToolResult:
            """Make a card wait for another.

            Args:
                parent: Card to wait for.
                child: Card that waits.
            """
            return told_card(await on_board(writer.link, parent, child), "linked")

        found = (kanban_list, kanban_unblock, kanban_link, kanban_profiles)
        more = tuple(card_tool(function, PLANNED) for function in found)
        if worker is not None and not child:
            return more

        async def kanban_create(
            ctx: ToolContext,
            title: str,
            body: str = "",
            assignee: str | None = None,
            parents: Ids = None,
            priority: int = 0,
        ) -> ToolResult:
            """Put a card on the board. Its worker sees only the card and its parents' results.

            Args:
                title: One line.
                body: The whole task.
                assignee: Profile that works it.
                parents: Cards it waits for.
                priority: Higher first.
            """
            draft = await cards._draft(title, body, assignee, parents, priority)
            return told_card(await on_board(writer.create, draft), "created")

        async def kanban_show(ctx: ToolContext, id: str) -> ToolResult:
            """Show a card with its history.

            Args:
                id: Card.
            """
            return told(as_data(await on_board(lambda: opened().show(id))), id)

        async def kanban_block(ctx: ToolContext, reason: str, id: str) -> ToolResult:
            """Keep a card back until it is unblocked; its worker is stopped.

            Args:
                reason: Why.
                id: Card.
            """
            return told_card(await on_board(lambda: opened().block(id, reason, by=spec.profile)), "blocked")

        async def kanban_comment(ctx: ToolContext, text: str, id: str) -> ToolResult:
            """Leave a note on a card for its next worker.

            Args:
                text: Note.
                id: Card.
            """
            return told_card(await on_board(lambda: opened().comment(id, text, by=spec.profile)), "noted")

        own = (kanban_create, kanban_show, *(() if child else (kanban_block,)), kanban_comment)
        return (*(card_tool(function, PLANNED | OWN, title="id") for function in own), *more)

    def _chat(self, spec: AgentSpec, held: dict[str, Hold]) -> tuple[Tool, ...]:
        """What only a chat has: working a card itself."""
        cards = self

        async def kanban_claim(ctx: ToolContext, id: str) -> ToolResult:
            """Take a ready card to work it yourself here.

            Args:
                id: Card.
            """
            board = await on_board(cards.open_board)
            claim = await on_board(lambda: board.claim_card(id, cards.owner, profile=spec.profile))
            held[claim.card.id] = Hold(board, claim.token)
            return told(as_data(await on_board(lambda: board.show(id))), f"{claim.card.id} claimed")

        async def kanban_heartbeat(ctx: ToolContext, id: str, note: str = "") -> ToolResult:
            """Say that you still work a card that you claimed.

            Args:
                id: Card.
                note: What you do.
            """
            await on_board(lambda: held_card(held, id).heartbeat(activity=note or None))
            return told({"id": id, "status": "running"}, "noted")

        async def kanban_request_review(ctx: ToolContext, summary: str, id: str) -> ToolResult:
            """Hand in a card that you claimed; a person judges it.

            Args:
                summary: The result.
                id: Card.
            """
            return told_card(await on_board(lambda: held_card(held, id).request_review(summary)), "in review")

        tools = (kanban_claim, kanban_heartbeat, kanban_request_review)
        return tuple(card_tool(function, OWN, title="id") for function in tools)

    # -- what a worker has ----------------------------------------------------------------------------------------

    def _worker(self, worker: Worker) -> tuple[Tool, ...]:
        cards, hold, own = self, worker.hold, worker.claim.card.id

        async def ended(verb: str, write: Callable[[], Card], files: Sequence[Path] = ()) -> ToolResult:
            return told_card(await _ended(worker, verb, write, files), verb)

        async def kanban_complete(
            ctx: ToolContext,
            summary: str,
            id: str | None = None,
            created_ids: Ids = None,
            files: Files = None,
        ) -> ToolResult:
            """End your card: the work is done.

            Args:
                summary: The result, for whoever needs it next.
                id: Leave it out: your own card.
                created_ids: Cards you made for it.
                files: Files that hold the result.
            """
            own_card(id, own)
            made = created_ids or ()
            return await ended("completed", lambda: hold.complete(summary, created=made), places(ctx, files))

        async def kanban_request_review(
            ctx: ToolContext, summary: str, id: str | None = None, files: Files = None
        ) -> ToolResult:
            """End your card: somebody is to judge the work first.

            Args:
                summary: What was done.
                id: Leave it out.
                files: Files that hold the work.
            """
            own_card(id, own)
            return await ended("in review", lambda: hold.request_review(summary), places(ctx, files))

        async def kanban_send_back(ctx: ToolContext, note: str) -> ToolResult:
            """End your review: the work needs more.

            Args:
                note: What is missing.
            """
            return await ended("sent back", lambda: hold.send_back(note))

        async def kanban_block(ctx: ToolContext, reason: str, id: str | None = None) -> ToolResult:
            """End your card: it cannot go on.

            Args:
                reason: Why, and what would help.
                id: Leave it out.
            """
            own_card(id, own)
            return await ended("blocked", lambda: hold.block(reason))

        async def kanban_comment(ctx: ToolContext, text: str, id: str | None = None) -> ToolResult:
            """Leave a note on your card or another.

            Args:
                text: Note.
                id: Another card.
            """
            return told_card(await on_board(lambda: hold.comment(text, card=id)), "noted")

        async def kanban_heartbeat(ctx: ToolContext, note: str = "") -> ToolResult:
            """Tell people what you do now.

            Args:
                note: One line.
            """
            await on_board(lambda: hold.heartbeat(activity=note or None))
            return told({"id": own, "status": "running"}, "noted")

        async def kanban_show(ctx: ToolContext, id: str | None = None) -> ToolResult:
            """Show your card, or another, with its history.

            Args:
                id: Another card.
            """
            return told(as_data(await on_board(lambda: hold.board.show(id or own))), id or own)

        async def kanban_create(
            ctx: ToolContext,
            title: str,
            body: str = "",
            assignee: str | None = None,
            parents: Ids = None,
            priority: int = 0,
        ) -> ToolResult:
            """Put a further card on the board.

            Args:
                title: One line.
                body: The whole task.
                assignee: Profile that works it; your card's by default.
                parents: Cards it waits for.
                priority: Higher first.
            """
            draft = await cards._draft(title, body, assignee, parents, priority)
            return told_card(await on_board(lambda: hold.create(draft)), "created")

        review = worker.claim.run.role == "review"
        judged = kanban_send_back if review else kanban_request_review
        tools = (kanban_show, kanban_complete, judged, kanban_block, kanban_comment, kanban_heartbeat, kanban_create)
        return tuple(card_tool(function, PLANNED) for function in tools)

    async def _draft(
        self, title: str, body: str, assignee: str | None, parents: Iterable[str] | None, priority: int
    ) -> CardDraft:
        """A card to be made. Raises UnknownName for a profile that is not here."""
        if assignee is not None:
            known = [name for name, _ in await on_board(self.profiles)]
            if assignee not in known:
                raise UnknownName("profile", assignee, known)
        return CardDraft(title, body, assignee, parents=tuple(parents or ()), priority=priority)


async def _ended(worker: Worker, verb: str, write: Callable[[], Card], files: Sequence[Path]) -> Card:
    """Ends a worker's card. Raises ToolFault for files of a worktree, which goes: its branch keeps them."""
    hold = worker.hold
    if files and worker.place is not None:
        raise ToolFault("what you write here is kept on your branch", hint="leave `files` out, name them in words")

    def written() -> Card:
        if files:
            hold.attach(files)
        card = write()
        worker.verb = verb  # here: the dispatcher sees the run's end at once, from another thread
        return card

    if worker.place is not None:
        with contextlib.suppress(StateError):  # told again, and for good, when the worker leaves it
            if not await worker.place.keep():  # before the card moves: whoever works it next begins there
                await on_board(lambda: hold.record(commit=""))
    return await on_board_at_last(written)
