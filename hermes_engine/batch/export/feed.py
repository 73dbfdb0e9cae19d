"""Feeds a run's groups to a running Atropos API server, in the one order it needs (measured, atroposlib 0.4.0): nothing
is posted before a trainer has registered and asked for its first batch, since that would spoil the server for it.

Checks what the server does not: lengths against the trainer's limit. Never resets anybody's server.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from hermes_engine.batch.export.groups import Groups, samples_of
from hermes_engine.batch.folder import RunFolder
from hermes_engine.cleaning import one_line
from hermes_engine.errors import EndpointDown, LimitReached, RequestRejected

if TYPE_CHECKING:
    from aiohttp import ClientSession

CHUNK = 16
"""Groups of one request."""

BACKLOG = 3
"""So many batches may wait at the server before more is sent."""

POLL_SECONDS = 0.5
_ANSWER_SECONDS = 60.0
Group = dict[str, Any]
T = TypeVar("T")


@dataclass(slots=True)
class Fed:
    """What was fed.

    Attributes:
        sent: groups the server took.
        skipped: rows and groups that were not sent, by reason.
        remainder: groups that fill no whole batch of the trainer and wait at the server.
        batch_size: of the trainer, sequences.
    """

    sent: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    remainder: int = 0
    batch_size: int = 0


async def feed(
    folder: RunFolder,
    url: str,
    groups: Groups,
    *,
    wait: float = 600.0,
    tell: Callable[[str], None] = lambda text: None,
) -> Fed:
    """Sends every whole group of a run.

    Args:
        folder: of the run.
        url: of the server, e.g. http://127.0.0.1:8000.
        groups: makes them.
        wait: seconds a trainer may take to register, and to make room in its queue.
        tell: hears what is waited for.

    Raises:
        EndpointDown: nobody listens at `url`.
        RequestRejected: the server refuses a group; what it said. Or the trainer's batch is no multiple of a group.
        LimitReached: no trainer came, or it took nothing, within `wait` seconds.
    """
    import aiohttp  # loads with the first request of a chat as well, not before

    size = samples_of(folder)
    limits = aiohttp.ClientTimeout(total=_ANSWER_SECONDS)
    async with aiohttp.ClientSession(timeout=limits) as session:
        server = _Server(session, url.rstrip("/"), size, wait, tell)
        fed = Fed(skipped=groups.left_out)
        fed.batch_size, longest = await server.trainer()
        if fed.batch_size % size:
            raise RequestRejected(
                f"the trainer's batch of {fed.batch_size} is no multiple of {size} samples: it would never fill",
                hint=f"give the trainer a batch size that {size} divides",
            )
        key = await server.registered(longest)
        try:
            chunks = _chunks(_whole(groups, folder, size, longest))
            while chunk := await asyncio.to_thread(next, chunks, None):  # a reward may take its time
                await server.room(fed.batch_size)
                await server.call("POST", "/scored_data_list", [{**group, "env_id": key} for group in chunk])
                fed.sent += len(chunk)
        finally:
            await server.call("POST", "/disconnect-env", {"env_id": key})
        fed.remainder = fed.sent % (fed.batch_size // size)
        return fed


class _Server:
    """The server's few calls."""

    def __init__(self, session: ClientSession, url: str, size: int, wait: float, tell: Callable[[str], None]) -> None:
        self._session, self._url, self._size, self._wait, self._tell = session, url, size, wait, tell

    async def call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """One request; its answer as an object."""
        import aiohttp

        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        try:
            async with self._session.request(method, self._url + path, data=data, headers=headers) as answer:
                text = await answer.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            reason = str(error) or "no answer"
            raise EndpointDown(f"the Atropos server at {self._url} cannot be reached: {reason}") from error
        if answer.status >= 400:
            raise RequestRejected(f"the server refused {path}: {answer.status} {one_line(text, 300)}")
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise RequestRejected(f"{self._url} is no Atropos server: it answers {path} with {one_line(text, 80)!r}")
        return value

    async def trainer(self) -> tuple[int, int]:
        """Waits until a trainer has registered; its batch size and its longest sequence (0: no limit told)."""

        async def look() -> tuple[int, int] | None:
            told = await self.call("GET", "/info")
            size = int(told.get("batch_size", -1))
            return (size, max(0, int(told.get("max_token_len") or 0))) if size > 0 else None

        return await self._until(look, "a trainer to register")

    async def registered(self, longest: int) -> int:
        """Registers as an environment once the trainer has asked for its first batch; the environment's number."""
        wish = {
            "max_token_length": longest or 1 << 20,
            "desired_name": "hermes-batch",
            "weight": 1.0,
            "group_size": self._size,
        }

        async def look() -> int | None:
            told = await self.call("POST", "/register-env", wish)
            return int(told["env_id"]) if told.get("status") == "success" else None

        return await self._until(look, "the trainer to ask for its first batch")

    async def room(self, batch_size: int) -> None:
        """Waits until the server's queue is short enough."""

        async def look() -> bool | None:
            told = await self.call("GET", "/status")
            return True if int(told.get("queue_size", 0)) * self._size <= BACKLOG * batch_size else None

        await self._until(look, "the trainer to take what waits")

    async def _until(self, look: Callable[[], Awaitable[T | None]], what: str) -> T:
        loop = asyncio.get_running_loop()
        end = loop.time() + self._wait
        told = False
        while (found := await look()) is None:
            if loop.time() > end:
                raise LimitReached(f"waited {self._wait:g} s for {what}", limit="timeout", hint="see --wait")
            if not told:
                self._tell(f"waiting for {what}")
                told = True
            await asyncio.sleep(POLL_SECONDS)
        return found


def _whole(groups: Groups, folder: RunFolder, size: int, longest: int) -> Iterator[Group]:
    """The groups that have all their samples and fit the trainer."""
    for group in groups.of(folder):
        if len(group["tokens"]) < size:
            groups.left_out[f"groups of fewer than {size} samples"] += 1
        elif longest and any(len(tokens) >= longest for tokens in group["tokens"]):
            groups.left_out[f"{longest} tokens or more, the trainer's limit"] += 1
        else:
            yield group


def _chunks(groups: Iterable[Group]) -> Iterator[list[Group]]:
    chunk: list[Group] = []
    for group in groups:
        chunk.append(group)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
