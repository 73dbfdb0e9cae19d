"""What `work` asks of the floors above it: agents made from specs, and conversations kept. Implements neither."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hermes_engine.agent.loop import Agent
from hermes_engine.errors import EndpointDown
from hermes_engine.messages import Message
from hermes_engine.protocols import AgentSpec, Job, Journal, Sandbox
from hermes_engine.redaction import Redactor
from hermes_engine.tools.permissions import Gate
from hermes_engine.tools.workspace import Workspace


@dataclass(slots=True)
class Hands:
    """What an agent acts with; it stays the agent's when model or tools change."""

    workspace: Workspace
    sandbox: Sandbox
    gate: Gate


class Maker(Protocol):
    """Makes agents from one set of settings: the assembly, as `work` sees it."""

    redactor: Redactor
    own_mode: str | None
    """The approval mode that its profile itself names."""
    own_model: str | None
    """The model that its profile itself names, or that goes with an address of the profile's own."""

    def spec(self, *, name: str, cwd: Path, kind: str = "chat", mode: str | None = None) -> AgentSpec:
        """The spec that the settings describe."""
        ...

    def hands(
        self,
        spec: AgentSpec,
        agent: str,
        *,
        above: Gate | None = None,
        on_job_end: Callable[[Job], None] | None = None,
    ) -> Hands:
        """What a new agent acts with; never freer than `above`."""
        ...

    async def build(
        self,
        spec: AgentSpec,
        *,
        agent: str,
        history: Sequence[Message] = (),
        journal: Journal | None = None,
        hands: Hands | None = None,
    ) -> Agent:
        """A working agent. Raises ConfigError or UsageError when the spec cannot be met."""
        ...

    async def on_profile(self, name: str, *, worker: bool = False) -> Maker:
        """The maker of agents on another profile; `worker`: of a board's. Raises UnknownName, ConfigError."""
        ...

    async def probe(self, spec: AgentSpec) -> EndpointDown | None:
        """Asks the spec's model for one token; the error when nobody answers. Any other refusal is an answer."""
        ...


class Keeper(Protocol):
    """Keeps conversations and records; each method returns when that is on disk."""

    async def open(self, spec: AgentSpec, *, title: str, parent: str) -> tuple[str, Journal | None]:
        """A new conversation below session `parent`: its id, and what keeps its messages."""
        ...

    def journal(self, session: str) -> Journal | None:
        """What keeps the messages of a conversation."""
        ...

    async def recorded(self) -> None:
        """Returns when everything said so far is on disk."""
        ...

    def delivered(self, agents: Sequence[str]) -> None:
        """The results of these agents have reached whom they were for."""
        ...

    def fact(self, session: str, key: str, value: object) -> None:
        """Keeps one fact about a conversation (title, usage, …)."""
        ...

    def let_go(self, session: str) -> None:
        """A conversation has ended here: any program may go on with it."""
        ...


class KeepsNothing:
    """A keeper where there is no store: rows of a batch run, throw-away chats."""

    def __init__(self) -> None:
        self._count = 0

    async def open(self, spec: AgentSpec, *, title: str, parent: str) -> tuple[str, Journal | None]:
        """An id that is unique below `parent`."""
        self._count += 1
        return f"{parent}/{spec.name}.{self._count}", None

    def journal(self, session: str) -> Journal | None:
        """None."""
        return None

    async def recorded(self) -> None:
        """Nothing is."""

    def delivered(self, agents: Sequence[str]) -> None:
        """Nobody asks later."""

    def fact(self, session: str, key: str, value: object) -> None:
        """Facts are not kept."""

    def let_go(self, session: str) -> None:
        """No other program has it."""

    def hold(self, session: str) -> None:
        """Nor could."""
