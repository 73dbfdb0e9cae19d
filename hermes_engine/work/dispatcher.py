"""Works one board: claims cards for the profiles that are here, runs each as an agent, ends what it no longer holds.

Wakes on change, not by a slow clock. Everything it knows of the world it asks of the board, whose claims are fenced;
so any number of dispatchers, here and elsewhere, may work one board. Starts only when somebody starts it.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hermes_engine.board import Board, Claim, Failure, Hold, Owner, RunOver
from hermes_engine.cleaning import one_line
from hermes_engine.errors import HermesError, ProviderError, StateError
from hermes_engine.events import CardChanged, Emitter
from hermes_engine.paths import private_dir
from hermes_engine.protocols import AgentSpec
from hermes_engine.tools.pool import in_thread
from hermes_engine.work.card_text import NUDGE, card_message, role_text
from hermes_engine.work.cards import Cards, Worker
from hermes_engine.work.conversation import Conversation, Origin
from hermes_engine.work.delegation import Delegation
from hermes_engine.work.maker import Maker
from hermes_engine.work.supervisor import Ending, Supervisor
from hermes_engine.work.worktrees import Worktree, planned_worktree

LOOK_SECONDS = 1.0
"""Longest time between two looks at the board, for waits that lapse without a change."""

ATTEND_SECONDS = 20.0

log = logging.getLogger(__name__)


class Dispatcher:
    """See the module's docstring. Lives on the engine's loop.

    Args:
        board: closed by whoever opened it.
        folder: for workspaces of cards.
        cwd: folder whose repository a card's worktree is of.
        maker: makes workers.
        delegation: opens their conversations.
        supervisor: owns them.
        cards: gives them their tools.
        profiles: names of the profiles that can work here; blocks.
        emit: says that cards changed.
        workers: cards at work at once; None: the board's rule.
        only: the one profile whose cards are worked; None: all.
    """

    def __init__(
        self,
        board: Board,
        *,
        folder: Path,
        cwd: Path,
        maker: Maker,
        delegation: Delegation,
        supervisor: Supervisor,
        cards: Cards,
        profiles: Callable[[], Collection[str]],
        emit: Emitter,
        workers: int | None = None,
        only: str | None = None,
    ) -> None:
        self.board, self._folder, self._cwd = board, folder, cwd
        self._maker, self._delegation, self._supervisor, self._cards = maker, delegation, supervisor, cards
        self._profiles, self._emit, self._workers, self._only = profiles, emit, workers, only
        self._owner: Owner = cards.owner
        self._at_work: dict[str, asyncio.Task[None]] = {}
        """Workers by the token of their run."""
        self._agents: dict[str, str] = {}
        """Agents by the token of their run."""
        self._woken = asyncio.Event()
        self._stopping = False
        self._attended = float("-inf")
        self._seen = 0
        self._watch = ThreadPoolExecutor(1, thread_name_prefix="hermes-board")

    def stop(self) -> None:
        """Claims no more and ends its workers; their cards wait anew. `run` returns then."""
        self._stopping = True
        self._woken.set()

    async def run(self, *, once: bool = False) -> None:
        """Works the board until it is stopped; `once`: until nothing is ready or running here.

        Raises:
            StateError: the board cannot be used.
        """
        looking = asyncio.create_task(self._look(), name="watch of a board")
        try:
            self._seen = await in_thread(self.board.latest)
            while not self._stopping:
                self._woken.clear()
                await self._tend()
                while not self._stopping and await self._claimed():
                    pass
                if once and not self._at_work and not await self._left():
                    return
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), LOOK_SECONDS)
        finally:
            looking.cancel()
            await self._end_all()
            with contextlib.suppress(HermesError):
                await in_thread(self.board.leave, self._owner)
            self._watch.shutdown(wait=False)

    async def _look(self) -> None:
        """Wakes the loop whenever anybody changed the board, and tells of it."""
        loop = asyncio.get_running_loop()
        changes = await loop.run_in_executor(self._watch, self.board.changes)
        try:
            while not self._stopping:
                if not await loop.run_in_executor(self._watch, changes.wait, LOOK_SECONDS / 2):
                    continue
                for event in await in_thread(lambda: self.board.events(after=self._seen)):
                    self._seen = event.id
                    self._emit(CardChanged, board=self.board.slug, card=event.card, status=event.target)
                self._woken.set()
        except StateError:
            log.exception("the board %s cannot be watched", self.board.slug)
        finally:
            self._watch.submit(changes.close)

    async def _tend(self) -> None:
        """Says that it is here, takes cards from the dead, ends workers whose run is over."""
        now = asyncio.get_running_loop().time()
        if now - self._attended > ATTEND_SECONDS:
            self._attended = now
            await in_thread(self.board.attend, self._owner)
        await in_thread(self.board.reclaim_expired)
        if not self._at_work:
            return
        standing = await in_thread(self.board.standing, list(self._at_work))
        for token, agent in list(self._agents.items()):
            if token not in standing:
                self._supervisor.stop(agent, ending=Ending("cancelled", error="its card was taken away"))

    async def _claimed(self) -> bool:
        """Takes one card and starts its worker; False when there is none to take."""
        names = set(await in_thread(self._profiles))
        if self._only is not None:
            names &= {self._only}
        claim = await in_thread(lambda: self.board.claim(self._owner, profiles=names, cap=self._workers))
        if claim is None:
            return False
        task = asyncio.create_task(self._work(claim), name=f"card {claim.card.id}")
        self._at_work[claim.token] = task
        task.add_done_callback(lambda _: self._over(claim.token))
        return True

    def _over(self, token: str) -> None:
        self._at_work.pop(token, None)
        self._agents.pop(token, None)
        self._woken.set()

    async def _left(self) -> bool:
        """Whether a card is ready (perhaps only later) for a profile that is here."""
        names = set(await in_thread(self._profiles))
        if self._only is not None:
            names &= {self._only}
        cards = await in_thread(self.board.cards)
        return any(
            (card.status == "ready" and card.assignee in names) or (card.status == "review" and card.reviewer in names)
            for card in cards
        )

    async def _end_all(self) -> None:
        for agent in list(self._agents.values()):
            self._supervisor.stop(agent)
        tasks = list(self._at_work.values())
        for task in tasks:
            if task not in self._started():
                task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=5)

    def _started(self) -> set[asyncio.Task[None]]:
        return {task for token, task in self._at_work.items() if token in self._agents}

    # -- one card -------------------------------------------------------------------------------------------------

    async def _work(self, claim: Claim) -> None:
        """A card's worker from its claim to the end of its run; never raises."""
        hold = Hold(self.board, claim.token)
        try:
            worker = Worker(hold, claim)
            talk, prompt = await self._opened(claim, worker)
        except asyncio.CancelledError:
            await self._end(hold, "stopped", "the program ended")
            raise
        except HermesError as error:
            await self._end(hold, "failed", error.line)
            return
        agent = talk.agent_id
        self._cards.workers[agent] = worker
        self._agents[claim.token] = agent
        try:
            await in_thread(lambda: hold.record(session=talk.id, workspace=str(talk.spec.cwd)))
            self._delegation.begin(talk, prompt, by_person=False)
            beating = asyncio.create_task(self._beat(hold, agent, claim.lease), name=f"heart of {claim.card.id}")
            await asyncio.wait({talk.task})
            beating.cancel()
            await self._settle(hold, worker, talk.ending(talk.task.result()))
        except RunOver:
            log.info("card %s was taken away before its worker began", claim.card.id)
        finally:
            self._cards.workers.pop(agent, None)

    async def _opened(self, claim: Claim, worker: Worker) -> tuple[Conversation, str]:
        maker = await self._maker.on_profile(claim.run.profile)
        details = await in_thread(self.board.show, claim.card.id)
        parents = [await in_thread(self.board.card, parent) for parent in claim.card.parents]
        cwd, place = await self._workspace(claim)
        base = maker.spec(name=f"{claim.run.profile}-{claim.card.id}", cwd=cwd, kind="worker")
        spec: AgentSpec = dataclasses.replace(base, role=role_text(claim.run.role))
        prompt = card_message(details, parents, claim.run)
        talk = await self._delegation.opened(
            spec, maker, Origin(), prompt, place=place, check=lambda _answer: "" if worker.verb else NUDGE
        )
        return talk, prompt

    async def _workspace(self, claim: Claim) -> tuple[Path, Worktree | None]:
        """The folder of this attempt."""
        wish = claim.card.workspace
        if wish.startswith("dir:"):
            folder = Path(wish.removeprefix("dir:"))
            if not folder.is_dir():
                raise StateError(f"the card's folder {folder} does not exist")
            return folder, None
        if wish == "worktree":
            place = await planned_worktree(self._cwd, claim.card.id)
            return place.cwd, place
        return await in_thread(private_dir, self._folder / f"{claim.card.id}-{claim.run.id}"), None

    async def _beat(self, hold: Hold, agent: str, lease: float) -> None:
        """Renews the claim; a worker that cannot for two thirds of its lease is stopped, its own processes first."""
        loop = asyncio.get_running_loop()
        renewed = loop.time()
        while True:
            await asyncio.sleep(max(0.05, min(lease / 6, 30)))
            asked = loop.time()
            try:
                await in_thread(self._heartbeat, hold, agent)
                renewed = asked
            except RunOver:
                self._supervisor.stop(agent, ending=Ending("cancelled", error="its card was taken away"))
                return
            except StateError:
                log.warning("the claim of %s was not renewed", agent, exc_info=True)
            if loop.time() - renewed > lease * 2 / 3:
                self._supervisor.stop(agent, ending=Ending("failed", error="its claim could not be renewed"))
                return

    def _heartbeat(self, hold: Hold, agent: str) -> None:
        row = self._supervisor.row(agent)
        if row is not None:
            hold.heartbeat(activity=row.activity, tokens=row.usage.total_tokens)

    async def _settle(self, hold: Hold, worker: Worker, ending: Ending) -> None:
        """Ends the run of a worker that did not end its card itself."""
        if worker.verb:
            return
        last = one_line(ending.answer or "nothing", 300)
        if ending.state == "done":
            await self._end(hold, "failed", f"it stopped without ending its card; its last words: {last}")
        elif ending.state in ("timeout", "max_turns"):
            await self._end(hold, "gave_up", f"{ending.error}; its last words: {last}")
        elif ending.state in ("cancelled", "handed over"):
            await self._end(hold, "stopped", ending.error or "stopped")
        elif ending.kind in PROVIDER_KINDS:
            await self._end(hold, "provider_error", f"provider error: {ending.error}")
        else:
            await self._end(hold, "failed", ending.error)

    async def _end(self, hold: Hold, state: Failure, error: str) -> None:
        try:
            await in_thread(hold.end, state, error)
        except RunOver:
            log.info("a run had ended already: %s", error)
        except StateError:
            log.exception("a run's end could not be written; its claim lapses")


def _kinds(error: type[ProviderError]) -> set[str]:
    return {error.kind}.union(*(_kinds(child) for child in error.__subclasses__()))


PROVIDER_KINDS = frozenset(_kinds(ProviderError))
"""Kinds of errors that are the model's server's, not the worker's."""
