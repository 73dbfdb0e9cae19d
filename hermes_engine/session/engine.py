"""The one engine of a process, as front ends see it: a thread with a loop, the tree of agents, the store, the runs.

Front ends send commands and hear events; every method may be called from any thread and returns at once unless its
docstring says that it blocks. Knows no screen.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hermes_engine.assembly import Assembly
from hermes_engine.errors import StateError, UsageError
from hermes_engine.events import Notice, Sink
from hermes_engine.profiles import Resolved
from hermes_engine.protocols import AgentSpec, Job
from hermes_engine.requests import Answer, Broker
from hermes_engine.session.errands import run_errands
from hermes_engine.session.kanban import Kanban
from hermes_engine.session.keeper import StoreKeeper
from hermes_engine.session.runs import Runs
from hermes_engine.session.state import State, unsaved
from hermes_engine.session.tasks import Tasks
from hermes_engine.session.watch import LoopWatch
from hermes_engine.tools.registry import Tool
from hermes_engine.toolsets import expand
from hermes_engine.work.conversation import Conversation
from hermes_engine.work.delegation import Delegation
from hermes_engine.work.maker import KeepsNothing
from hermes_engine.work.recall import Recall
from hermes_engine.work.sinks import tee
from hermes_engine.work.supervisor import AgentRow, Supervisor
from hermes_engine.work.view import SessionView

if TYPE_CHECKING:
    from hermes_engine.batch.options import BatchOptions
    from hermes_engine.store.sessions import SessionStore

log = logging.getLogger(__name__)
T = TypeVar("T")


class Engine:
    """Starts and ends everything that works; see the module's docstring.

    Args:
        resolved: settings in effect.
        sink: hears every event of every agent, on threads of the engine.
        attended: whether a person can answer questions.
        ephemeral: nothing is kept in the store (for tests and throw-away runs).
    """

    def __init__(self, resolved: Resolved, sink: Sink, *, attended: bool, ephemeral: bool = False) -> None:
        self.resolved = resolved
        self.broker = Broker(attended=attended)
        self._assembly = Assembly(resolved, self.broker, on_always=self._remember_rule)
        self._state = None if ephemeral else State(resolved, self._assembly.redactor, on_notice=self._notice)
        self._front = sink
        self._heard = tee(self._state.recorder if self._state else None, sink)
        self.supervisor = Supervisor(self._heard)
        self._sink = tee(self._heard, self.supervisor.observe, lambda event: self._delegation.hear(event))
        self._open: dict[str, Conversation] = {}
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="hermes-store")
        self._keeper = StoreKeeper(self._state, self._pool) if self._state else KeepsNothing()
        self._delegation = Delegation(
            self.supervisor, self._assembly, self._keeper, self._sink, resolved.settings.delegation, self._open
        )
        self.kanban = Kanban(
            resolved,
            assembly=self._assembly,
            delegation=self._delegation,
            supervisor=self.supervisor,
            sink=self._heard,
            run=self._run,
        )
        self._recall = Recall(self._state.sessions if self._state else None, self._pool)
        self._assembly.extra_tools = self._bound_tools
        self.tasks = Tasks(
            delegation=self._delegation,
            supervisor=self.supervisor,
            assembly=self._assembly,
            state=self._state,
            keeper=self._keeper,
            pool=self._pool,
            open=self._open,
            run=self._run,
            soon=self._do,
        )
        self.runs = Runs(resolved, self.supervisor, self._heard, front=sink, run=self._run, broker=self.broker)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._main, name="hermes-engine", daemon=True)
        self._grace = 1.5

    # -- life -----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Brings the engine's thread up; nothing touches the network yet."""
        self._thread.start()
        self._ready.wait()
        if self._state:
            self._pool.submit(self._state.clean_up)

    def close(self, grace: float = 1.5) -> None:
        """Blocks: stops the whole tree, waits up to `grace` seconds, ends process trees, flushes the store."""
        if self._loop is None or self._stopping is None or not self._thread.is_alive():
            return
        self._grace = grace
        self.broker.withdraw()
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(grace + 2)
        self._pool.shutdown(wait=True)
        if self._state:
            self._state.close(unused=[chat.id for chat in self._open.values() if not chat.view().messages])

    def _main(self) -> None:
        with asyncio.Runner() as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        watch = LoopWatch("the engine")
        self._ready.set()
        errands = asyncio.create_task(self._errands(), name="orders of other programs")
        await self._stopping.wait()
        errands.cancel()
        watch.close()
        await self.kanban.close()
        self.runs.stop_all()
        if not await self.supervisor.close(self._grace):
            log.warning("some work did not end within %.1f s", self._grace)
        await asyncio.gather(*(chat.close() for chat in self._open.values()), return_exceptions=True)
        await self._assembly.close()

    async def _errands(self) -> None:
        if self._state is not None:
            await run_errands(self._state, self._pool, self.supervisor, self.broker, self._open)

    def leave(self, grace: float = 3.0) -> list[str]:
        """Blocks: ends what is at work before its next step, and hands it over to whoever resumes it.

        What takes longer than `grace` seconds to a step is cut off like a killed program's. Batch runs and workers of
        a board are not handed over: their folder is what goes on, their cards wait anew. The engine must be closed
        before anybody resumes.

        Returns:
            ids of the agents to be gone on with (`Tasks.resume`); those that ended meanwhile are not among them.
        """
        return self._run(self._left(grace))

    async def _left(self, grace: float) -> list[str]:
        talks = [
            talk
            for talk in self._open.values()
            if not talk.origin.bound and talk.spec.kind != "worker" and self.supervisor.at_work(talk.agent_id)
        ]
        for talk in talks:
            talk.leave()
        agents = [talk.agent_id for talk in talks]
        if not await self.supervisor.ended(agents, grace):
            for agent in agents:
                self.supervisor.stop(agent, below="bound")
            await self.supervisor.ended(agents, grace)
        rows = [self.supervisor.row(agent) for agent in agents]
        return [row.id for row in rows if row is not None and row.state == "handed over"]

    def _do(self, action: Callable[[], object]) -> None:
        if self._loop is None:
            raise RuntimeError("the engine was not started")
        self._loop.call_soon_threadsafe(action)

    def _do_and_wait(self, action: Callable[[], T]) -> T:
        """Runs a short action on the engine's loop and waits for its outcome."""

        outcome: Future[T] = Future()

        def run() -> None:
            try:
                outcome.set_result(action())
            except BaseException as error:
                outcome.set_exception(error)

        self._do(run)
        return outcome.result(10)

    def _bound_tools(self, spec: AgentSpec, agent: str) -> Sequence[Tool]:
        return (
            *self._delegation.tools(spec, agent),
            *self.kanban.cards.tools(spec, agent),
            *self._recall.tools(spec),
        )

    def _run(self, work: Coroutine[Any, Any, T], seconds: float | None = 60) -> T:
        """Runs a coroutine on the engine's loop and waits for its outcome."""
        if self._loop is None:
            raise RuntimeError("the engine was not started")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    def _notice(self, level: str, text: str) -> None:
        self._front(Notice(level=level, text=text, time=time.time()))

    # -- chats ----------------------------------------------------------------------------------------------------

    def open_session(
        self, cwd: Path, *, resume: str | None = None, continue_last: bool = False, mode: str | None = None
    ) -> SessionView:
        """Blocks for the disk: a new chat, a saved one (`resume`: id or its beginning), or the folder's last one.

        Raises:
            UsageError, StateError: no such saved chat, or it cannot be read.
        """
        spec = self._assembly.spec(name="main", cwd=cwd, mode=mode)
        if self._state is None:
            if resume or continue_last:
                raise StateError("nothing is saved here, so nothing can be resumed")
            saved = unsaved(spec)
        else:
            saved = self._pool.submit(self._state.open_session, spec, resume, continue_last).result()
        if saved.id in self._open:
            return self._open[saved.id].view()
        chat = self._do_and_wait(
            lambda: Conversation(
                saved.id,
                saved.spec,
                saved.messages,
                maker=self._assembly,
                supervisor=self.supervisor,
                sink=self._sink,
                keeper=self._keeper,
                journal=self._keeper.journal(saved.id),
                title=saved.title,
            )
        )
        self._open[saved.id] = chat
        return chat.view()

    def copy_session(self, session: str, *, back: int = 0) -> tuple[str, str]:
        """Blocks for the disk: copies an open chat with the model, mode and tools it has now, to be opened.

        Args:
            session: the chat.
            back: how many of the last user messages the copy leaves out, each with all that followed.

        Returns:
            the copy's id, and the first message left out ("" when none is).

        Raises:
            UsageError, StateError: nothing is saved, nothing was said in it, or not so many messages.
        """
        if self._state is None:
            raise StateError("nothing is saved here")
        return self._state.copy(self.view(session), back)

    def _chat(self, session: str) -> Conversation:
        chat = self._open.get(session)
        if chat is None:
            raise UsageError(f"chat {session!r} is not open")
        return chat

    def view(self, session: str) -> SessionView:
        """The chat now."""
        return self._chat(session).view()

    def busy(self, session: str) -> bool:
        """Whether a turn runs."""
        return self._chat(session).busy

    def send(self, session: str, text: str) -> str:
        """Starts a turn ("started"), or queues the message while one runs ("queued")."""
        chat = self._chat(session)
        first = chat.turns.enqueue(text)
        if first is None:
            return "queued"
        self._do(lambda: chat.begin(first))
        return "started" if first == text else "queued"

    def steer(self, session: str, text: str) -> bool:
        """Hands text to the running turn before its next step; starts a turn when none runs."""
        chat = self._chat(session)
        if not chat.busy:
            return self.send(session, text) == "started"

        def hand_over() -> None:
            if not chat.steer(text):
                self.send(session, text)

        self._do(hand_over)
        return True

    def send_next(self, session: str) -> bool:
        """Sends the first queued message now: as a turn, or into the running one. False when none waits."""
        chat = self._chat(session)
        if chat.busy:
            text = chat.turns.pop()
            return text is not None and self.steer(session, text)
        first = chat.turns.claim_next()
        if first is not None:
            self._do(lambda: chat.begin(first))
        return first is not None

    def interrupt(self, session: str) -> bool:
        """Stops the running turn and what it started; the queue stays. False when none runs."""
        chat = self._chat(session)
        if not chat.busy:
            return False
        self._do(lambda: self.supervisor.stop(chat.agent_id, below="bound"))
        return True

    def queued(self, session: str) -> tuple[str, ...]:
        """Messages that wait for the turn's end."""
        return self._chat(session).turns.waiting()

    def set_queue(self, session: str, items: Sequence[str]) -> None:
        """Makes these the waiting messages."""
        self._chat(session).turns.replace(items)

    def compact(self, session: str, hint: str = "") -> None:
        """Shortens the conversation, as a turn of its own.

        Raises:
            UsageError: a turn runs.
        """
        chat = self._chat(session)
        if not chat.turns.claim():
            raise UsageError("a turn is running", hint="stop it with Esc, then /compact")
        self._do(lambda: chat.begin_compact(hint))

    def set_mode(self, session: str, mode: str) -> None:
        """Changes the approval mode at once."""
        self._chat(session).hands.gate.set_mode(mode)
        self._keeper.fact(session, "mode", mode)

    def set_model(self, session: str, model: str) -> None:
        """Changes the model from the next turn on. Raises ConfigError when it cannot be asked."""
        self.resolved.endpoint_for(model)
        self._chat(session).alter(model=model)
        self._keeper.fact(session, "model", model)

    def set_toolsets(self, session: str, toolsets: Sequence[str]) -> None:
        """Changes the tools from the next turn on. Raises UnknownName."""
        self._chat(session).alter(toolsets=expand(toolsets))
        self._keeper.fact(session, "toolsets", tuple(toolsets))

    def set_title(self, session: str, title: str) -> None:
        """Renames the chat."""
        self._chat(session).title = title
        self._keeper.fact(session, "title", title)

    def jobs(self, session: str) -> tuple[Job, ...]:
        """Commands this chat's agent started in the background, as they are now."""
        return tuple(self._chat(session).hands.sandbox.jobs())

    def answer(self, request: str, answer: Answer) -> bool:
        """Answers an approval or a question. False when it no longer waits."""
        return self.broker.answer(request, answer)

    def _remember_rule(self, rule: str) -> None:
        if self._state is not None:
            self._pool.submit(self._state.remember_rule, rule)

    # -- the tree and the runs ------------------------------------------------------------------------------------

    def agents(self) -> tuple[AgentRow, ...]:
        """Every agent of the tree."""
        return self.supervisor.rows()

    def stop_agent(self, agent: str, *, subtree: bool = True) -> bool:
        """Stops what an agent does and what runs below it; False when nothing does."""
        row = self.supervisor.row(agent)
        if row is None or not self.supervisor.at_work(agent):
            return False
        self._do(lambda: self.supervisor.stop(agent, below="all" if subtree else "bound"))
        return True

    def start_batch(self, options: BatchOptions) -> str:
        """Starts a batch run in the background pool; returns its name.

        Raises:
            UsageError: a run of this name is at work, or the options cannot be met.
        """
        return self.runs.start(options)

    def stop_batch(self, name: str) -> bool:
        """Lets a run take no more prompts, end those in flight and write everything; False when none runs."""
        return self.runs.stop(name)

    def sessions(self) -> SessionStore:
        """The saved chats, for listing: its reads block, call them off a front end's loop."""
        if self._state is None:
            raise StateError("nothing is saved here")
        return self._state.sessions
