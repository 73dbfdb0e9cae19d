"""Runs rows of a run again from what was recorded of its model: the same replies, the tools for real or remembered.

Says, step by step, what came out differently. Writes nothing into the run and asks no model.
"""

from __future__ import annotations

import dataclasses
import json
import secrets
import tempfile
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hermes_engine.agent.repetition import NOTE
from hermes_engine.batch.dataset import Dataset, Place
from hermes_engine.batch.export.groups import samples_of
from hermes_engine.batch.export.kept import settled_rows
from hermes_engine.batch.folder import WORK_PREFIX, RunFolder
from hermes_engine.batch.job import Record, ident
from hermes_engine.batch.ledger import identity
from hermes_engine.batch.options import BatchOptions
from hermes_engine.batch.recording import Tape, asked, placeless, reply_of, unpacked
from hermes_engine.batch.rows import RowAgents, remove_tree, run_row
from hermes_engine.batch.setup import Setup, set_up
from hermes_engine.batch.trajectory import turn
from hermes_engine.cleaning import one_line
from hermes_engine.errors import EndpointDown, ProviderError, UsageError
from hermes_engine.events import Emitter
from hermes_engine.messages import Message, Reply, ToolCall, ToolResult
from hermes_engine.profiles import Resolved, resolve
from hermes_engine.protocols import AgentSpec, Client, DeltaSink, ModelRequest, RunningAgent, Toolbox, ToolSchema
from hermes_engine.redaction import Redactor

OVER = "record_over"
MOST_TOLD = 20
"""Differences of one row that are named."""

_CUT_SHORT = ("timeout", "cancelled", "budget")
_SHOWN = 80
_NOTE = NOTE.partition("{")[0]


@dataclass(slots=True)
class Replayed:
    """A row that ran again.

    Attributes:
        index, sample: which one.
        outcome: kept | rejected | failed, at that time.
        steps: replies that were played.
        differences: each in a line, with its step; none: the conversation is the same.
    """

    index: int
    sample: int
    outcome: str
    steps: int = 0
    differences: list[str] = field(default_factory=list)


class _Player:
    """Plays one row's tape."""

    def __init__(self, tape: Tape) -> None:
        self._left = list(tape.exchanges)
        self.window = tape.window
        self.steps = 0
        self.form_differs: list[int] = []
        self.over = False

    @property
    def left(self) -> int:
        """Replies nobody asked for."""
        return sum("reply" in exchange for exchange in self._left)

    def next(self, request: ModelRequest) -> Reply:
        """The reply that was given to this request, else the next one. Raises ProviderError as the model did."""
        marks = asked(request)
        equal = [exchange for exchange in self._left if exchange["messages"] == marks["messages"]]
        chosen = next((one for one in equal if "reply" in one), None)
        chosen = chosen or next((one for one in self._left if "reply" in one), None)
        if chosen is None:
            self.over = True
            fault = self._left[-1]["error"] if self._left else {"kind": OVER, "text": "the record has no further reply"}
            error = ProviderError(fault["text"])
            error.kind = fault["kind"]
            raise error
        self._left.remove(chosen)
        self.steps += 1
        if chosen["form"] != marks["form"]:
            self.form_differs.append(self.steps)
        return reply_of(chosen["reply"])


_PLAYER: ContextVar[_Player] = ContextVar("player")


class ReplayClient:
    """The model of a row that runs again. Implements `protocols.Client`; `around` a client that is never asked."""

    def __init__(self, inner: Client) -> None:
        self._inner = inner

    async def complete(self, request: ModelRequest, on_delta: DeltaSink | None = None) -> Reply:
        """See `protocols.Client`."""
        return _PLAYER.get().next(request)

    async def context_window(self, model: str) -> int | None:
        """See `protocols.Client`."""
        return _PLAYER.get().window

    async def close(self) -> None:
        """See `protocols.Client`."""
        await self._inner.close()


class _Remembered:
    """Tools that run nothing: each call gets the result it had. Implements `protocols.Toolbox`."""

    def __init__(self, real: Toolbox, results: Sequence[str]) -> None:
        self._real, self._results = real, iter(results)

    @property
    def names(self) -> Sequence[str]:
        return self._real.names

    def schemas(self) -> Sequence[ToolSchema]:
        return self._real.schemas()

    async def call(self, call: ToolCall, emit: Emitter) -> ToolResult:
        return ToolResult(next(self._results, ""))

    async def close(self) -> None:
        await self._real.close()


class _Agents:
    """Builds the agents of rows that run again; with results to remember, tools are not run."""

    def __init__(self, inner: RowAgents) -> None:
        self.inner = inner
        self.results: list[str] | None = None

    async def build(self, spec: AgentSpec, *, history: Sequence[Message] = ()) -> RunningAgent:
        agent = await self.inner.build(spec, history=history)
        if self.results is not None:
            agent.toolbox = _Remembered(agent.toolbox, self.results)
        return agent

    async def probe(self, spec: AgentSpec) -> EndpointDown | None:
        return None

    async def close(self) -> None:
        await self.inner.close()


def tapes(folder: RunFolder) -> dict[str, tuple[int, int]]:
    """Where each recorded row's last line stands in `exchanges.jsonl`: offset and length.

    Raises:
        UsageError: the run was not recorded.
    """
    found: dict[str, tuple[int, int]] = {}
    offset = 0
    if folder.exchanges.exists():
        with folder.exchanges.open("rb") as stream:
            for line in stream:
                if line.endswith(b"\n"):
                    found[_row_of(line)] = (offset, len(line))
                offset += len(line)
    if not found:
        raise UsageError(f"the run {folder.root.name} was not recorded", hint="give --record when it runs")
    return found


