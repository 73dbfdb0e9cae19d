"""Agents that start agents: the tools `spawn_agent` and `spawn_parallel`, and the rules a tree of agents keeps.

A child is a conversation of its own under the supervisor; whoever asked waits for it and gets one result for each
task, in order, whatever became of it. Knows agents by their maker only.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal
from weakref import WeakValueDictionary

from pydantic import BeforeValidator

from hermes_engine.cleaning import one_line
from hermes_engine.errors import HermesError, ToolFault
from hermes_engine.events import Event, Sink, UsageReported
from hermes_engine.messages import NO_USAGE, ToolResult, Usage
from hermes_engine.protocols import AgentSpec, CutOff, Limits
from hermes_engine.settings.values import DelegationSettings
from hermes_engine.tools.context import ToolContext
from hermes_engine.tools.registry import Tool, make_tool
from hermes_engine.work.child import Check, Child, Told, not_begun
from hermes_engine.work.conversation import Conversation, Known, Origin
from hermes_engine.work.maker import Keeper, Maker
from hermes_engine.work.places import Places
from hermes_engine.work.supervisor import Ending, Supervisor
from hermes_engine.work.tasks import Task, from_json, named, said, toolsets_for
from hermes_engine.work.worktrees import Worktree, planned_worktree

MOST_AT_ONCE = 100
"""Tasks of one call."""

FAILURES = 2
"""So often the same task may fail; then it is not started again in this turn."""

CHILD_ROLE = """Another agent started you for one task. Nobody answers questions: decide what is sensible and say what \
you assumed. Your last message is handed back as the result, so let it hold all that was asked for, and nothing else."""


class Tree(Places):
    """What all agents below one root share: places, and what was started in the root's present turn.

    Whoever has a seat in it keeps it.
    """

    def __init__(self, places: int) -> None:
        super().__init__(places)
        self.root = self.turn = ""
        self.cap: float | None = None
        self.started = 0
        self.failures: Counter[str] = Counter()
        self.last_error: dict[str, str] = {}
        self.spent = 0.0

    def begin(self, turn: str) -> None:
        """The root's turn; a new one begins to count anew."""
        if turn != self.turn:
            self.turn, self.started, self.spent = turn, 0, 0.0
            self.failures.clear()
            self.last_error.clear()


