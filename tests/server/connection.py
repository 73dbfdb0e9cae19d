"""One connection of the scripted server: as much HTTP/1.1 as a client needs, in a plain asyncio protocol.

An answer without pauses is one write; only those with pauses get a task. Knows no script.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import time
from http import HTTPStatus
from typing import Any, Protocol

from tests.server.answers import Answer, Seen

_LAST_CHUNK = b"0\r\n\r\n"


class Answering(Protocol):
    """The server, as its connections see it."""

    def opened(self, connection: Connection) -> None:
        """A client connected."""

    def lost(self, connection: Connection) -> None:
        """A client is gone."""

    def begin(self, seen: Seen) -> Answer:
        """The answer to a request."""

    def end(self, seen: Seen, *, aborted: bool) -> None:
        """A request is over."""


class Connection(asyncio.Protocol):
    """Reads requests one after another and plays their answers."""

    def __init__(self, server: Answering) -> None:
        self._server = server
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._seen: Seen | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop: the client closed, or we did."""
        if self._task is not None:
            self._task.cancel()
        if self._seen is not None:
            self._server.end(self._seen, aborted=True)
            self._seen = None
        self._server.lost(self)

    def data_received(self, data: bytes) -> None:
        """Called by the loop."""
        self._buffer += data
        if not self._buffer[:1].isalpha():
            self._buffer.clear()
            self._write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            self.abort_after_writing()
        self._work()

    def abort_after_writing(self) -> None:
        """Closes when what was written is out."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Closes at once."""
        if self._transport is not None:
            self._transport.abort()

    def _work(self) -> None:
        while self._seen is None and self._buffer:
            seen = self._parse()
            if seen is None:
                return
            self._seen = seen
            answer = self._server.begin(seen)
            if answer.silent or any(isinstance(step, float) for step in answer.steps) or len(answer.steps) > 1:
                self._task = asyncio.ensure_future(self._play(seen, answer))
            else:
                self._write(_head(answer) + b"".join(_framed(answer, step) for step in answer.steps))
                self._finish(seen, answer)

    async def _play(self, seen: Seen, answer: Answer) -> None:
        begun = answer.silent
        for step in answer.steps:
            if isinstance(step, float):
                await asyncio.sleep(step)
                continue
            if not begun:
                self._write(_head(answer))
                begun = True
            self._write(_framed(answer, step))
            await asyncio.sleep(0)
        if not begun:
            self._write(_head(answer))
        self._task = None
        self._finish(seen, answer)
        self._work()

    def _finish(self, seen: Seen, answer: Answer) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if answer.end == "whole" and not answer.silent and _chunked(answer):
            self._write(_LAST_CHUNK)
        self._server.end(seen, aborted=False)
        self._seen = None
        if answer.end == "reset":
            linger = struct.pack("ii", 1, 0)
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            transport.abort()
        elif answer.end != "whole" or answer.silent:
            transport.close()

    def _write(self, data: bytes) -> None:
        if self._transport is not None and data:
            self._transport.write(data)

    def _parse(self) -> Seen | None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return None
        first, *lines = bytes(self._buffer[:end]).decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if headers.get("transfer-encoding", "").lower() == "chunked":
            body, used = _unchunk(self._buffer, end + 4)
        else:
            used = end + 4 + int(headers.get("content-length", "0"))
            body = bytes(self._buffer[end + 4 : used]) if len(self._buffer) >= used else None
        if body is None:
            return None
        del self._buffer[:used]
        method, path, _ = first.split(" ", 2)
        return Seen(path, _object(body), headers, time.monotonic(), raw=body, method=method)


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body) if body else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _unchunk(buffer: bytearray, start: int) -> tuple[bytes | None, int]:
    body = bytearray()
    while True:
        line_end = buffer.find(b"\r\n", start)
        if line_end < 0:
            return None, 0
        size = int(bytes(buffer[start:line_end]).split(b";")[0], 16)
        start = line_end + 2
        if len(buffer) < start + size + 2:
            return None, 0
        body += buffer[start : start + size]
        start += size + 2
        if size == 0:
            return bytes(body), start


def _chunked(answer: Answer) -> bool:
    return answer.end != "eof" and answer.headers.get("Content-Type", "") == "text/event-stream"


def _framed(answer: Answer, step: bytes | float) -> bytes:
    if not isinstance(step, bytes) or not step:
        return b""
    return b"%x\r\n%b\r\n" % (len(step), step) if _chunked(answer) else step


def _head(answer: Answer) -> bytes:
    try:
        reason = HTTPStatus(answer.status).phrase
    except ValueError:
        reason = "Unknown"
    headers = dict(answer.headers)
    if _chunked(answer):
        headers["Transfer-Encoding"] = "chunked"
    elif answer.end == "whole":
        headers["Content-Length"] = str(sum(len(step) for step in answer.steps if isinstance(step, bytes)))
    else:
        headers["Connection"] = "close"
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {answer.status} {reason}\r\n{lines}\r\n".encode("latin-1")
