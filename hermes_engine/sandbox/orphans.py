"""Finds and ends processes that carry the mark of a Hermes that is no more, or of this one."""

from __future__ import annotations

import logging
import signal
import time

from hermes_engine.sandbox.processes import Process, everyone, instance_alive, marked, marks_of, send, this_instance
from hermes_engine.sandbox.running import STARTED

log = logging.getLogger(__name__)
GRACE = 0.3


def end_orphans() -> list[str]:
    """Ends what dead instances left running; returns "PID NAME" of each. Blocking, under a second; for the start.

    A process inside a Hermes that still lives is left alone, whatever other marks it carries.
    """
    return _end(_orphans())


def end_instance() -> list[str]:
    """Ends everything this instance's commands left running, daemons too. Blocking; for quitting."""
    return _end(marked(this_instance() + ":"))


def left_behind() -> list[str]:
    """ "PID NAME" of each process that commands of this program left running when they ended. Blocking."""
    at_work = {running.mark for running in STARTED.copy() if running.exit_code is None}
    return [process.label for process in marked(this_instance() + ":") if at_work.isdisjoint(marks_of(process.pid))]


def end_left_by(pid: int, birth: str) -> bool:
    """Ends what a dead program's commands left running; whether nothing of it is left. Blocking, under a second."""
    end_orphans()
    mark = f"-{pid}-{birth}:"
    return not any(mark in name for process in _orphans() for name in marks_of(process.pid))


def _orphans() -> list[Process]:
    alive: dict[str, bool] = {}
    found: list[Process] = []
    for process in everyone():
        instances = {mark.partition(":")[0] for mark in marks_of(process.pid)}
        for name in instances - alive.keys():
            alive[name] = instance_alive(name)
        if instances and not any(alive[name] for name in instances):
            found.append(process)
    return found


def _end(processes: list[Process]) -> list[str]:
    ended = [process.label for process in processes if send(process, signal.SIGTERM)]
    for process in processes:
        send(process, signal.SIGCONT)
    deadline = time.monotonic() + GRACE
    left = processes
    while left and time.monotonic() < deadline:
        time.sleep(0.01)
        left = [process for process in left if send(process, 0)]
    for process in left:
        send(process, signal.SIGKILL)
    if ended:
        log.info("ended %d processes that were left running: %s", len(ended), ", ".join(ended))
    return ended
