"""Works one row: a fresh folder, an agent, one turn; plain data in and out. Judges nothing and writes no result.

The same function serves the run's loop and, with `--engine ray`, processes on other machines.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import os
import shutil
import stat
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from hermes_engine.batch.floor import RowAtWork
from hermes_engine.batch.job import Job, Row, RowResult, ToolCount
from hermes_engine.batch.token_chain import CHAIN, Chain
from hermes_engine.clients.replicas import SEAT, Seat
from hermes_engine.errors import EndpointDown, SandboxFault, StateError
from hermes_engine.events import Emitter, Event, Sink, ToolFinished
from hermes_engine.messages import NO_USAGE, Message, Usage
from hermes_engine.paths import DIR_MODE
from hermes_engine.protocols import AgentSpec, RunningAgent, TurnResult

_numbers = itertools.count(1)


class RowAgents(Protocol):
    """Builds the agents of a run's rows; they share one client, for one loop."""

    async def build(self, spec: AgentSpec, *, history: Sequence[Message] = ()) -> RunningAgent:
        """An agent with this history.

        Raises:
            ConfigError, UsageError: the spec cannot be met by any row.
            SandboxFault: what this one's commands are to be closed in cannot be had.
        """
        ...

    async def probe(self, spec: AgentSpec) -> EndpointDown | None:
        """Asks the model of this spec something small that is no row; the error when nobody answers."""
        ...

    async def close(self) -> None:
        """Closes the shared client."""
        ...


class RowLost(Exception):
    """Whoever worked the row is gone without a word: it is to run again. `usage` is what it was heard to have used."""

    def __init__(self, usage: Usage = NO_USAGE) -> None:
        super().__init__("the process that worked it is gone")
        self.usage = usage


class Workers(Protocol):
    """What works the rows of a run: its own loop, or processes elsewhere."""

    async def open(self) -> None:
        """Makes ready. Raises StateError, UsageError: no row can be worked."""
        ...

    async def run_row(self, row: Row, job: Job, at_work: RowAtWork) -> RowResult:
        """Works a row; see `run_row`. Raises RowLost too."""
        ...

    async def probe(self, spec: AgentSpec) -> EndpointDown | None:
        """See `RowAgents`."""
        ...

    async def close(self) -> None:
        """Ends everything it started."""
        ...


class OwnLoop:
    """Works rows here. Implements `Workers`."""

    def __init__(self, agents: RowAgents) -> None:
        self._agents = agents

    async def open(self) -> None:
        """Is ready."""

    async def run_row(self, row: Row, job: Job, at_work: RowAtWork) -> RowResult:
        """See `Workers`."""
        return await run_row(row, job, at_work, self._agents, begun=at_work.begun)

    async def probe(self, spec: AgentSpec) -> EndpointDown | None:
        """See `Workers`."""
        return await self._agents.probe(spec)

    async def close(self) -> None:
        """See `Workers`."""
        await self._agents.close()


class _Ears:
    """Counts the calls of a row by tool, and passes every event on."""

    def __init__(self, sink: Sink) -> None:
        self.tools: dict[str, ToolCount] = {}
        self._sink = sink

    def __call__(self, event: Event) -> None:
        if isinstance(event, ToolFinished):
            before = self.tools.get(event.name, ToolCount())
            good = event.status == "ok"
            self.tools[event.name] = ToolCount(before.count + 1, before.success + good, before.failure + (not good))
        self._sink(event)


async def run_row(
    row: Row, job: Job, emit: Sink, agents: RowAgents, *, begun: Callable[[Emitter, RunningAgent], None] | None = None
) -> RowResult:
    """Works the row to its end.

    Args:
        row: what is asked.
        job: what all rows of the run share.
        emit: hears the row's events.
        agents: builds its agent.
        begun: told what the row speaks through, and its agent.

    Raises:
        ConfigError, UsageError: an agent of this spec cannot be built at all.
        StateError: there is no room for the row's folder.
    """
    toolsets = job.toolsets_of(row)
    if reason := job.surroundings.against(row) or _refusal(row):
        return _placeless(reason, toolsets, job)
    started = time.monotonic()
    SEAT.set(Seat(row.ident))
    CHAIN.set(Chain())
    ears = _Ears(emit)
    speak = Emitter(ears, session=job.run, run=f"{job.run}:{row.ident}", agent=f"row-{row.index}.{row.sample}")
    folder = _fresh(job.work, row.index)
    agent: RunningAgent | None = None
    try:
        agent = await agents.build(_spec(row, job, toolsets, folder), history=job.history)
        if begun is not None:
            begun(speak, agent)
        before = len(agent.messages)
        ended = await agent.run(row.prompt, speak)
        return _result(agent, ended, ears, toolsets, _from_prompt(agent.messages, before, row.prompt), started)
    except SandboxFault as fault:
        return _placeless(fault.line, toolsets, job)
    finally:
        try:
            if agent is not None:
                await agent.close()
        finally:
            if not job.keep_work:
                await _remove(folder)


