"""What works the rows of a run in this process: the assembly's agents, with the run's pace, recording and servers."""

from __future__ import annotations

from hermes_engine.batch.floor import Floor
from hermes_engine.batch.health import Outage
from hermes_engine.batch.pacing import Pace, PacedClient
from hermes_engine.batch.recording import RecordingClient
from hermes_engine.batch.rows import RowAgents
from hermes_engine.batch.setup import Setup
from hermes_engine.batch.steering import MOST_WORKERS
from hermes_engine.protocols import Client


def assembled(setup: Setup, outage: Outage, floor: Floor) -> RowAgents:
    """The agents of a run.

    Args:
        setup: of the run.
        outage: waits while nobody answers.
        floor: told what becomes of each server, where there are several.
    """
    from hermes_engine import assembly  # loads clients and tools, which tests of a run do without
    from hermes_engine.clients.replicas import Replicas, going_on

    options = setup.options
    pace = Pace(options.requests_per_minute, options.tokens_per_minute, outage.tell)
    replicas = Replicas(setup.endpoints, outage.tell, outage.back) if len(setup.endpoints) > 1 else None
    if replicas is not None:
        floor.replicas = replicas.figures

    def around(client: Client) -> Client:
        return PacedClient(RecordingClient(client) if options.record else client, pace)

    # there may be more workers later; connections that nobody opens cost nothing
    return assembly.RowAgents(
        setup.resolved,
        pool_limit=MOST_WORKERS,
        seed=setup.seed,
        wait_out=going_on(replicas, outage.wait_out) if replicas is not None else outage.wait_out,
        around=around,
        replicas=replicas,
    )