def _row_of(line: bytes) -> str:
    """The row a line is of, which stands at its beginning: the rest may be long."""
    return line[:200].partition(b'"row": "')[2].partition(b'"')[0].decode("ascii", "replace")


async def replay(
    options: BatchOptions, resolved: Resolved, *, index: int | None = None, no_tools: bool = False
) -> AsyncGenerator[Replayed]:
    """Runs recorded rows again, one after another.

    Args:
        options: name the run; all else is the run's own.
        resolved: settings in effect.
        index: only the rows of this place in the dataset.
        no_tools: calls get the results that the record has, and nothing is run.

    Raises:
        UsageError: the run was not recorded, or not this row; its dataset cannot be read.
        ConfigError: its settings cannot be met.
    """
    from hermes_engine import assembly  # loads clients and tools

    setup = set_up(options, _unasked(resolved, RunFolder(options.folder).settings()))
    if setup.spec.system_prompt is None and (prompt := setup.stored.get("system_prompt")):
        setup = dataclasses.replace(setup, spec=dataclasses.replace(setup.spec, system_prompt=prompt))
    dataset = setup.dataset()
    work = Path(tempfile.mkdtemp(prefix=WORK_PREFIX))
    inner = assembly.RowAgents(setup.resolved, pool_limit=1, around=ReplayClient)
    try:
        async for told in _rows(setup, dataset, work, _Agents(inner), index, no_tools=no_tools):
            yield told
    finally:
        dataset.close()
        await inner.close()
        remove_tree(work)


def _unasked(resolved: Resolved, run: Mapping[str, Any]) -> Resolved:
    """The settings with the run's own address, so that the model has the same name there, and with a key that is none:
    nothing is sent, and nobody has to have one.
    """
    url = run.get("endpoint", {}).get("base_url")
    if not url:
        return resolved
    return resolve(dataclasses.replace(resolved.overrides, base_url=url, api_key=secrets.token_hex(16)), resolved.env)


async def _rows(
    setup: Setup, dataset: Dataset, work: Path, agents: _Agents, index: int | None, *, no_tools: bool
) -> AsyncGenerator[Replayed]:
    folder, known = setup.folder, tapes(setup.folder)
    places = _places(dataset, samples_of(folder), index)
    if not any(row in known for row in places):
        which = "none of the dataset's rows is" if index is None else f"row {index} is not"
        raise UsageError(f"{which} among the {len(known)} recorded ones")
    job = setup.job(work)
    redactor = Redactor(setup.resolved.secrets)
    with folder.exchanges.open("rb") as stream:
        for outcome, record in settled_rows(folder):
            row = identity(record)
            if row not in places or row not in known:
                continue
            offset, length = known[row]
            stream.seek(offset)
            player = _Player(unpacked(json.loads(stream.read(length))))
            _PLAYER.set(player)
            agents.results = _results(record) if no_tools else None
            result = await run_row(dataset.row(places[row], record["sample"]), job, _unheard, agents)
            told = Replayed(places[row].index, record["sample"], outcome, player.steps)
            now = [turn(message, redactor) for message in result.conversation]
            told.differences = list(_differences(record, now, player, result.stop_reason))[:MOST_TOLD]
            yield told


def _places(dataset: Dataset, samples: int, index: int | None) -> dict[str, Place]:
    found = (place for place in dataset.scan() if isinstance(place, Place) and index in (None, place.index))
    return {ident(place.key, sample): place for place in found for sample in range(samples)}


def _results(record: Record) -> list[str]:
    return [entry["value"].partition(_NOTE)[0] for entry in record["conversations"] if entry["from"] == "tool"]


def _unheard(event: object) -> None:
    """Nobody looks on."""


def _differences(record: Record, now: Sequence[dict[str, Any]], player: _Player, stop: str) -> Iterator[str]:
    """What is not as it was, in the order of the steps."""
    before: Sequence[dict[str, Any]] = record["conversations"]
    for step in player.form_differs:
        yield f"step {step}: the request differs in model, tools, sampling or instructions"
    step = 0
    names: list[str] = []
    for was, is_now in zip(before, now, strict=False):
        if was["from"] == "gpt":
            step += 1
            names = [call["name"] for call in was.get("tool_calls", ())]
        name = names.pop(0) if was["from"] == "tool" and names else ""
        if _plain(was) != _plain(is_now):
            what = f"the result of {name}" if name else f"what {was['from']} said"
            yield f"step {step}: {what} was {_line(was, is_now)}, is {_line(is_now, was)}"
    if len(before) != len(now) and not (player.over and record["stop_reason"] in _CUT_SHORT):
        yield f"it had {len(before)} turns, and has {len(now)}"
    elif player.left and record["stop_reason"] not in _CUT_SHORT:
        yield f"{player.left} further replies were not asked for"
    elif stop != record["stop_reason"] and "error" not in (stop, record["stop_reason"]):
        yield f"it ended by {record['stop_reason']}, and ends by {stop}"


def _plain(entry: dict[str, Any]) -> str:
    return placeless(json.dumps(entry, ensure_ascii=False, sort_keys=True))


def _line(entry: dict[str, Any], other: dict[str, Any]) -> str:
    """The first line in which a turn differs from the other."""
    lines, others = (str(one["value"]).split("\n") for one in (entry, other))
    for place, line in enumerate(lines):
        if place >= len(others) or placeless(line) != placeless(others[place]):
            return f"“{one_line(line, _SHOWN)}”"
    return "shorter" if len(lines) < len(others) else "otherwise in its calls"