class Delegation:
    """Starts children for agents.

    Args:
        supervisor: owns them.
        maker: makes them.
        keeper: keeps their conversations.
        sink: hears their events.
        settings: how many, how deep, how long.
        open: all conversations at work, by the id of their session; children are entered and taken out.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        maker: Maker,
        keeper: Keeper,
        sink: Sink,
        settings: DelegationSettings,
        open: dict[str, Conversation],
    ) -> None:
        self._supervisor, self._maker, self._keeper, self._sink = supervisor, maker, keeper, sink
        self._settings = settings
        self._trees: WeakValueDictionary[str, Tree] = WeakValueDictionary()
        self._open = open

    def tree_of(self, agent: str) -> Tree:
        """The tree an agent belongs to; a new one for an agent nobody started."""
        tree = self._trees.get(agent)
        if tree is None:
            tree = self._trees[agent] = Tree(self._settings.max_concurrent)
        return tree

    def tools(self, spec: AgentSpec, agent: str) -> tuple[Tool, ...]:
        """The tools of an agent, bound to it; none where it may start no children."""
        if "delegation" not in spec.toolsets or spec.depth >= self._settings.max_depth:
            return ()
        tree = self.tree_of(agent)
        if not spec.depth:
            tree.root, tree.cap = agent, spec.limits.max_cost_usd

        async def spawn_agent(
            ctx: ToolContext,
            prompt: str,
            context: str | None = None,
            profile: str | None = None,
            model: str | None = None,
            toolsets: Annotated[list[str] | None, BeforeValidator(named)] = None,
            max_turns: int | None = None,
            timeout_seconds: float | None = None,
            output_schema: Annotated[dict[str, Any] | None, BeforeValidator(said)] = None,
            workspace: Literal["shared", "worktree"] = "shared",
        ) -> ToolResult:
            """Let a helper agent do one task and wait for its result. It sees only what you write here.

            Args:
                prompt: The task, complete in itself.
                context: What it must know besides.
                profile: A named role to work as.
                model: Another model.
                toolsets: Fewer tool sets than you have.
                max_turns: Most model requests.
                timeout_seconds: Most seconds.
                output_schema: JSON schema its answer must follow.
                workspace: worktree = a git worktree and branch of its own.
            """
            given = {name: value for name, value in locals().items() if name in Task.model_fields}
            return await self._spawn([Task.model_validate(given)], spec, tree, ctx)

        async def spawn_parallel(
            ctx: ToolContext, agents: Annotated[list[Task], BeforeValidator(_with_prompts)]
        ) -> ToolResult:
            """Let several helper agents do independent tasks at the same time and wait for all results.

            Args:
                agents: The tasks; each takes the arguments of spawn_agent.
            """
            return await self._spawn(agents, spec, tree, ctx)

        return (
            make_tool(spawn_agent, "delegation", "Spawn", title="prompt", aliases={"goal": "prompt"}),
            make_tool(spawn_parallel, "delegation", "Spawn", aliases={"tasks": "agents"}),
        )

    def hear(self, event: Event) -> None:
        """A sink: counts what a tree spends in its root's turn, and stops its children at the root's cost cap."""
        if not isinstance(event, UsageReported):
            return
        tree = self._trees.get(event.agent)
        if tree is None or tree.cap is None:
            return
        if event.agent == tree.root:
            tree.begin(event.run)
        tree.spent += event.usage.cost_usd
        if tree.spent >= tree.cap:
            reached = Ending("failed", error=f"cost cap of the whole tree: ${tree.spent:.4f} of ${tree.cap:.4f} spent")
            for talk in list(self._open.values()):  # other threads open chats
                if talk.origin.bound and self._trees.get(talk.agent_id) is tree:
                    self._supervisor.stop(talk.agent_id, below="bound", ending=reached)

    async def _spawn(self, tasks: Sequence[Task], parent: AgentSpec, tree: Tree, ctx: ToolContext) -> ToolResult:
        if not tasks:
            raise ToolFault("the list of agents is empty")
        if parent.depth == 0:
            tree.begin(ctx.emit.run)
        ceiling = self._settings.max_per_turn
        if len(tasks) > MOST_AT_ONCE or tree.started + len(tasks) > ceiling:
            left = min(MOST_AT_ONCE, ceiling - tree.started)
            raise ToolFault(f"too many agents: {len(tasks)} asked for, {left} more may be started in this turn")
        tree.started += len(tasks)
        caller = self._open.get(ctx.emit.session)
        seat = caller.seat if caller else None
        told = Told(ctx, len(tasks))
        away = seat.away() if seat else contextlib.nullcontext()
        spent: list[Usage] = []
        entries = [not_begun(index) for index in range(len(tasks))]
        try:
            async with away, asyncio.TaskGroup() as group:  # waits for all of them also when the caller is stopped
                for task, entry in zip(tasks, entries, strict=True):
                    work = self._one(entry, task, parent, tree, ctx, told, spent)
                    group.create_task(work, name=f"{ctx.agent} waits")
        except asyncio.CancelledError:
            raise CutOff(told.result(entries, tasks, sum(spent, NO_USAGE), "cancelled")) from None
        return told.result(entries, tasks, sum(spent, NO_USAGE), "ok")

    async def _one(
        self,
        entry: dict[str, Any],
        task: Task,
        parent: AgentSpec,
        tree: Tree,
        ctx: ToolContext,
        told: Told,
        spent: list[Usage],
    ) -> None:
        """One task to its end: fills in its entry in the result; what it cost is added to `spent`. Both also when the
        caller is stopped, which alone raises.
        """
        began = time.monotonic()
        index, key = entry["index"], task.key
        if tree.failures[key] >= FAILURES:
            why = (
                f"not started: this task has failed {tree.failures[key]} times already"
                f" ({tree.last_error.get(key, '')}); do it in another way"
            )
            entry.update(status="error", error=why)
            return
        try:
            child = await self._begun(task, parent, tree, ctx)
        except (HermesError, ToolFault, OSError) as error:
            entry.update(status="error", error=error.line if isinstance(error, HermesError) else str(error))
        else:
            told.started(index, child.conversation.spec.name)
            try:
                await child.ended()
            finally:
                spent.append(child.usage)
                child.report(entry)
                entry["seconds"] = round(time.monotonic() - began, 2)
            if self._supervisor.row(ctx.agent) is None:  # a batch row's: nobody lists it
                self._supervisor.forget(entry["agent_id"])
        told.ended(index, entry["status"])
        if entry["status"] != "ok":
            tree.failures[key] += 1
            tree.last_error[key] = one_line(entry["error"] or entry["status"], 200)

    async def _begun(self, task: Task, parent: AgentSpec, tree: Tree, ctx: ToolContext) -> Child:
        """A child at work, or waiting for its place. Raises HermesError or ToolFault when it cannot be started."""
        task.check()
        maker, spec = await self._planned(task, parent, ctx)
        check = Check(task.output_schema) if task.output_schema else None
        if check:
            spec = dataclasses.replace(spec, role=f"{spec.role}\n{check.told}")
        origin = Origin(ctx.agent, ctx.emit.run, self._owner(ctx), ctx.gate, bound=True)
        if task.workspace == "worktree" and ctx.workspace.box is not None:
            raise ToolFault("there are no worktrees in a sandbox: git would run here, on what was written in there")
        place = await planned_worktree(spec.cwd, spec.name) if task.workspace == "worktree" else None
        conversation = await self.opened(
            spec, maker, origin, task.message, title=task.prompt, tree=tree, place=place, check=check
        )
        self.begin(conversation, task.message, by_person=False)
        return Child(conversation, check, self._supervisor)

    async def recorded(self) -> None:
        """See `Keeper.recorded`."""
        await self._keeper.recorded()

    async def opened(
        self,
        spec: AgentSpec,
        maker: Maker,
        origin: Origin,
        prompt: str,
        *,
        title: str = "",
        tree: Tree | None = None,
        place: Worktree | None = None,
        check: Callable[[str], str] | None = None,
        known: Known | None = None,
        follows: str = "",
    ) -> Conversation:
        """A conversation, new or `known`, whose record is on disk; nothing runs yet. With a `tree` it needs a seat.

        Raises StateError: it cannot be recorded.
        """
        if place is not None:
            spec = dataclasses.replace(spec, cwd=place.cwd)
        title = one_line(maker.redactor.text(title or prompt), 80)
        if known is None:
            known = Known(*await self._keeper.open(spec, title=title, parent=origin.owner))
        spec = dataclasses.replace(spec, name=self._supervisor.free_name(spec.name))  # no wait until it is entered
        session = known.session
        conversation = Conversation(
            session,
            spec,
            known.messages,
            maker=maker,
            supervisor=self._supervisor,
            sink=self._sink,
            keeper=self._keeper,
            journal=known.journal,
            title=title,
            origin=origin,
            seat=tree.seat() if tree else None,
            prompt=prompt,
            follows=follows,
            place=place,
            check=check,
        )
        if tree is not None:
            self._trees[conversation.agent_id] = tree
        conversation.turns.claim()  # what is said to it before it begins waits for its first step
        self._open[session] = conversation
        try:
            await self._keeper.recorded()
        except BaseException as error:  # stopped, or the disk is full: it never began
            self._open.pop(session, None)
            state = "cancelled" if isinstance(error, asyncio.CancelledError) else "failed"
            self._supervisor.finish(conversation.agent_id, Ending(state, error=str(error) or "stopped"))
            raise
        return conversation

    def begin(self, conversation: Conversation, prompt: str | None, *, by_person: bool = True) -> None:
        """Starts an opened conversation, which is let go when it has ended."""
        conversation.on_end = lambda: self._let_go(conversation)
        conversation.begin(prompt, by_person=by_person)

    def drop(self, conversation: Conversation) -> None:
        """Lets an opened conversation go that is not to begin after all."""
        self._let_go(conversation)
        self._supervisor.finish(conversation.agent_id, Ending("cancelled", error="it was not wanted any more"))

    def _let_go(self, conversation: Conversation) -> None:
        self._open.pop(conversation.id, None)
        self._keeper.let_go(conversation.id)

    def _owner(self, ctx: ToolContext) -> str:
        row = self._supervisor.row(ctx.agent)
        return row.owner or row.session if row else ctx.emit.session

    async def _planned(self, task: Task, parent: AgentSpec, ctx: ToolContext) -> tuple[Maker, AgentSpec]:
        """Who makes the child, and from what."""
        settings = self._settings
        maker = await self._maker.on_profile(task.profile or parent.profile)
        base, sets = parent, None
        model = settings.model or parent.model
        if task.profile and task.profile != parent.profile:
            base = maker.spec(name="", cwd=parent.cwd)
            sets, model = base.toolsets, maker.own_model or settings.model or base.model
        depth = parent.depth + 1
        may_spawn = depth < settings.max_depth
        left = parent.limits.max_cost_usd
        limits = Limits(
            max_turns=task.max_turns or settings.max_turns,
            timeout_seconds=task.timeout_seconds or settings.timeout_seconds,
            max_cost_usd=left,
        )
        return maker, dataclasses.replace(
            base,
            name=task.profile or short_name(task.prompt),
            kind="child",
            model=task.model or model,
            toolsets=toolsets_for(task, parent, sets, may_spawn=may_spawn),
            cwd=ctx.workspace.here,
            mode=(maker.own_mode if sets is not None else None) or ctx.gate.mode,  # the gate keeps the tighter one
            limits=limits,
            system_prompt=None,
            role=CHILD_ROLE,
            env=parent.env,
            depth=depth,
            in_folder=parent.in_folder,
        )


def _with_prompts(value: Any) -> Any:
    """A lone task for a list of one, bare texts for prompts, tasks as JSON text: as models send them."""
    items = value if isinstance(value, list) else [value]
    made = [(item, from_json(item)) for item in items if item is not None]
    return [{"prompt": item} if isinstance(task, str) else task for item, task in made]


def short_name(prompt: str) -> str:
    """A short name for lists: the first long word of a task, with its digits."""
    words = re.findall(r"[^\W\d_][^\W_]{2,}", prompt.lower())
    return words[0][:14] if words else "agent"
