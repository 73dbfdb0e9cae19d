"""One conversation with one agent: its queue and its turns. A chat rests between turns; a child or a background task
ends with its turn, and begins anew, as another agent, when a person says something more to it.

Lives on the engine's loop but for the methods marked otherwise. A turn that fails or is stopped leaves the queue as
it is: what waits there is sent when the person says so.
"""

from __future__ import annotations

import asyncio
import dataclasses
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermes_engine.agent.loop import Agent
from hermes_engine.agent.shorten import estimate
from hermes_engine.errors import HermesError
from hermes_engine.events import Emitter, Event, Notice, Sink, TurnFinished, TurnStarted, UsageReported
from hermes_engine.messages import CANCELLED_RESULT, INTERRUPTED_RESULT, NO_USAGE, Message
from hermes_engine.protocols import AgentSpec, Job, Journal, TurnResult
from hermes_engine.tools.permissions import Gate
from hermes_engine.work.maker import Keeper, Maker
from hermes_engine.work.places import Seat
from hermes_engine.work.sinks import tee
from hermes_engine.work.supervisor import Ending, Supervisor
from hermes_engine.work.turns import Turns
from hermes_engine.work.view import SessionView
from hermes_engine.work.worktrees import Worktree

if TYPE_CHECKING:
    from hermes_engine.events import RunStatus

