"""A box: closed surroundings for the commands of one row and of the agents it starts. What its kinds share.

Inside, the open folders stand at their own paths, so that commands and file tools mean the same files. Beside the
row's folder lies one that is not open, for full outputs and what the box itself needs; it goes with the box.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from hermes_engine.errors import SandboxFault
from hermes_engine.paths import DIR_MODE
from hermes_engine.protocols import Confined, Job
from hermes_engine.redaction import Redactor
from hermes_engine.sandbox.commands import Commands
from hermes_engine.sandbox.environment import QUIET
from hermes_engine.sandbox.launch import LOOKS, Entrance
from hermes_engine.sandbox.processes import MARK, Process
from hermes_engine.sandbox.running import Running
from hermes_engine.waiting import to_its_end

ENTER = Path(__file__).with_name("enter.bash")
"""What bash reads inside before a command."""

PLAIN_SHELL = (
    'cd -- "$HERMES_CWD" 2>/dev/null || { echo "[there is no folder $HERMES_CWD; in $HOME]"; cd -- "$HOME"; }; '
    'trap "pwd -P >$HERMES_TELL 2>/dev/null" 0; unset HERMES_CWD HERMES_TELL; eval "$1"'
)
"""The same for a shell that is not bash."""

_HANDED_ON = frozenset({"LANG", "LANGUAGE", "TZ"})


def boxed_env(environ: Mapping[str, str], pass_env: Iterable[str] = ()) -> dict[str, str]:
    """What commands in a box see of `environ`: language, time zone, and what the settings hand on by name."""
    passed = frozenset(pass_env)
    kept = {name: value for name, value in environ.items() if name in passed or name in _HANDED_ON}
    kept.update((name, value) for name, value in environ.items() if name.startswith("LC_"))
    return {**kept, **QUIET}


class Boxed(ABC):
    """See `protocols.Box`. Opened by the first command, unless somebody opens it before.

    Args:
        confined: what is open in it.
        env: what all of its commands see.
    """

    def __init__(self, confined: Confined, env: Mapping[str, str]) -> None:
        self.confined, self.env = confined, env
        self.folders = tuple(dict.fromkeys(Path(os.path.realpath(folder)) for folder in confined.folders))
        hidden = (Path(os.path.realpath(folder)) for folder in confined.hidden)
        self.hidden = tuple(path for path in hidden if any(map(path.is_relative_to, self.folders[1:])))
        self.aside = self.folders[0].with_name(self.folders[0].name + ".aside")
        self.outputs = self.aside / "outputs"
        self._empty = {path: self.aside / f"empty{number}" for number, path in enumerate(self.hidden)}
        self._opening = asyncio.Lock()
        self._opened = self._closed = False

    @property
    def mounts(self) -> list[tuple[Path, Path]]:
        """Path inside and folder of this machine; later ones may lie in earlier ones.

        A folder that is named through a link stands at both paths.
        """
        found: list[tuple[Path, Path]] = []
        for folder in reversed(self.confined.folders):
            real = Path(os.path.realpath(folder))
            for inside in dict.fromkeys((real, Path(os.path.abspath(folder)))):  # noqa: PTH100 - the link's own path
                found.append((inside, real))
                for path, empty in self._empty.items():
                    if path.is_relative_to(real):
                        found.append((inside / path.relative_to(real), empty))
        return found

    def sandbox(
        self,
        agent: str,
        *,
        redactor: Redactor | None = None,
        on_job_end: Callable[[Job], None] | None = None,
        owner: bool = False,
    ) -> BoxedSandbox:
        """See `protocols.Box.sandbox`."""
        return BoxedSandbox(self, agent=agent, redactor=redactor, on_job_end=on_job_end, owner=owner)

    async def open(self) -> None:
        """Makes it, once. Raises SandboxFault with what is in the way."""
        async with self._opening:
            if self._closed:
                raise SandboxFault("the sandbox is closed")
            if not self._opened:
                await to_its_end(self._open())

    async def _open(self) -> None:
        try:
            for folder in (self.aside, self.outputs, *self._empty.values()):
                folder.mkdir(mode=DIR_MODE, exist_ok=True)
            await self._begin()
        except OSError as error:
            await self._end()
            raise SandboxFault(f"the sandbox does not start: {error}") from error
        except BaseException:
            await self._end()
            raise
        self._opened = True

    async def close(self) -> None:
        """Ends everything in it and removes it; whatever happens to the caller meanwhile."""
        await to_its_end(self._close())

    async def _close(self) -> None:
        async with self._opening:
            if self._closed:
                return
            self._closed = True
            if self._opened:
                await self._end()
            if self.aside.exists():
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(LOOKS, lambda: shutil.rmtree(self.aside, ignore_errors=True))

    async def entrance(self) -> Entrance:
        """How a command gets in; opens the box. Raises OSError when it cannot."""
        try:
            await self.open()
        except SandboxFault as fault:
            raise OSError(fault.line) from None
        return self._door()

    async def end(self, mark: str) -> None:  # noqa: B027 - most boxes hide nothing
        """Ends what a command started inside and this machine's user cannot see or signal."""

    def label(self, process: Process) -> str:
        """Pid and name of a process, as commands inside would name it."""
        with contextlib.suppress(OSError, ValueError):
            for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
                if line.startswith("NSpid:"):
                    return f"{line.split()[-1]} {process.name}"
        return process.label

    @abstractmethod
    async def _begin(self) -> None:
        """Makes it. Raises SandboxFault or OSError."""

    @abstractmethod
    async def _end(self) -> None:
        """Ends what there is of it; also after half a beginning. Never raises."""

    @abstractmethod
    def _door(self) -> Entrance:
        """The way into an open box. Raises OSError when it has ended."""


class BoxedSandbox(Commands):
    """The commands of one agent in a box; see `protocols.Sandbox`."""

    def __init__(
        self,
        box: Boxed,
        *,
        agent: str,
        redactor: Redactor | None = None,
        on_job_end: Callable[[Job], None] | None = None,
        owner: bool = False,
    ) -> None:
        super().__init__(
            agent=agent,
            outputs=box.outputs,
            env=box.env,
            around=os.environ.get(MARK, ""),
            redactor=redactor,
            on_job_end=on_job_end,
        )
        self._box, self._owner = box, owner
        self._closing = False

    async def close(self) -> None:
        """Ends every process it started; the owner's ends the box."""
        self._closing = self._owner
        try:
            await super().close()
        finally:
            if self._owner:
                await self._box.close()

    async def _entrance(self) -> Entrance:
        return await self._box.entrance()

    async def _end_family(self, running: Running) -> None:
        if self._closing:
            await self._box.close()
            await running.end()
        else:
            await asyncio.gather(running.end(), self._box.end(running.mark))

    def _label(self, process: Process) -> str:
        return self._box.label(process)
