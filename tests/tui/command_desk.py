"""A front end without a screen, on a real engine and a scripted server: slash commands seen by what they say."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes_engine.errors import NotConfigured
from hermes_engine.events import Event, TurnFinished
from hermes_engine.profiles import Resolved, resolve
from hermes_engine.session import Engine
from hermes_engine.settings import Overrides
from hermes_tui.commands import Output, dispatch
from hermes_tui.commands.host import HostKind
from tests.conftest import Serve
from tests.server.scripted import Answer, ScriptedServer


class Desk:
    """A front end without a screen: a real `CommandHost` that keeps what it is told."""

    kind: HostKind = "repl"

    def __init__(self, resolved: Resolved, cwd: Path | None) -> None:
        self.events: list[Event] = []
        self._news = threading.Condition()
        self.resolved = resolved
        self._engine = Engine(resolved, self._hear, attended=True) if cwd else None
        self.session = ""
        if self._engine and cwd:
            self._engine.start()
            self.session = self._engine.open_session(cwd).id
        self.shown: list[Output] = []
        self.screens: dict[str, dict[str, str]] = {}
        self.has_screens = False
        self.quits = 0
        self.copied = ""
        self.draft = ""
        self.opened: list[str | None] = []

    @property
    def engine(self) -> Engine:
        """The engine; there is none before a model is set up."""
        if self._engine is None:
            raise NotConfigured("no model is set up yet")
        return self._engine

    def _hear(self, event: Event) -> None:
        with self._news:
            self.events.append(event)
            self._news.notify_all()

    def until(self, holds: Callable[[], object], timeout: float = 15) -> None:
        """Waits until a condition holds."""
        deadline = time.monotonic() + timeout
        while not holds():
            assert time.monotonic() < deadline, self.events[-5:]
            time.sleep(0.01)

    def turn(self, text: str) -> None:
        """Sends a message and waits for the turn's end."""
        done = self.finished
        self.engine.send(self.session, text)
        self.until(lambda: self.finished > done and not self.engine.busy(self.session))

    @property
    def finished(self) -> int:
        """How many turns have ended."""
        return sum(isinstance(event, TurnFinished) for event in self.events)

    def do(self, text: str) -> Output:
        """Dispatches a line that must run; what it said last."""
        before = len(self.shown)
        assert dispatch(text, self) == "ran"
        return self.shown[-1] if len(self.shown) > before else Output("text")

    def show(self, output: Output) -> None:
        self.shown.append(output)

    def open_screen(self, name: str, **options: str) -> bool:
        self.screens[name] = options
        return self.has_screens

    def ask_quit(self) -> None:
        self.quits += 1

    def copy(self, text: str) -> str:
        self.copied = text
        return "copied"

    def set_draft(self, text: str) -> None:
        self.draft = text

    def steer(self, text: str) -> None:
        self.engine.steer(self.session, text)

    def new_session(self) -> None:
        self.opened.append(None)

    def run_session(self, *, resume: str) -> None:
        self.opened.append(resume)

    def in_background(self, work: Callable[[], None]) -> None:
        work()


Sit = Callable[[list[Answer]], tuple[Desk, ScriptedServer]]


@pytest.fixture
def sit(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sit]:
    """`sit(script)` opens a desk on a scripted server, in an empty folder."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    desks: list[Desk] = []

    def open_one(script: list[Answer]) -> tuple[Desk, ScriptedServer]:
        server = serve(script)
        desk = Desk(resolve(Overrides(model="scripted", base_url=server.base_url)), folder)
        desks.append(desk)
        return desk, server

    yield open_one
    for desk in desks:
        desk.engine.close()


def said(output: Output) -> str:
    """Everything an output says."""
    return "\n".join([output.title, output.text, *("\t".join(row) for row in output.rows)])
