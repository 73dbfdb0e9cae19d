"""The engine's whole contract on one page: what its parts ask of each other. No part is implemented here.

`Client` asks a model, `Toolbox` runs calls, `Sandbox` runs commands, `Store` keeps sessions; `Sink` (in `events`)
hears it all. What makes agents out of specs is asked of `work.maker.Maker`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from hermes_engine.events import Emitter, RunStatus
from hermes_engine.messages import NO_USAGE, Message, Reply, ToolCall, ToolResult, Usage
from hermes_engine.redaction import Redactor

ToolSchema = Mapping[str, Any]
"""One OpenAI tool definition: {"type": "function", "function": {"name", "description", "parameters"}}."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request to a model.

    Attributes:
        model: name as the endpoint wants it.
        messages: the whole conversation, system message first where there is one.
        tools: definitions on offer; empty = the `tools` field is absent.
        sampling: max_tokens, temperature, top_p, seed, stop, …: sent as they are.
        extra_body: further body fields of this endpoint.
        reasoning_effort: none | minimal | low | medium | high | xhigh, or None to leave it out.
        tokens: whether the reply is to come with its tokens, where the server tells them.
        answer_schema: JSON schema that the answer is held to where the server enforces schemas (`tool_mode:
            json_schema`) and no tools are on offer; the prompt says the same for all others.
        must_call: nobody reads an answer, so that only calls are on offer where the server enforces schemas.
    """

    model: str
    messages: Sequence[Message]
    tools: Sequence[ToolSchema] = ()
    sampling: Mapping[str, Any] = field(default_factory=dict)
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    reasoning_effort: str | None = None
    tokens: bool = False
    answer_schema: Mapping[str, Any] | None = None
    must_call: bool = False


class DeltaSink(Protocol):
    """Hears the pieces of a reply while it streams."""

    def __call__(self, *, text: str = "", reasoning: str = "") -> None:
        """Exactly one of the two is not empty."""


class Client(Protocol):
    """A model behind an endpoint. One try a call: retrying is `agent.ask`'s alone."""

    async def complete(self, request: ModelRequest, on_delta: DeltaSink | None = None) -> Reply:
        """Streams one reply to its end. Raises a ProviderError; cancellation closes the connection."""
        ...

    async def context_window(self, model: str) -> int | None:
        """Tokens that fit, where the endpoint tells; None when unknown. Never raises, asks at most once."""
        ...

    async def close(self) -> None:
        """Closes connections."""
        ...


