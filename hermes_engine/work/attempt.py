"""One attempt at one card: its folder, its worker, the renewing of its claim, and how its run ends on the board.

Every write to the board carries the token of the run, so an attempt whose card was taken away changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hermes_engine.board import Board, BoardGone, Claim, Details, Failure, Hold, IllegalMove, RunOver
from hermes_engine.cleaning import one_line
from hermes_engine.errors import EndpointDown, HermesError, ProviderError, StateError
from hermes_engine.paths import private_dir
from hermes_engine.protocols import AgentSpec
from hermes_engine.tools.permissions import ORDER
from hermes_engine.tools.pool import in_thread
from hermes_engine.work.boards_pool import on_board
from hermes_engine.work.card_text import NUDGE, card_message, role_text
from hermes_engine.work.cards import Cards, Worker
from hermes_engine.work.conversation import Conversation, Origin
from hermes_engine.work.delegation import Delegation
from hermes_engine.work.fence import FencedMaker
from hermes_engine.work.maker import Maker
from hermes_engine.work.supervisor import Ending, Supervisor
from hermes_engine.work.worktrees import Worktree, planned_worktree

LIMITS = frozenset({"turns", "timeout", "budget", "tokens"})
"""Kinds of endings that are a limit of the worker's own."""

ENDED = Ending("cancelled", error="the program ended")
TAKEN = Ending("cancelled", error="its card was taken away")
_SHORTEST_BEAT, _LONGEST_BEAT = 0.05, 30.0
_RENEWING = 5.0
"""Seconds a claim may take to be renewed after a suspend, however late it is by then."""

_LONGEST_WAIT = 30.0

log = logging.getLogger(__name__)


class _Unrecorded(StateError):
    """This program's own state could not keep the attempt."""


@dataclass(frozen=True, slots=True)
class Means:
    """What attempts are made with.

    Attributes:
        board: of the cards.
        folder: for workspaces of cards.
        cwd: folder whose repository a card's worktree is of.
        maker: makes workers.
        delegation: opens their conversations.
        supervisor: owns them.
        cards: gives them their tools.
        mode: approval mode than which no worker is freer, None for any.
    """

    board: Board
    folder: Path
    cwd: Path
    maker: Maker
    delegation: Delegation
    supervisor: Supervisor
    cards: Cards
    mode: str | None = None


