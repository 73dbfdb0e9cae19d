"""Reads a response into a reply while it comes: packets → events → chunks → pieces. Knows limits of time, not retries.

Whether a body is a stream or one JSON object is judged by how it begins, since servers mislabel both.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any

from hermes_engine.clients.assemble import ReplyAssembler
from hermes_engine.clients.error_text import readable
from hermes_engine.clients.faults import error_in_stream
from hermes_engine.clients.sse import EventReader, EventTooLarge, SseEvent
from hermes_engine.clients.thinking import Piece
from hermes_engine.errors import RequestRejected, ServerFault, StreamBroken
from hermes_engine.messages import Reply
from hermes_engine.protocols import DeltaSink

if TYPE_CHECKING:
    import httpx2

DONE = "[DONE]"
AFTERGLOW_SECONDS = 10.0
"""How long usage and [DONE] are waited for after the finish reason."""
CLOSING_SECONDS = 1.0
"""How long the end of the body is waited for after [DONE], so that the connection can be used again."""
MAX_BODY_BYTES = 64 * 1024 * 1024


class ReplyReader:
    """Reads one response. After an exception `text` and `began` tell how far it came.

    Attributes:
        whole: everything that makes a reply was received, whatever happens to the connection now.
        silence: seconds of the limit now in force.
    """

    def __init__(
        self, on_delta: DeltaSink | None, *, idle: float, host: str, most: int = 8_000_000, tokens: bool = False
    ) -> None:
        """Args:
        on_delta: hears the pieces; those of one packet are joined.
        idle: seconds between two events once the answer has begun.
        host: for messages.
        most: characters of a reply; a longer stream is closed, and what came of it is the reply.
        tokens: whether the reply is to come with its tokens.
        """
        self.whole = False
        self.silence = 0.0
        self._on_delta = on_delta
        self._idle = idle
        self._host = host
        self._most = most
        self._assembler = ReplyAssembler(tokens=tokens)
        self._done = False
        self._set_at = float("-inf")

    @property
    def text(self) -> str:
        """The answer so far."""
        return self._assembler.text

    @property
    def began(self) -> bool:
        """Whether a piece of the answer has come."""
        return self._assembler.began

    @property
    def cached_tokens(self) -> int:
        """Prompt tokens the server took from its cache."""
        return self._assembler.cached_tokens

    async def read(self, response: httpx2.Response, limit: asyncio.Timeout) -> Reply:
        """The reply of a response with status 2xx. `limit` is moved on as events come.

        Raises:
            ProviderError: the body is an error, broken or no reply at all.
        """
        packets = _packets(response)
        head = b""
        async for packet in packets:
            if packet.strip():
                head = packet
                break
        first = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        if first in (b"{", b"["):
            return await self._read_object(head, packets)
        if first == b"<":
            raise RequestRejected(
                f"{self._host} answered with a web page: {readable(head.decode('utf-8', 'replace'))}",
                hint="check base_url (most end with /v1)",
            )
        await self._read_stream(head, packets, limit)
        return self.finished()

    def finished(self) -> Reply:
        """The reply of what was read. Raises StreamBroken when it is not whole."""
        self._show(self._assembler.drain())
        return self._assembler.finish(self._done)

    async def _read_object(self, head: bytes, packets: AsyncIterator[bytes]) -> Reply:
        body = bytearray(head)
        async for packet in packets:
            body += packet
            if len(body) > MAX_BODY_BYTES:
                raise ServerFault(f"the answer of {self._host} is larger than {MAX_BODY_BYTES} bytes")
        text = body.decode("utf-8", "replace")
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            raise StreamBroken(f"the answer of {self._host} is no whole JSON", hint=readable(text)) from None
        if not isinstance(value, dict) or not (value.get("choices") or value.get("error")):
            raise ServerFault(f"the answer of {self._host} holds no reply: {readable(text)}")
        self._done = True
        self._show(self._assembler.feed(value))
        return self.finished()

    async def _read_stream(self, head: bytes, packets: AsyncIterator[bytes], limit: asyncio.Timeout) -> None:
        events = EventReader()
        try:
            self._take(events.feed(head), limit)
            async for packet in packets:
                if complete := events.feed(packet):
                    self._take(complete, limit)
                    if self._assembler.size > self._most:
                        self._assembler.cut(
                            f"the reply was cut off at {self._most:,} characters (provider.max_reply_characters)"
                        )
                        return
            self._take(events.end(), limit, last=True)
        except EventTooLarge as error:
            raise StreamBroken(str(error), partial=self.text) from None

    def _take(self, events: Iterable[SseEvent], limit: asyncio.Timeout, *, last: bool = False) -> None:
        feed = self._assembler.feed
        shown: list[Piece] = []
        try:
            for data, name in events:
                if self._done:
                    break
                if data == DONE:
                    self._done = True
                    continue
                for chunk in _chunks(data, name, last):
                    if pieces := feed(chunk):
                        shown += pieces
        finally:
            self._show(shown)
        self._move(limit)

    def _move(self, limit: asyncio.Timeout) -> None:
        """Sets the time by which the next event must come; seldom, since each setting costs a timer."""
        if not self.began and not self._done and not self._assembler.finished:
            return
        self.whole = self._done or self._assembler.finished
        seconds = CLOSING_SECONDS if self._done else AFTERGLOW_SECONDS if self.whole else self._idle
        seconds = min(seconds, self._idle)
        now = asyncio.get_running_loop().time()
        if seconds != self.silence or now - self._set_at > seconds / 20:
            self.silence, self._set_at = seconds, now
            limit.reschedule(now + seconds)

    def _show(self, pieces: list[Piece]) -> None:
        if self._on_delta is None or not pieces:
            return
        for is_text, run in itertools.groupby(pieces, key=lambda piece: piece[0] == "text"):
            joined = "".join(text for _, text in run)
            if is_text:
                self._on_delta(text=joined)
            else:
                self._on_delta(reasoning=joined)


def _packets(response: httpx2.Response) -> AsyncIterator[bytes]:
    """The body as it comes; the layer that counts and decodes is passed by where nothing is encoded."""
    plain = response.headers.get("content-encoding", "identity") == "identity"
    if plain and isinstance(response.stream, AsyncIterable):
        return aiter(response.stream)
    return response.aiter_bytes()


def _chunks(data: str, name: str, last: bool) -> list[dict[str, Any]]:
    """The objects of one event: one, or one a line where a server leaves out the blank lines between events."""
    if name == "error":
        raise error_in_stream(_decoded(data) or data)
    chunk = _decoded(data)
    if chunk is not None:
        return [chunk]
    lines = [line.strip() for line in data.split("\n")]
    chunks = [chunk for line in lines if (chunk := _decoded(line)) is not None]
    if not chunks and data.lstrip().startswith("{") and not last:
        raise ServerFault(f"the stream holds what is no JSON: {readable(data)}")
    return chunks


def _decoded(data: str) -> dict[str, Any] | None:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
