"""Works rows in a process elsewhere: the far end of a `Fleet`, which reaches it through Ray.

A row is worked as it is in the run's own loop. What holds over all rows (the pace, servers that are down) is asked of
the fleet; what happens is said to it, in order, as it happens. Knows no Ray, and no file of the run.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import os
import pickle
import socket
from collections.abc import Sequence
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from hermes_engine import __version__
from hermes_engine.batch.assembled import assembled
from hermes_engine.batch.folder import fresh_work
from hermes_engine.batch.job import Job, Row, RowResult
from hermes_engine.batch.recording import TAPE, Tape
from hermes_engine.batch.rows import RowAgents, broken, remove_tree, run_row
from hermes_engine.batch.setup import Setup
from hermes_engine.errors import ConfigError, EndpointDown, HermesError, RateLimited, StateError, UsageError
from hermes_engine.events import Emitter, Event, StepStarted
from hermes_engine.messages import Message, Usage
from hermes_engine.paths import Home
from hermes_engine.protocols import AgentSpec, Limits, RunningAgent
from hermes_engine.sandbox.choosing import sandbox_for
from hermes_engine.sandbox.container import find_program
from hermes_engine.sandbox.orphans import end_orphans

_ROW: ContextVar[tuple[int, asyncio.Task[Any] | None]] = ContextVar("row", default=(0, None))
"""The row in whose task, or whose children's, one is: the fleet's number for it, and its own task."""

_CLEARING = 1.5


class Site:
    """One process that works rows.

    Args:
        version: of the program whose rows they are.
        packed: its `Setup` and `Job`, pickled.
    """

    def __init__(self, version: str, packed: bytes) -> None:
        self._version, self._packed = version, packed
        self._out: list[tuple[Any, ...]] = []
        self._some = asyncio.Event()
        self._rows: dict[int, asyncio.Task[None]] = {}
        self._voices: dict[int, Emitter] = {}
        self._errands: set[asyncio.Task[None]] = set()
        self._described: set[tuple[str, ...]] = set()
        self._own_work: Path | None = None
        self._counted: list[dict[str, Any]] = []
        self._agents: RowAgents | None = None
        self.run = Asked(self.say)

    async def hello(self) -> tuple[str, str]:
        """Makes ready; the machine's name, and why no row can be worked here, or ""."""
        host = socket.gethostname()
        if self._version != __version__:
            return host, f"it has hermes {__version__}, and the run is of {self._version}"
        try:
            await asyncio.to_thread(self._make_ready)
        except HermesError as error:
            return host, error.line
        return host, ""

    def _make_ready(self) -> None:
        setup, job = pickle.loads(self._packed)
        self._packed = b""
        end_orphans()
        self._setup: Setup = _at_home(setup)
        _check_sandbox(self._setup)
        if not job.work.is_dir():  # another machine, where the run's own folder is not
            work_dir = setup.options.work_dir
            job = dataclasses.replace(job, work=fresh_work(work_dir))
            self._own_work = None if job.keep_work else job.work
        self._job: Job = job
        options = self._setup.options
        self.run.limited = bool(options.requests_per_minute or options.tokens_per_minute)
        self._agents = assembled(self._setup, self.run, self.run, self.run)

    async def post(self, packed: Sequence[bytes]) -> None:
        """Takes what the fleet says, in order."""
        for what, *values in map(pickle.loads, packed):
            if what == "row":
                task = self._rows[values[0]] = asyncio.create_task(self._work(*values))
                task.add_done_callback(partial(self._over, values[0]))
            elif what == "cancel" and values[0] in self._rows:
                self._rows[values[0]].cancel()
            elif what == "deltas" and values[0] in self._voices:
                self._voices[values[0]].deltas = values[1]
            elif what == "answer":
                self.run.answer(*values)
            elif what == "probe":
                task = asyncio.create_task(self._probe(*values))
                self._errands.add(task)
                task.add_done_callback(self._errands.discard)

    async def news(self) -> bytes:
        """What has happened since the last time, as soon as there is any; pickled."""
        await self._some.wait()
        if (figures := self.run.replicas()) != self._counted:
            self._counted = figures
            self.say("replicas", figures)
        said, self._out = self._out, []
        self._some.clear()
        return pickle.dumps(said)

    def say(self, *what: Any) -> None:
        """Says something to the fleet."""
        self._out.append(what)
        self._some.set()

    async def close(self) -> None:
        """Ends the rows and removes their folders."""
        tasks = [*self._rows.values(), *self._errands]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_CLEARING)
        if self._agents is not None:
            await self._agents.close()
        if self._own_work is not None:
            await asyncio.to_thread(remove_tree, self._own_work)

    async def _work(self, call: int, row: Row, limits: Limits) -> None:
        _ROW.set((call, asyncio.current_task()))
        tape = Tape() if self._setup.options.record else None
        TAPE.set(tape)
        assert self._agents is not None, "rows come after hello"
        job = dataclasses.replace(self._job, spec=dataclasses.replace(self._job.spec, limits=limits))
        sink = _RowSink(self, call)

        def begun(speak: Emitter, agent: RunningAgent) -> None:
            self._voices[call], sink.agent = speak, agent
            self.say("begun", call)
            sink.tell_messages()

        try:
            result = await run_row(row, job, sink, self._agents, begun=begun)
        except (ConfigError, UsageError, StateError) as error:
            self.say("failed", call, _kind(error), str(error), error.hint)
        except Exception as fault:  # the border of a row, as in the crew
            self.say("ended", call, broken(fault, row, job), tape)
        else:
            self.say("ended", call, self._slim(result), tape)

    def _over(self, call: int, task: asyncio.Task[None]) -> None:
        self._rows.pop(call, None)
        self._voices.pop(call, None)
        if task.cancelled():
            self.say("ended", call, RowResult("cancelled"), None)

    def _slim(self, result: RowResult) -> RowResult:
        """The result without what the fleet was already told of rows that were offered the same tools, and without the
        encoded forms of its messages, which are as large as they are.
        """
        result = dataclasses.replace(result, conversation=tuple(map(dataclasses.replace, result.conversation)))
        if result.offered in self._described:
            return dataclasses.replace(result, schemas=(), system_prompt="")
        self._described.add(result.offered)
        return result

    async def _probe(self, number: int, spec: AgentSpec) -> None:
        error = await self._agents.probe(spec) if self._agents is not None else None
        self.say("probed", number, error and (str(error), error.status, error.retry_after, error.hint))


