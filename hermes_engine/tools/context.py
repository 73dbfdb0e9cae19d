"""What a running tool is given. A tool that needs more is made with it by whoever makes the toolbox."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hermes_engine.events import Emitter
from hermes_engine.protocols import Sandbox
from hermes_engine.requests import Answer, Question
from hermes_engine.settings.values import WebSettings
from hermes_engine.tools.permissions import Gate
from hermes_engine.tools.workspace import Workspace


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """What the settings allow tools.

    Attributes:
        command_seconds: time a command may take when the call names none.
        web: what the web tool may reach.
    """

    command_seconds: float = 120.0
    web: WebSettings = field(default_factory=WebSettings)


@dataclass(frozen=True, slots=True)
class ToolContext:
    """One call's surroundings.

    Attributes:
        agent: id of the agent.
        workspace: its place.
        sandbox: where its commands run.
        gate: its permissions.
        limits: see ToolLimits.
        emit: the run's emitter, for tools that start runs of their own.
        call_id: of this call.
        progress: shows the latest line or two; may be called as often as one likes.
    """

    agent: str
    workspace: Workspace
    sandbox: Sandbox
    gate: Gate
    limits: ToolLimits
    emit: Emitter
    call_id: str
    progress: Callable[[str], None]

    async def ask(self, question: str, choices: Sequence[str] = ()) -> Answer:
        """Asks the person; where nobody can answer, the answer says so at once."""
        return await self.gate.broker.ask(Question(self.call_id, question, tuple(choices)), self.emit)