def _fresh(work: Path, index: int) -> Path:
    """A new private folder; `work` is the run's alone, but other processes of the run may count in it too."""
    while True:
        folder = work / f"row-{index}-{next(_numbers)}"
        try:
            os.mkdir(folder, DIR_MODE)  # noqa: PTH102 - once a row
        except FileExistsError:
            continue
        except OSError as error:
            raise StateError(f"cannot make a folder for a row in {work}: {error.strerror or error}") from error
        return folder


def _placeless(reason: str, toolsets: tuple[str, ...], job: Job) -> RowResult:
    return RowResult("error", error=reason, error_kind="row_place", toolsets=toolsets, model=job.spec.model)


def broken(fault: Exception, row: Row, job: Job) -> RowResult:
    """The result of a row in which a fault of ours came up."""
    said = f"{type(fault).__name__}: {fault}"
    return RowResult("error", error=said, error_kind="fault", toolsets=job.toolsets_of(row), model=job.spec.model)


def _refusal(row: Row) -> str:
    try:
        if row.cwd is not None and not row.cwd.is_dir():
            return f"its cwd {row.cwd} is not a folder"
    except OSError as error:
        return f"its cwd cannot be used: {error.strerror or error}"
    return ""


def _spec(row: Row, job: Job, toolsets: tuple[str, ...], folder: Path) -> AgentSpec:
    sampling = {**job.spec.sampling, "seed": job.seed_of(row)} if job.send_seed else job.spec.sampling
    return dataclasses.replace(
        job.spec,
        name=f"row {row.index}",
        toolsets=toolsets,
        cwd=row.cwd or folder,
        env={**job.spec.env, "HOME": str(folder)},
        sampling=sampling,
        confined=job.surroundings.confined(row, folder),
    )


def _from_prompt(messages: Sequence[Message], before: int, prompt: str) -> tuple[Message, ...]:
    """The conversation from the prompt on; what stood before it is no part of the record."""
    starts = [before, *range(len(messages))]
    for start in starts:
        if start < len(messages) and messages[start].role == "user" and messages[start].content == prompt:
            return tuple(messages[start:])
    return tuple(message for message in messages if message.role != "system")


def _result(
    agent: RunningAgent,
    ended: TurnResult,
    ears: _Ears,
    toolsets: tuple[str, ...],
    conversation: tuple[Message, ...],
    started: float,
) -> RowResult:
    first = agent.messages[0] if agent.messages else None
    return RowResult(
        stop_reason=ended.stop_reason,
        answer=ended.answer,
        error=ended.error,
        error_kind=ended.error_kind,
        conversation=conversation,
        toolsets=toolsets,
        offered=tuple(agent.toolbox.names),
        tools=ears.tools,
        turns=ended.turns,
        api_calls=ended.api_calls,
        retries=ended.retries,
        usage=ended.usage,
        seconds=time.monotonic() - started,
        model=agent.spec.model,
        system_prompt=first.content if first is not None and first.role == "system" else "",
        schemas=agent.toolbox.schemas(),
    )


@cache
def _files() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(2, thread_name_prefix="hermes-row-files")


async def _remove(folder: Path) -> None:
    """Removes a row's folder; an empty one at once, a full one off the loop."""
    try:
        os.rmdir(folder)  # noqa: PTH106 - once a row
    except OSError:
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(_files(), remove_tree, folder))


def remove_tree(folder: Path) -> None:
    """Removes a folder with everything in it, also what was made read-only; what still resists is left."""

    def again(function: Any, path: str, _error: Any) -> None:
        parent = Path(path).parent
        try:
            parent.chmod(stat.S_IRWXU)
            if not Path(path).is_symlink():
                Path(path).chmod(stat.S_IRWXU)
            if function in (os.scandir, os.open, os.lstat):
                shutil.rmtree(path, ignore_errors=True)
            else:
                function(path)
        except OSError:
            return

    shutil.rmtree(folder, onerror=again)
