"""An attempt at a card in a process of its own: the program started again for this one card.

What it says of itself it writes to the board; here it is started, waited for, and ended with all it started when its
card is taken away. It goes on alone when this program is killed: the claim is its own by then.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from hermes_engine.board import Claim, Failure, Hold, RunOver
from hermes_engine.errors import EndpointDown, StateError
from hermes_engine.paths import open_private
from hermes_engine.sandbox.orphans import end_left_by
from hermes_engine.store.instances import birth_of
from hermes_engine.tools.pool import in_thread
from hermes_engine.work.attempt import Means, end_run
from hermes_engine.work.boards_pool import on_board
from hermes_engine.work.cards import Worker
from hermes_engine.work.supervisor import Ending

SERVER_DOWN = 75
"""Exit code of a worker whose model's server is down."""

_GRACE, _ENDING = 3.0, 4.0


@dataclass(frozen=True, slots=True)
class Isolation:
    """How such a process is started.

    Attributes:
        command: its words; the board's name and perhaps `--excused` follow. The run's token comes by standard input.
        env: its environment.
        log: file that gets what it says; None: where this program says it.
    """

    command: Sequence[str]
    env: Mapping[str, str]
    log: Path | None = None


class IsolatedAttempt:
    """See `Attempt`, whose place it takes."""

    def __init__(self, means: Means, claim: Claim, isolation: Isolation, *, excused: bool) -> None:
        self._means, self._claim, self._isolation, self._excused = means, claim, isolation, excused
        self._hold = Hold(means.board, claim.token)
        self.worker = Worker(self._hold, claim)
        self.unrecorded = ""
        self._stopped: Ending | None = None
        self._leaving = False
        self._stop = asyncio.Event()
        self.task: asyncio.Task[EndpointDown | None]

    def begin(self) -> asyncio.Task[EndpointDown | None]:
        """See `Attempt.begin`."""
        self.task = asyncio.create_task(self._run(), name=f"process of card {self._claim.card.id}")
        return self.task

    def stop(self, ending: Ending, *, leaving: bool = False) -> None:
        """See `Attempt.stop`. A worker whose run is over is given a moment to see it by itself."""
        self._stopped = self._stopped or ending
        self._leaving = self._leaving or leaving
        self._stop.set()

    async def probe(self) -> EndpointDown | None:
        """See `Attempt.probe`."""
        maker = await self._means.maker.on_profile(self._claim.run.profile, worker=True)
        return await maker.probe(maker.spec(name="probe", cwd=self._means.cwd, kind="worker"))

    async def _run(self) -> EndpointDown | None:
        try:
            process = await self._started()
        except OSError as error:
            await self._end("failed", f"its process cannot be started: {error.strerror or error}")
            return None
        birth = birth_of(process.pid) or ""
        exited = asyncio.create_task(process.wait(), name="exit of a worker")
        asked = asyncio.create_task(self._stop.wait(), name="stop of a worker")
        await asyncio.wait({exited, asked}, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        if not exited.done():
            await self._ended(process, exited)
        code = await exited
        await in_thread(end_left_by, process.pid, birth)
        if code == SERVER_DOWN:
            return EndpointDown("the model's server is down")
        with contextlib.suppress(RunOver, StateError):
            await on_board(self._hold.check)
            if self._stopped is not None:
                await self._end("stopped", self._stopped.error)
            else:
                how = f"signal {-code}" if code < 0 else f"code {code}"
                await self._end("lost", f"its process ended with {how} and without a word")
        return None

    async def _started(self) -> asyncio.subprocess.Process:
        isolation = self._isolation
        words = [*isolation.command, self._means.board.slug, *(["--excused"] if self._excused else [])]
        log = await in_thread(_appended, isolation.log) if isolation.log else None
        with log or contextlib.nullcontext():
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=log,
                env=dict(isolation.env),
                cwd=self._means.cwd,
                start_new_session=True,
            )
        assert process.stdin is not None
        process.stdin.write(f"{self._claim.token}\n".encode())
        process.stdin.close()
        return process

    async def _ended(self, process: asyncio.subprocess.Process, exited: asyncio.Task[int]) -> None:
        """Ends it: by itself, by a request, by force."""
        if not self._leaving:
            await asyncio.wait({exited}, timeout=_GRACE)
        for signal_it in (process.terminate, process.kill):
            if exited.done():
                return
            with contextlib.suppress(ProcessLookupError):
                signal_it()
            await asyncio.wait({exited}, timeout=_ENDING)

    async def _end(self, state: Failure, error: str) -> None:
        await end_run(self._hold, state, error, leaving=lambda: self._leaving)


def _appended(path: Path) -> BinaryIO:
    return os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab")
