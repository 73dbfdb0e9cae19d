"""Several servers of one model behind one client: each row stays with one, and goes to another while that is down.

A row's server comes from a hash of the row and the addresses, so that a restart finds the same prefixes in the same
caches. Who is down gets no row and is asked now and then whether it is back. Sends nothing again: that is
`agent.ask`'s alone, which `wait_out` tells whether there is anybody left to ask. Lives on one loop.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from hermes_engine.clients.probing import probed
from hermes_engine.errors import EndpointDown, ProviderError, StreamBroken, StreamStalled
from hermes_engine.messages import Reply
from hermes_engine.protocols import Client, DeltaSink, ModelRequest
from hermes_engine.settings import Endpoint
from hermes_engine.settings.addresses import shown

Probe = Callable[[], Awaitable[EndpointDown | None]]
"""Asks one server something small; the error when nobody answers."""

WaitOut = Callable[[EndpointDown], Awaitable[None]]
"""See `agent.ask`."""

_FIRST_WAIT = 1.0
_LONGEST_WAIT = 30.0


@dataclass(slots=True)
class Replica:
    """One of the servers, and what became of it.

    Attributes:
        url: its address.
        up: whether it gets rows.
        requests, in_flight: sent to it, with those that failed; without an answer yet.
        rows: whose last request went to it.
        downs: how often it was found down.
        asked: when it was last asked, by the monotonic clock.
    """

    url: str
    up: bool = True
    requests: int = 0
    in_flight: int = 0
    rows: int = 0
    downs: int = 0
    asked: float = 0.0

    def figures(self) -> dict[str, Any]:
        """For `statistics.json`."""
        return {
            "base_url": shown(self.url),
            "up": self.up,
            "requests": self.requests,
            "rows": self.rows,
            "in_flight": self.in_flight,
            "downs": self.downs,
        }


@dataclass(slots=True)
class Seat:
    """The server of one row, for all requests of it and of the children it starts.

    Attributes:
        row: its identity.
        at: the server; None before its first request.
        missed: servers that were found down since its last reply.
    """

    row: str
    at: Replica | None = None
    missed: list[Replica] = field(default_factory=list)


SEAT: ContextVar[Seat | None] = ContextVar("seat", default=None)
"""The seat of the row in whose task one is."""


class Replicas:
    """Which of the servers are up, and which row goes to which.

    Args:
        endpoints: where they are, each with its own key.
        tell: shows a line, with its level.
        back: called when one is back.
    """

    def __init__(
        self, endpoints: Sequence[Endpoint], tell: Callable[[str, str], None], back: Callable[[], None]
    ) -> None:
        self.endpoints = tuple(endpoints)
        self.all = tuple(Replica(one.base_url) for one in endpoints)
        self._tell, self._back = tell, back
        self._watches: dict[str, asyncio.Task[None]] = {}

    def __contains__(self, endpoint: Endpoint) -> bool:
        return any((one.base_url, one.api_key) == (endpoint.base_url, endpoint.api_key) for one in self.endpoints)

    def figures(self) -> list[dict[str, Any]]:
        """What became of each, in the order in which they were named."""
        return [replica.figures() for replica in self.all]

    def of(self, seat: Seat) -> Replica:
        """Where the next request goes: where the row is, else by its hash to one that is up."""
        if seat.at is not None and seat.at.up and seat.at not in seat.missed:
            return seat.at
        order = sorted(self.all, key=lambda replica: _weight(seat.row, replica.url))
        for replica in order:
            if replica.up and replica not in seat.missed:
                return replica
        return min(order, key=lambda replica: (not replica.up, replica.asked))

    def take(self, seat: Seat) -> Replica:
        """The server of the row's next request, which is counted."""
        replica = self.of(seat)
        if seat.row and seat.at is not replica:
            replica.rows += 1
            if seat.at is not None:
                seat.at.rows -= 1
        seat.at = replica
        replica.requests += 1
        replica.asked = time.monotonic()
        return replica

    def somebody_for(self, seat: Seat) -> bool:
        """Whether a server is left that is up and has not failed this request."""
        return any(replica.up and replica not in seat.missed for replica in self.all)

    def lost(self, replica: Replica, seat: Seat, probe: Probe) -> None:
        """A request found it down: it gets no rows until it answers."""
        seat.missed.append(replica)
        replica.downs += replica.up
        replica.up = False
        if replica.url not in self._watches:
            self._watches[replica.url] = asyncio.create_task(self._watch(replica, probe))

    def found(self, replica: Replica) -> None:
        """It has answered."""
        replica.up = True

    async def _watch(self, replica: Replica, probe: Probe) -> None:
        """Asks it now and then until it answers, to this or to a row."""
        began, wait, told = time.monotonic(), _FIRST_WAIT, False
        try:
            while not replica.up:
                await asyncio.sleep(wait)
                wait = min(wait * 2, _LONGEST_WAIT)
                error = await self._asked(replica, probe)
                if error is None:
                    self.found(replica)
                elif not told and any(other.up for other in self.all):
                    told = True
                    self._tell("warning", f"{error}; its rows go to the other servers")
        finally:
            self._watches.pop(replica.url, None)
        if told:
            self._tell("info", f"{shown(replica.url)} is back after {time.monotonic() - began:.0f} s")
        self._back()

    async def _asked(self, replica: Replica, probe: Probe) -> EndpointDown | None:
        """What the probe finds; None too when a row found it up meanwhile."""
        if replica.up:
            return None
        replica.asked = time.monotonic()
        return await probe()

    async def close(self) -> None:
        """Asks nobody any more."""
        watches = list(self._watches.values())
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)


