"""The child process that speaks with Ray (`ray_bridge`): started, spoken with through its pipes, and always ended.

A process of its own, since Ray ends the process that uses it when its machine's part of the cluster dies, prints on
standard output, takes signals over, and cannot be given up while it connects.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import psutil

import hermes_engine
from hermes_engine.paths import open_private, private_dir
from hermes_engine.sandbox.environment import looks_secret

_LEAVING = 8.0
"""Seconds for the bridge to end what it started."""

_SIZE = 8
_LOG_TAIL = 4000


class Bridge:
    """The process.

    Args:
        hear: takes what it says.
        gone: told once when it has ended, with its last words.
        log: file that gets what Ray prints.
    """

    def __init__(self, hear: Callable[[tuple[Any, ...]], None], gone: Callable[[str], None], log: Path) -> None:
        self._hear, self._gone, self.log = hear, gone, log
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None

    async def start(self, address: str | None, folder: Path, pass_env: Iterable[str]) -> None:
        """Starts it.

        Args:
            address: of a cluster; None: a Ray of this machine is started.
            folder: for the files of that one.
            pass_env: names of variables that are passed although they look like secrets.
        """
        private_dir(self.log.parent)
        log = open_private(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "hermes_engine.batch.ray_bridge", address or "", str(folder),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log,
                env=_environment(frozenset(pass_env)), start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(log)
        self._listening = asyncio.create_task(self._listen(self._process))

    def say(self, *what: Any) -> None:
        """Says something to it; nothing when it is gone."""
        if self._process is None or self._process.stdin is None or self._process.stdin.is_closing():
            return
        self._process.stdin.write(framed(what))

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                size = int.from_bytes(await process.stdout.readexactly(_SIZE), "big")
                self._hear(pickle.loads(await process.stdout.readexactly(size)))
        self._gone(self._last_words())

    def _last_words(self) -> str:
        """The last line that it or Ray wrote."""
        try:
            text = self.log.read_bytes()[-_LOG_TAIL:].decode("utf-8", "replace")
        except OSError:
            return ""
        return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")

    async def close(self) -> None:
        """Lets it end what it started, and sees to it that nothing is left."""
        process = self._process
        if process is None:
            return
        self._process = None
        below = _below(process.pid)
        try:
            if process.stdin is not None:
                process.stdin.close()  # which is how it is told
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), _LEAVING)
        finally:
            for one in below:
                with contextlib.suppress(psutil.Error):
                    one.kill()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            if self._listening is not None:
                self._listening.cancel()
                await asyncio.gather(self._listening, return_exceptions=True)


def framed(what: tuple[Any, ...]) -> bytes:
    """A message as it goes through a pipe."""
    packed = pickle.dumps(what)
    return len(packed).to_bytes(_SIZE, "big") + packed


def _below(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _environment(passed: frozenset[str]) -> dict[str, str]:
    """What the bridge and a Ray of this machine see: no key. Those go to the processes that ask, as arguments."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in passed or name.startswith(("RAY_", "HERMES_")) or not looks_secret(name)
    }
    root = str(Path(hermes_engine.__file__).parents[1])
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH")))),
        "RAY_AUTH_MODE": os.environ.get("RAY_AUTH_MODE") or "token",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
