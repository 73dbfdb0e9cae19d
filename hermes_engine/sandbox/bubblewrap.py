"""A box made by bubblewrap: the system's folders to read, the row's own to write, no network, its own processes.

One `bwrap` a row makes the namespaces and waits in them; each command joins them (`nsenter`), which costs a few
milliseconds, and finds what earlier ones left: files in /tmp, servers, background jobs. When the one that waits is
gone, the kernel ends all others. Commands have no capability, in whatever user they are.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

from hermes_engine.errors import SandboxFault
from hermes_engine.protocols import Confined
from hermes_engine.sandbox.boxed import ENTER, PLAIN_SHELL, Boxed, boxed_env
from hermes_engine.sandbox.launch import FORKS, LONGEST_ARGUMENT, LOOKS, Start, find_shell, nameless_file
from hermes_engine.sandbox.processes import MARK, Process, read_process, send, this_instance

OPEN_SECONDS = 20.0
"""How long making the namespaces may take on a machine under load."""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = (
    "alternatives", "ca-certificates", "ca-certificates.conf", "fonts", "group", "host.conf", "hosts", "ld.so.cache",
    "ld.so.conf", "ld.so.conf.d", "locale.alias", "locale.conf", "localtime", "magic", "mime.types", "nsswitch.conf",
    "os-release", "passwd", "pki/ca-trust", "pki/tls/certs", "protocols", "services", "ssl/certs", "ssl/openssl.cnf",
    "terminfo", "timezone",
)  # fmt: skip
"""What programs look up there; no key and no password is in it."""

_KERNEL = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/mtrr", "/proc/pressure")
"""What root, even without any capability, may write because it owns it; kernel settings name programs to run."""

_HIDDEN = (
    "/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/kmsg", "/proc/latency_stats",
    "/proc/sched_debug", "/proc/scsi", "/proc/timer_list",
)  # fmt: skip
"""What tells of the whole machine, and what root may read because it owns it."""

_WAIT = "echo; exec >&-; read _"
"""What the one that waits runs: it says that all is in place, and ends when its standard input does."""

_HOOK = "/run/hermes/enter.bash"
_NS_GET_USERNS = 0xB701
_SPACES = {"mnt": "mount", "uts": "uts", "ipc": "ipc", "net": "net", "pid": "pid", "cgroup": "cgroup"}
"""Namespaces in /proc/PID/ns, and what nsenter calls them."""


@dataclass(frozen=True, slots=True)
class Joined:
    """A shell in the namespaces of a box."""

    words: Sequence[str]
    shell: str
    waits: ClassVar[bool] = True

    def start(self, text: bytes, cwd: Path, env: Mapping[str, str], lifeline: int) -> Start:
        """See `Entrance.start`."""
        full = {"PATH": PATH, **env, "HERMES_CWD": str(cwd), "HERMES_TELL": f"/proc/self/fd/{lifeline}"}
        if not self.shell.endswith("bash"):
            return Start([*self.words, self.shell, "-c", PLAIN_SHELL, "sh", text], Path("/"), full, [lifeline])
        full["BASH_ENV"] = _HOOK
        if len(text) <= LONGEST_ARGUMENT:
            return Start([*self.words, self.shell, "-c", text], Path("/"), full, [lifeline])
        script = nameless_file(text)
        argv = [*self.words, self.shell, f"/proc/self/fd/{script}"]
        return Start(argv, Path("/"), full, [lifeline, script])

    def last_folder(self) -> None:
        """It comes through the lifeline."""


class Bubble(Boxed):
    """One row's box."""

    def __init__(self, confined: Confined, env: Mapping[str, str]) -> None:
        super().__init__(confined, env)
        self._keeper: subprocess.Popen[bytes] | None = None
        self._inner: Process | None = None
        self._held: list[int] = []
        self._joined: Joined | None = None

    async def _begin(self) -> None:
        tools = programs()
        (self.aside / "tmp").mkdir(exist_ok=True)
        ready, ready_end = os.pipe()
        told, told_end = os.pipe()
        wait_end, hold = os.pipe()
        self._held.append(hold)
        given = (ready_end, told_end, wait_end)
        argv = [tools["bwrap"], *self._walls(), "--info-fd", str(told_end), "--", "/bin/sh", "-c", _WAIT]
        mark = f"{os.environ.get(MARK, '')} {this_instance()}:box:0".strip()
        complaint = tempfile.TemporaryFile()  # noqa: SIM115 - closed below

        def begin() -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                argv,
                stdin=wait_end,
                stdout=ready_end,
                stderr=complaint,
                cwd="/",
                env={"PATH": PATH, MARK: mark},
                pass_fds=[told_end],
                start_new_session=True,
            )

        try:
            try:
                # A thread that lives as long as the program: bwrap dies with the thread that started it.
                self._keeper = await asyncio.get_running_loop().run_in_executor(FORKS, begin)
            finally:
                for descriptor in given:
                    os.close(descriptor)
            if not await _first_byte(ready):
                complaint.seek(0)
                said = complaint.read(2000).decode("utf-8", "replace").strip()
                raise SandboxFault(f"bubblewrap does not work here: {said or 'it does not answer'}")
            inner = int(json.loads(os.read(told, 4096))["child-pid"])
            self._inner = read_process(inner)
            self._joined = Joined(self._way_in(inner, tools), find_shell())
        except (ValueError, KeyError) as error:
            raise SandboxFault(f"bubblewrap does not work here: it told {error}") from error
        finally:
            complaint.close()
            os.close(ready)
            os.close(told)

    def _walls(self) -> list[str]:
        """What bwrap is told: everything else is not there."""
        words = [
            "--unshare-all",
            "--die-with-parent",
            "--new-session",
            "--cap-drop",
            "ALL",
            "--ro-bind",
            "/usr",
            "/usr",
        ]
        if self.confined.network:
            words.append("--share-net")
        for name in _SYSTEM:
            path = Path(name)
            if path.is_symlink():
                words += ["--symlink", str(path.readlink()), name]
            elif path.is_dir():
                words += ["--ro-bind", name, name]
        for name in (*_ETC, *(("resolv.conf",) if self.confined.network else ())):
            words += ["--ro-bind-try", os.path.realpath(f"/etc/{name}"), f"/etc/{name}"]
        words += ["--proc", "/proc"]
        for name in _KERNEL:
            words += ["--ro-bind-try", name, name]
        for name in _HIDDEN:
            if Path(name).exists():
                words += ["--tmpfs", name] if Path(name).is_dir() else ["--ro-bind", "/dev/null", name]
        words += ["--dev", "/dev", "--dir", "/var/tmp", "--ro-bind", str(ENTER), _HOOK]
        words += ["--bind", str(self.aside / "tmp"), "/tmp"]
        for inside, folder in self.mounts:
            words += ["--bind", str(folder), str(inside)]
        words += ["--ro-bind", str(self.outputs), str(self.outputs), "--chdir", str(self.folders[0])]
        return [*words, "--remount-ro", "/"]

    def _way_in(self, pid: int, tools: Mapping[str, str]) -> list[str]:
        """The words before a shell. What they name stays this process whoever gets its number later."""
        place = os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY)
        self._held.append(place)
        here = f"/proc/{os.getpid()}/fd"
        mounts = os.open("ns/mnt", os.O_RDONLY, dir_fd=place)
        try:
            makers = fcntl.ioctl(mounts, _NS_GET_USERNS)
        finally:
            os.close(mounts)
        self._held.append(makers)
        if os.fstat(makers).st_ino == Path("/proc/self/ns/user").stat().st_ino:
            raise SandboxFault("bubblewrap makes no user namespace here")
        words = [tools["nsenter"], "--preserve-credentials", f"--user={here}/{makers}"]
        for name, option in _SPACES.items():
            with contextlib.suppress(FileNotFoundError):
                if os.stat(f"ns/{name}", dir_fd=place).st_ino != Path(f"/proc/self/ns/{name}").stat().st_ino:
                    words.append(f"--{option}={here}/{place}/ns/{name}")
        if os.fstat(makers).st_ino != os.stat("ns/user", dir_fd=place).st_ino:
            # An ordinary user has a second one inside, where it has its own number and no capability.
            return [*words, tools["nsenter"], "--preserve-credentials", "-U", "-t", "1"]
        return [*words, tools["setpriv"], "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]

    def _door(self) -> Joined:
        now = read_process(self._inner.pid) if self._inner else None
        if self._joined is None or self._inner is None or now is None or now.started != self._inner.started:
            raise OSError("the sandbox has ended")
        if now.state in "ZX":
            raise OSError("the sandbox has ended")
        return self._joined

    async def _end(self) -> None:
        await asyncio.get_running_loop().run_in_executor(LOOKS, self._kill)
        for descriptor in self._held:
            os.close(descriptor)
        self._held.clear()

    def _kill(self) -> None:
        """Ends the process that waits; the kernel ends all others before that one is gone."""
        if self._keeper is None:
            return
        if self._inner is None or not send(self._inner, 9):
            self._keeper.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._keeper.wait(3)  # it waits for the inner one itself
        self._keeper.kill()
        self._keeper.wait()


async def _first_byte(descriptor: int) -> bool:
    """Whether something came before the end of file, and in time."""
    loop = asyncio.get_running_loop()
    there: asyncio.Future[None] = loop.create_future()
    loop.add_reader(descriptor, there.set_result, None)
    try:
        async with asyncio.timeout(OPEN_SECONDS):
            await there
            loop.remove_reader(descriptor)
        return bool(os.read(descriptor, 1))
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(descriptor)


def programs() -> Mapping[str, str]:
    """Paths of what is needed. Raises SandboxFault."""
    found = {name: shutil.which(name, path=PATH) for name in ("bwrap", "nsenter", "setpriv")}
    lacking = [name for name, path in found.items() if path is None]
    if lacking:
        raise SandboxFault(f"there is no {' and no '.join(lacking)} here", hint="install bubblewrap and util-linux")
    return {name: path for name, path in found.items() if path is not None}


@cache
def why_not() -> str:
    """Why bubblewrap cannot be used here, "" when a trial run went well. Blocking, a moment at the first call."""
    with ThreadPoolExecutor(1) as other, tempfile.TemporaryDirectory(prefix="hermes-trial-") as folder:
        return other.submit(lambda: asyncio.run(_trial(Path(folder)))).result()


async def _trial(folder: Path) -> str:
    (folder / "row").mkdir()
    box = Bubble(Confined("bubblewrap", (folder / "row",)), boxed_env({}))
    sandbox = box.sandbox("trial", owner=True)
    try:
        await box.open()
        ran = await sandbox.run("echo well; cd /usr", cwd=folder / "row", timeout=OPEN_SECONDS, env={})
        return "" if (ran.output, ran.cwd) == ("well\n", Path("/usr")) else f"a trial run said: {ran.output.strip()}"
    except SandboxFault as fault:
        return fault.line
    finally:
        await sandbox.close()
