"""A program of ours with tasks at work, in a process of its own: for tests of what other programs do with those, and
of what comes after it died (SIGKILL).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.server.scripted import ScriptedServer

_PROGRAM = """
import sys, time
from pathlib import Path
from hermes_engine.events import TurnFinished
from hermes_engine.profiles import resolve
from hermes_engine.session import Engine
from hermes_engine.settings import Overrides

url, folder, mode, ends, *tasks = sys.argv[1:]
heard = []
engine = Engine(resolve(Overrides(base_url=url, model="scripted", mode=mode)), heard.append, attended=True)
engine.start()
session = engine.open_session(Path(folder)).id
engine.send(session, "hello")
while not any(isinstance(event, TurnFinished) for event in list(heard)):
    time.sleep(0.01)
for task in tasks:
    print(engine.tasks.start(session, task, kind="background").id, flush=True)
while len(engine.tasks.results(session)) < int(ends):
    time.sleep(0.01)
print(session, flush=True)
sys.stdin.read()
engine.close()
"""


@contextmanager
def at_work(
    server: ScriptedServer, folder: Path, tasks: Sequence[str], *, ends: int = 0, mode: str = "yolo"
) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """A program whose chat has said hello and started these tasks, `ends` of which have ended; the ids of the tasks,
    then of the chat. At the end of the `with` it ends in order, if it still lives.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, server.base_url, str(folder), mode, str(ends), *tasks],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )
    assert process.stdout is not None
    assert process.stdin is not None
    with process, process.stdin, process.stdout:
        ids = [process.stdout.readline().strip() for _task in [*tasks, ""]]
        assert all(ids)
        yield process, ids


def killed_at_work(server: ScriptedServer, folder: Path, tasks: Sequence[str], *, ends: int = 0) -> list[str]:
    """Such a program, killed when those of its tasks that have not ended have asked the model. The ids."""
    with at_work(server, folder, tasks, ends=ends) as (process, ids):
        assert server.wait_until(lambda: server.open_requests == len(tasks) - ends)
        process.kill()
    assert server.wait_until(lambda: server.open_requests == 0)
    return ids