STATES: dict[RunStatus, str] = {
    "ok": "done",
    "error": "failed",
    "timeout": "timeout",
    "cancelled": "cancelled",
    "max_turns": "max_turns",
}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a conversation comes from.

    Attributes:
        parent: agent that started it, "" at the top.
        parent_run: turn of that agent.
        owner: session its result is for.
        above: permissions of what started it; its own are never freer.
        bound: it ends with the turn that started it.
    """

    parent: str = ""
    parent_run: str = ""
    owner: str = ""
    above: Gate | None = None
    bound: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """A conversation that was there before: its session, what keeps it, what was said."""

    session: str
    journal: Journal | None
    messages: Sequence[Message] = ()


class Conversation:
    """A conversation of a person or another agent with one agent.

    Args:
        session: its id.
        spec: of its agent; `kind` chat rests between turns, every other kind ends with its turn.
        history: what was said before.
        maker: makes the agent.
        supervisor: owns it.
        sink: hears its events.
        keeper: keeps its facts.
        journal: keeps its messages; None = nothing does.
        title: for people.
        origin: where it comes from.
        seat: taken for each turn; None = it need not wait for a place.
        prompt: the task it is started for.
        follows: agent whose task it goes on with or runs again.
        place: a worktree of its own, which exists while it works.
        check: what is to be asked once more about an answer, "" when it is good.
    """

    def __init__(
        self,
        session: str,
        spec: AgentSpec,
        history: Sequence[Message] = (),
        *,
        maker: Maker,
        supervisor: Supervisor,
        sink: Sink,
        keeper: Keeper,
        journal: Journal | None,
        title: str = "",
        origin: Origin | None = None,
        seat: Seat | None = None,
        prompt: str = "",
        follows: str = "",
        place: Worktree | None = None,
        check: Callable[[str], str] | None = None,
    ) -> None:
        self.id, self.spec, self.title, self.seat = session, spec, title, seat
        self._place, self._check = place, check
        self.on_end: Callable[[], object] | None = None
        """Called when a task has ended and nothing more was said to it."""
        self.task: asyncio.Task[Ending]
        self._leaving = False
        self.origin = origin or Origin()
        self._maker, self._supervisor, self._journal, self._keeper = maker, supervisor, journal, keeper
        self._sink = tee(self._observe, sink)
        self._history = list(history)
        self._agent: Agent | None = None
        self._stale = False
        self.turns = Turns()
        self._context = (0, 0, False)
        self._learning: asyncio.Task[int | None] | None = None
        self.steps = 0
        self.last: TurnFinished | None = None
        self._enter(prompt, follows)

    def _enter(self, prompt: str, follows: str) -> None:
        """Another agent for this conversation enters the tree."""
        spec, origin = self.spec, self.origin
        self.agent_id = self._supervisor.add(
            name=spec.name, kind=spec.kind, parent=origin.parent, title=self.title, session=self.id, model=spec.model,
            profile=spec.profile, owner=origin.owner, prompt=self._maker.redactor.text(prompt),
            bound=origin.bound, follows=follows,
        )  # fmt: skip
        self.hands = self._maker.hands(spec, self.agent_id, above=origin.above, on_job_end=self._job_ended)

    # -- called from any thread -----------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """A turn runs or is about to."""
        return self.turns.busy

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
            self.turns.busy,
        )

    def alter(self, **changes: object) -> None:
        """Changes model or toolsets from the next turn on."""
        self.spec = dataclasses.replace(self.spec, **changes)  # type: ignore[arg-type]
        self._stale = True

    # -- on the engine's loop -------------------------------------------------------------------------------------

    def begin(self, text: str | None, *, by_person: bool = True) -> None:
        """Starts a turn with `text`, or goes on with the one that was cut off; the caller has claimed it."""
        self._revive(text or "")
        if text is None:
            self._start(self._go_on)
            return
        if by_person:  # a model's words name no host
            self.hands.gate.trust.person_said(text)
        if not self.title:
            self.title = self._maker.redactor.text(text).strip().split("\n", 1)[0][:80]
            self._keeper.fact(self.id, "title", self.title)
        self._start(lambda emit: self._turn(text, emit))

    def _revive(self, text: str) -> None:
        """A task that had ended is given more to do: as another agent, since its record is closed."""
        row = self._supervisor.row(self.agent_id)
        if row is None or not row.live:
            if self._agent is not None:
                self._history, self._agent = self._agent.messages, None
            self._enter(text, self.agent_id)

    def begin_compact(self, hint: str) -> None:
        """Starts shortening the conversation, as a turn of its own; the caller has claimed it."""
        self._revive("")
        self._start(lambda emit: self._compact(hint, emit))

    def say(self, text: str) -> None:
        """A person says something: before its next step while it works, else as its next turn."""
        if not self.steer(text) and (first := self.turns.enqueue(text)) is not None:
            self.begin(first)

    def steer(self, text: str) -> bool:
        """Hands text to the running turn; False when none can take it."""
        if self._agent is None or not self.turns.busy:
            return False
        self.hands.gate.trust.person_said(text)
        self._agent.steer(text)
        return True

    async def close(self) -> None:
        """Ends what its agent's tools still run."""
        await self._end_hands()
        self._supervisor.finish(self.agent_id, Ending("done" if self.spec.kind == "chat" else "cancelled"))

    async def _end_hands(self) -> None:
        if self._learning:
            self._learning.cancel()
        if self._agent:
            await self._agent.close()
        else:
            await self.hands.sandbox.close()

    def emitter(self) -> Emitter:
        """Of a new run."""
        run = f"run_{secrets.token_hex(5)}"
        return Emitter(self._sink, session=self.id, run=run, agent=self.agent_id, parent_run=self.origin.parent_run)

    def _start(self, work: Callable[[Emitter], Awaitable[Ending]]) -> None:
        self.task = self._supervisor.start(self.agent_id, lambda: self._seated(work), waiting=self.seat is not None)
        self.task.add_done_callback(self._after)

    async def _seated(self, work: Callable[[Emitter], Awaitable[Ending]]) -> Ending:
        """The work in its seat and place; what ends with its turn ends its commands here too."""
        if self.spec.kind == "chat":
            return await work(self.emitter())
        try:
            if self.seat is not None:
                await self.seat.take()
                self._supervisor.change(self.agent_id, state="running", activity="")
            if self._place is not None:
                await self._place.enter()
            return await work(self.emitter())
        finally:
            await self._given_back()

    async def _given_back(self) -> None:
        try:
            await self._end_hands()
        finally:
            try:
                if self._place is not None:
                    await self._place.leave()
            finally:
                if self.seat is not None:
                    self.seat.leave()

    def _after(self, task: asyncio.Task[Ending]) -> None:
        ending = Ending("cancelled") if task.cancelled() else task.result()
        left = self._agent.inbox.take() if self._agent else []
        goes_on = ending.state == "done" or (self.spec.kind != "chat" and ending.state != "cancelled")
        following = self.turns.ended(left, goes_on=goes_on)
        if self.spec.kind == "chat" and not self._leaving:
            self._supervisor.change(self.agent_id, state="waiting", activity="")
        else:
            self._supervisor.finish(self.agent_id, self.ending(ending))
        if following is not None:
            self.begin(following)
        elif self.on_end:
            self.on_end()

    def ending(self, ending: Ending) -> Ending:
        """The ending with what a cut-off turn had brought, and where the work lies."""
        state = "handed over" if self._leaving and ending.state == "cancelled" else ending.state
        answer = ending.answer or (self.last.answer if self.last else "")
        hide, workspace = self._maker.redactor.text, self.hands.workspace
        note, also = (self._place.note, map(workspace.shown, self._place.files)) if self._place else ("", ())
        files = tuple(dict.fromkeys([*workspace.files_changed, *also]))
        return Ending(state, hide(answer), hide(ending.error), ending.kind, files, note)

    async def _ready(self) -> Agent:
        if self._agent is None or self._stale:
            history = self._agent.messages if self._agent else self._history
            self._agent = await self._maker.build(
                self.spec, agent=self.agent_id, history=history, journal=self._journal, hands=self.hands
            )
            self._agent.check = self._check
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
        if self.spec.kind != "chat":
            for said in self.turns.take():  # while it waited for its place: for its first step
                self.steer(said)
        return _ending(await agent.run(text, emit))

    async def _go_on(self, emit: Emitter) -> Ending:
        """Goes on where the conversation stands; a reply that was cut off is asked for again."""
        agent = await self._ready()
        last = agent.messages[-1] if agent.messages else None
        if last is not None and last.role == "assistant" and not last.partial and not last.tool_calls:
            return Ending("done", last.content)
        if last is not None and last.partial and not last.tool_calls:
            await agent.replace(agent.messages[:-1])
        if redone := _to_be_redone(agent.messages):
            await agent.replace(redone)
        return _ending(await agent.run(None, emit))

    def leave(self) -> None:
        """Lets the turn end before its next step; whoever reads the record goes on with it."""
        self._leaving = True
        if self._agent is not None:
            self._agent.inbox.leaving = True

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
        elif isinstance(event, TurnFinished):
            self.last = event
            self.steps += event.turns
            self._keeper.fact(self.id, "usage", event.usage)

    def _job_ended(self, job: Job) -> None:
        """One line for each background command that ends."""
        code = "" if job.exit_code in (0, None) or job.state == "cancelled" else f" ({job.exit_code})"
        text = f"{job.id} {job.command.strip().splitlines()[0][:80]}: {job.state}{code}"
        level = "warning" if job.state == "failed" else "info"
        self._sink(Notice(session=self.id, agent=self.agent_id, time=time.time(), level=level, text=text))


def _ending(result: TurnResult) -> Ending:
    return Ending(STATES[result.status], result.answer, result.error, result.error_kind)


def _to_be_redone(messages: Sequence[Message]) -> list[Message]:
    """The messages with the calls that the end of a program cut off marked as such, [] when there are none."""
    last = len(messages)
    while last and messages[last - 1].role == "tool":
        last -= 1
    tail = [_interrupted(message) for message in messages[last:]]
    return [*messages[:last], *tail] if tail != list(messages[last:]) else []


def _interrupted(message: Message) -> Message:
    if message.content == CANCELLED_RESULT:
        return dataclasses.replace(message, content=INTERRUPTED_RESULT)
    if message.status == "cancelled" and not message.content.endswith(INTERRUPTED_RESULT):  # it had brought something
        return dataclasses.replace(message, content=f"{message.content}\n{INTERRUPTED_RESULT}")
    return message
