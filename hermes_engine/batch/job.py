"""The plain values a row's work takes and gives: they cross threads, processes and nodes. Does nothing itself."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hermes_engine.errors import ServerFault, StreamBroken, StreamStalled
from hermes_engine.messages import NO_USAGE, Message, Usage
from hermes_engine.protocols import AgentSpec, Confined, ToolSchema

Draws = tuple[tuple[str, float], ...]
"""Toolset name and its odds from 0 to 1, in a fixed order."""


@dataclass(frozen=True, slots=True)
class Row:
    """One prompt of the dataset.

    Attributes:
        index: place of its line in the dataset, from 0.
        key: says that it is this row: content and which of equal ones; see `dataset.key_of`.
        prompt: what is asked.
        cwd: folder it runs in; None: its own fresh one.
        image: container image it names, or "".
        toolsets: sets it names; None: they are drawn.
        extra: JSON text of what else its line holds.
        sample: which of several samples of the prompt.
    """

    index: int
    key: str
    prompt: str
    cwd: Path | None = None
    image: str = ""
    toolsets: tuple[str, ...] | None = None
    extra: str = "{}"
    sample: int = 0

    @property
    def ident(self) -> str:
        """What tells the row's records from all others of the run."""
        return ident(self.key, self.sample)


def ident(key: str, sample: int) -> str:
    """Identity of a record: the row's key and its sample."""
    return f"{key}/{sample}"


def sample_of(row: str) -> int:
    """The sample in an identity."""
    return int(row.rpartition("/")[2])


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where the commands of a run's rows run.

    Attributes:
        kind: local | bubblewrap | container, of rows that name no image.
        containers: whether rows that name one may have it.
        image: of rows that name none, in containers.
        network: whether commands in a sandbox reach it.
        pull: whether an image that is not here is fetched.
        results: folder of the run, which no row's commands see.
    """

    kind: Literal["local", "bubblewrap", "container"] = "local"
    containers: bool = True
    image: str = ""
    network: bool = False
    pull: bool = False
    results: Path | None = None

    def against(self, row: Row) -> str:
        """Why a row cannot run as it wants to, or ""."""
        if row.image and not self.containers:
            return f"the row names an image ({row.image}), and the run is one of --sandbox local"
        if self.kind == "container" and not (row.image or self.image):
            return "the row names no image, and the run has none (--image)"
        return ""

    def confined(self, row: Row, folder: Path) -> Confined | None:
        """What is open to a row's commands; None: all that the person may."""
        kind = "container" if row.image else self.kind
        if kind == "local":
            return None
        folders = (folder,) if row.cwd is None else (folder, row.cwd)
        image = (row.image or self.image) if kind == "container" else ""
        hidden = (folder.parent, *((self.results,) if self.results else ()))
        return Confined(kind, folders, hidden, self.network, image, self.pull)


@dataclass(frozen=True, slots=True)
class Job:
    """What all rows of a run have in common.

    Attributes:
        run: name of the run.
        spec: of every row's agent; name, folder, toolsets and environment are the row's.
        draws: odds of each toolset.
        seed: of the run; a row's draw and seed come from it and the row's key.
        send_seed: whether requests carry the row's seed.
        history: messages put before each prompt.
        work: folder under which rows get their own.
        keep_work: whether those stay.
        surroundings: where commands run.
    """

    run: str
    spec: AgentSpec
    draws: Draws
    seed: int
    work: Path
    send_seed: bool = False
    history: tuple[Message, ...] = ()
    keep_work: bool = False
    surroundings: Surroundings = Surroundings()

    def seed_of(self, row: Row) -> int:
        """The row's own seed, 31 bits: the same whatever its place in the dataset."""
        digest = hashlib.blake2b(f"{self.seed}:{row.ident}".encode(), digest_size=4).digest()
        return int.from_bytes(digest, "big") & 0x7FFFFFFF

    def toolsets_of(self, row: Row) -> tuple[str, ...]:
        """The sets of the row, sorted: those it names, else each drawn on its own, at least one."""
        if row.toolsets is not None:
            return tuple(sorted(row.toolsets))
        chance = random.Random(self.seed_of(row))
        drawn = [name for name, odds in self.draws if chance.random() < odds]
        if not drawn and self.draws:
            best = max(odds for _, odds in self.draws)
            drawn = [chance.choice([name for name, odds in self.draws if odds == best])]
        return tuple(sorted(drawn))


@dataclass(frozen=True, slots=True)
class ToolCount:
    """Calls of one tool in one row."""

    count: int = 0
    success: int = 0
    failure: int = 0


@dataclass(frozen=True, slots=True)
class RowResult:
    """How a row's work ended, before it is judged.

    Attributes:
        stop_reason: done | max_turns | length | budget | timeout | cancelled | error.
        answer: final text, or the partial one.
        error, error_kind: one line and a stable word; "" when all is well.
        conversation: from the prompt on, without system message and prefilled ones.
        toolsets: the sets drawn, sorted.
        offered: names of the tools on offer.
        tools: calls by tool, invented names included.
        turns, api_calls, retries: replies; requests; how many of those were repeats.
        seconds: wall time.
        model: name sent to the endpoint.
        system_prompt, schemas: what the agent was given; the same objects in every row where they are equal.
        unheard: it failed before it got any reply, for a reason that may hold for every row.
    """

    stop_reason: str
    answer: str = ""
    error: str = ""
    error_kind: str = ""
    conversation: tuple[Message, ...] = ()
    toolsets: tuple[str, ...] = ()
    offered: tuple[str, ...] = ()
    tools: Mapping[str, ToolCount] = field(default_factory=dict)
    turns: int = 0
    api_calls: int = 0
    retries: int = 0
    usage: Usage = NO_USAGE
    seconds: float = 0.0
    model: str = ""
    system_prompt: str = ""
    schemas: Sequence[ToolSchema] = ()

    @property
    def unheard(self) -> bool:
        """Whether it failed before it got any reply, for a reason that may hold for every row: its first request was
        refused, or each try of it met a broken server."""
        if self.stop_reason != "error" or self.turns:
            return False
        return self.api_calls == 1 or (self.api_calls > 1 and self.error_kind in _BROKEN)

    @property
    def tool_calls(self) -> int:
        """Calls that got a result."""
        return sum(item.count for item in self.tools.values())


_BROKEN = (ServerFault.kind, StreamBroken.kind, StreamStalled.kind)

Record = dict[str, Any]
"""One line of `trajectories.jsonl`, see the contract."""
