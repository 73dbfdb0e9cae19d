"""Processes as `/proc` tells them: who belongs to a command, who is alive, ending one without hitting another.

A process is named by pid and start time, since pids are used again. What commands start carries a mark in
its environment, which survives `setsid`; group, session and parent find those that dropped theirs.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

MARK = "HERMES_MARK"
"""Variable with the marks of the commands around a process, separated by blanks: a Hermes may run in a Hermes."""


@dataclass(frozen=True, slots=True)
class Process:
    """One process at one moment; `started` is in clock ticks since boot."""

    pid: int
    parent: int
    group: int
    session: int
    started: int
    state: str
    name: str

    @property
    def label(self) -> str:
        """Pid and name, for people."""
        return f"{self.pid} {self.name}"


def read_process(pid: int) -> Process | None:
    """The process, or None when there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes().decode("utf-8", "replace")
    except OSError:
        return None
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    return Process(pid, int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]), fields[0], name)


def marks_of(pid: int) -> frozenset[str]:
    """The marks in a process's environment; none when it is gone or another user's."""
    try:
        data = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return frozenset()
    wanted = MARK.encode() + b"="
    for item in data.split(b"\0"):
        if item.startswith(wanted):
            return frozenset(item[len(wanted) :].decode("utf-8", "replace").split())
    return frozenset()


def everyone() -> Iterator[Process]:
    """All live processes but this one."""
    own = os.getpid()
    for entry in os.listdir("/proc"):  # noqa: PTH208 - names only, and often
        if entry.isdecimal() and int(entry) != own:
            process = read_process(int(entry))
            if process and process.state not in "ZX":
                yield process


def marked(prefix: str) -> list[Process]:
    """Live processes that carry a mark that begins with `prefix`."""
    return [one for one in everyone() if any(mark.startswith(prefix) for mark in marks_of(one.pid))]


def family(mark: str, leader: int | None = None, known: Iterable[Process] = ()) -> list[Process]:
    """Live processes of one command.

    Args:
        mark: of the command.
        leader: pid of its shell, while that is not reaped (its number may be another's afterwards).
        known: members found earlier.
    """
    alive = {process.pid: process for process in everyone()}
    earlier = {(process.pid, process.started) for process in known}
    members = {
        pid
        for pid, one in alive.items()
        if (pid, one.started) in earlier
        or (leader is not None and leader in (pid, one.group, one.session))
        or mark in marks_of(pid)
    }
    grew = True
    while grew:
        children = {pid for pid, one in alive.items() if one.parent in members} - members
        members |= children
        grew = bool(children)
    return [alive[pid] for pid in sorted(members)]


def send(process: Process, number: int) -> bool:
    """Signals exactly this process; False when it is gone, or its pid is another's by now."""
    handle: int | None = None
    try:
        with contextlib.suppress(OSError):
            handle = os.pidfd_open(process.pid)
        now = read_process(process.pid)
        if now is None or now.started != process.started:
            return False
        if handle is None:
            os.kill(process.pid, number)
        else:
            signal.pidfd_send_signal(handle, number)
        return True
    except OSError:
        return False
    finally:
        if handle is not None:
            os.close(handle)


@functools.cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")[:12]
    except OSError:
        return "unknown"


def instance_of(pid: int) -> str | None:
    """A name for a running program that no other ever has: boot, pid and start time; None when it is gone."""
    process = read_process(pid)
    return None if process is None or process.state in "ZX" else f"{_boot()}-{pid}-{process.started}"


def this_instance() -> str:
    """The name of this program."""
    return _instance(os.getpid())


@functools.cache
def _instance(pid: int) -> str:
    return instance_of(pid) or f"{_boot()}-{pid}-0"


def instance_alive(instance: str) -> bool:
    """Whether the program of this name still runs, on this boot."""
    parts = instance.split("-")
    return len(parts) == 3 and parts[1].isdecimal() and instance_of(int(parts[1])) == instance