class CutOff(asyncio.CancelledError):
    """A call was stopped that had brought or cost something already; `result` is that."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__()
        self.result = result


class Toolbox(Protocol):
    """The tools one agent has, bound to its workspace, permissions and processes."""

    @property
    def names(self) -> Sequence[str]:
        """Names on offer, in the order of the schemas."""
        ...

    def schemas(self) -> Sequence[ToolSchema]:
        """What goes into the request; the same objects each time."""
        ...

    async def call(self, call: ToolCall, emit: Emitter) -> ToolResult:
        """Checks, asks for approval, runs, cuts and redacts. Emits ToolStarted/ToolProgress/ToolFinished.

        Never raises but for CancelledError: an unknown name, bad arguments and faults become results.
        """
        ...

    async def close(self) -> None:
        """Ends what the agent's tools still run (background processes)."""
        ...


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a shell command ended.

    Attributes:
        exit_code: 0-255, or −N for signal N; None while it still runs (background).
        output: decoded, cleaned, bounded to head and tail.
        full_output: file with everything, when `output` was cut.
        timed_out: the time limit ended it.
        seconds: wall time.
        cwd: the working directory afterwards; None when the command did not tell.
        still_running: what it started and left behind, "PID NAME" each; ended when the sandbox closes.
    """

    exit_code: int | None
    output: str
    full_output: Path | None = None
    timed_out: bool = False
    seconds: float = 0.0
    cwd: Path | None = None
    still_running: tuple[str, ...] = ()


JobState = Literal["running", "done", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class Job:
    """A command in the background, as it is at one moment.

    Attributes:
        id: "p1", "p2", … within its sandbox.
        command: as it was given.
        cwd: folder it was started in.
        state: running | done (exit 0) | failed (any other end) | cancelled (ended on purpose).
        started, ended: seconds since the epoch; ended is None while it runs.
        exit_code: 0-255, or −N for signal N; None while it runs.
        output: cleaned, bounded to head and tail.
        full_output: file with everything, when there is more than `output` holds.
        total_bytes: how much it has written so far.
    """

    id: str
    command: str
    cwd: Path
    state: JobState
    started: float
    ended: float | None = None
    exit_code: int | None = None
    output: str = ""
    full_output: Path | None = None
    total_bytes: int = 0


class Sandbox(Protocol):
    """Where an agent's commands run."""

    async def run(
        self,
        command: str,
        *,
        cwd: Path,
        timeout: float | None,
        env: Mapping[str, str],
        on_output: Callable[[str], None] | None = None,
    ) -> CommandResult:
        """Runs a command to its end; on cancellation or timeout ends its whole process tree first."""
        ...

    async def start(self, command: str, *, cwd: Path, env: Mapping[str, str]) -> Job:
        """Runs a command in the background. A launch that fails is a job that already `failed`."""
        ...

    def job(self, key: str) -> Job:
        """A background command as it is now. Raises UnknownName."""
        ...

    def jobs(self) -> Sequence[Job]:
        """All background commands, oldest first, ended ones too."""
        ...

    async def wait(self, key: str, timeout: float | None) -> Job:
        """The job when it has ended, or as it is after `timeout` seconds. Raises UnknownName."""
        ...

    async def kill(self, key: str) -> Job:
        """Ends a background command with its whole tree; one that has ended stays as it is. Raises UnknownName."""
        ...

    async def close(self) -> None:
        """Ends every process it started."""
        ...


@dataclass(frozen=True, slots=True)
class Confined:
    """What is open to commands that may not see all of this machine, as plain data.

    Attributes:
        kind: bubblewrap | container.
        folders: may be read and written, at their own paths. The first is theirs alone, and their HOME.
        hidden: folders that are empty for them where they lie in an open one.
        network: whether they reach the network.
        image: of the container.
        pull: whether an image that is not here is fetched.
    """

    kind: Literal["bubblewrap", "container"]
    folders: tuple[Path, ...]
    hidden: tuple[Path, ...] = ()
    network: bool = False
    image: str = ""
    pull: bool = False


