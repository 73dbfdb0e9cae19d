"""Work a person starts beside a chat: background tasks, agents to watch; and their results, also those that earlier
runs of the program left. Part of the engine's front door (`Engine.tasks`).

Every method may be called from any thread; those that read or write the disk block and say so.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from hermes_engine.assembly import Assembly
from hermes_engine.errors import StateError, UsageError
from hermes_engine.events import Event
from hermes_engine.messages import Message
from hermes_engine.session.keeper import StoreKeeper
from hermes_engine.session.state import State
from hermes_engine.store.agents import AgentRecord
from hermes_engine.store.orders import OrderKind
from hermes_engine.work.conversation import Conversation, Known, Origin
from hermes_engine.work.delegation import Delegation, short_name
from hermes_engine.work.maker import KeepsNothing
from hermes_engine.work.supervisor import AgentRow, Supervisor
from hermes_engine.work.worktrees import known_worktree, planned_worktree

TaskKind = Literal["background", "child"]
T = TypeVar("T")
Records = tuple[AgentRecord, ...]


class Tasks:
    """See the module's docstring.

    Args:
        delegation: starts agents.
        supervisor: owns them.
        assembly: makes them.
        state: what is kept, None where nothing is.
        keeper: of their conversations.
        pool: the store's thread.
        open: conversations at work, by session.
        run: runs a coroutine on the engine's loop and waits for its outcome.
        soon: runs an action on the engine's loop.
    """

    def __init__(
        self,
        *,
        delegation: Delegation,
        supervisor: Supervisor,
        assembly: Assembly,
        state: State | None,
        keeper: StoreKeeper | KeepsNothing,
        pool: Executor,
        open: dict[str, Conversation],
        run: Callable[[Coroutine[Any, Any, AgentRow]], AgentRow],
        soon: Callable[[Callable[[], object]], None],
    ) -> None:
        self._delegation, self._supervisor, self._assembly, self._state = delegation, supervisor, assembly, state
        self._keeper, self._pool, self._open, self._run, self._soon = keeper, pool, open, run, soon

    # -- starting -------------------------------------------------------------------------------------------------

    def start(
        self,
        session: str,
        prompt: str,
        *,
        kind: TaskKind,
        profile: str | None = None,
        model: str | None = None,
        worktree: bool = False,
    ) -> AgentRow:
        """Starts work beside a chat, whatever the chat does meanwhile. Blocks until its record is on disk.

        Args:
            session: the chat it is started from; its result goes there.
            prompt: what to do.
            kind: background = a task at the top; child = an agent of the chat's tree, which waits for its place there.
            profile: whose instructions and settings it has; the chat's by default.
            model: another than the chat's.
            worktree: whether it works in a git worktree and branch of its own.

        Raises:
            UsageError, ConfigError, StateError: it cannot be started.
        """
        if not prompt.strip():
            raise UsageError("the task is empty", hint="/background TASK, /spawn TASK")
        chat = self._chat(session)
        return self._run(self._started(chat, prompt, kind, profile, model, worktree))

    async def _started(
        self, chat: Conversation, prompt: str, kind: TaskKind, profile: str | None, model: str | None, worktree: bool
    ) -> AgentRow:
        assembly, base = self._assembly, chat.spec
        if profile and profile != chat.spec.profile:
            assembly = await assembly.on_profile(profile)
            base = assembly.spec(name="", cwd=chat.spec.cwd)
        spec = dataclasses.replace(
            base,
            name=profile or short_name(prompt),
            kind=kind,
            model=model or base.model,
            cwd=chat.hands.workspace.here,
            mode=(assembly.own_mode if assembly is not self._assembly else None) or chat.hands.gate.mode,
            depth=1 if kind == "child" else 0,
        )
        assembly.resolved.endpoint_for(spec.model)
        origin = Origin(
            parent=chat.agent_id if kind == "child" else "",
            owner=chat.id,
            above=chat.hands.gate,
        )
        tree = self._delegation.tree_of(chat.agent_id) if kind == "child" else None
        if tree is not None:
            tree.started = 0  # a person's act begins to count anew
        place = None
        if worktree:
            place = await planned_worktree(spec.cwd, spec.name, otherwise="leave out --worktree")
        task = await self._delegation.opened(spec, assembly, origin, prompt, tree=tree, place=place)
        self._delegation.begin(task, prompt)
        return self._row(task)

    def tell(self, agent: str, text: str) -> AgentRow | None:
        """Says something to an agent: before its next step while it works; one that has ended goes on with it.

        Blocks for the disk when it does not work here. Raises UsageError: no such agent, or a batch run.

        Returns:
            the agent that hears it, None when another program was asked to tell it.
        """
        if not text.strip():
            raise UsageError("the message is empty")
        row = self._supervisor.row(agent)
        talk = self._open.get(row.session if row else self.record(agent).session)
        if talk is None:
            record = self.record(agent)
            if record.id in {one.id for one in self.elsewhere()}:
                self.order("steer", record.id, {"text": text})
                return None
            return self._run(self._again(record, text))
        self._soon(partial(self._said, talk, text))
        return self._row(talk)

    def _said(self, talk: Conversation, text: str) -> None:
        if talk.id not in self._open:  # it ended just now, and was let go
            self._open[talk.id] = talk
            self._keeper.hold(talk.id)
        self._open[talk.id].say(text)

    def retry(self, agent: str) -> AgentRow:
        """Runs an ended agent's task again from its beginning, in a new conversation. Blocks. Raises UsageError."""
        if self._supervisor.at_work(agent):
            raise UsageError("it is still at work", hint="stop it first")
        return self._run(self._again(self.record(agent), None, anew=True))

    def resume(self, agent: str) -> AgentRow:
        """Goes on with a task that was interrupted or handed over, where it stood. Blocks. Raises UsageError."""
        record = self.record(agent)
        if record.state not in ("interrupted", "handed over"):
            raise UsageError(f"{record.name} {record.id} is {record.state}, so there is nothing to go on with")
        return self._run(self._again(record, None))

    async def _again(self, record: AgentRecord, text: str | None, *, anew: bool = False) -> AgentRow:
        """More of a task: `text` said to it, its unfinished turn gone on with, or all of it `anew`."""
        if self._state is None:
            raise StateError("nothing is saved here, so nothing can be gone on with")
        if record.kind == "batch":
            raise UsageError("a batch run goes on with --resume")
        assembly = self._assembly
        if record.profile and record.profile != assembly.resolved.profile:
            assembly = await assembly.on_profile(record.profile)
        kind = "background" if record.kind == "chat" else record.kind
        loop = asyncio.get_running_loop()
        near = await loop.run_in_executor(self._pool, self._state.folder_of, record.owner) or Path.cwd()
        spec = assembly.spec(name=record.name, cwd=near, kind=kind)
        known_as = self._state.remembered if anew else partial(self._state.open_session, continue_last=False)
        saved = await loop.run_in_executor(self._pool, known_as, spec, record.session)
        owner = self._open.get(record.owner)
        origin = Origin(owner=record.owner, above=owner.hands.gate if owner else None)
        known = None if anew else Known(saved.id, self._keeper.journal(saved.id), saved.messages)
        prompt = record.prompt if text is None else text
        place = await known_worktree(saved.folder, near)
        if place and anew:
            place = await planned_worktree(near, record.name)
        if known and (opened := self._open.get(record.session)) is not None:  # meanwhile
            if text is None:
                raise UsageError(f"the conversation of {record.name} is open already", hint="say it there")
            opened.say(text)
            return self._row(opened)
        task = await self._delegation.opened(
            saved.spec, assembly, origin, prompt, known=known, place=place, follows=record.id
        )
        by_person = text is not None or record.kind == "background"  # a child's task may be a model's words
        going_on = known is not None and known.messages and text is None
        self._delegation.begin(task, None if going_on else prompt, by_person=by_person)
        return self._row(task)

    # -- looking --------------------------------------------------------------------------------------------------

    def record(self, agent: str) -> AgentRecord:
        """The record of an agent, by its id, the beginning of one, or its name. Blocks. Raises UsageError."""
        return self._read(lambda state: state.agents.find(agent))

    def past(self, limit: int = 200) -> Records:
        """Agents of all chats and instances, the newest first; chats at rest are not among them. Blocks."""
        return self._read(lambda state: state.agents.list(kinds=("child", "background", "worker"), limit=limit))

    def elsewhere(self) -> Records:
        """Agents at work in other running programs, the newest first. Blocks."""
        return self._read(lambda state: state.elsewhere())

    def programs(self) -> Mapping[str, tuple[int, str]]:
        """Pid and folder of each running program, by the `instance` of its records. Blocks."""
        return self._read(lambda state: state.programs())

    def results(self, session: str) -> Records:
        """Ended tasks of a chat whose results nobody has seen yet, oldest first. Blocks."""
        return self._read(lambda state: state.agents.unseen(session))

    def earlier(self, session: str) -> Records:
        """Ended tasks of a chat whose results were seen before, oldest first: they stay part of it. Blocks."""
        return self._read(lambda state: state.agents.seen(session))

    def seen(self, agents: Sequence[str]) -> None:
        """The person has seen these results. Returns at once."""
        self._keeper.delivered(agents)

    def forget(self, agents: Sequence[str]) -> None:
        """Takes ended agents out of the engine's list; their records stay. Returns at once."""
        for agent in agents:
            self._soon(partial(self._supervisor.forget, agent))

    def events(self, session: str, since: Mapping[str, int] | None = None) -> Iterator[Event]:
        """Everything said in a conversation until now, run by run; with `since` (run → number of the last event that
        is known) what came after that. Blocks.
        """

        def read(state: State) -> Iterator[Event]:
            state.recorder.flush()
            return state.events(session, since)

        return self._read(read)

    def messages(self, session: str) -> tuple[Message, ...]:
        """A conversation as far as it goes. Blocks for the disk when it is not at work here."""
        talk = self._open.get(session)
        if talk is not None:
            return talk.view().messages
        return self._read(lambda state: tuple(state.sessions.load(session)))

    def order(self, kind: OrderKind, agent: str, payload: Mapping[str, Any] | None = None) -> None:
        """Asks another running program to stop, tell or answer one of its agents. Blocks. Raises UsageError."""
        self._read(lambda state: state.orders.post(kind, agent=agent, payload=payload))

    def _read(self, read: Callable[[State], T]) -> T:
        state = self._state
        if state is None:
            raise StateError("nothing is saved here")
        state.recorder.flush()  # what was just heard is read too
        return self._pool.submit(read, state).result()

    def _chat(self, session: str) -> Conversation:
        chat = self._open.get(session)
        if chat is None:
            raise UsageError(f"chat {session!r} is not open")
        return chat

    def _row(self, task: Conversation) -> AgentRow:
        row = self._supervisor.row(task.agent_id)
        if row is None:
            raise StateError("the agent has gone")
        return row