class Attempt:
    """See the module's docstring. Lives on the engine's loop.

    Args:
        means: of the dispatcher.
        claim: what it claimed.
        excused: whether a server that is down is held against the card.
        alone: whether it is all that its process does, so that nobody there can wait until it can be recorded.

    Attributes:
        unrecorded: what it ended with when this program could not record it: its disk is full, its state locked. Not
            the card's fault: whoever claims more looks first whether that is over.
    """

    def __init__(self, means: Means, claim: Claim, *, excused: bool, alone: bool = False) -> None:
        self._means, self._claim, self._excused, self._alone = means, claim, excused, alone
        self._hold = Hold(means.board, claim.token)
        self.worker = Worker(self._hold, claim)
        self._agent = ""
        self._branch: str | None = None
        self._stopped: Ending | None = None
        self._lost = self._leaving = False
        self.unrecorded = ""
        self._spec: AgentSpec | None = None
        self._maker: Maker | None = None
        self.task: asyncio.Task[EndpointDown | None]

    def begin(self) -> asyncio.Task[EndpointDown | None]:
        """Starts it; the task's result is the outage that ended it, None for any other end."""
        self.task = asyncio.create_task(self._run(), name=f"card {self._claim.card.id}")
        return self.task

    def stop(self, ending: Ending, *, leaving: bool = False) -> None:
        """Ends the worker, with all it runs, and then the run; `leaving`: the program ends and waits for nothing."""
        self._stopped = self._stopped or ending
        self._leaving = self._leaving or leaving
        if self._agent:
            self._means.supervisor.stop(self._agent, ending=self._stopped)

    async def probe(self) -> EndpointDown | None:
        """Asks the worker's model for a sign of life; the error when nobody answers."""
        return await self._maker.probe(self._spec) if self._maker and self._spec else None

    async def _run(self) -> EndpointDown | None:
        try:
            parents, details = await on_board(self._read)
        except HermesError as error:
            await self._end("stopped", error.line)
            return None
        try:
            talk, prompt = await self._opened(parents, details)
        except _Unrecorded as error:
            await self._end_unrecorded(error.line)
            return None
        except (HermesError, OSError) as error:
            await self._end("failed", error.line if isinstance(error, HermesError) else str(error))
            return None
        cards, supervisor = self._means.cards, self._means.supervisor
        agent = talk.agent_id
        cards.workers[agent] = self.worker
        try:
            if not await self._recorded(talk):
                self._means.delegation.drop(talk)
                return None
            self._agent = agent
            self._means.delegation.begin(talk, prompt, by_person=False)
            if self._stopped:
                supervisor.stop(agent, ending=self._stopped)
            beating = asyncio.create_task(self._beat(), name=f"heart of {self._claim.card.id}")
            await asyncio.wait({talk.task})
            beating.cancel()
            return await self._settle(talk.ending(talk.task.result()))
        finally:
            cards.workers.pop(agent, None)

    async def _recorded(self, talk: Conversation) -> bool:
        """Whether the run is still the card's, now that its worker is there; then where it works is on the board."""
        where = {"session": talk.id, "workspace": str(talk.spec.cwd), "commit": self._branch}
        if not self._stopped:
            try:
                await on_board(lambda: self._hold.record(**where))
                return True
            except RunOver:
                return False
            except StateError as error:
                self._stopped = Ending("cancelled", error=error.line)
        await self._end("stopped", self._stopped.error)
        return False

    def _read(self) -> tuple[list[Details], Details]:
        """The card's parents, and itself, with their history. Blocks."""
        board, card = self._means.board, self._claim.card
        return [board.show(parent) for parent in card.parents], board.show(card.id)

    async def _opened(self, parents: list[Details], details: Details) -> tuple[Conversation, str]:
        means, claim = self._means, self._claim
        maker = await means.maker.on_profile(claim.run.profile, worker=True)
        earlier = [run.commit for run in reversed(details.runs) if run.commit]
        cwd, place = await self._workspace(earlier)
        base = maker.spec(name=f"{claim.run.profile}-{claim.card.id}", cwd=cwd, kind="worker")
        mode = min(base.mode, means.mode or base.mode, key=ORDER.index)
        limits = dataclasses.replace(base.limits, timeout_seconds=means.board.rules.timeout_seconds)
        spec = dataclasses.replace(base, role=role_text(claim.run.role), limits=limits, mode=mode, must_call=True)
        self._maker, self._spec = maker, spec
        prompt = card_message(details, parents, claim.run)
        fenced = FencedMaker(maker, self.worker, lambda: self.stop(TAKEN))
        try:
            talk = await means.delegation.opened(
                spec,
                fenced,
                Origin(),
                prompt,
                title=f"{claim.card.id} {claim.card.title}",
                place=place,
                check=lambda _: "" if self.worker.verb else NUDGE,
            )
        except StateError as error:
            raise _Unrecorded(str(error), hint=error.hint) from error
        return talk, prompt

    async def _workspace(self, earlier: list[str]) -> tuple[Path, Worktree | None]:
        """The folder of this attempt; a worktree begins where the newest of the `earlier` branches ends."""
        claim = self._claim
        wish = claim.card.workspace
        if wish.startswith("dir:"):
            folder = Path(wish.removeprefix("dir:"))
            if not await in_thread(folder.is_dir):
                raise StateError(f"the card's folder {folder} does not exist")
            return folder, None
        if wish == "worktree":
            otherwise = "give the card another workspace: scratch, or dir: and a folder"
            place = await planned_worktree(self._means.cwd, claim.card.id, after=earlier, otherwise=otherwise)
            self._branch, self.worker.place = place.branch, place
            return place.cwd, place
        return await in_thread(_fresh_dir, self._means.folder, f"{claim.card.id}-{claim.run.id}"), None

    async def _beat(self) -> None:
        """Renews the claim; a worker that cannot for two thirds of its lease is stopped, its own processes first."""
        loop, lease = asyncio.get_running_loop(), self._claim.lease
        renewed = loop.time()
        while True:
            await asyncio.sleep(max(_SHORTEST_BEAT, min(lease / 6, _LONGEST_BEAT)))
            asked = loop.time()
            try:
                async with asyncio.timeout_at(max(renewed + lease * 2 / 3, asked + min(_RENEWING, lease / 6))):
                    await on_board(self._heartbeat)
                renewed = asked
            except RunOver:
                if not self.worker.verb:
                    self.stop(TAKEN)
                return
            except (StateError, TimeoutError):
                log.warning("the claim of %s was not renewed", self._claim.card.id, exc_info=True)
            if loop.time() - renewed > lease * 2 / 3:
                self._lost = True
                self.stop(Ending("failed", error="its claim could not be renewed"))
                return

    def _heartbeat(self) -> None:
        row = self._means.supervisor.row(self._agent)
        if row is not None:
            self._hold.heartbeat(activity=row.activity, tokens=row.usage.total_tokens)

    async def _settle(self, ending: Ending) -> EndpointDown | None:
        """Ends the run of a worker that did not end its card itself."""
        if self.worker.verb:
            return None
        await self._forget_branch()
        last = one_line(ending.answer or "nothing", 300)
        if self._stopped is not None:
            await self._end("lost" if self._lost else "stopped", self._stopped.error)
        elif ending.state == "done":
            await self._end("failed", f"it stopped without ending its card; its last words: {last}")
        elif ending.state == "timeout" and self._unanswered(ending):
            await self._end("provider_error", f"no reply of the model's server, {ending.error}")
        elif ending.state in ("timeout", "max_turns") or ending.kind in LIMITS:
            await self._end("gave_up", f"{ending.error}; its last words: {last}")
        elif ending.state == "cancelled":
            await self._by_person()
        elif ending.state == "handed over":
            await self._end("stopped", "the program ended")
        elif ending.kind == StateError.kind:
            await self._end_unrecorded(ending.error)
        elif ending.kind == EndpointDown.kind and not self._excused:
            await self._end("stopped", f"the model's server is down: {ending.error}")
            return EndpointDown(ending.error)
        elif ending.kind in PROVIDER_KINDS:
            await self._end("provider_error", f"provider error: {ending.error}")
        else:
            await self._end("failed", ending.error)
        return None

    def _unanswered(self, ending: Ending) -> bool:
        """Whether its model never said anything: then its time was its server's."""
        row = self._means.supervisor.row(self._agent)
        return not ending.answer and (row is None or not (row.tools or row.usage.total_tokens))

    async def _forget_branch(self) -> None:
        """A worktree in which nothing was changed leaves no branch that anybody could go on from."""
        place = self.worker.place
        if place is not None and not place.note.startswith("branch "):
            with contextlib.suppress(RunOver, StateError):
                await on_board(lambda: self._hold.record(commit=""))

    async def _by_person(self) -> None:
        """A person stopped the worker itself, not the board: worked on at once it would only come back."""
        board, card = self._means.board, self._claim.card.id
        try:
            await on_board(self._hold.check)
            await on_board(lambda: board.block(card, "its worker was stopped", by="a person"))
        except (RunOver, IllegalMove):
            log.info("the run of %s had ended already", card)
        except StateError:
            await self._end("stopped", "stopped by a person")

    async def _end_unrecorded(self, error: str) -> None:
        self.unrecorded = error
        await self._end("failed" if self._alone else "stopped", error)

    async def _end(self, state: Failure, error: str) -> None:
        await end_run(self._hold, state, error, leaving=lambda: self._leaving)


def _fresh_dir(under: Path, name: str) -> Path:
    """A folder in which nobody worked: a board of this name that was deleted since counted from one, too. Blocks."""
    place, number = under / name, 1
    while place.exists():
        number += 1
        place = under / f"{name}.{number}"
    return private_dir(place)


async def end_run(hold: Hold, state: Failure, error: str, *, leaving: Callable[[], bool]) -> None:
    """Writes how a run ended, as soon as the board can be written: its owner lives, so no lease would end it."""
    wait = 0.5
    while True:
        try:
            await on_board(hold.end, state, error)
            return
        except (RunOver, BoardGone) as why:
            log.info("a run had ended already: %s (%s)", error, why)
            return
        except StateError:
            log.warning("a run's end could not be written", exc_info=True)
            if leaving():
                return
        await asyncio.sleep(wait)
        wait = min(wait * 2, _LONGEST_WAIT)


def _kinds(error: type[ProviderError]) -> set[str]:
    return {error.kind}.union(*(_kinds(child) for child in error.__subclasses__()))


PROVIDER_KINDS = frozenset(_kinds(ProviderError))
"""Kinds of errors that are the model's server's, not the worker's."""