class Box(Protocol):
    """Closed surroundings that the commands of an agent and of those it starts share.

    Attributes:
        folders: real paths of what is open; other files of this machine are not there for commands, and file tools
            must not reach what commands cannot. The first is theirs alone.
        hidden: real paths of what is empty for them although it lies in an open folder.
        outputs: folder for full outputs, which may be read.
    """

    folders: tuple[Path, ...]
    hidden: tuple[Path, ...]
    outputs: Path

    async def open(self) -> None:
        """Makes it, once; the first command does so too. Raises SandboxFault."""
        ...

    def sandbox(
        self,
        agent: str,
        *,
        redactor: Redactor | None = None,
        on_job_end: Callable[[Job], None] | None = None,
        owner: bool = False,
    ) -> Sandbox:
        """The commands of one agent in it; when the owner's sandbox closes, the box does."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """What ends a turn. None = no limit.

    Attributes:
        max_turns: requests to the model in one turn.
        timeout_seconds: wall time of one turn.
        max_cost_usd: money of one turn.
        max_total_tokens: tokens of one turn, asked and said.
    """

    max_turns: int | None = 90
    timeout_seconds: float | None = None
    max_cost_usd: float | None = None
    max_total_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """What makes an agent, as plain data: it crosses threads, processes and nodes.

    Attributes:
        name: short, for people; unique among its siblings.
        kind: chat | child | background | worker | row.
        model: as typed; the assembly translates it for the endpoint.
        profile: whose instructions and settings it has.
        toolsets: names of sets on offer; () = no tools.
        cwd: folder it works in.
        mode: ask | edits | plan | auto | yolo.
        limits: of one turn.
        sampling, extra_body, reasoning_effort, tokens, answer_schema, must_call: see ModelRequest.
        system_prompt: replaces the built one when not None ("" = no system message at all).
        role: what is said to the agent about its part, at the end of its system message.
        env: extra environment of its commands (a row's HOME, …).
        depth: generations above it; 0 for what a person or a batch run starts.
        in_folder: the folder and its project's notes are told; rows, whose folders differ, share one prompt instead.
        confined: what its commands and file tools may see; None: all that the person may.
    """

    name: str
    kind: str = "chat"
    model: str = ""
    profile: str = "default"
    toolsets: tuple[str, ...] = ()
    cwd: Path = Path()
    mode: str = "ask"
    limits: Limits = field(default_factory=Limits)
    sampling: Mapping[str, Any] = field(default_factory=dict)
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    reasoning_effort: str | None = None
    tokens: bool = False
    answer_schema: Mapping[str, Any] | None = None
    must_call: bool = False
    system_prompt: str | None = None
    role: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    depth: int = 0
    in_folder: bool = True
    confined: Confined | None = None


@dataclass(frozen=True, slots=True)
class TurnResult:
    """How a turn ended.

    Attributes:
        status: ok | error | timeout | cancelled | max_turns.
        answer: final text, or the partial one.
        error: one line, "" when ok.
        stop_reason: done | max_turns | length | budget | timeout | cancelled | error.
        turns: model requests that gave a reply.
        api_calls, retries: requests sent; how many of them were repeats.
        tool_calls: calls that got a result.
        error_kind: `ProviderError.kind` or the like, "" when ok; `exception` is the error itself.
    """

    status: RunStatus
    answer: str = ""
    error: str = ""
    stop_reason: str = "done"
    turns: int = 0
    api_calls: int = 0
    retries: int = 0
    tool_calls: int = 0
    usage: Usage = NO_USAGE
    error_kind: str = ""
    exception: Exception | None = None


class Journal(Protocol):
    """Keeps a conversation as it grows; each method returns when the change is kept."""

    async def append(self, messages: Sequence[Message]) -> None:
        """Messages joined at the end."""
        ...

    async def replace(self, messages: Sequence[Message]) -> None:
        """The conversation was shortened to these."""
        ...


class RunningAgent(Protocol):
    """An agent that can take turns."""

    spec: AgentSpec
    messages: list[Message]
    toolbox: Toolbox

    async def run(self, prompt: str, emit: Emitter) -> TurnResult:
        """One turn: until the model answers without calls or a limit ends it.

        Never raises but for CancelledError, and then leaves `messages` valid.
        """
        ...

    def steer(self, text: str) -> None:
        """Adds a user message before the next request of the running turn."""
        ...

    async def close(self) -> None:
        """Ends its processes; the client is shared and stays."""
        ...


class Store(Protocol):
    """Keeps sessions. Every method returns after the change is on disk; blocking, called from a named pool."""

    def create_session(self, *, cwd: Path, model: str, profile: str, kind: str = "chat", parent: str = "") -> str:
        """A new session's id."""
        ...

    def append(self, session: str, messages: Sequence[Message]) -> None:
        """Adds messages at the end."""
        ...

    def replace(self, session: str, messages: Sequence[Message]) -> None:
        """Makes the live conversation these messages (compaction); the old ones stay in the archive."""
        ...

    def load(self, session: str) -> list[Message]:
        """The conversation, made valid. Raises StateError for an unknown id."""
        ...
