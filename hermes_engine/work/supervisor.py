"""Owns every running agent as one tree: start, list, stop (with all below), wait. Knows no kind of work.

Lives on the engine's loop; `rows` and `row` may be called from any thread. What it tells of an agent is an event
(`AgentStarted`, `AgentChanged`, `AgentFinished`), which the recorder keeps; rows of a batch are not agents here,
the run is one. Of the whole engine only the supervisor swallows a `CancelledError`.
"""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import itertools
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from hermes_engine.errors import HermesError
from hermes_engine.events import (
    AgentChanged,
    AgentFinished,
    AgentStarted,
    ApprovalAsked,
    Emitter,
    Event,
    QuestionAsked,
    RequestSettled,
    RowFinished,
    Sink,
    StepRetried,
    StepStarted,
    TextDelta,
    ThoughtDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFinished,
    UsageReported,
)
from hermes_engine.messages import NO_USAGE, UNKNOWN_USAGE, Usage

log = logging.getLogger(__name__)

Below = Literal["all", "bound"]

HEARD_SECONDS = 1.0
"""What comes from below sooner than that changes nothing above."""

LIVE = frozenset({"waiting", "running"})
"""States that are not an end."""


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent as a list shows it; a fresh value at each change.

    Attributes:
        id, parent: of the agent and of the one that started it ("" at the top).
        owner: session its result is for, "" for a chat.
        prompt: its task.
        depth: 0 at the top.
        kind: chat | child | background | worker | batch.
        state: waiting | running | done | failed | cancelled | timeout | max_turns | interrupted | handed over.
        activity: what it does now, one line.
        needs: id of the request it waits on, or "".
        started, ended: seconds since the epoch; `ended` 0 while it lives.
        heard: when something last came from it.
        usage: its own and that of agents below it which have ended; `own` without theirs.
        steps, tools: replies of the model and calls of tools so far.
        context: tokens its conversation takes, 0 when unknown.
        bound: it ends with the turn that started it.
    """

    id: str
    parent: str = ""
    name: str = ""
    title: str = ""
    kind: str = "chat"
    state: str = "waiting"
    activity: str = ""
    needs: str = ""
    session: str = ""
    model: str = ""
    profile: str = ""
    started: float = 0.0
    ended: float = 0.0
    heard: float = 0.0
    usage: Usage = NO_USAGE
    owner: str = ""
    prompt: str = ""
    depth: int = 0
    steps: int = 0
    tools: int = 0
    context: int = 0
    bound: bool = False
    own: Usage = NO_USAGE

    @property
    def live(self) -> bool:
        """Whether it has not come to its end."""
        return self.state in LIVE


@dataclass(frozen=True, slots=True)
class Ending:
    """How a piece of work ended, as its maker sees it."""

    state: str = "done"
    answer: str = ""
    error: str = ""
    kind: str = ""
    """What sort of error, as in `TurnResult.error_kind`."""
    files_changed: tuple[str, ...] = ()
    note: str = ""


@dataclass(slots=True)
class _Node:
    task: asyncio.Task[Ending] | None = None
    begun: bool = False
    stopped: Ending = field(default_factory=lambda: Ending("cancelled", error="stopped"))
    on_stop: Callable[[], object] | None = None
    children: list[str] = field(default_factory=list)


class Supervisor:
    """The tree of agents. `sink` hears what changes."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._nodes: dict[str, _Node] = {}
        self._rows: dict[str, AgentRow] = {}
        self._emitters: dict[str, Emitter] = {}

    def rows(self) -> tuple[AgentRow, ...]:
        """All agents, in the order in which they were started."""
        return tuple(self._rows.values())

    def row(self, agent: str) -> AgentRow | None:
        """One agent, or None when there is no such."""
        return self._rows.get(agent)

    def add(
        self,
        *,
        name: str,
        kind: str,
        parent: str = "",
        title: str = "",
        session: str = "",
        model: str = "",
        profile: str = "",
        owner: str = "",
        prompt: str = "",
        bound: bool = False,
        follows: str = "",
        on_stop: Callable[[], object] | None = None,
    ) -> str:
        """Enters an agent into the tree, at rest; returns its id. `on_stop` is called instead of cancelling,
        `follows` is the agent whose task it goes on with or runs again.
        """
        agent = f"ag_{secrets.token_hex(4)}"
        now = time.time()
        self._nodes[agent] = _Node(on_stop=on_stop)
        if parent in self._nodes:
            self._nodes[parent].children.append(agent)
        emit = Emitter(self._sink, session=session, run="", agent=agent, on_fault=_log_fault)
        self._emitters[agent] = emit
        above = self._rows.get(parent)
        self._rows[agent] = AgentRow(
            agent, parent, name, title, kind, "waiting", "", "", session, model, profile, now, 0.0, now,
            owner=owner, prompt=prompt, depth=above.depth + 1 if above else 0, bound=bound,
        )  # fmt: skip
        emit(
            AgentStarted,
            parent=parent, owner=owner, name=name, title=title, kind=kind, model=model, profile=profile, prompt=prompt,
            bound=bound, follows=follows,
        )  # fmt: skip
        return agent

    def free_name(self, wished: str) -> str:
        """The name, or the name with a number, so that no other agent that lives has it."""
        taken = {row.name for row in self._rows.values() if row.live}
        names = itertools.chain([wished], (f"{wished}-{number}" for number in itertools.count(2)))
        return next(name for name in names if name not in taken)

    def start(
        self, agent: str, work: Callable[[], Awaitable[Ending]], *, waiting: bool = False
    ) -> asyncio.Task[Ending]:
        """Runs work on behalf of an agent, in a context of its own; the returned task never raises.

        `waiting`: the work says by itself (`change`) when it really begins.
        """
        node = self._nodes[agent]
        if node.task is not None and not node.task.done():
            raise RuntimeError(f"agent {agent} is at work already")
        if not waiting:
            self.change(agent, state="running", activity="")
        node.begun = False
        node.task = asyncio.get_running_loop().create_task(
            self._guard(agent, work), name=agent, context=contextvars.Context()
        )
        return node.task

    async def _guard(self, agent: str, work: Callable[[], Awaitable[Ending]]) -> Ending:
        self._nodes[agent].begun = True
        try:
            ending = await work()
        except asyncio.CancelledError:
            ending = self._nodes[agent].stopped
        except HermesError as error:
            ending = Ending("failed", error=error.line)
        except Exception as error:
            log.exception("agent %s failed", agent)
            ending = Ending("failed", error=f"{type(error).__name__}: {error}")
        await self._stop_below(agent)
        return ending

    def change(self, agent: str, **values: str | float | Usage) -> None:
        """Sets fields of an agent's row and tells of a new state or activity."""
        old = self._rows[agent]
        new = dataclasses.replace(old, **values)  # type: ignore[arg-type]
        self._rows[agent] = new
        if (old.state, old.activity) != (new.state, new.activity):
            self._emitters[agent](AgentChanged, state=new.state, activity=new.activity)

    def finish(self, agent: str, ending: Ending) -> None:
        """Brings an agent to its end state; its usage counts towards its parent from now on."""
        row = self._rows[agent]
        if not row.live:
            return
        self._rows[agent] = dataclasses.replace(row, state=ending.state, activity="", needs="", ended=time.time())
        parent = self._rows.get(row.parent)
        if parent is not None:
            self._rows[row.parent] = dataclasses.replace(parent, usage=parent.usage + row.usage)
        self._emitters[agent](
            AgentFinished,
            state=ending.state, answer=ending.answer, error=ending.error, usage=row.usage, owner=row.owner,
            name=row.name, kind=row.kind, prompt=row.prompt, seconds=time.time() - row.started,
            files_changed=ending.files_changed, note=ending.note, bound=row.bound,
        )  # fmt: skip

    def forget(self, agent: str) -> None:
        """Takes an ended agent and the ended ones below it out of the list."""
        row = self._rows.get(agent)
        if row is None or row.live:
            return
        for child in list(self._nodes[agent].children):
            self.forget(child)
        if row.parent in self._nodes:
            self._nodes[row.parent].children.remove(agent)
        for table in (self._rows, self._nodes, self._emitters):
            table.pop(agent, None)

    def stop(self, agent: str, *, below: Below = "all", ending: Ending | None = None) -> bool:
        """Cancels what an agent does, and what those below it do: all, or those bound to its turn.

        `ending` is how its work ends then, when that is not merely "stopped". False when nothing of it ran.
        """
        node = self._nodes.get(agent)
        if node is None:
            return False
        stopped = False
        for child in list(node.children):
            if below == "all" or self._rows[child].bound:
                stopped = self.stop(child, below=below) or stopped
        if node.task is not None and not node.task.done():
            node.stopped = ending or node.stopped
            if node.on_stop is not None:
                node.on_stop()
            elif node.begun:
                node.task.cancel()
            else:  # what was begun is told of, also when it is stopped at once: it takes its first step before
                asyncio.get_running_loop().call_soon(node.task.cancel)
            stopped = True
        return stopped

    def at_work(self, agent: str) -> bool:
        """Whether it works or waits for its turn to; a chat at rest does not. May be called from any thread."""
        node = self._nodes.get(agent)
        return node is not None and node.task is not None and not node.task.done()

    async def _stop_below(self, agent: str) -> None:
        """No child outlives the turn it is bound to; what a person started goes on."""
        bound = [child for child in self._nodes[agent].children if self._rows[child].bound]
        tasks = [task for child in bound if (task := self._nodes[child].task) and not task.done()]
        for child in bound:
            self.stop(child)
        if tasks:
            await asyncio.wait(tasks)

    async def close(self, grace: float) -> bool:
        """Stops everything and waits up to `grace` seconds; whether all of it ended."""
        for agent in list(self._nodes):
            self.stop(agent)
        return await self.ended(list(self._nodes), grace)

    async def ended(self, agents: Iterable[str], grace: float) -> bool:
        """Waits up to `grace` seconds until these agents do nothing more; whether that is so."""
        nodes = [self._nodes[agent] for agent in agents if agent in self._nodes]
        tasks = [node.task for node in nodes if node.task and not node.task.done()]
        if not tasks:
            return True
        _, pending = await asyncio.wait(tasks, timeout=grace)
        await asyncio.sleep(0)  # what listens for their end runs before those who waited here
        return not pending

    def observe(self, event: Event) -> None:
        """A sink: keeps the rows true from what agents say."""
        row = self._rows.get(event.agent)
        if row is None or not row.live:
            return
        values = _noticed(event, row)
        if values is None:
            return
        heard = dataclasses.replace(row, heard=event.time, **values)  # type: ignore[arg-type]
        self._rows[event.agent] = heard
        if row.bound:
            self._heard_below(row.parent, event.time)
        if heard.activity != row.activity:
            self._emitters[event.agent](AgentChanged, state=heard.state, activity=heard.activity)

    def _heard_below(self, agent: str, when: float) -> None:
        """Whoever waits for one that works is not quiet, nor is who waits for that one."""
        while (row := self._rows.get(agent)) and row.live and when - row.heard >= HEARD_SECONDS:
            self._rows[agent] = dataclasses.replace(row, heard=when)
            agent = row.parent if row.bound else ""


