"""A box that is a container, made by podman or docker: one a row, each command by `exec`, removed at the end.

It lives as long as the program that made it holds a pipe open, so one that is killed leaves none. It is labelled with
that program too, so that what is left all the same is found and removed by the next. What is ended on this machine may
live on inside, so a command that has to end is ended there as well.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import re
import secrets
import shutil
import socket
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from hermes_engine.errors import SandboxFault
from hermes_engine.paths import private_dir
from hermes_engine.protocols import Confined
from hermes_engine.sandbox.boxed import ENTER, PLAIN_SHELL, Boxed
from hermes_engine.sandbox.launch import LONGEST_ARGUMENT, Start
from hermes_engine.sandbox.output import Output
from hermes_engine.sandbox.processes import instance_alive, this_instance
from hermes_engine.sandbox.running import Running

PROGRAMS = ("podman", "docker")
CLI_SECONDS = 120.0
"""How long podman or docker may take for anything but fetching an image."""

_POST = "/run/hermes"
"""Where the folder stands inside that carries long commands in and last folders out."""

_LIFELINE = "life"
"""Name of the pipe in that folder which this program holds open."""

_WAIT = f"while read -r _; do :; done <{_POST}/{_LIFELINE} & wait $!"
"""What the container runs: a shell that waits until nobody holds that pipe open, and meanwhile reaps what commands
leave behind. Where the pipe does not lead out (a machine in between), it waits for ever."""

_ENTER = (
    "exec 2>&1; if command -v bash >/dev/null 2>&1; then export BASH_ENV=/run/hermes/enter.bash; "
    'if [ -n "$2" ]; then exec bash "$2"; else exec bash -c "$1"; fi; fi; '
    '[ -z "$2" ] || set -- "$(cat "$2")"; ' + PLAIN_SHELL
)
_END = (
    'for i in 1 2 3; do for p in /proc/[0-9]*; do if tr "\\000" "\\n" <"$p/environ" 2>/dev/null | '
    'grep -q "^HERMES_MARK=.*$1\\$"; then kill -9 "${p#/proc/}"; fi; done; done 2>/dev/null'
)
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@+-]*\Z")
_log = logging.getLogger(__name__)
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class ContainerLimits:
    """What a container may use; None = no limit is set.

    Attributes:
        memory: as podman and docker write it, "2g".
        pids: processes at once.
        read_only: the image's own files cannot be changed; /tmp can.
    """

    memory: str | None = "2g"
    pids: int | None = 512
    read_only: bool = True


@dataclass(frozen=True, slots=True)
class _Program:
    """Executes podman or docker itself."""

    argv: Sequence[str]
    waits: ClassVar[bool] = False

    def start(self, text: bytes, cwd: Path, env: Mapping[str, str], lifeline: int) -> Start:
        return Start(self.argv, Path("/"), env)

    def last_folder(self) -> None:
        return None


@dataclass(slots=True)
class _Inside:
    """A shell in a container."""

    words: Sequence[str]
    post: Path
    waits: ClassVar[bool] = True
    _number: int = 0

    def start(self, text: bytes, cwd: Path, env: Mapping[str, str], lifeline: int) -> Start:
        """See `Entrance.start`."""
        self._number = next(_numbers)
        inner = {**env, "HERMES_CWD": str(cwd), "HERMES_TELL": f"{_POST}/{self._number}.at"}
        words = [*self.words]
        here = words.pop()
        for name, value in inner.items():
            # A value that the program has itself is not shown to all who may list processes.
            words += ["-e", name if os.environ.get(name) == value else f"{name}={value}"]
        argv: list[bytes | str] = [*words, here, "sh", "-c", _ENTER, "sh"]
        if len(text) <= LONGEST_ARGUMENT:
            argv += [text, ""]
        else:
            name = f"{self._number}.sh"
            descriptor = os.open(self.post / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(text)
            argv += ["", f"{_POST}/{name}"]
        return Start(argv, Path("/"), os.environ)

    def last_folder(self) -> Path | None:
        """The folder the command said it ended in. What stands there is a stranger's: a short text or nothing."""
        try:
            descriptor = os.open(self.post / f"{self._number}.at", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        with os.fdopen(descriptor, "rb") as stream:
            told = stream.read(5000) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
        with contextlib.suppress(OSError):
            os.unlink(self.post / f"{self._number}.at")  # noqa: PTH108 - the pair to open
        path = os.fsdecode(told.rstrip(b"\n"))
        return Path(path) if path.startswith("/") and "\0" not in path and "\n" not in path else None


class Container(Boxed):
    """One row's box."""

    def __init__(self, confined: Confined, env: Mapping[str, str], dock: Dock) -> None:
        super().__init__(confined, env)
        self._dock = dock
        self.name = f"hermes-{os.getpid()}-{next(_numbers)}-{secrets.token_hex(4)}"
        self._post = self.aside / "post"
        self._life: int | None = None

    async def _begin(self) -> None:
        image = self.confined.image
        if not _IMAGE.match(image):
            raise SandboxFault(f"{image!r} is no name of an image")
        program = await self._dock.program()
        if self.confined.pull:
            await self._dock.pull(image)
        self._post.mkdir(exist_ok=True)
        os.mkfifo(self._post / _LIFELINE, 0o600)
        self._life = os.open(self._post / _LIFELINE, os.O_RDWR | os.O_CLOEXEC)
        shutil.copyfile(ENTER, self._post / ENTER.name)
        self._dock.made.add(self.name)
        code, said = await self._dock.run([*self._words(program), image, "-c", _WAIT])
        if code:
            raise SandboxFault(f"no container of {image}: {_reason(said)}", hint=_hint(said, program, image))

    def _words(self, program: str) -> list[str]:
        """Everything before the name of the image."""
        limits, podman = self._dock.limits, self._dock.is_podman
        user = "0:0" if podman else f"{os.getuid()}:{os.getgid()}"
        words = ["run", "-d", "--rm", "--name", self.name, "--pull", "never", *self._dock.labels(), "--user", user]
        words += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--stop-signal", "SIGKILL"]
        if not self.confined.network:
            words += ["--network", "none"]
        if podman:
            words.append("--http-proxy=false")  # its address may hold a password
        if Path("/sys/fs/selinux/enforce").exists():
            words += ["--security-opt", "label=disable"]  # else what is mounted cannot be read
        if limits.memory:
            words += ["--memory", limits.memory]
        if limits.pids:
            words += ["--pids-limit", str(limits.pids)]
        if limits.read_only:
            words += ["--read-only", "--tmpfs", "/tmp"]
        outputs = (self.outputs, self.outputs)
        for inside, folder in (*self.mounts, (Path(_POST), self._post), outputs):
            if re.search(r'[,"\n]', f"{folder}{inside}"):
                raise SandboxFault(f"the path {inside} cannot be mounted: it holds a comma, a quote or a line end")
            more = ",readonly" if folder == self.outputs else ""
            words += ["--mount", f"type=bind,source={folder},target={inside}{more}"]
        return [*words, "-w", str(self.folders[0]), "--entrypoint", "sh"]

    def _door(self) -> _Inside:
        return _Inside([self._dock.path, "exec", self.name], self._post)

    async def end(self, mark: str) -> None:
        """Ends what a command started, inside."""
        await self._dock.run(["exec", self.name, "sh", "-c", _END, "sh", mark], seconds=10)

    async def _end(self) -> None:
        try:
            if self.name in self._dock.made:
                await self._dock.remove(self.name)
        finally:
            if self._life is not None:
                os.close(self._life)
                self._life = None


class Dock:
    """podman or docker, as one program uses it.

    Args:
        command: name or path of the program; None: whichever is there.
        limits: of each container.
        note: file that says that containers were ever made from this home.
    """

    def __init__(self, command: str | None, limits: ContainerLimits, note: Path) -> None:
        self._command, self.limits, self._note = command, limits, note
        self.path, self.is_podman = "", False
        self.made: set[str] = set()
        self._finding = asyncio.Lock()
        self._swept = False

    def box(self, confined: Confined, env: Mapping[str, str]) -> Container:
        """A container that is not started yet."""
        return Container(confined, env, self)

    def labels(self) -> list[str]:
        """What tells this program's containers from all others."""
        return ["--label", f"hermes.instance={this_instance()}", "--label", f"hermes.host={socket.gethostname()}"]

    async def program(self) -> str:
        """Name of the program, found at the first call. Raises SandboxFault."""
        async with self._finding:
            if not self.path:
                self.path = find_program(self._command)
                code, said = await self.run(["--version"], seconds=20)
                if code:
                    self.path = ""
                    raise SandboxFault(f"{self._command or 'podman'} does not work: {_reason(said)}")
                self.is_podman = "podman" in said.lower()
                private_dir(self._note.parent)
                self._note.touch(mode=0o600)
        return Path(self.path).name

    async def pull(self, image: str) -> None:
        """Fetches an image that is not here. Raises SandboxFault."""
        code, _ = await self.run(["image", "inspect", image])
        if code:
            code, said = await self.run(["pull", image], seconds=None)
            if code:
                raise SandboxFault(f"the image {image} cannot be fetched: {_reason(said)}")

    async def remove(self, *names: str) -> None:
        """Removes containers with all that runs in them; what resists stays in `made`."""
        code, said = await self.run(["rm", "-f", "-v", *names])
        if code and "no such container" not in said.lower():
            _log.warning("containers %s were not removed: %s", ", ".join(names), _reason(said))
        else:
            self.made.difference_update(names)

    async def sweep(self) -> None:
        """Once: removes what programs of this machine that are no more have left."""
        if self._swept:
            return
        self._swept = True
        try:
            if not self._note.exists():
                return
            await self.program()
        except (SandboxFault, OSError):
            return
        form = '{{.Names}} {{.Label "hermes.instance"}} end'
        if self.is_podman:
            form = '{{.Names}} {{index .Labels "hermes.instance"}} end'
        _, said = await self.run(
            ["ps", "-a", "--filter", f"label=hermes.host={socket.gethostname()}", "--format", form], seconds=20
        )
        found = (line.split() for line in said.splitlines() if line.startswith("hermes-") and line.endswith(" end"))
        dead = [words[0] for words in found if len(words) == 3 and not instance_alive(words[1])]
        if dead:
            _log.info("removing containers that were left: %s", ", ".join(dead))
            await self.remove(*dead)

    async def close(self) -> None:
        """Removes what is still there."""
        await self.sweep()
        if self.made:
            await self.remove(*self.made)

    async def run(self, words: Sequence[str], *, seconds: float | None = CLI_SECONDS) -> tuple[int, str]:
        """Runs the program; its exit code and all it said. Cancelled, it ends."""
        output = Output(lambda: Path(os.devnull))
        try:
            running = await Running.launch(
                "",
                entrance=_Program([self.path, *words]),
                cwd=Path("/"),
                env=os.environ,
                mark=f"{this_instance()}:dock",
                output=output,
            )
        except OSError as error:
            return 127, str(error)
        try:
            await running.wait(seconds)
        finally:
            if running.exit_code is None:
                await running.end()
        code = running.exit_code
        return (1 if code is None else code), output.text()


def find_program(command: str | None) -> str:
    """Path of podman or docker. Raises SandboxFault."""
    for name in (command,) if command else PROGRAMS:
        if path := shutil.which(name):
            return path
    what = command or " and no ".join(PROGRAMS)
    raise SandboxFault(f"there is no {what} here", hint="install one, or name it as batch.container_command")


def _reason(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    told = next(
        (line for line in reversed(lines) if "error" in line.lower()), lines[-1] if lines else "it said nothing"
    )
    return told.removeprefix("Error: ")[:500]


def _hint(said: str, program: str, image: str) -> str:
    missing = re.search(r"image not known|no such image|unable to find image", said, re.IGNORECASE)
    return f"fetch it with `{program} pull {image}`, or give --pull" if missing else ""
