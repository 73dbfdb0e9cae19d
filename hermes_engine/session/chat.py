"""One chat: its agent, its queue and its turns. Lives on the engine's loop but for the methods marked otherwise.

A turn that fails or is stopped leaves the queue as it is: what waits there is sent when the person says so.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from hermes_engine.agent.loop import Agent
from hermes_engine.agent.shorten import estimate
from hermes_engine.assembly import Assembly, with_changes
from hermes_engine.errors import HermesError
from hermes_engine.events import Emitter, Event, Notice, Sink, TurnFinished, TurnStarted, UsageReported
from hermes_engine.messages import NO_USAGE, Message
from hermes_engine.protocols import AgentSpec, Job, Journal, tee
from hermes_engine.session.view import SessionView
from hermes_engine.work.supervisor import Ending, Supervisor

if TYPE_CHECKING:
    from hermes_engine.events import RunStatus

STATES: dict[RunStatus, str] = {
    "ok": "done",
    "error": "failed",
    "timeout": "timeout",
    "cancelled": "cancelled",
    "max_turns": "max_turns",
}


class Chat:
    """A conversation of a person with one agent."""

    def __init__(
        self,
        session: str,
        spec: AgentSpec,
        history: Sequence[Message],
        *,
        assembly: Assembly,
        supervisor: Supervisor,
        sink: Sink,
        journal: Journal | None,
        title: str = "",
        on_fact: Callable[[str, object], None] | None = None,
    ) -> None:
        self.id, self.spec, self.title = session, spec, title
        self.agent_id = supervisor.add(
            name=spec.name, kind=spec.kind, title=title, session=session, model=spec.model, profile=spec.profile
        )
        self.hands = assembly.hands(spec, self.agent_id, on_job_end=self._job_ended)
        self._assembly, self._supervisor, self._journal = assembly, supervisor, journal
        self._sink = tee(self._observe, sink)
        self._on_fact = on_fact or _unheard
        self._history = list(history)
        self._agent: Agent | None = None
        self._stale = False
        self._lock = threading.Lock()
        self._queue: deque[str] = deque()
        self._busy = False
        self._context = (0, 0, False)
        self._learning: asyncio.Task[int | None] | None = None

    # -- called from any thread -----------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """A turn runs or is about to."""
        return self._busy

    def enqueue(self, text: str) -> str | None:
        """Takes a message in. Returns the text to begin with now, or None when a turn runs already."""
        with self._lock:
            self._queue.append(text)
            if self._busy:
                return None
            self._busy = True
            return self._queue.popleft()

    def claim_next(self) -> str | None:
        """The first queued message, to begin with now; None when nothing waits or a turn runs."""
        with self._lock:
            if self._busy or not self._queue:
                return None
            self._busy = True
            return self._queue.popleft()

    def claim(self) -> bool:
        """Takes the turn for something else than a message; False when one runs."""
        with self._lock:
            if self._busy:
                return False
            self._busy = True
            return True

    def pop_queued(self) -> str | None:
        """Takes the first queued message out."""
        with self._lock:
            return self._queue.popleft() if self._queue else None

    def queued(self) -> tuple[str, ...]:
        """What waits, first first."""
        with self._lock:
            return tuple(self._queue)

    def set_queue(self, items: Sequence[str]) -> None:
        """Makes these the waiting messages."""
        with self._lock:
            self._queue = deque(items)

    def view(self) -> SessionView:
        """The chat now."""
        messages = self._agent.messages if self._agent else self._history
        row = self._supervisor.row(self.agent_id)
        tokens, window, estimated = self._context
        if not tokens and messages:
            tokens, estimated = estimate(messages), True
        return SessionView(
            self.id,
            self.agent_id,
            self.title,
            self.hands.workspace.cwd,
            self.spec.model,
            self.spec.profile,
            self.hands.gate.mode,
            self.spec.toolsets,
            tuple(message for message in messages if message.role != "system"),
            row.usage if row else NO_USAGE,
            tokens,
            window,
            estimated,
            self._busy,
        )

    def alter(self, **changes: object) -> None:
        """Changes model or toolsets from the next turn on."""
        self.spec = with_changes(self.spec, changes)
        self._stale = True

    # -- on the engine's loop -------------------------------------------------------------------------------------

    def begin(self, text: str) -> None:
        """Starts a turn with `text`; the caller has claimed it."""
        self.hands.gate.trust.person_said(text)
        self._start(lambda emit: self._turn(text, emit))
        if not self.title:
            self.title = self._assembly.redactor.text(text).strip().split("\n", 1)[0][:80]
            self._on_fact("title", self.title)

    def begin_compact(self, hint: str) -> None:
        """Starts shortening the conversation, as a turn of its own; the caller has claimed it."""
        self._start(lambda emit: self._compact(hint, emit))

    def steer(self, text: str) -> bool:
        """Hands text to the running turn; False when none can take it."""
        if self._agent is None or not self._busy:
            return False
        self.hands.gate.trust.person_said(text)
        self._agent.steer(text)
        return True

    async def close(self) -> None:
        """Ends what its agent's tools still run."""
        if self._learning:
            self._learning.cancel()
        if self._agent:
            await self._agent.close()
        else:
            await self.hands.sandbox.close()
        self._supervisor.finish(self.agent_id, Ending("done"))

    def _start(self, work: Callable[[Emitter], Awaitable[Ending]]) -> None:
        emit = Emitter(self._sink, session=self.id, run=f"run_{secrets.token_hex(5)}", agent=self.agent_id)
        task = self._supervisor.start(self.agent_id, lambda: work(emit))
        task.add_done_callback(self._after)

    def _after(self, task: asyncio.Task[Ending]) -> None:
        ended_well = not task.cancelled() and task.result().state == "done"
        left = self._agent.take_steering() if self._agent else []
        with self._lock:
            self._queue.extendleft(reversed(left))
            following = self._queue.popleft() if ended_well and self._queue else None
            self._busy = following is not None
        self._supervisor.change(self.agent_id, state="waiting", activity="")
        if following is not None:
            self.begin(following)

    async def _ready(self) -> Agent:
        if self._agent is None or self._stale:
            history = self._agent.messages if self._agent else self._history
            self._agent = await self._assembly.build(
                self.spec, agent=self.agent_id, history=history, journal=self._journal, hands=self.hands
            )
            self._stale = False
            self._learning = asyncio.create_task(self._agent.context.learn(), name="context window")
        return self._agent

    async def _turn(self, text: str, emit: Emitter) -> Ending:
        try:
            agent = await self._ready()
        except HermesError as error:
            emit(TurnStarted, prompt=text, model=self.spec.model)
            emit(TurnFinished, status="error", error=error.line)
            return Ending("failed", error=error.line)
        result = await agent.run(text, emit)
        self._on_fact("usage", result.usage)
        return Ending(STATES[result.status], result.answer, result.error)

    async def _compact(self, hint: str, emit: Emitter) -> Ending:
        emit(TurnStarted, prompt="", model=self.spec.model)
        status: RunStatus = "cancelled"
        error = ""
        try:
            agent = await self._ready()
            await agent.shorten(emit, hint)
            status = "ok"
        except HermesError as fault:
            status, error = "error", fault.line
        finally:
            emit(TurnFinished, status=status, error=error)
        return Ending(STATES[status], error=error)

    def _observe(self, event: Event) -> None:
        if isinstance(event, UsageReported):
            self._context = (event.context_tokens, event.context_window, event.estimated)

    def _job_ended(self, job: Job) -> None:
        """One line for each background command that ends."""
        code = "" if job.exit_code in (0, None) or job.state == "cancelled" else f" ({job.exit_code})"
        text = f"{job.id} {job.command.strip().splitlines()[0][:80]}: {job.state}{code}"
        level = "warning" if job.state == "failed" else "info"
        self._sink(Notice(session=self.id, agent=self.agent_id, time=time.time(), level=level, text=text))


def _unheard(key: str, value: object) -> None:
    """Nobody keeps facts about this chat."""
