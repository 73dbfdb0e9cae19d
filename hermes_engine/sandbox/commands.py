"""The commands of one agent, wherever they run: started, watched, ended; their output and their background jobs.

Each command has a fresh environment; only the working directory is carried, by the caller, from
`CommandResult.cwd` to the next call. What a command leaves running lives until the sandbox closes. How a shell
is reached is said by an `Entrance`; permissions are decided before a command comes here.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hermes_engine.errors import UnknownName
from hermes_engine.paths import private_dir
from hermes_engine.protocols import CommandResult, Job, JobState
from hermes_engine.redaction import Redactor
from hermes_engine.sandbox.launch import Entrance
from hermes_engine.sandbox.output import Output
from hermes_engine.sandbox.processes import MARK, Process, this_instance
from hermes_engine.sandbox.running import Running
from hermes_engine.waiting import to_its_end

NOT_FOUND, NOT_RUNNABLE = 127, 126
MANY_BEHIND = 20
LAUNCH_WATCH = 0.15
"""Seconds a background command is watched before `start` returns, so that one that fails at once says so."""


class Commands(ABC):
    """See `protocols.Sandbox`; a subclass says how a shell is reached.

    Args:
        agent: id of the agent, part of the mark its processes carry.
        outputs: folder for full outputs; created private when first needed.
        env: what all of its commands see.
        around: marks of the commands this program runs in.
        redactor: keeps secrets out of the files written there.
        on_job_end: hears of each background command's end, once.
    """

    def __init__(
        self,
        *,
        agent: str,
        outputs: Path,
        env: Mapping[str, str],
        around: str = "",
        redactor: Redactor | None = None,
        on_job_end: Callable[[Job], None] | None = None,
    ) -> None:
        self._agent = re.sub(r"[^A-Za-z0-9_.-]", "_", agent) or "agent"
        self._outputs, self._redactor = outputs, redactor
        self._env, self._around = env, around
        self.on_job_end = on_job_end
        self._numbers = itertools.count(1)
        self._now: set[Running] = set()
        self._behind: list[Running] = []
        self._jobs: dict[str, _BackgroundJob] = {}

    async def run(
        self,
        command: str,
        *,
        cwd: Path,
        timeout: float | None,
        env: Mapping[str, str],
        on_output: Callable[[str], None] | None = None,
    ) -> CommandResult:
        """See `protocols.Sandbox.run`; `on_output` hears the newest output at most four times a second."""
        began = time.monotonic()
        try:
            running = await self._launch(command, cwd, env, on_output)
        except (OSError, ValueError) as error:
            return CommandResult(_launch_code(error), _launch_fault(error, cwd), seconds=time.monotonic() - began)
        self._now.add(running)
        timed_out = False
        try:
            if not await running.wait(timeout):
                timed_out = True
                await to_its_end(self._end_family(running))
        except asyncio.CancelledError:
            await to_its_end(self._end_family(running))
            raise
        finally:
            self._now.discard(running)
        if running.left and not timed_out:
            if len(self._behind) >= MANY_BEHIND:
                self._behind = [one for one in self._behind if one.leaves_something]
            self._behind.append(running)
        return CommandResult(
            running.exit_code,
            running.output.text(),
            running.output.path,
            timed_out,
            time.monotonic() - began,
            running.folder,
            () if timed_out else tuple(map(self._label, running.left)),
        )

    async def start(self, command: str, *, cwd: Path, env: Mapping[str, str]) -> Job:
        """See `protocols.Sandbox.start`."""
        job = _BackgroundJob(f"p{len(self._jobs) + 1}", command, cwd)
        self._jobs[job.key] = job
        try:
            job.running = await self._launch(command, cwd, env, None)
        except (OSError, ValueError) as error:
            job.fault = (_launch_code(error), _launch_fault(error, cwd))
            self._finished(job)
            return job.now()
        job.watcher = asyncio.create_task(self._watch(job))
        await job.running.wait(LAUNCH_WATCH)
        return job.now()

    def job(self, key: str) -> Job:
        """See `protocols.Sandbox.job`."""
        return self._job(key).now()

    def jobs(self) -> Sequence[Job]:
        """See `protocols.Sandbox.jobs`."""
        return [job.now() for job in self._jobs.values()]

    async def wait(self, key: str, timeout: float | None) -> Job:
        """See `protocols.Sandbox.wait`."""
        job = self._job(key)
        if job.running:
            await job.running.wait(timeout)
        return job.now()

    async def kill(self, key: str) -> Job:
        """See `protocols.Sandbox.kill`."""
        job = self._job(key)
        if job.running:
            if job.running.exit_code is None:
                job.cancelled = True
            await to_its_end(self._end_family(job.running))
        return job.now()

    async def close(self) -> None:
        """Ends every process it started: running commands, background ones, and what commands left behind."""
        live = [*self._now, *self._behind]
        self._behind.clear()
        for job in self._jobs.values():
            if job.running and job.running.exit_code is None:
                job.cancelled = True
                live.append(job.running)
            elif job.running and job.running.left:
                live.append(job.running)
        await to_its_end(asyncio.gather(*(self._end_family(running) for running in live)))
        watchers = [job.watcher for job in self._jobs.values() if job.watcher]
        if watchers:
            await asyncio.wait(watchers, timeout=1)

    async def _launch(
        self, command: str, cwd: Path, env: Mapping[str, str], on_output: Callable[[str], None] | None
    ) -> Running:
        number = next(self._numbers)
        mark = f"{this_instance()}:{self._agent}:{number}"
        full = {**self._env, **env, MARK: f"{self._around} {mark}".strip()}
        output = Output(lambda: private_dir(self._outputs) / self._file_name(number), self._redactor)
        entrance = await self._entrance()
        return await Running.launch(
            command, entrance=entrance, cwd=cwd, env=full, mark=mark, output=output, on_output=on_output
        )

    @abstractmethod
    async def _entrance(self) -> Entrance:
        """How the next command reaches its shell. Raises OSError when it cannot."""

    async def _end_family(self, running: Running) -> None:
        """Ends a command with all it started."""
        await running.end()

    def _label(self, process: Process) -> str:
        """A process that was left running, as the commands of this sandbox would name it."""
        return process.label

    def _file_name(self, number: int) -> str:
        return f"{self._agent}-{time.time_ns() // 1_000_000}-{number}.txt"

    async def _watch(self, job: _BackgroundJob) -> None:
        if job.running:
            await job.running.wait()
        self._finished(job)

    def _finished(self, job: _BackgroundJob) -> None:
        if self.on_job_end:
            self.on_job_end(job.now())

    def _job(self, key: str) -> _BackgroundJob:
        if key not in self._jobs:
            raise UnknownName("background command", key, self._jobs)
        return self._jobs[key]


class _BackgroundJob:
    """What `Job` is a picture of."""

    def __init__(self, key: str, command: str, cwd: Path) -> None:
        self.key, self.command, self.cwd = key, command, cwd
        self.started = time.time()
        self.running: Running | None = None
        self.fault: tuple[int, str] | None = None
        self.cancelled = False
        self.watcher: asyncio.Task[None] | None = None

    def now(self) -> Job:
        if self.fault:
            code, text = self.fault
            return Job(self.key, self.command, self.cwd, "failed", self.started, self.started, code, text)
        if self.running is None:
            return Job(self.key, self.command, self.cwd, "running", self.started)
        code_now, output = self.running.exit_code, self.running.output
        state: JobState = "running"
        if code_now is not None:
            state = "cancelled" if self.cancelled else "done" if code_now == 0 else "failed"
        return Job(
            self.key,
            self.command,
            self.cwd,
            state,
            self.started,
            self.running.ended,
            code_now,
            output.text(),
            output.path,
            output.total,
        )


def _launch_code(error: Exception) -> int:
    return NOT_RUNNABLE if isinstance(error, PermissionError) else NOT_FOUND


def _launch_fault(error: Exception, cwd: Path) -> str:
    if isinstance(error, FileNotFoundError) and not cwd.is_dir():
        return f"cannot start: the folder {cwd} does not exist"
    return f"cannot start: {error}"
