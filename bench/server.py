"""A model server that costs little: a process of its own, so that its processor time counts for nobody.

`python -m bench.server '{"rounds": 1}'` serves and writes its address. It decides by the number of tool results
in a request and by nothing else, records no request but the last, and answers at fixed times. It is leaner than
the server of the tests: beside a thousand requests in flight it must never be what is waited for. Who asks for no
stream gets the same answer in one piece.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.answers import Script, packets, whole

ROOT = Path(__file__).resolve().parent.parent
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_END = b"0\r\n\r\n"


class Served:
    """The server as a process, from `with` to the end of it."""

    def __init__(self, script: Script, module: str = "bench.server") -> None:
        """Args:
        script: how it answers.
        module: which server, run as a program.
        """
        self.script = script
        self._module = module
        self.origin = ""

    @property
    def base_url(self) -> str:
        """What a client is given."""
        return f"{self.origin}/v1"

    def __enter__(self) -> Served:
        command = [sys.executable, "-m", self._module, json.dumps(dataclasses.asdict(self.script))]
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        assert self._process.stdout is not None
        self.origin = self._process.stdout.readline().strip()
        if not self.origin:
            raise RuntimeError("the bench's server did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(10)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def take(self) -> dict[str, Any]:
        """Since the last call: `requests`, `connections`, `most` in flight; `open` now; the last `body`; `ways`."""
        with urllib.request.urlopen(f"{self.origin}/take", timeout=10) as response:
            told: dict[str, Any] = json.load(response)
        return told


class Counts:
    """What the server has seen since it was last asked."""

    def __init__(self) -> None:
        self.requests = self.connections = self.in_flight = self.most = 0
        self.body = b"{}"
        self.ways: Counter[str] = Counter()
        """Requests by what became of them, from the beginning; for servers that fail."""

    def take(self) -> bytes:
        body = json.loads(self.body)
        told = {"requests": self.requests, "connections": self.connections, "most": self.most, "body": body}
        told |= {"open": self.in_flight, "ways": self.ways}
        self.requests = self.connections = self.most = 0
        return json.dumps(told).encode()


class Connection(asyncio.Protocol):
    """One client; requests come one after another."""

    def __init__(self, script: Script, counts: Counts) -> None:
        self._script = script
        self._counts = counts
        self._buffer = b""
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._counts.connections += 1

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._counts.in_flight -= 1

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head_end = self._buffer.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = self._buffer[:head_end]
        whole = head_end + 4 + _length(head)
        if len(self._buffer) < whole:
            return
        body, self._buffer = self._buffer[head_end + 4 : whole], self._buffer[whole:]
        path = head.split(b" ", 2)[1]
        if path.endswith(b"/chat/completions"):
            self.answer(body)
        elif path == b"/take":
            self.plain(self._counts.take())
        else:
            self.plain(b'{"object":"list","data":[{"id":"bench","context_length":1000000}]}')

    def answer(self, body: bytes) -> None:
        """Answers a request for a completion."""
        self.begin(body)
        turn = min(2, _told(body, b"user")) if self._script.brief_first else 2
        done = _told(body, b"tool")
        if b'"stream":true' in body or b'"stream": true' in body:
            self.stream(_ready(self._script, done, turn))
        else:
            self.later(lambda: self.plain(_whole(self._script, done)))

    def begin(self, body: bytes) -> None:
        """Counts a request as in flight."""
        counts = self._counts
        counts.requests += 1
        counts.in_flight += 1
        counts.most = max(counts.most, counts.in_flight)
        counts.body = body

    def end(self) -> None:
        """The request is answered."""
        self._timer = None
        self._counts.in_flight -= 1

    def stream(self, ready: list[bytes]) -> None:
        """Answers with these packets, in time."""
        self._timer = self._loop.call_later(self._script.latency, self._play, _HEAD, ready, 0, self._loop.time())

    def later(self, act: Callable[[], None], seconds: float | None = None) -> None:
        """Does what ends the answer after so many seconds, the script's latency when not said."""

        def due() -> None:
            self.end()
            act()

        self._timer = self._loop.call_later(self._script.latency if seconds is None else seconds, due)

    def write_head(self, packet: bytes) -> None:
        """Begins an answer at once, and leaves it so."""
        self._transport.write(_HEAD + packet)

    def cut(self) -> None:
        """Ends the connection, whatever was under way."""
        self._transport.abort()

    def _play(self, head: bytes, ready: list[bytes], at: int, began: float) -> None:
        """Writes a packet; the times of the next ones are fixed, so that a late one is made up for."""
        if at == 0:
            began = self._loop.time()
        last = at == len(ready) - 1
        self._transport.write(head + ready[at] + (_END if last else b""))
        if last:
            self.end()
        else:
            due = began + (at + 1) * self._script.gap
            self._timer = self._loop.call_at(due, self._play, b"", ready, at + 1, began)

    def plain(self, body: bytes, status: bytes = b"200 OK", headers: bytes = b"") -> None:
        """Answers in one piece."""
        head = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\n%b" % (status, headers)
        self._transport.write(b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body))


@cache
def _ready(script: Script, done: int, turn: int) -> list[bytes]:
    return packets(script, done, turn)


@cache
def _whole(script: Script, done: int) -> bytes:
    return whole(script, done)


def _told(body: bytes, role: bytes) -> int:
    """How many messages a role has."""
    return body.count(b'"role":"%b"' % role) + body.count(b'"role": "%b"' % role)


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


async def serve(script: Script, kind: type[Connection] = Connection) -> None:
    """Serves until the process that started it is gone."""
    loop = asyncio.get_running_loop()
    counts = Counts()
    listener = await loop.create_server(lambda: kind(script, counts), "127.0.0.1", 0, backlog=4096)
    port = listener.sockets[0].getsockname()[1]
    print(f"http://127.0.0.1:{port}", flush=True)
    parent = os.getppid()
    while os.getppid() == parent:
        await asyncio.sleep(1)


if __name__ == "__main__":
    asyncio.run(serve(Script(**json.loads(sys.argv[1]))))
