"""Keeps what a run's model was asked and said, row by row, so that rows can be run again without it.

A line of `exchanges.jsonl` holds the exchanges of one row, compressed, without secrets: of each request two hashes, of
each reply the whole, of each fault what it said and what of a reply had come. Written before the row's own line, so
that no row lacks it after a kill; of a row that ran more than once the last line counts.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
import zlib
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from hermes_engine.batch.files import Appender, cut_torn_end
from hermes_engine.batch.folder import WORK_PREFIX, RunFolder
from hermes_engine.batch.trajectory import line_of
from hermes_engine.errors import EndpointDown, ProviderError
from hermes_engine.messages import Message, Reply, ToolCall, Usage
from hermes_engine.protocols import Client, DeltaSink, ModelRequest
from hermes_engine.redaction import Redactor

_PLACE = re.compile(rf"[^\s\"'=:,;()\[\]<>]*{WORK_PREFIX}[^/\s]+/row-\d+-\d+")
_DAY = re.compile(r"\bDate: \d{4}-\d\d-\d\d\b")


@dataclass(slots=True)
class Tape:
    """The exchanges of one row, its children's among them.

    Attributes:
        exchanges: in the order in which they ended; see `told`, `asked`.
        window: tokens the model's context was said to have.
    """

    exchanges: list[dict[str, Any]] = field(default_factory=list)
    window: int | None = None


TAPE: ContextVar[Tape | None] = ContextVar("tape", default=None)
"""The tape of the row in whose task one is, and in those of the children it starts."""


class RecordingClient:
    """A client that writes down on the row's tape what goes through it. Implements `protocols.Client`."""

    def __init__(self, inner: Client) -> None:
        self._inner = inner

    async def complete(self, request: ModelRequest, on_delta: DeltaSink | None = None) -> Reply:
        """See `protocols.Client`."""
        tape = TAPE.get()
        if tape is None:
            return await self._inner.complete(request, on_delta)
        come: dict[str, list[str]] = {"text": [], "reasoning": []}

        def heard(*, text: str = "", reasoning: str = "") -> None:
            come["text"].append(text)
            come["reasoning"].append(reasoning)
            if on_delta is not None:
                on_delta(text=text, reasoning=reasoning)

        exchange = asked(request)
        try:
            reply = await self._inner.complete(request, heard)
        except EndpointDown:
            raise  # nobody was there: the run waits, and asks again
        except ProviderError as error:
            partial = {kind: "".join(pieces) for kind, pieces in come.items()}  # a secret may lie across two pieces
            fault = {"kind": error.kind, "text": str(error), "partial": partial}
            tape.exchanges.append({**exchange, "error": fault})
            raise
        tape.exchanges.append({**exchange, "reply": dataclasses.asdict(dataclasses.replace(reply, tokens=None))})
        return reply

    async def context_window(self, model: str) -> int | None:
        """See `protocols.Client`."""
        window = await self._inner.context_window(model)
        if (tape := TAPE.get()) is not None:
            tape.window = window
        return window

    async def close(self) -> None:
        """See `protocols.Client`."""
        await self._inner.close()


def asked(request: ModelRequest) -> dict[str, str]:
    """What tells a request from others: `messages`, a hash of the conversation, and `form`, one of all else in it.

    The row's folder, which has another name each time, and the day count for nothing.
    """
    system = [message.content for message in request.messages if message.role == "system"]
    said = [_told(message) for message in request.messages if message.role != "system"]
    form = [request.model, system, list(request.tools), request.sampling, request.extra_body, request.reasoning_effort]
    return {"messages": _hash(said), "form": _hash(form)}


def _told(message: Message) -> list[Any]:
    calls = [[call.name, call.arguments] for call in message.tool_calls]
    return [message.role, message.content, calls]


def _hash(value: Any) -> str:
    text = placeless(json.dumps(value, sort_keys=True, default=dict))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def placeless(text: str) -> str:
    """The text without what differs from one time to the next: the path of a row's folder, the day."""
    return _DAY.sub("Date: ", _PLACE.sub("<row>", text))


class Recording:
    """The file of a run's exchanges, open for adding. A torn last line of a process that was killed is cut off.

    Raises:
        StateError: it cannot be written.
    """

    def __init__(self, folder: RunFolder, redactor: Redactor) -> None:
        if folder.exchanges.exists():
            cut_torn_end(folder.exchanges)
        self._file = Appender(folder.exchanges)
        self._redactor = redactor

    def keep(self, row: str, tape: Tape) -> None:
        """Adds a row's exchanges. Raises StateError."""
        content = {"window": tape.window, "exchanges": self._redactor.value(tape.exchanges)}
        packed = zlib.compress(json.dumps(content).encode(), 6)
        self._file.append(line_of({"row": row, "packed": base64.b64encode(packed).decode()}))

    def close(self) -> None:
        """Forces it to the disk and closes it. Raises StateError."""
        self._file.sync()
        self._file.close()


def unpacked(line: Mapping[str, Any]) -> Tape:
    """The tape of a line. Raises ValueError when it holds none."""
    try:
        content = json.loads(zlib.decompress(base64.b64decode(line["packed"])))
        return Tape(content["exchanges"], content["window"])
    except (KeyError, TypeError, zlib.error) as error:
        raise ValueError(f"not a line of exchanges: {error}") from error


def reply_of(told: Mapping[str, Any]) -> Reply:
    """A reply as it was kept."""
    return Reply(
        text=told["text"],
        reasoning=told["reasoning"],
        tool_calls=tuple(ToolCall(**call) for call in told["tool_calls"]),
        finish_reason=told["finish_reason"],
        usage=Usage(**told["usage"]),
        model=told["model"],
        notes=tuple(told["notes"]),
    )