def _weight(row: str, url: str) -> bytes:
    """Lowest is the row's: when a server is named no more, only its rows go elsewhere."""
    return hashlib.blake2b(f"{row} {url}".encode(), digest_size=8).digest()


class ReplicaClient:
    """A client of all of them. Implements `protocols.Client`."""

    def __init__(self, replicas: Replicas, make: Callable[[Endpoint], Client]) -> None:
        """Args:
        replicas: which are up; may be shared with other such clients.
        make: makes the client of one.
        """
        self._replicas = replicas
        self._clients = {one.base_url: make(one) for one in replicas.endpoints}

    async def complete(self, request: ModelRequest, on_delta: DeltaSink | None = None) -> Reply:
        """See `protocols.Client`."""
        seat = SEAT.get() or Seat("")
        replica = self._replicas.take(seat)
        client = self._clients[replica.url]
        replica.in_flight += 1
        try:
            reply = await client.complete(request, on_delta)
        except EndpointDown:
            self._replicas.lost(
                replica, seat, lambda: probed(client, request.model, request.sampling, request.extra_body)
            )
            raise
        except (StreamBroken, StreamStalled):
            raise
        except ProviderError:
            self._replicas.found(replica)
            raise
        finally:
            replica.in_flight -= 1
        self._replicas.found(replica)
        seat.missed.clear()
        return reply

    async def context_window(self, model: str) -> int | None:
        """See `protocols.Client`."""
        first = self._replicas.of(SEAT.get() or Seat(""))
        for replica in sorted(self._replicas.all, key=lambda replica: (replica is not first, not replica.up)):
            if window := await self._clients[replica.url].context_window(model):
                return window
        return None

    async def close(self) -> None:
        """See `protocols.Client`."""
        await self._replicas.close()
        await asyncio.gather(*(client.close() for client in self._clients.values()))


def going_on(replicas: Replicas, wait_out: WaitOut) -> WaitOut:
    """What a request does that found its server down: it goes to another, and waits when there is none."""

    async def go_on(error: EndpointDown) -> None:
        seat = SEAT.get() or Seat("")
        if not replicas.somebody_for(seat):
            await wait_out(error)
            seat.missed.clear()

    return go_on
