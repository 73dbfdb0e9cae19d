"""One command between its fork and its end, watched by the loop that started it.

Its end comes by pidfd; a process it leaves behind that holds the pipe does not keep it open. Ending it ends
everything it started: SIGTERM, and SIGKILL a moment later.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from weakref import WeakSet

from hermes_engine.sandbox import launch
from hermes_engine.sandbox.launch import Launched
from hermes_engine.sandbox.output import Output
from hermes_engine.sandbox.processes import Process, family, read_process, send
from hermes_engine.waiting import to_its_end

GRACE = 0.1
"""Seconds between SIGTERM and SIGKILL: a stop must show within a fifth of a second."""
LAST_RESORT = 3.0
"""Seconds after which a process that survives SIGKILL (in the kernel) is no longer waited for."""
SHOW_EVERY = 0.25
LAST_WORDS = 0.05
"""Seconds in which what a command leaves behind may still say something or end."""
_MOMENT = 0.005
_LOOK_EVERY = 0.01
_PIECE = 65536
_BURST = 1 << 19
_PAUSE = 0.005

STARTED: WeakSet[Running] = WeakSet()
"""Commands of this program whose sandboxes still know them."""


class Running:
    """A started command. All methods belong to the loop it was started on."""

    def __init__(self, launched: Launched, mark: str, output: Output, on_output: Callable[[str], None] | None) -> None:
        STARTED.add(self)
        self.output, self.mark = output, mark
        self.pid = launched.process.pid
        self.started = time.time()
        self.ended: float | None = None
        self.cwd: Path | None = None
        self.left: list[Process] = []
        self._process, self._entrance = launched.process, launched.entrance
        self._on_output = on_output
        self._loop = asyncio.get_running_loop()
        self._done: asyncio.Future[int] = self._loop.create_future()
        self._pipe: int | None = launched.output
        self._lifeline: int | None = launched.lifeline
        self._pidfd = launched.pidfd
        self._burst = 0
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop.add_reader(self._pipe, self._readable)
        if self._pidfd is None:
            self._timers["look"] = self._loop.call_later(_LOOK_EVERY, self._look)
        else:
            self._loop.add_reader(self._pidfd, self._exited)

    @classmethod
    async def launch(
        cls,
        command: str,
        *,
        entrance: launch.Entrance,
        cwd: Path,
        env: Mapping[str, str],
        mark: str,
        output: Output,
        on_output: Callable[[str], None] | None = None,
    ) -> Running:
        """Forks and begins to watch. Raises OSError or ValueError as `launch.fork` does."""
        loop = asyncio.get_running_loop()
        forking = loop.run_in_executor(launch.FORKS, launch.fork, entrance, command, cwd, env)
        try:
            launched = await asyncio.shield(forking)
        except asyncio.CancelledError:
            await to_its_end(cls._unwanted(forking, mark, output))
            raise
        return cls(launched, mark, output, on_output)

    @classmethod
    async def _unwanted(cls, forking: Awaitable[Launched], mark: str, output: Output) -> None:
        with contextlib.suppress(OSError, ValueError):
            await cls(await forking, mark, output, None).end()

    @property
    def folder(self) -> Path | None:
        """The folder it ended in, where it told."""
        return self.cwd or self._entrance.last_folder()

    @property
    def leaves_something(self) -> bool:
        """Whether anything that was found alive at its end still is."""
        return any(now and now.started == one.started for one in self.left if (now := read_process(one.pid)))

    @property
    def exit_code(self) -> int | None:
        """0-255, −N for signal N, None while it runs."""
        return self._done.result() if self._done.done() else None

    async def wait(self, timeout: float | None = None) -> bool:
        """Until it has ended; False when `timeout` seconds passed first."""
        done, _ = await asyncio.wait([self._done], timeout=timeout)
        return bool(done)

    async def end(self) -> None:
        """Ends the command and all it started; returns when they are gone. A second call joins in."""
        began = time.monotonic()
        told: set[tuple[int, int, int]] = set()
        while (passed := time.monotonic() - began) < LAST_RESORT and (members := await self._family()):
            number = signal.SIGTERM if passed < GRACE else signal.SIGKILL
            if self._entrance.waits and passed < 2 * GRACE:
                members = [process for process in members if process.pid != self.pid]
            for process in members:
                key = (process.pid, process.started, number)
                if key not in told:
                    told.add(key)
                    send(process, number)
                    send(process, signal.SIGCONT)
            await asyncio.sleep(0.01)
        await self.wait(timeout=0.5)
        self._close_pipe()

    async def _family(self) -> list[Process]:
        # Looked up before the first signal: once a parent is dead its unmarked children are nobody's.
        leader = None if self._done.done() else self.pid
        members = await self._loop.run_in_executor(launch.LOOKS, family, self.mark, leader, tuple(self.left))
        self.left = members
        return members

    def _readable(self) -> None:
        if self._pipe is None:
            return
        try:
            data = os.read(self._pipe, _PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._close_pipe()
            return
        if self._done.done():
            return  # what is left behind may go on writing; nobody reads it
        self.output.feed(data)
        if self._on_output and "show" not in self._timers:
            self._timers["show"] = self._loop.call_later(SHOW_EVERY, self._show)
        self._burst += len(data)
        if self._burst > _BURST:  # a flood must not take the loop's whole time
            self._burst = 0
            self._loop.remove_reader(self._pipe)
            self._timers["pause"] = self._loop.call_later(_PAUSE, self._go_on)

    def _go_on(self) -> None:
        if self._pipe is not None:
            self._loop.add_reader(self._pipe, self._readable)

    def _show(self) -> None:
        self._timers.pop("show", None)
        if self._on_output and not self._done.done():
            self._on_output(self.output.latest())

    def _look(self) -> None:
        """Where there are no pidfds: looks now and then whether it has ended, without reaping it."""
        if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            self._timers["look"] = self._loop.call_later(_LOOK_EVERY, self._look)
        else:
            self._exited()

    def _exited(self) -> None:
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
        if self._drain() | self._lives_on():
            task = self._loop.create_task(self._look_around())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._reap()

    async def _look_around(self) -> None:
        """Something holds a pipe: gives it a moment (`echo hi &`), then looks for what lives on.

        Meanwhile the shell is not reaped, so that its number cannot be another's.
        """
        held, moments = True, LAST_WORDS
        while held and moments > 0:
            await asyncio.sleep(_MOMENT)
            moments -= _MOMENT
            held = self._drain() | self._lives_on()
        try:
            if held:
                await self._family()
        finally:
            self.left = [process for process in self.left if process.pid != self.pid]
            self._reap()

    def _reap(self) -> None:
        code = self._process.wait()
        for timer in self._timers.values():
            timer.cancel()
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None
        self.output.close()
        self.ended = time.time()
        if not self._done.done():
            self._done.set_result(code)
        if self.left:
            self._go_on()
        else:
            self._close_pipe()

    def _drain(self) -> bool:
        """Reads what is there; whether somebody still holds the pipe."""
        for _ in range(64):
            if self._pipe is None:
                return False
            try:
                data = os.read(self._pipe, _PIECE)
            except BlockingIOError:
                return True
            if not data:
                self._close_pipe()
                return False
            self.output.feed(data)
        return True

    def _lives_on(self) -> bool:
        """Takes the folder the shell ended in; whether a process it started still lives."""
        if self._lifeline is None:
            return False
        try:
            while told := os.read(self._lifeline, _PIECE):
                if told.startswith(b"/"):
                    self.cwd = Path(os.fsdecode(told.rstrip(b"\n").rpartition(b"\n")[2]))
        except BlockingIOError:
            return True
        os.close(self._lifeline)
        self._lifeline = None
        return False

    def _close_pipe(self) -> None:
        if self._pipe is not None:
            self._loop.remove_reader(self._pipe)
            os.close(self._pipe)
            self._pipe = None
