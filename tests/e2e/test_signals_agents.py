"""Signals to programs with agents at work, whose commands have started processes that do their best to get away."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import Serve
from tests.e2e.app import READY, AppTerminal
from tests.e2e.program import hermes, start
from tests.server.scripted import ScriptedServer, call, say
from tests.work.support import Say, by_prompt, spawn

pytestmark = pytest.mark.e2e

STOPS = (signal.SIGTERM, signal.SIGHUP)


def sleepers(mark: str) -> list[str]:
    """Processes that sleep for `mark` seconds."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if words[:1] == [b"sleep"] and mark.encode() in words:
            found.append(entry.name)
    return found


def script(mark: str) -> Say:
    """Children and a task whose commands start children, grandchildren and sessions of their own."""
    sleep = f"sleep {mark}"
    command = f"(setsid sh -c '{sleep} & {sleep}' &); nohup {sleep} >/dev/null 2>&1 & {sleep}"
    runs = [call("terminal", {"command": command}), say("never")]
    return by_prompt({"split": [spawn("child a", "child b"), say("never")], "child": runs, "task": runs})


@contextmanager
def at_work(front: str, server: ScriptedServer, folder: Path) -> Iterator[int]:
    """A program with two children at work, and but for a one-shot with a background task; its pid."""
    flags = ("--base-url", server.base_url, "-m", "m", "--mode", "yolo")
    if front == "chat":
        process = start(*flags, "chat", "-q", "split it", cwd=folder)
        with process:
            yield process.pid
        return
    with AppTerminal(*flags, *([] if front == "app" else [front]), cwd=folder) as terminal:
        terminal.until(READY if front == "app" else "❯", 30)
        terminal.press(*"/background task one", "enter")
        terminal.until("in the background")
        terminal.press(*"split it", "enter")
        yield terminal.pid
        terminal.ended(20)


@pytest.mark.parametrize("number", STOPS, ids=lambda number: number.name)
@pytest.mark.parametrize("front", ["app", "chat", "repl"])
def test_a_signal_leaves_no_process_and_true_records(
    front: str, number: signal.Signals, serve: Serve, tmp_path: Path
) -> None:
    mark = f"9123.{os.getpid()}{number:02}"
    server = serve(script(mark))
    agents = 2 if front == "chat" else 3
    try:
        with at_work(front, server, tmp_path) as pid:
            deadline = time.monotonic() + 40
            while len(sleepers(mark)) < 4 * agents and time.monotonic() < deadline:
                time.sleep(0.05)
            assert len(sleepers(mark)) == 4 * agents
            os.kill(pid, number)
        assert sleepers(mark) == []
    finally:
        subprocess.run(["kill", "-9", *sleepers(mark)], check=False, capture_output=True)
    assert server.wait_until(lambda: server.open_requests == 0)
    states = [record["state"] for record in json.loads(hermes("tasks", "list", "--json").out)]
    assert states == ["cancelled"] * agents
