"""The board as front ends use it: opened, worked by a dispatcher of this process, planned by a model. Part of the
engine's front door (`Engine.kanban`). Nothing here starts by itself: opening a chat spends nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from hermes_engine.assembly import Assembly
from hermes_engine.board import Board, BoardGone, Boards, CardDraft, Claim, Hold, RunOver, this_owner
from hermes_engine.errors import ConfigError, EndpointDown, HermesError, StateError, UnknownName, UsageError
from hermes_engine.events import Emitter, Notice, Sink
from hermes_engine.profiles import ENABLE_HINT, NOT_ENABLED, Resolved, list_profiles
from hermes_engine.tools.pool import in_thread
from hermes_engine.work.attempt import ENDED, TAKEN, Attempt, Means
from hermes_engine.work.boards_pool import on_board
from hermes_engine.work.cards import Cards, Described
from hermes_engine.work.child import Check
from hermes_engine.work.conversation import Origin
from hermes_engine.work.delegation import Delegation
from hermes_engine.work.dispatcher import Dispatcher
from hermes_engine.work.isolated import Isolation
from hermes_engine.work.planning import circle_in, drafts_of, plan_schema, planner_role
from hermes_engine.work.supervisor import Supervisor

log = logging.getLogger(__name__)

PLANNER = "orchestrator"
"""Profile that plans, where there is one."""

LONE_LOOK_SECONDS = 0.5
"""How often a worker that is a process looks whether its card is still its own, between the calls it makes."""

DISPATCHED = "dispatched"
"""Name under which a board remembers that a person started its dispatching here."""


class Kanban:
    """See the module's docstring.

    Args:
        resolved: settings in effect.
        assembly: makes workers.
        delegation: opens their conversations.
        supervisor: owns them.
        sink: hears that cards changed.
        run: runs a coroutine on the engine's loop and waits for its outcome.
    """

    def __init__(
        self,
        resolved: Resolved,
        *,
        assembly: Assembly,
        delegation: Delegation,
        supervisor: Supervisor,
        sink: Sink,
        run: Callable[[Coroutine[Any, Any, None], float | None], None],
    ) -> None:
        self._resolved, self._assembly, self._delegation = resolved, assembly, delegation
        self._supervisor, self._sink, self._run = supervisor, sink, run
        self._working: dict[str, tuple[Dispatcher, asyncio.Task[None]]] = {}
        self._opened: dict[str, Board] = {}
        self._gone: list[Board] = []
        self._opening = threading.Lock()
        self._halted = False
        self._lone: Attempt | None = None
        self.cards = Cards(self.board, self.profiles, this_owner(), self._parent_of)

    def _parent_of(self, agent: str) -> str:
        row = self._supervisor.row(agent)
        return row.parent if row is not None else ""

    @functools.cached_property
    def boards(self) -> Boards:
        """All boards of the home. Reading them blocks."""
        return Boards(self._resolved.home, self._resolved.settings.kanban)

    def board(self, slug: str = "") -> Board:
        """A board, "" for the chosen one; open as long as the engine is. Blocks. Raises UnknownName, StateError.

        One that is gone stays open, for whoever still holds it, until there is another of its name.
        """
        name = slug or self.boards.chosen()
        with self._opening:
            found = self._opened.get(name)
            if found is None or (found.gone() and self.boards.exists(name)):
                self._reopen(name)
            return self._opened[name]

    def make_anew(self, slug: str) -> None:
        """Makes a board that was deleted while it was open, empty; else nothing. Blocks. Raises StateError."""
        with self._opening:
            if (found := self._opened.get(slug)) is not None and found.gone():
                self._reopen(slug)

    def _reopen(self, slug: str) -> None:
        made = self.boards.open(slug)
        if (before := self._opened.get(slug)) is not None:
            self._gone.append(before)
        self._opened[slug] = made

    def profiles(self) -> Described:
        """Names and descriptions of the profiles that can work here. Blocks."""
        return [(info.name, info.description) for info in list_profiles(self._resolved.home)]

    @property
    def enabled(self) -> bool:
        """Whether the toolset kanban is enabled."""
        return self._resolved.kanban

    def dispatched(self) -> tuple[str, ...]:
        """Boards that this process works."""
        return tuple(self._working)

    def start(self, slug: str = "", *, cwd: Path, isolation: Isolation | None = None) -> None:
        """Works a board until `stop`, and remembers that a person wanted it. Blocks for the disk.

        With `isolation` each worker is a process of its own.

        Raises:
            ConfigError: the toolset kanban is not enabled, or no model is set up.
            UsageError: this process works the board already.
        """
        self._check(None)
        board = self.board(slug)
        board.remember(DISPATCHED, "yes")
        self._run(self._started(board, cwd, None, None, isolation=isolation), 60)

    def wanted(self, slug: str = "") -> bool:
        """Whether a person started dispatching on this board and did not stop it. Blocks."""
        return self.board(slug).recall(DISPATCHED) == "yes"

    def stop(self, slug: str = "") -> None:
        """Works the board no more; its workers end and their cards wait anew. Blocks."""
        board = self.board(slug)
        board.remember(DISPATCHED, "no")
        self._run(self._ended(board.slug), 60)

    def work(
        self,
        slug: str = "",
        *,
        cwd: Path,
        workers: int | None = None,
        only: str | None = None,
        once: bool = False,
        isolation: Isolation | None = None,
    ) -> int:
        """Works a board as long as this call lasts; `once`: until nothing is ready or running here. Blocks.

        With `isolation` each worker is a process of its own.

        Returns:
            cards that are blocked at the end.

        Raises:
            ConfigError, UsageError: see `start`.
        """
        self._check(only)
        board = self.board(slug)
        self._run(self._worked(board, cwd, workers, only, once, isolation), None)
        return board.counts()["blocked"]

    def work_card(self, slug: str, token: str, *, cwd: Path, excused: bool = False) -> EndpointDown | None:
        """Works one card that another process claimed for this one; the outage that ended the try, if one did. Blocks.

        Raises:
            RunOver: the card is not to be worked any more.
        """
        board = self.board(slug)
        hold = Hold(board, token)
        hold.adopt(self.cards.owner)
        run, card = hold.check(), hold.card()
        claim = Claim(card, run, token, board.rules.claim_ttl_seconds)
        found: list[EndpointDown | None] = []
        self._run(self._one(Attempt(self._means(board, cwd), claim, excused=excused, alone=True), hold, found), None)
        return found[0]

    async def _one(self, attempt: Attempt, hold: Hold, found: list[EndpointDown | None]) -> None:
        self._lone = attempt
        task = attempt.begin()
        if self._halted:
            attempt.stop(ENDED, leaving=True)
        while not task.done():
            await asyncio.wait({task}, timeout=LONE_LOOK_SECONDS)
            try:
                await on_board(hold.check)
            except (RunOver, BoardGone):
                if not attempt.worker.verb:
                    attempt.stop(TAKEN)
            except StateError:
                log.warning("the board %s cannot be read", hold.board.slug, exc_info=True)
        found.append(task.result())

    def plan(self, goal: str, *, cwd: Path) -> tuple[CardDraft, ...]:
        """Cards for a goal, as a model proposes them: nothing is created (`Board.create_all` does). Blocks, and costs.

        Raises:
            ConfigError: the toolset kanban is not enabled, or no model is set up.
            HermesError: the model failed, or gave no plan.
        """
        self._check(None)
        if not goal.strip():
            raise UsageError("the goal is empty")
        found: list[tuple[CardDraft, ...]] = []
        self._run(self._planned(goal, cwd, found), None)
        return found[0]

    async def _planned(self, goal: str, cwd: Path, found: list[tuple[CardDraft, ...]]) -> None:
        profiles = await in_thread(self.profiles)
        names = [name for name, _ in profiles]
        maker = await self._assembly.on_profile(PLANNER if PLANNER in names else self._resolved.profile)
        spec = maker.spec(name="plan", cwd=cwd, kind="background")
        model = self._resolved.overrides.model or spec.model  # who names one with `plan` means the planner
        maker.resolved.endpoint_for(model)
        schema = plan_schema(profiles)
        spec = dataclasses.replace(spec, toolsets=(), role=planner_role(profiles), model=model, answer_schema=schema)
        check = Check(schema, circle_in)
        talk = await self._delegation.opened(spec, maker, Origin(), goal, check=check)
        self._delegation.begin(talk, goal)
        ending = talk.ending(await talk.task)
        if ending.state != "done":
            raise HermesError(f"the plan was not made: {ending.error or ending.state}")
        found.append(drafts_of(ending.answer, profiles))

    def halt(self) -> None:
        """Lets every dispatcher end, also one that `work` is about to start; from any thread, returns at once."""
        self._halted = True
        for dispatcher, task in list(self._working.values()):
            task.get_loop().call_soon_threadsafe(dispatcher.stop)
        if (lone := self._lone) is not None:
            lone.task.get_loop().call_soon_threadsafe(lambda: lone.stop(ENDED, leaving=True))

    async def close(self) -> None:
        """Ends every dispatcher and closes the boards."""
        for slug in list(self._working):
            await self._ended(slug)
        for board in (*self._opened.values(), *self._gone):
            board.close()

    def _check(self, only: str | None) -> None:
        if not self.enabled:
            raise ConfigError(NOT_ENABLED, hint=ENABLE_HINT)
        names = [name for name, _ in self.profiles()]
        if only is not None and only not in names:
            raise UnknownName("profile", only, names)
        self._check_model([only] if only is not None else [self._resolved.profile, *names])

    def _check_model(self, profiles: Sequence[str]) -> None:
        """Raises ConfigError where no model can be asked on any of them: else each card would fail in turn."""
        faults = []
        for name in profiles:
            try:
                own = name == self._resolved.profile
                (self._resolved if own else self._resolved.with_profile(name, worker=True)).endpoint_for()
                return
            except ConfigError as error:
                faults.append(error)
        raise faults[0]

    def _means(self, board: Board, cwd: Path) -> Means:
        folder = self.boards.folder(board.slug)
        return Means(
            board, folder, cwd, self._assembly, self._delegation, self._supervisor, self.cards,
            mode=self._resolved.overrides.mode,
        )  # fmt: skip

    def _dispatcher(
        self, board: Board, cwd: Path, workers: int | None, only: str | None, isolation: Isolation | None
    ) -> Dispatcher:
        return Dispatcher(
            self._means(board, cwd),
            profiles=lambda: [name for name, _ in self.profiles()],
            emit=Emitter(self._sink, session="", run="", agent=""),
            workers=workers,
            only=only,
            isolation=isolation,
        )

    async def _worked(
        self,
        board: Board,
        cwd: Path,
        workers: int | None,
        only: str | None,
        once: bool,
        isolation: Isolation | None,
    ) -> None:
        await self._started(board, cwd, workers, only, once=once, called=True, isolation=isolation)
        await self._working[board.slug][1]

    async def _started(
        self,
        board: Board,
        cwd: Path,
        workers: int | None,
        only: str | None,
        *,
        once: bool = False,
        called: bool = False,
        isolation: Isolation | None = None,
    ) -> None:
        """`called`: somebody waits for its end and hears of what goes wrong."""
        if board.slug in self._working:
            raise UsageError(f"the board {board.slug} is worked already")
        dispatcher = self._dispatcher(board, cwd, workers, only, isolation)
        task = asyncio.get_running_loop().create_task(dispatcher.run(once=once), name=f"dispatcher of {board.slug}")
        self._working[board.slug] = (dispatcher, task)
        if self._halted:
            dispatcher.stop()

        def over(_: object) -> None:
            self._working.pop(board.slug, None)
            if not called and not task.cancelled() and (error := task.exception()) is not None:
                log.error("the board %s is not worked any more", board.slug, exc_info=error)
                told = error.line if isinstance(error, HermesError) else str(error)
                text = f"the board {board.slug} is not worked any more: {told}"
                self._sink(Notice(level="error", text=text, time=time.time()))

        task.add_done_callback(over)

    async def _ended(self, slug: str) -> None:
        dispatcher, task = self._working.get(slug, (None, None))
        if dispatcher is not None:
            dispatcher.stop()
        if task is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(task), 6)
