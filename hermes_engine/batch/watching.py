"""Follows a run from its folder, whoever works it: the index files, and the row files as they grow.

Reads only what is new, a bounded piece at a time. Changes nothing, needs no lock, keeps no conversation: `recorded`
reads that of one row again. Every method blocks for the disk.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from hermes_engine.batch.folder import RunFolder
from hermes_engine.batch.ledger import identity
from hermes_engine.batch.overview import RunState, run_state
from hermes_engine.batch.statistics import number, usage_of
from hermes_engine.batch.trajectory import THOUGHT
from hermes_engine.errors import StateError
from hermes_engine.messages import Message, ToolCall, tool_message

PIECE = 4_000_000
"""Bytes of row files that are read in one look."""

_SHOWN = 120

Outcome = Literal["kept", "rejected", "failed"]


@dataclass(frozen=True, slots=True)
class RowLine:
    """What a settled row's line says, in short.

    Attributes:
        ident: which row it is; "" when the line does not say.
        index, sample: place of its line in the dataset from 0, and which of its samples.
        reason, kind: why it was rejected or failed, in words and as a stable word; how a kept one stopped.
        turns, reasoned: replies, and how many of them reason.
        tools, tokens, cost: calls, tokens and US dollars; None where nobody knows.
        retries, attempts: requests sent again; how often it failed.
        when: its end, in seconds since the epoch.
        prompt: first line of what was asked.
        file, offset, length: where its line is.
    """

    ident: str
    index: int
    sample: int
    outcome: Outcome
    reason: str
    kind: str
    turns: int
    reasoned: int
    tools: int
    tokens: int | None
    cost: float | None
    retries: int
    attempts: int
    when: float
    prompt: str
    file: Path
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Look:
    """What one look has found.

    Attributes:
        state: of the run.
        rows: lines that are new.
        void: files whose earlier lines no longer count, since they were written anew.
        more: whether there is more to be read at once.
    """

    state: RunState
    rows: tuple[RowLine, ...]
    void: frozenset[Path]
    more: bool


class RunWatch:
    """Follows one run."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self._read: dict[Path, tuple[int, int]] = {}
        """(inode, bytes read) of each row file."""

    def look(self) -> Look:
        """What is new since the last look; files that are gone or cannot be read count as empty."""
        state = run_state(self.folder)
        rows: list[RowLine] = []
        void: set[Path] = set()
        left = PIECE
        for path, outcome in self._files():
            if left <= 0:
                break
            for line in self._new(path, outcome, void, left):
                rows.append(line)
                left -= line.length
        return Look(state, tuple(rows), frozenset(void), left <= 0)

    def _files(self) -> list[tuple[Path, Outcome]]:
        batches = [self.folder.batch(which) for which in self.folder.batches()]
        return [(self.folder.failed, "failed"), (self.folder.rejected, "rejected"), *((one, "kept") for one in batches)]

    def _new(self, path: Path, outcome: Outcome, void: set[Path], most: int) -> Iterator[RowLine]:
        inode, read = self._read.get(path, (0, 0))
        try:
            found = path.stat()
            if found.st_size == read and found.st_ino == inode:
                return
            if read and (found.st_ino != inode or found.st_size < read):
                void.add(path)
                read = 0
            with path.open("rb") as stream:
                stream.seek(read)
                for line in stream:
                    if not line.endswith(b"\n"):
                        break
                    if (row := _row(line, outcome, path, read)) is not None:
                        yield row
                    read += len(line)
                    most -= len(line)
                    self._read[path] = found.st_ino, read
                    if most <= 0:
                        break
        except FileNotFoundError:
            if self._read.pop(path, None):
                void.add(path)
        except OSError:
            return


def _row(line: bytes, outcome: Outcome, path: Path, offset: int) -> RowLine | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    usage, reasoning = usage_of(record), _object(record.get("reasoning"))
    kinds = {"kept": "stop_reason", "rejected": "reject_reason", "failed": "error_kind"}
    reasons = {"kept": "stop_reason", "rejected": "reject_detail", "failed": "reason"}
    turns = record.get("conversations")
    first = turns[0] if isinstance(turns, list) and turns else {}
    return RowLine(
        identity(record),
        int(number(record, "prompt_index")),
        int(number(record, "sample")),
        outcome,
        str(record.get(reasons[outcome]) or ""),
        str(record.get(kinds[outcome]) or ""),
        int(number(reasoning, "turns")),
        int(number(reasoning, "with_reasoning")),
        sum(int(number(_object(item), "count")) for item in _object(record.get("tool_stats")).values()),
        usage.total_tokens if usage.tokens_known or usage.total_tokens else None,
        usage.cost_usd if usage.cost_known or usage.cost_usd else None,
        int(number(record, "retries")),
        int(number(record, "attempts")),
        _when(_object(record.get("metadata")).get("timestamp")),
        str(_object(first).get("value", "")).strip().partition("\n")[0][:_SHOWN],
        path,
        offset,
        len(line),
    )


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _when(told: Any) -> float:
    try:
        return datetime.fromisoformat(str(told)).timestamp()
    except ValueError:
        return 0.0


def recorded(row: RowLine) -> tuple[Message, ...]:
    """The conversation of a row, as its line has it.

    Raises:
        StateError: the line is no longer there.
    """
    try:
        with row.file.open("rb") as stream:
            stream.seek(row.offset)
            record = json.loads(stream.read(row.length))
        if row.ident != identity(record):
            raise ValueError("another row stands there now")
    except (OSError, ValueError, AttributeError) as error:
        raise StateError(f"the row cannot be read again from {row.file}: {error}") from None
    return messages_of(record.get("conversations"))


def messages_of(turns: Any) -> tuple[Message, ...]:
    """A record's turns as messages; results belong to the calls before them, in order."""
    messages: list[Message] = []
    open_calls: list[ToolCall] = []
    for item in turns if isinstance(turns, Sequence) else ():
        turn = _object(item)
        text = str(turn.get("value", ""))
        match turn.get("from"):
            case "gpt":
                open_calls = _calls(turn.get("tool_calls"), len(messages))
                thought = THOUGHT.match(text)
                reasoning = thought[2].strip() if thought else ""
                words = text[thought.end() :] if thought else text
                messages.append(Message("assistant", words, tuple(open_calls), reasoning=reasoning))
            case "tool" if open_calls:
                messages.append(tool_message(open_calls.pop(0), text))
            case "human":
                messages.append(Message("user", text))
    return tuple(messages)


def _calls(told: Any, place: int) -> list[ToolCall]:
    calls = []
    for which, item in enumerate(told if isinstance(told, list) else ()):
        call = _object(item)
        arguments = call.get("arguments")
        raw = _object(arguments).get("_raw") if len(_object(arguments)) == 1 else None
        text = raw if isinstance(raw, str) else json.dumps(arguments, ensure_ascii=False)
        calls.append(ToolCall(f"{place}-{which}", str(call.get("name", "")), text))
    return calls
