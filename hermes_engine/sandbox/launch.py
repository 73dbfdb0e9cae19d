"""Forks a shell for a command text, on a small pool of threads of its own. Knows nothing of the event loop.

The text reaches the shell untouched, so here-documents, quotes, comments, `exit` and `set -e` mean what they
mean anywhere. bash reads `after_command.bash` first, which tells the last working directory at the end
(unless the command replaces the EXIT trap or the shell itself); another shell gets the same through `eval`.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, Protocol

FORKS = ThreadPoolExecutor(2, thread_name_prefix="hermes-fork")
"""Only forks. More threads fight for the interpreter: with four a fork costs five times as much as with two. They
live as long as the program: what asks to die with its parent follows the thread that forked it."""
LOOKS = ThreadPoolExecutor(2, thread_name_prefix="hermes-proc")
"""Only looks through /proc, so that ending a command never waits for a fork in a dead network folder."""

_HOOK = str(Path(__file__).with_name("after_command.bash"))
_PLAIN_SHELL = (
    'trap "{ pwd -P || echo \\"\\$PWD\\"; } >/proc/self/fd/$HERMES_FD 2>/dev/null" 0; unset HERMES_FD; eval "$1"'
)
LONGEST_ARGUMENT = 120_000


@dataclass(slots=True)
class Launched:
    """A forked shell.

    Attributes:
        process: not reaped yet.
        pidfd: readable when it has ended; None where the system has no such thing.
        output: read end of its stdout and stderr.
        lifeline: read end of a pipe that the shell tells its last folder through; every process it starts
            holds the other end, so that its end of file means that none is left.
        entrance: how it was reached.
    """

    process: subprocess.Popen[bytes]
    pidfd: int | None
    output: int
    lifeline: int
    entrance: Entrance


@dataclass(frozen=True, slots=True)
class Start:
    """What is executed for a command.

    Attributes:
        argv: program and words.
        cwd: folder the program is started in.
        env: all of its environment.
        passed: descriptors it inherits; closed here once it has them.
    """

    argv: Sequence[bytes | str]
    cwd: Path
    env: Mapping[str, str]
    passed: Sequence[int] = ()


class Entrance(Protocol):
    """How a shell is reached: directly, or inside of something.

    Attributes:
        waits: what is forked only waits for the shell and goes by itself; ended first, it would leave it to others.
    """

    @property
    def waits(self) -> bool: ...

    def start(self, text: bytes, cwd: Path, env: Mapping[str, str], lifeline: int) -> Start:
        """What to execute for a command text.

        Args:
            text: of the command, without NUL.
            cwd: folder it is to run in.
            env: its environment.
            lifeline: write end of the pipe that tells its last folder, see `Launched`.
        """
        ...

    def last_folder(self) -> Path | None:
        """The folder it ended in, where that is told in another way than through the lifeline."""
        ...


@dataclass(frozen=True, slots=True)
class Shell:
    """A shell of this machine."""

    path: str
    waits: ClassVar[bool] = False

    def start(self, text: bytes, cwd: Path, env: Mapping[str, str], lifeline: int) -> Start:
        """See `Entrance.start`."""
        full = {**env, "HERMES_FD": str(lifeline)}
        if not self.path.endswith("bash"):
            return Start([self.path, "-c", _PLAIN_SHELL, "sh", text], cwd, full, [lifeline])
        full["BASH_ENV"] = _HOOK
        if len(text) <= LONGEST_ARGUMENT:
            return Start([self.path, "-c", text], cwd, full, [lifeline])
        script = nameless_file(text)
        return Start([self.path, f"/proc/self/fd/{script}"], cwd, full, [lifeline, script])

    def last_folder(self) -> None:
        """It comes through the lifeline."""


@cache
def find_shell() -> str:
    """bash where there is one, else sh."""
    if Path("/bin/bash").exists():
        return "/bin/bash"
    return shutil.which("bash") or "/bin/sh"


def fork(entrance: Entrance, command: str, cwd: Path, env: Mapping[str, str]) -> Launched:
    """Starts the command in a session of its own, without a keyboard.

    Raises:
        OSError: the folder or the shell is not there, or the system refuses.
        ValueError: the command or a variable holds a NUL.
    """
    text = command.encode("utf-8", "replace")
    if b"\0" in text:
        raise ValueError("the command holds a NUL character")
    ends = [*os.pipe(), *os.pipe()]
    output, output_end, lifeline, lifeline_end = ends
    given: set[int] = {output_end, lifeline_end}
    try:
        start = entrance.start(text, cwd, env, lifeline_end)
        given.update(start.passed)
        process = subprocess.Popen(
            start.argv,
            stdin=subprocess.DEVNULL,
            stdout=output_end,
            stderr=output_end,
            cwd=start.cwd,
            env=start.env,
            close_fds=True,
            pass_fds=start.passed,
            start_new_session=True,
        )
        pidfd = _watchable(process)
    except BaseException:
        os.close(output)
        os.close(lifeline)
        raise
    finally:
        for descriptor in given:
            os.close(descriptor)
    os.set_blocking(output, False)
    os.set_blocking(lifeline, False)
    return Launched(process, pidfd, output, lifeline, entrance)


def _watchable(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return os.pidfd_open(process.pid)
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EPERM, errno.EINVAL):
            return None
        os.killpg(process.pid, signal.SIGKILL)  # out of descriptors: what nobody can watch must not run
        process.wait()
        raise


def nameless_file(text: bytes) -> int:
    """A nameless file with a command that is too long for an argument."""
    descriptor = os.memfd_create("command")
    with open(descriptor, "wb", closefd=False) as stream:
        stream.write(text)
    return descriptor
