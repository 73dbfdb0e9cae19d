"""What the tests of worked boards share: an engine with a board over a scripted server, and the real program."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from hermes_engine.board import Board, Boards
from hermes_engine.events import Event
from hermes_engine.paths import Home
from hermes_engine.profiles import resolve
from hermes_engine.sandbox.processes import marks_of
from hermes_engine.session import Engine
from hermes_engine.settings import Overrides
from hermes_engine.settings.values import KanbanSettings
from tests.e2e.program import start
from tests.server.answers import Answer, Seen, call
from tests.server.scripted import ScriptedServer


class Shop:
    """An engine with a board, over a scripted server."""

    def __init__(self, server: ScriptedServer, cwd: Path, **flags: Any) -> None:
        self.server, self.cwd = server, cwd
        self.events: list[Event] = []
        self.resolved = resolve(Overrides(**{"base_url": server.base_url, "model": "m", **flags}))
        self.engine = Engine(self.resolved, self.events.append, attended=False)
        self.engine.start()

    @property
    def board(self) -> Board:
        """The board that is meant."""
        return self.engine.kanban.board()

    def work(self, **options: Any) -> int:
        """Works it until nothing is left; how many cards are blocked then."""
        return self.engine.kanban.work(cwd=self.cwd, once=True, **options)

    def working(self, **options: Any) -> threading.Thread:
        """The same on a thread."""
        thread = threading.Thread(target=self.work, kwargs=options)
        thread.start()
        return thread

    def first_requests(self) -> list[Seen]:
        """Those with which agents began."""
        return [seen for seen in self.server.requests if len(seen.messages) == 2]


OpenShop = Callable[..., Shop]


def finishing(seen: Seen) -> Answer:
    """A worker that completes its card at once."""
    return call("kanban_complete", {"summary": f"done: {first_line(seen)}"})


def first_line(seen: Seen) -> str:
    """`Card k1: title`, the first line of what a worker was told."""
    return str(seen.messages[1]["content"]).splitlines()[0]


def calls_made(seen: Seen) -> int:
    """Results of tools so far."""
    return sum(message["role"] == "tool" for message in seen.messages)


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Waits until it holds; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def board_of(home: Path, **rules: Any) -> Board:
    """The board of a home, opened beside the programs that work it; to be closed."""
    return Boards(Home(home), KanbanSettings(**rules)).open("default")


def profile(home: Path, name: str, *, soul: str = "", env: str = "", **config: str) -> None:
    """Makes a profile of the person's own."""
    folder = home / "profiles" / name
    folder.mkdir(parents=True)
    (folder / "profile.yaml").write_text(f"description: is a {name}\n")
    (folder / "SOUL.md").write_text(soul or f"You are the {name}.\n")
    if env:
        (folder / ".env").write_text(env)
    if config:
        (folder / "config.yaml").write_text("".join(f"{key}: {value}\n" for key, value in config.items()))


def run_board(server: ScriptedServer, cwd: Path, *words: str) -> subprocess.Popen[bytes]:
    """Starts `hermes kanban run WORDS` over the server."""
    return start("-m", "m", "kanban", "run", *words, cwd=cwd, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="k")


def told(process: subprocess.Popen[bytes], seconds: float = 60) -> tuple[int, str]:
    """Waits for its end: exit code and standard error."""
    _out, complaint = process.communicate(timeout=seconds)
    return process.returncode, complaint.decode()


def of_program(pid: int) -> list[psutil.Process]:
    """Live processes that carry a mark of commands of this program."""
    found = []
    for process in psutil.process_iter():
        marks = marks_of(process.pid) if process.pid != os.getpid() else frozenset()
        if any(mark.split(":")[0].split("-")[1:2] == [str(pid)] for mark in marks):
            found.append(process)
    return found