class _RowSink:
    """Passes a row's events on, and before each step what the conversation has become."""

    def __init__(self, site: Site, call: int) -> None:
        self._site, self._call = site, call
        self.agent: RunningAgent | None = None
        self._told: list[Message] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, StepStarted):
            self.tell_messages()
        self._site.say("event", self._call, event)

    def tell_messages(self) -> None:
        """Says what is new in the conversation, from the first message that is another."""
        if self.agent is None:
            return
        messages = list(self.agent.messages)
        same = 0
        while same < min(len(messages), len(self._told)) and messages[same] is self._told[same]:
            same += 1
        self._told = messages
        bare = [dataclasses.replace(message, tokens=None) for message in messages[same:]]
        self._site.say("messages", self._call, same, bare)


class Asked:
    """The run as its rows here see it: its pace, its pauses. Implements `Paces`, `Waits` and `Board`."""

    def __init__(self, say: Any) -> None:
        self._say = say
        self.limited = False
        self.replicas: Any = list
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._callers: WeakKeyDictionary[asyncio.Task[Any], int] = WeakKeyDictionary()

    def answer(self, number: int, value: Any) -> None:
        """The fleet's answer to a question."""
        if (waiting := self._waiting.get(number)) is not None and not waiting.done():
            waiting.set_result(value)

    async def _ask(self, what: str, *values: Any) -> Any:
        number, task, (call, own) = next(self._numbers), asyncio.current_task(), _ROW.get()
        caller = 0 if task is own or task is None else self._callers.setdefault(task, number)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._say("ask", number, call, caller, what, *values)
        try:
            return await answer
        finally:
            del self._waiting[number]
            if answer.cancelled():
                self._say("dropped", number)

    async def turn(self, characters: int) -> float:
        """See `Paces`."""
        return float(await self._ask("turn", characters))

    def answered(self, reckoned: float, usage: Usage) -> None:
        """See `Paces`."""
        self._say("answered", reckoned, usage)

    def refused(self, reckoned: float, error: RateLimited) -> None:
        """See `Paces`."""
        self._say("refused", reckoned, error.retry_after)

    async def wait_out(self, error: EndpointDown) -> None:
        """See `Waits`. Raises `error` when it is no use."""
        if not await self._ask("wait_out", str(error), error.status, error.retry_after, error.hint):
            raise error

    def tell(self, level: str, text: str, /) -> None:
        """See `Waits`."""
        self._say("tell", level, text)

    def back(self) -> None:
        """See `Waits`."""
        self._say("back")


def _kind(error: HermesError) -> str:
    return next(kind.__name__ for kind in (ConfigError, UsageError, StateError) if isinstance(error, kind))


def _at_home(setup: Setup) -> Setup:
    """The set-up with the home of whoever runs this process in place of one on another machine."""
    home = Home.from_env(os.environ).ensure()
    env = {name: value for name in ("HOME", "HERMES_HOME") if (value := os.environ.get(name))}
    kept = {name: value for name, value in setup.resolved.env.items() if name not in ("HOME", "HERMES_HOME")}
    resolved = dataclasses.replace(setup.resolved, home=home, env={**kept, **env})
    return dataclasses.replace(setup, resolved=resolved)


def _check_sandbox(setup: Setup) -> None:
    """Raises UsageError, SandboxFault where rows cannot be closed in as the run wants it."""
    kind = setup.surroundings.kind
    if kind == "bubblewrap":
        sandbox_for(kind)
    elif kind == "container":
        find_program(setup.resolved.settings.batch.container_command)
