"""The only place that knows Ray: a process that passes messages between a run (its pipes) and actors on a cluster.

Decides nothing and reads no message; `fleet` does. Ends, with all it started, when the run's end of its pipe closes.
Run as `python -m hermes_engine.batch.ray_bridge`.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import secrets
import shutil
import signal
import socket
import sys
from collections.abc import Mapping
from typing import Any, BinaryIO

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from hermes_engine.batch.bridge import framed
from hermes_engine.batch.site import Site

_CALLS_AT_ONCE = 100
"""To an actor: one that waits for news, and short ones."""

_LOOK_AGAIN = 2.0
"""Seconds between looks at the cluster's machines."""

_PORT_SECONDS = 5.0
_CLOSING = 2.5
_SHOWN = 300
_OBJECT_STORE = 100_000_000
"""Bytes that a Ray of this machine takes for what is too large for a message; rows seldom are."""


def connect(address: str | None, folder: str) -> None:
    """Joins a cluster, or starts a Ray of this machine whose files lie in `folder`. Raises what Ray raises, OSError."""
    common: dict[str, Any] = {"log_to_driver": False, "logging_level": "error", "include_dashboard": None}
    if address is None:
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        common |= {"include_dashboard": False, "object_store_memory": _OBJECT_STORE, "_temp_dir": folder}
        ray.init(address="local", **common)
        return
    host, _, port = address.rpartition(":")
    if port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), _PORT_SECONDS).close()
    ray.init(address=address, **common)


class Exchange:
    """Passes messages on."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._actors: dict[int, Any] = {}
        self._mail: dict[int, asyncio.Queue[bytes]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def say(self, *what: Any) -> None:
        """Says something to the run."""
        self._out.write(framed(what))
        self._out.flush()

    async def serve(self, reader: asyncio.StreamReader) -> None:
        """Takes orders until there are no more."""
        self._start(self._look())
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(8), "big")
                self._take(*pickle.loads(await reader.readexactly(size)))
        except asyncio.IncompleteReadError:
            return
        finally:
            await self._close()

    def _start(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _take(self, what: str, number: int, *values: Any) -> None:
        if what == "site":
            self._start(self._site(number, *values))
        elif what == "post" and number in self._mail:
            self._mail[number].put_nowait(values[0])
        elif what == "end" and (actor := self._actors.pop(number, None)) is not None:
            ray.kill(actor)

    async def _look(self) -> None:
        """Tells which machines there are whenever that changes."""
        before: Mapping[str, tuple[int, str]] | None = None
        while True:
            nodes = {
                node["NodeID"]: (int(node["Resources"].get("CPU", 0)), node["NodeManagerHostname"])
                for node in await asyncio.to_thread(ray.nodes)
                if node["Alive"]
            }
            if nodes != before:
                self.say("nodes", nodes)
                before = nodes
            await asyncio.sleep(_LOOK_AGAIN)

    async def _site(self, number: int, node: str, version: str, packed: bytes) -> None:
        """One actor from its beginning to its end; its process holds no processor, since rows mostly wait."""
        mail = self._mail[number] = asyncio.Queue()
        posting: asyncio.Task[None] | None = None
        try:
            place = NodeAffinitySchedulingStrategy(node, soft=False)
            kind = ray.remote(num_cpus=0, max_restarts=0, max_concurrency=_CALLS_AT_ONCE)(Site)
            actor = self._actors[number] = kind.options(scheduling_strategy=place).remote(version, packed)
            self.say("ready", number, *await actor.hello.remote())
            posting = asyncio.create_task(self._post(actor, mail))
            while True:
                self.say("news", number, await actor.news.remote())
        except ray.exceptions.RayError as error:
            self.say("lost", number, _line(error))
        finally:
            if posting is not None:
                posting.cancel()
            self._mail.pop(number, None)
            self._take("end", number)

    async def _post(self, actor: Any, mail: asyncio.Queue[bytes]) -> None:
        """One call after another: those of one actor may overtake each other."""
        while True:
            letters = [await mail.get()]
            while not mail.empty():
                letters.append(mail.get_nowait())
            try:
                await actor.post.remote(letters)
            except ray.exceptions.RayError:
                return  # who waits for its news hears of it

    async def _close(self) -> None:
        actors = list(self._actors.values())
        self._actors.clear()  # who ends of itself is ended at once; these get time
        for task in list(self._tasks):
            task.cancel()
        if actors:
            closing = [asyncio.ensure_future(_closed(actor)) for actor in actors]
            await asyncio.wait(closing, timeout=_CLOSING)
        for actor in actors:
            ray.kill(actor)


async def _closed(actor: Any) -> None:
    try:
        await actor.close.remote()
    except ray.exceptions.RayError:
        return


def _line(error: Exception) -> str:
    """The last line of what Ray says, which names the cause, without its ornaments; of a long one whole sentences."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines or len(lines[-1]) <= _SHOWN:
        return lines[-1] if lines else type(error).__name__
    whole, stop, _rest = lines[-1][:_SHOWN].rpartition(". ")
    return whole + stop.strip() if stop else f"{lines[-1][:_SHOWN]}…"


async def _serve(exchange: Exchange) -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await exchange.serve(reader)


def main() -> int:
    """The process."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # Ray prints; the pipe is for messages only
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    exchange = Exchange(out)
    address, folder = sys.argv[1:]
    try:
        try:
            connect(address or None, folder)
        except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            exchange.say("refused", _line(error))
            return 1
        asyncio.run(_serve(exchange))
    finally:
        ray.shutdown()
        if not address:
            shutil.rmtree(folder, ignore_errors=True)  # the run may have been killed
    return 0


if __name__ == "__main__":
    sys.exit(main())
