"""Works the rows of a run in processes on the machines of a Ray cluster, each with many rows at once (`site`).

Judges and writes nothing: results come back to the crew, which does. Where a process or machine is lost its rows are
lost with it, and the crew has them run again. Knows Ray only through the process that speaks with it (`bridge`).
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import pickle
import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hermes_engine import __version__
from hermes_engine.batch.bridge import Bridge
from hermes_engine.batch.floor import Floor, RowAtWork
from hermes_engine.batch.health import Outage
from hermes_engine.batch.job import Job, Row, RowResult
from hermes_engine.batch.pacing import Pace
from hermes_engine.batch.posts import Post
from hermes_engine.batch.setup import Setup
from hermes_engine.batch.statistics import of_each_server
from hermes_engine.errors import EndpointDown, StateError
from hermes_engine.protocols import AgentSpec

LOCAL = "local"
"""The address that stands for none."""

START_SECONDS = 120.0
"""How long a Ray of this machine may take to start, and a first process to be ready."""

JOIN_SECONDS = 45.0
"""How long it may take to join a cluster."""

ALONE_SECONDS = 120.0
"""How long a run goes on without any process that could work rows."""

FALSE_STARTS = 3
"""So many processes in a row that do not get ready exclude a machine from the run."""

SAME_SECONDS = 60.0
"""So long a line that another process told already is not told again."""

_DURATION = re.compile(r"\d+ s\b")

_AGAIN = 1.0
"""Seconds until a machine is tried again on which a process ended."""

_LONGEST_SOCKET = 40
"""Letters that a folder may have in which Ray makes its sockets, whose paths may have 107."""


@dataclass(slots=True)
class Node:
    """A machine of the cluster.

    Attributes:
        cpus: processors that Ray counts there; so many processes work rows on it at most.
        host: its name.
        failed: processes in a row that did not get ready.
        not_before: when it may be tried again, by the monotonic clock.
    """

    cpus: int
    host: str
    failed: int = 0
    not_before: float = 0.0


class Fleet:
    """Works rows elsewhere. Implements `Workers`.

    Args:
        setup: of the run.
        job: what its rows have in common.
        outage, pace: of the run; asked for all processes here.
        floor: told what becomes of each server.
    """

    def __init__(self, setup: Setup, job: Job, outage: Outage, pace: Pace, floor: Floor) -> None:
        self._setup, self._job, self._outage, self._pace = setup, job, outage, pace
        named = setup.options.ray_address
        self._address = None if named == LOCAL else named
        self._nodes: dict[str, Node] = {}
        self._posts: dict[int, Post] = {}
        self._numbers = itertools.count(1)
        self._wanting = 0
        self._changed = asyncio.Event()
        self._fault: StateError | None = None
        self._why = ""
        self._retired: list[dict[str, Any]] = []
        self._said: dict[str, float] = {}
        self._folder = job.work / "ray"
        self._bridge = Bridge(self._hear, self._gone, setup.resolved.home.logs / "ray.log")
        self._packed = b""
        floor.replicas = self._replicas

    async def open(self) -> None:
        """See `Workers`."""
        address = self._address
        if address is None and len(str(self._folder)) > _LONGEST_SOCKET:
            self._folder = Path(tempfile.mkdtemp(prefix="hermes-ray-", dir="/tmp"))
        self._packed = pickle.dumps((dataclasses.replace(self._setup, stored={}), self._job))
        await self._bridge.start(address, self._folder, self._setup.resolved.settings.terminal.pass_env)
        doing = f"joining the Ray cluster at {address}" if address else "starting Ray on this machine"
        self._outage.tell("info", doing)
        where = f"the Ray cluster at {address}" if address else "Ray, which was started for this run,"
        seconds = JOIN_SECONDS if address else START_SECONDS
        await self._until(lambda: bool(self._nodes), seconds, f"{where} does not answer")
        cpus = sum(node.cpus for node in self._nodes.values())
        machines = "1 machine" if len(self._nodes) == 1 else f"{len(self._nodes)} machines"
        self._outage.tell("info", f"Ray: {machines}; up to {cpus} processes work rows")
        self._wanting = self._setup.options.num_workers
        self._grow()
        await self._until(self._somebody, START_SECONDS, f"{where} works no row")
        self._wanting = 0

    async def run_row(self, row: Row, job: Job, at_work: RowAtWork) -> RowResult:
        """See `Workers`."""
        self._wanting += 1
        try:
            post = await self._post()
            return await post.run_row(row, job.spec.limits, at_work)
        finally:
            self._wanting -= 1

    async def probe(self, spec: AgentSpec) -> EndpointDown | None:
        """See `Workers`."""
        return await (await self._post()).probe(spec)

    async def close(self) -> None:
        """See `Workers`."""
        await self._bridge.close()
        for post in list(self._posts.values()):
            post.lost()  # what it asked of servers is told in the end
        if self._address is None:
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    async def _post(self) -> Post:
        """The process with the fewest rows; waits until there is one."""
        self._grow()
        await self._until(self._somebody, ALONE_SECONDS, "no process works rows")
        return min((post for post in self._posts.values() if post.ready), key=lambda post: post.load)

    def _somebody(self) -> bool:
        return any(post.ready for post in self._posts.values())

    async def _until(self, there: Callable[[], bool], seconds: float, otherwise: str) -> None:
        """Waits for something to be there. Raises StateError when it takes too long, or nothing more can come."""
        deadline = time.monotonic() + seconds
        while not there():
            if self._fault is not None:
                raise self._fault
            left = deadline - time.monotonic()
            if left <= 0 or (self._nodes and not self._posts and not self._usable()):
                raise StateError(f"{otherwise}{f': {self._why}' if self._why else ''}", hint=f"see {self._bridge.log}")
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), min(left, _AGAIN))
            except TimeoutError:
                self._grow()

    def _usable(self) -> list[str]:
        return [name for name, node in self._nodes.items() if node.cpus and node.failed < FALSE_STARTS]

    def _grow(self) -> None:
        """Starts processes, spread over the machines, until there is one for each row or each processor."""
        now, busy = time.monotonic(), Counter(post.node for post in self._posts.values())
        while len(self._posts) < self._wanting:
            free = [
                name
                for name in self._usable()
                if busy[name] < self._nodes[name].cpus and self._nodes[name].not_before <= now
            ]
            if not free:
                return
            name = min(free, key=lambda name: busy[name] / self._nodes[name].cpus)
            busy[name] += 1
            number = next(self._numbers)
            say = partial(self._bridge.say, "post", number)
            self._posts[number] = Post(name, say, self._outage, self._pace, self._tell)
            self._bridge.say("site", number, name, __version__, self._packed)

    def _hear(self, said: tuple[Any, ...]) -> None:
        """Takes what the bridge says."""
        what, *values = said
        if what == "news":
            if (post := self._posts.get(values[0])) is not None:
                post.hear(pickle.loads(values[1]))
            return
        if what == "nodes":
            known = self._nodes
            self._nodes = {name: known.get(name, Node(cpus, host)) for name, (cpus, host) in values[0].items()}
            if self._nodes and not any(node.cpus for node in self._nodes.values()):
                self._why = "it has no processors (CPU)"
        elif what == "ready":
            self._ready(*values)
        elif what == "lost":
            self._lost(*values)
        elif what == "refused":
            self._fault = StateError(self._unreached(values[0]), hint="see docs/batch.md, Ray")
        self._grow()
        self._changed.set()

    def _tell(self, level: str, text: str) -> None:
        """Shows what a process tells; what several find at about the same time once."""
        same, now = _DURATION.sub("", text), time.monotonic()
        if now - self._said.get(same, -SAME_SECONDS) >= SAME_SECONDS:
            self._said[same] = now
            self._outage.tell(level, text)

    def _unreached(self, why: str) -> str:
        address = self._address
        return f"the Ray cluster at {address} cannot be joined: {why}" if address else f"Ray does not start: {why}"

    def _ready(self, number: int, host: str, problem: str) -> None:
        post = self._posts.get(number)
        if post is None:
            return
        if problem:
            self._bridge.say("end", number)
            self._fail(number, f"{host}: {problem}", FALSE_STARTS)
            return
        post.ready = True
        if (node := self._nodes.get(post.node)) is not None:
            node.failed = 0

    def _lost(self, number: int, why: str) -> None:
        if number in self._posts:
            self._fail(number, why, 1)

    def _fail(self, number: int, why: str, weight: int) -> None:
        """A process is no more, or never was ready."""
        post = self._posts.pop(number)
        node = self._nodes.get(post.node, Node(0, post.node[:8]))
        self._why = why
        node.not_before = time.monotonic() + _AGAIN
        if post.ready:
            self._retired += post.replicas
            rows = post.lost()
            self._outage.tell("warning", f"a process on {node.host} is gone; its {rows} rows run again")
            return
        node.failed += weight
        if node.failed >= FALSE_STARTS:
            self._outage.tell("warning", f"{node.host} works no rows: {why}")

    def _gone(self, last_words: str) -> None:
        """The bridge is no more: nothing can be worked."""
        if self._fault is None:
            said = self._unreached(last_words) if not self._nodes else f"Ray is gone: {last_words}"
            self._fault = StateError(said, hint=f"see {self._bridge.log}; --resume goes on")
        for post in self._posts.values():
            post.lost(self._fault)
        self._changed.set()

    def _replicas(self) -> list[dict[str, Any]]:
        """What became of each server, over all processes."""
        present = (item for post in self._posts.values() for item in post.replicas)
        return of_each_server(present, self._retired)
