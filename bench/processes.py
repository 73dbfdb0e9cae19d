"""Whole processes, counted: processor time of a program with all its children, its memory while it runs.

Processor time is what the kernel charged (`wait4`: the process and every child it waited for); of a process that
still runs, its own clock. Memory is read from /proc. Linux only. Knows nothing of what the programs do.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MB = 1024 * 1024


class RunFailed(RuntimeError):
    """A measured program ended with an unexpected code, or not at all."""


@dataclass(frozen=True, slots=True)
class Run:
    """A process that has ended.

    Attributes:
        cpu: seconds of processor time, user and system, children included.
        wall: seconds.
        peak_rss: bytes of the largest process (kernel's count).
        peak_tree_rss, peak_pss: bytes of all its processes together, highest of the samples; 0 when not watched.
        output: stdout.
    """

    cpu: float
    wall: float
    peak_rss: int
    peak_tree_rss: int = 0
    peak_pss: int = 0
    output: str = ""


def run(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str],
    cwd: Path,
    log: Path,
    watch: bool = False,
    timeout: float = 600.0,
    expect: int = 0,
    started: Callable[[int], None] | None = None,
) -> Run:
    """Runs a program to its end.

    Args:
        command: program and arguments.
        env: its whole environment.
        cwd: its folder.
        log: file its stdout and stderr go to.
        watch: sample the memory of all its processes.
        timeout: seconds until it is killed.
        expect: exit code that counts as done; of one that is killed, minus the signal.
        started: told the process's number.

    Raises:
        RunFailed: another exit code, or the time was up.
    """
    with log.open("wb") as out:
        began = time.monotonic()
        process = subprocess.Popen(
            [str(part) for part in command],
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        watcher = MemoryWatch(process.pid) if watch else None
        killer = threading.Timer(timeout, _kill_group, (process.pid,))
        killer.start()
        if watcher is not None:
            watcher.start()
        if started is not None:
            started(process.pid)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            killer.cancel()
            if watcher is not None:
                watcher.stop()
        wall = time.monotonic() - began
    code = process.returncode = os.waitstatus_to_exitcode(status)
    text = log.read_text("utf-8", "replace")
    if code != expect:
        raise RunFailed(f"{' '.join(map(str, command))} ended with {code} after {wall:.1f} s:\n{text[-3000:]}")
    rss, pss = (watcher.peak_rss, watcher.peak_pss) if watcher is not None else (0, 0)
    return Run(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss * 1024, rss, pss, text)


def cpu_clock(pid: int) -> float:
    """Seconds of processor time a running process has had, threads that have ended included, children not."""
    return time.clock_gettime((~pid << 3) | 2)


class MemoryWatch:
    """Samples the memory of a process and all its descendants until it is stopped."""

    def __init__(self, pid: int, every: float = 0.1) -> None:
        """Args:
        pid: the topmost process.
        every: seconds between two samples.
        """
        self.peak_rss = 0
        self.peak_pss = 0
        self._pid = pid
        self._every = every
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def start(self) -> None:
        """Samples from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Ends after the sample under way."""
        self._ended.set()
        self._thread.join(5)

    def _sample(self) -> None:
        while not self._ended.wait(self._every):
            own = _words(self._pid)
            # one that is being forked still has the program's own memory: that would count twice
            members = [pid for pid in tree(self._pid) if pid == self._pid or _words(pid) != own]
            sizes = [_memory(pid) for pid in members]
            self.peak_rss = max(self.peak_rss, sum(rss for rss, _ in sizes))
            self.peak_pss = max(self.peak_pss, sum(pss for _, pss in sizes))


def tree(pid: int) -> list[int]:
    """A process and its descendants, as far as they still live."""
    found, open_ones = [], [pid]
    while open_ones:
        here = open_ones.pop()
        found.append(here)
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{here}/task").iterdir():
                open_ones.extend(map(int, (task / "children").read_text().split()))
    return found


def _words(pid: int) -> bytes:
    """What it was called with; empty for a process that has gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _memory(pid: int) -> tuple[int, int]:
    """RSS and PSS in bytes; zeros for a process that has gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0, 0
    sizes = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines[1:])}
    return sizes.get("Rss", 0) * 1024, sizes.get("Pss", 0) * 1024


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
