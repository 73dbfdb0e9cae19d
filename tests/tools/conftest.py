"""What tests of tools share: a home of their own, a workspace, an agent's toolbox with real parts."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from hermes_engine.events import Emitter, Event
from hermes_engine.messages import ToolCall, ToolResult
from hermes_engine.paths import Home
from hermes_engine.redaction import Redactor
from hermes_engine.requests import Broker
from hermes_engine.sandbox.local import LocalSandbox
from hermes_engine.tools.context import ToolLimits
from hermes_engine.tools.permissions import Gate
from hermes_engine.tools.registry import Tool, registered
from hermes_engine.tools.toolbox import Toolbox, build_toolbox
from hermes_engine.tools.workspace import Workspace

SECRET = "sk-or-v1-a-secret-of-this-test"


@pytest.fixture
def user_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's home that is not the tester's."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("HERMES_STATE_DIR", raising=False)
    return folder


@pytest.fixture
def workspace(tmp_path: Path, user_home: Path) -> Workspace:
    """A working folder outside the home."""
    folder = tmp_path / "project"
    folder.mkdir()
    return Workspace(folder, Home(user_home / ".hermes"), outputs=user_home / ".hermes" / "outputs")


@dataclass
class Hands:
    """An agent's toolbox and what was heard of it."""

    toolbox: Toolbox
    workspace: Workspace
    sandbox: LocalSandbox
    gate: Gate
    broker: Broker
    events: list[Event] = field(default_factory=list)
    number: int = 0

    def emitter(self) -> Emitter:
        """One run's emitter."""
        return Emitter(self.events.append, session="s", run="r", agent="tester")

    async def call(self, name: str, **arguments: Any) -> ToolResult:
        """Calls a tool as a model would."""
        return await self.raw(name, json.dumps(arguments))

    async def raw(self, name: str, text: str) -> ToolResult:
        """Calls a tool with this argument text."""
        self.number += 1
        return await self.toolbox.call(ToolCall(f"call_{self.number}", name, text), self.emitter())

    def heard(self, kind: type[Event]) -> list[Any]:
        """Events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]


MakeHands = Callable[..., Hands]


@pytest_asyncio.fixture
async def make_hands(workspace: Workspace) -> AsyncIterator[MakeHands]:
    """Makes agents' hands; ends their processes afterwards."""
    made: list[Hands] = []

    def make(
        mode: str = "yolo",
        *,
        attended: bool = False,
        place: Workspace | None = None,
        agent: str = "tester",
        names: Sequence[str] | None = None,
        extra: Sequence[Tool] = (),
        limits: ToolLimits | None = None,
        **rules: Any,
    ) -> Hands:
        home = place or workspace
        broker, redactor = Broker(attended=attended), Redactor([SECRET])
        sandbox = LocalSandbox(agent=agent, outputs=home.outputs, redactor=redactor)
        gate = Gate(mode, broker, home, **rules)
        toolbox = build_toolbox(
            list(registered()) if names is None else names,
            agent=agent,
            workspace=home,
            sandbox=sandbox,
            gate=gate,
            redactor=redactor,
            extra=extra,
            limits=limits,
        )
        made.append(Hands(toolbox, home, sandbox, gate, broker))
        return made[-1]

    yield make
    for hands in made:
        await hands.toolbox.close()


@pytest.fixture
def hands(make_hands: MakeHands) -> Hands:
    """An agent that may do anything but the fixed list."""
    return make_hands()


@pytest_asyncio.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[LocalSandbox]:
    made = LocalSandbox(agent="tester", outputs=tmp_path / "outputs")
    yield made
    await made.close()