def _noticed(event: Event, row: AgentRow) -> dict[str, str | int | Usage] | None:
    """What an event says about its agent's row; {} for a mere sign of life, None for nothing."""
    match event:
        case StepStarted():
            return {"activity": "thinking", "steps": row.steps + 1}
        case TextDelta():
            return {"activity": "writing"}
        case ThoughtDelta() | ToolProgress() | ToolFinished():
            return {}
        case ToolStarted(display=display):
            return {"activity": f"{display.verb} {display.title}".strip()[:200], "tools": row.tools + 1}
        case StepRetried(reason=reason, delay=delay):
            return {"activity": f"waits {delay:.0f} s: {reason}"[:200]}
        case ApprovalAsked(request=request, title=title):
            return {"activity": f"asks: {title}"[:200], "needs": request}
        case QuestionAsked(request=request, question=question):
            return {"activity": f"asks: {question}"[:200], "needs": request}
        case RequestSettled(request=request) if request == row.needs:
            return {"needs": "", "activity": row.activity.removeprefix("asks: ")}
        case UsageReported(usage=usage, context_tokens=context):
            return {"usage": row.usage + usage, "own": row.own + usage, "context": context}
        case TurnFinished(usage=usage) if not usage.tokens_known:  # a reply was cut off before its figures came
            return {"usage": row.usage + UNKNOWN_USAGE, "own": row.own + UNKNOWN_USAGE}
        case RowFinished(usage=usage):
            return {"usage": row.usage + usage}
        case _:
            return None


def _log_fault(error: Exception) -> None:
    log.error("a listener failed: %s", error, exc_info=error)
