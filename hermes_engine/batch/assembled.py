"""What works rows in this process: the assembly's agents, with the run's pace, recording and servers.

The same for the run's own loop and for processes elsewhere: what holds over all of them is asked of what it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from hermes_engine.batch.pacing import PacedClient, Paces
from hermes_engine.batch.recording import RecordingClient
from hermes_engine.batch.rows import RowAgents
from hermes_engine.batch.setup import Setup
from hermes_engine.batch.steering import MOST_WORKERS
from hermes_engine.batch.token_chain import TokenClient
from hermes_engine.errors import EndpointDown
from hermes_engine.events import Sink
from hermes_engine.protocols import Client
from hermes_engine.requests import Broker


class Waits(Protocol):
    """What is done while servers are down; see `health.Outage`."""

    async def wait_out(self, error: EndpointDown) -> None:
        """Returns when the row may try again."""
        ...

    def tell(self, level: str, text: str, /) -> None:
        """Shows a line."""
        ...

    def back(self) -> None:
        """The server answers."""
        ...


class Board(Protocol):
    """Where what becomes of each server is looked up."""

    replicas: Callable[[], list[dict[str, Any]]]


def assembled(
    setup: Setup, outage: Waits, pace: Paces, floor: Board, *, broker: Broker | None = None, asks: Sink | None = None
) -> RowAgents:
    """The agents of a run.

    Args:
        setup: of the run.
        outage: waits while nobody answers.
        pace: of the run's requests.
        floor: told what becomes of each server, where there are several.
        broker: through which rows ask a person; None: nobody can answer.
        asks: hears what children of rows ask.
    """
    from hermes_engine import assembly  # loads clients and tools, which tests of a run do without
    from hermes_engine.clients.replicas import Replicas, going_on

    options = setup.options
    replicas = Replicas(setup.endpoints, outage.tell, outage.back) if len(setup.endpoints) > 1 else None
    if replicas is not None:
        floor.replicas = replicas.figures

    def around(client: Client) -> Client:
        told = TokenClient(client) if options.record_tokens else client
        return PacedClient(RecordingClient(told) if options.record else told, pace)

    # there may be more workers later; connections that nobody opens cost nothing
    return assembly.RowAgents(
        setup.resolved,
        pool_limit=MOST_WORKERS,
        seed=setup.seed,
        wait_out=going_on(replicas, outage.wait_out) if replicas is not None else outage.wait_out,
        around=around,
        replicas=replicas,
        broker=broker,
        asks=asks,
    )
