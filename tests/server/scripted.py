"""A scripted OpenAI-compatible server: real HTTP/1.1 on the loopback, in its own thread, records what it gets.

The one fake of the tests stands at the network. It plays a script of answers (see `answers`), holds a thousand
requests at once and costs little, so that benchmarks may use it. Knows nothing of the program it serves.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from tests.server.answers import (
    Answer,
    Seen,
    call,
    calls,
    chunk,
    drop,
    event,
    hang,
    message,
    plain_json,
    refuse_field,
    say,
    status,
    stream,
)
from tests.server.connection import Connection

__all__ = [
    "Answer",
    "Script",
    "ScriptedServer",
    "Seen",
    "call",
    "calls",
    "chunk",
    "drop",
    "event",
    "hang",
    "message",
    "plain_json",
    "refuse_field",
    "say",
    "status",
    "stream",
]

Script = Sequence[Answer] | Callable[[Seen], Answer]
DEFAULT_MODELS: dict[str, dict[str, Any]] = {"scripted": {"context_length": 131072}}


class ScriptedServer:
    """Serves from `with` to the end of it. The last answer of a list repeats.

    Attributes:
        requests: chat requests, in order of arrival.
        others: all other requests (models, …).
        max_in_flight: most chat requests that were open at once.
        connections: how many connections were made.
        faults: what a script raised; such a request gets a 500 that says so.
    """

    def __init__(
        self,
        script: Script,
        *,
        models: Mapping[str, Mapping[str, Any]] = DEFAULT_MODELS,
        others: Mapping[str, Answer] | None = None,
        port: int = 0,
        log: TextIO | None = None,
    ) -> None:
        """Args:
        script: answers to chat requests.
        models: what GET /v1/models tells: id → further fields.
        others: path → answer for further addresses; what is not there is a 404.
        port: 0 = any free one.
        log: gets each chat request as a line of JSON as it arrives.
        """
        self.script = script
        self.requests: list[Seen] = []
        self.others: list[Seen] = []
        self.faults: list[Exception] = []
        self.max_in_flight = 0
        self.connections = 0
        self.port = port
        self._open = 0
        self._models = models
        self._other_answers = dict(others or {})
        self._log = log
        self._played = 0
        self._live: set[Connection] = set()
        self._loop = asyncio.new_event_loop()
        self._listener: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, name="scripted-server", daemon=True)

    @property
    def base_url(self) -> str:
        """What a client is given: http://127.0.0.1:PORT/v1."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def open_requests(self) -> int:
        """Chat requests whose answer is not out yet and whose client is still there."""
        return self._open

    def wait_until(self, condition: Callable[[], bool], timeout: float = 10.0) -> bool:
        """Waits until `condition()` holds; whether it did within `timeout` seconds."""
        end = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > end:
                return False
            time.sleep(0.005)
        return True

    def start(self) -> ScriptedServer:
        """Listens from now on."""
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        return self

    def close(self) -> None:
        """Stops listening, closes every connection, ends the thread."""
        if not self._thread.is_alive():
            return
        asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def __enter__(self) -> ScriptedServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # What a connection asks of the server; on its thread.

    def opened(self, connection: Connection) -> None:
        """A client connected."""
        self.connections += 1
        self._live.add(connection)

    def lost(self, connection: Connection) -> None:
        """A client is gone."""
        self._live.discard(connection)

    def begin(self, seen: Seen) -> Answer:
        """Records the request and chooses its answer."""
        if seen.method != "POST" or not seen.path.partition("?")[0].endswith("/chat/completions"):
            self.others.append(seen)
            return self._other(seen)
        seen.index = len(self.requests)
        self.requests.append(seen)
        self._open += 1
        self.max_in_flight = max(self.max_in_flight, self._open)
        if self._log is not None:
            line = {"path": seen.path, "body": seen.body, "headers": seen.headers, "started": seen.started}
            self._log.write(json.dumps(line) + "\n")
            self._log.flush()
        return self._next(seen)

    def end(self, seen: Seen, *, aborted: bool) -> None:
        """The answer is out, or its client has gone."""
        if seen.ended is None:
            seen.ended, seen.aborted = time.monotonic(), aborted
            if seen.method == "POST" and "/chat/completions" in seen.path:
                self._open -= 1

    def _next(self, seen: Seen) -> Answer:
        if not callable(self.script):
            answer = self.script[min(self._played, len(self.script) - 1)]
            self._played += 1
            return answer
        try:
            return self.script(seen)
        except Exception as error:
            self.faults.append(error)
            return status(500, {"error": {"message": f"the script raised {error!r}"}})

    def _other(self, seen: Seen) -> Answer:
        path = seen.path.partition("?")[0]
        if path in self._other_answers:
            return self._other_answers[path]
        if path == "/v1/models":
            return plain_json({"object": "list", "data": [{"id": key, **more} for key, more in self._models.items()]})
        return status(404, {"error": {"message": f"no such address: {path}"}})

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(lambda: Connection(self), "127.0.0.1", self.port, backlog=4096)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def _shut(self) -> None:
        if self._listener is not None:
            self._listener.close()
        for connection in list(self._live):
            connection.abort()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)


def _load(path: Path) -> Script:
    spec = importlib.util.spec_from_file_location("script", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    script: Script = module.script
    return script


def main(arguments: Sequence[str] | None = None) -> None:
    """Serves `script` of a Python file until it is ended; writes the base URL to stdout first."""
    parser = argparse.ArgumentParser(prog="tests.server.scripted")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path, required=True, help="Python file that defines `script`")
    parser.add_argument("--log", type=Path, help="file that gets each chat request as a line of JSON")
    options = parser.parse_args(arguments)
    log = options.log.open("a", encoding="utf-8") if options.log else None
    with ScriptedServer(_load(options.script), port=options.port, log=log) as server:
        sys.stdout.write(f"{server.base_url}\n")
        sys.stdout.flush()
        threading.Event().wait()


if __name__ == "__main__":
    main()
