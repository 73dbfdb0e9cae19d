"""What the batch tests share: a small agent that plays given turns, datasets, and reading a run's files back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hermes_engine.batch.health import Outage
from hermes_engine.batch.options import BatchOptions, checked
from hermes_engine.batch.runner import BatchRun, BatchSummary
from hermes_engine.batch.setup import Setup
from hermes_engine.errors import EndpointDown
from hermes_engine.events import BatchFinished, Emitter, Event, ReplyFinished, ToolFinished, TurnFinished, TurnStarted
from hermes_engine.messages import Message, ToolCall, ToolResult, Usage, tool_message, user
from hermes_engine.profiles import resolve
from hermes_engine.protocols import AgentSpec, Toolbox, ToolSchema, TurnResult
from hermes_engine.settings import Overrides
from hermes_engine.toolsets import tools_of


@dataclass(frozen=True)
class Tools:
    """A toolbox that only names its tools."""

    names: tuple[str, ...]

    def schemas(self) -> Sequence[ToolSchema]:
        """One bare definition a tool."""
        return [{"type": "function", "function": {"name": name, "parameters": {}}} for name in self.names]

    async def call(self, call: ToolCall, emit: Emitter) -> ToolResult:
        """Answers with its name."""
        return ToolResult(call.name)

    async def close(self) -> None:
        """Has nothing to end."""


@dataclass
class Played:
    """How a row goes: the messages after the prompt, and how it ends."""

    messages: Sequence[Message] = ()
    stop_reason: str = "done"
    error: str = ""
    error_kind: str = ""
    api_calls: int = 1
    retries: int = 0
    usage: Usage = field(default_factory=lambda: Usage(10, 5, 1))
    statuses: Mapping[str, str] = field(default_factory=dict)


Player = Callable[[str, AgentSpec], "Played | Awaitable[Played]"]


def thinks(text: str = "Done.", thought: str = "I need to answer.") -> Played:
    """A reasoned answer."""
    return Played([Message("assistant", text, reasoning=thought)])


def uses(name: str = "terminal", arguments: str = '{"command": "ls"}', *, status: str = "ok") -> Played:
    """One call, then a reasoned answer."""
    call = ToolCall("call_1", name, arguments)
    return Played(
        [
            Message("assistant", "", (call,), reasoning="I look."),
            tool_message(call, "README.md"),
            Message("assistant", "One file."),
        ],
        api_calls=2,
        statuses={name: status},
    )


def fails(kind: str, error: str = "no", *, turns: int = 0, api_calls: int = 1) -> Played:
    """A row that ends in an error."""
    said = [Message("assistant", "half", reasoning="hm")] * turns
    return Played(said, "error", error, kind, api_calls=api_calls)


class PlayedAgent:
    """Plays a row."""

    def __init__(self, spec: AgentSpec, history: Sequence[Message], player: Player) -> None:
        self.spec, self.player = spec, player
        self.messages = [Message("system", "You are a test."), *history]
        self.toolbox: Toolbox = Tools(tools_of(spec.toolsets))
        self.closed = False

    async def run(self, prompt: str, emit: Emitter) -> TurnResult:
        """Takes the one turn."""
        emit(TurnStarted, prompt=prompt)
        self.messages.append(user(prompt))
        played = self.player(prompt, self.spec)
        if not isinstance(played, Played):
            played = await played
        self.messages.extend(played.messages)
        said = [message for message in played.messages if message.role == "assistant"]
        for message in said:
            emit(ReplyFinished, text=message.content)
            for call in message.tool_calls:
                emit(ToolFinished, name=call.name, status=played.statuses.get(call.name, "ok"))
        emit(TurnFinished)
        return TurnResult(
            "ok" if played.stop_reason == "done" else "error",
            answer=said[-1].content if said else "",
            error=played.error,
            stop_reason=played.stop_reason,
            turns=len(said),
            api_calls=played.api_calls,
            retries=played.retries,
            usage=played.usage,
            error_kind=played.error_kind,
        )

    def steer(self, text: str) -> None:
        """Is never steered."""

    async def close(self) -> None:
        """Notes it."""
        self.closed = True


class PlayedAgents:
    """Builds agents that play; keeps the prompts and specs they got, and how many were at work at once."""

    def __init__(self, player: Player) -> None:
        self.player = player
        self.specs: list[AgentSpec] = []
        self.prompts: list[str] = []
        self.most = self._now = 0
        self.outage: Outage | None = None
        self.probed: EndpointDown | None = None
        self.probes = 0
        self.closed = False

    async def build(self, spec: AgentSpec, *, history: Sequence[Message] = ()) -> PlayedAgent:
        """An agent for a row."""
        self.specs.append(spec)
        return PlayedAgent(spec, history, self._counted)

    async def _counted(self, prompt: str, spec: AgentSpec) -> Played:
        self.prompts.append(prompt)
        self._now += 1
        self.most = max(self.most, self._now)
        try:
            played = self.player(prompt, spec)
            if not isinstance(played, Played):
                return await played
            await asyncio.sleep(0)
            return played
        finally:
            self._now -= 1

    async def probe(self, spec: AgentSpec) -> EndpointDown | None:
        """Says what a test says, and how often it was asked."""
        self.probes += 1
        return self.probed

    async def close(self) -> None:
        """Notes it."""
        self.closed = True


@dataclass
class Ran:
    """A run that ended, and everything to look at."""

    summary: BatchSummary
    events: list[Event]
    agents: PlayedAgents
    folder: Path

    def rows(self, name: str = "trajectories.jsonl") -> list[dict[str, Any]]:
        """The rows of a file."""
        return read_rows(self.folder / name)

    def json(self, name: str) -> dict[str, Any]:
        """A JSON file."""
        value: dict[str, Any] = json.loads((self.folder / name).read_bytes())
        return value

    def heard(self, kind: type[Event]) -> list[Any]:
        """The events of a kind."""
        return [event for event in self.events if isinstance(event, kind)]


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The lines of a file, split at LF and nothing else."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def dataset(path: Path, rows: Sequence[Any]) -> Path:
    """A dataset of prompts (texts), rows (objects) or raw lines (bytes)."""
    lines = []
    for row in rows:
        if isinstance(row, bytes):
            lines.append(row)
        else:
            lines.append(json.dumps({"prompt": row} if isinstance(row, str) else row).encode())
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def options(tmp_path: Path, **values: Any) -> BatchOptions:
    """Options of a run named `run` in `tmp_path/data`."""
    base: dict[str, Any] = {"run_name": "run", "output_dir": tmp_path / "data"}
    if not values.get("resume"):
        base["sandbox"] = "local"  # the same on every machine; what `auto` finds has tests of its own
    if "dataset_file" not in values and (tmp_path / "prompts.jsonl").exists():
        base["dataset_file"] = tmp_path / "prompts.jsonl"
    return checked({**base, **values})


def play(tmp_path: Path, player: Player, *, prepare: Callable[[BatchRun], None] | None = None, **values: Any) -> Ran:
    """Runs a batch whose rows are played; `prepare` gets the run before it starts."""
    events: list[Event] = []
    agents = PlayedAgents(player)

    def make(_setup: Setup, outage: Outage) -> PlayedAgents:
        agents.outage = outage
        return agents

    given = options(tmp_path, **{"model": "demo", **values})
    run = BatchRun(given, resolve(Overrides()), events.append, make_agents=make)
    if prepare:
        prepare(run)
    summary = run.run()
    return Ran(summary, events, agents, given.folder)


def changed(record: Mapping[str, Any], **values: Any) -> dict[str, Any]:
    """A copy of a record with some keys changed."""
    return {**record, **values}


def by_prompt(table: dict[str, Played]) -> Player:
    """Plays the prompts of a table, and a reasoned answer for all others."""
    return lambda prompt, spec: table.get(prompt, thinks())


def adds_up(ran: Ran) -> None:
    """Files, statistics, checkpoint and the last event say the same, and it adds up."""
    counts = dict(ran.summary.counts)
    assert sum(counts.values()) == 2 * counts["total"]
    assert ran.json("statistics.json")["rows"] == counts
    assert ran.json("checkpoint.json")["rows"] == counts
    assert ran.heard(BatchFinished)[-1].counts == counts
    assert len(ran.rows()) == counts["kept"]
    assert len(ran.rows("failed.jsonl")) == counts["failed"]
    assert len(ran.rows("rejected.jsonl")) == counts["rejected"]
