"""A program of ours that died (SIGKILL) while tasks of its chat were at work, for tests of what comes after."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.server.scripted import ScriptedServer

_PROGRAM = """
import sys, time
from pathlib import Path
from hermes_engine.events import TurnFinished
from hermes_engine.profiles import resolve
from hermes_engine.session import Engine
from hermes_engine.settings import Overrides

url, folder, ends, *tasks = sys.argv[1:]
heard = []
engine = Engine(resolve(Overrides(base_url=url, model="scripted", mode="yolo")), heard.append, attended=True)
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
time.sleep(60)
"""


def killed_at_work(server: ScriptedServer, folder: Path, tasks: list[str], *, ends: int) -> list[str]:
    """Starts a chat that says hello and these tasks, waits until `ends` of them have ended and the others have asked
    the model, and kills the program. Returns the ids of the tasks, then of the chat.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, server.base_url, str(folder), str(ends), *tasks],
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )
    assert process.stdout is not None
    try:
        ids = [process.stdout.readline().strip() for _task in [*tasks, ""]]
        assert all(ids)
        assert server.wait_until(lambda: server.open_requests == len(tasks) - ends)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert server.wait_until(lambda: server.open_requests == 0)
    return ids
