"""Feeds a run's groups to a running Atropos API server, in the one order it needs (measured, atroposlib 0.4.0): nothing
is posted before a trainer has registered and asked for its first batch, since that would spoil the server for it.

Checks what the server does not: lengths against the trainer's limit. Never resets anybody's server.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from hermes_engine.batch.export.groups import Groups, samples_of
from hermes_engine.batch.folder import RunFolder
from hermes_engine.cleaning import one_line
from hermes_engine.errors import EndpointDown, HermesError, LimitReached, RequestRejected, ServerFault

if TYPE_CHECKING:
    from aiohttp import ClientSession

CHUNK = 16
"""Groups of one request at most."""

CHUNK_TOKENS = 500_000
"""From so many tokens on, a request takes no further group."""

BACKLOG = 3
"""So many batches may wait at the server before more is sent."""

POLL_SECONDS = 0.5
_ANSWER_SECONDS = 60.0
_PARTING_SECONDS = 3.0
"""So long an answer is waited for by who was told to stop."""

Group = dict[str, Any]
T = TypeVar("T")


@dataclass(slots=True)
class Fed:
    """What was fed; true at any moment, also when feeding ended with an error.

    Attributes:
        sent: groups the server took.
        unsure: groups of a request that was not answered: the server may have taken them.
        skipped: rows and groups that were not sent, by reason.
        remainder: groups that fill no whole batch of the trainer and wait at the server.
        batch_size: of the trainer, sequences.
    """

    sent: int = 0
    unsure: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    remainder: int = 0
    batch_size: int = 0


async def feed(
    folder: RunFolder,
    url: str,
    groups: Groups,
    fed: Fed,
    *,
    skip: int = 0,
    wait: float = 600.0,
    tell: Callable[[str], None] = lambda text: None,
) -> None:
    """Sends every whole group of a run. Stopped (cancelled) it first hears for a moment what the server took.

    Args:
        folder: of the run.
        url: of the server, e.g. http://127.0.0.1:8000.
        groups: makes them.
        fed: is kept true meanwhile.
        skip: so many whole groups are passed over: those an earlier feeding sent.
        wait: seconds a trainer may take to register, and to make room in its queue.
        tell: hears what is waited for.

    Raises:
        EndpointDown: nobody listens at `url`, or no longer.
        ServerFault: the server failed over a request.
        RequestRejected: the server refuses a group; what it said. Or the trainer's batch is no multiple of a group, or
            the trainer has gone.
        LimitReached: no trainer came, or it took nothing, within `wait` seconds.
    """
    import aiohttp  # loads with the first request of a chat as well, not before

    size = samples_of(folder)
    limits = aiohttp.ClientTimeout(total=_ANSWER_SECONDS)
    maker = ThreadPoolExecutor(1, "feed")  # of its own, since a reward that takes its time must not hold up the end
    async with aiohttp.ClientSession(timeout=limits) as session:
        server = _Server(session, url.rstrip("/"), size, wait, tell)
        fed.skipped = groups.left_out
        fed.batch_size, longest = await server.trainer()
        if fed.batch_size % size:
            raise RequestRejected(
                f"the trainer's batch of {fed.batch_size} is no multiple of {size} samples: it would never fill",
                hint=f"give the trainer a batch size that {size} divides",
            )
        key = await server.registered(longest)
        try:
            chunks = _chunks(islice(_whole(groups, folder, size, longest), skip, None))
            while chunk := await asyncio.get_running_loop().run_in_executor(maker, next, chunks, None):
                await server.room(fed.batch_size)
                await _sent(server, [{**group, "env_id": key} for group in chunk], fed)
            waiting = await server.number("/status", "queue_size")
            fed.remainder = min(fed.sent, waiting % (fed.batch_size // size))  # whatever batches are taken meanwhile
        finally:
            maker.shutdown(wait=False)
            with suppress(HermesError, TimeoutError):
                async with asyncio.timeout(_PARTING_SECONDS):
                    await server.call("POST", "/disconnect-env", {"env_id": key})


async def _sent(server: _Server, groups: list[Group], fed: Fed) -> None:
    """Sends one request and counts its groups by what came of it."""
    fed.unsure = len(groups)
    sending = asyncio.ensure_future(server.call("POST", "/scored_data_list", groups))
    try:
        await asyncio.shield(sending)
    except RequestRejected:
        fed.unsure = 0
        raise
    except asyncio.CancelledError:
        ended, _ = await asyncio.wait({sending}, timeout=_PARTING_SECONDS)
        if ended and sending.exception() is None:
            _took(fed)
        raise
    _took(fed)


def _took(fed: Fed) -> None:
    fed.sent, fed.unsure = fed.sent + fed.unsure, 0


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
        if answer.status >= 500:
            raise ServerFault(f"the server failed over {path}: {answer.status} {one_line(text, 300)}")
        if answer.status >= 400:
            raise RequestRejected(f"the server refused {path}: {answer.status} {one_line(text, 300)}")
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise RequestRejected(f"{self._url} is no Atropos server: it answers {path} with {one_line(text, 80)!r}")
        return value

    async def number(self, path: str, name: str) -> int:
        """A number out of what the server tells there."""
        return self._number(await self.call("GET", path), path, name)

    def _number(self, told: dict[str, Any], path: str, name: str) -> int:
        value = told.get(name)
        if not isinstance(value, int | float):
            raise RequestRejected(f"{self._url} is no Atropos server: it answers {path} without {name}")
        return int(value)

    async def trainer(self) -> tuple[int, int]:
        """Waits until a trainer has registered; its batch size and its longest sequence (0: no limit told)."""

        async def look() -> tuple[int, int] | None:
            told = await self.call("GET", "/info")
            size = self._number(told, "/info", "batch_size")
            return (size, max(0, self._number(told, "/info", "max_token_len"))) if size > 0 else None

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
            key = told.get("env_id")
            return key if told.get("status") == "success" and isinstance(key, int) else None

        return await self._until(look, "the trainer to ask for its first batch")

    async def room(self, batch_size: int) -> None:
        """Waits until the server's queue is short enough. Raises RequestRejected when the trainer has gone."""

        async def look() -> bool | None:
            if await self.number("/info", "batch_size") != batch_size:
                raise RequestRejected(
                    "the trainer has gone: the server was reset, or is another one now",
                    hint="feed again once a trainer has registered",
                )
            waiting = await self.number("/status", "queue_size")
            return True if waiting * self._size <= BACKLOG * batch_size else None

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
    tokens = 0
    for group in groups:
        chunk.append(group)
        tokens += sum(map(len, group["tokens"]))
        if len(chunk) == CHUNK or tokens >= CHUNK_TOKENS:
            yield chunk
            chunk, tokens = [], 0
    if chunk:
        yield chunk
