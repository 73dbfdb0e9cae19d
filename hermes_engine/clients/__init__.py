"""Clients of models: any OpenAI-compatible server, the embedded demo and local models, a scripted one for tests.

`make_client` is the front door; the package of each kind is loaded when it is first needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_engine.clients.prices import PriceTable
    from hermes_engine.protocols import Client
    from hermes_engine.settings import Endpoint, ProviderSettings


def make_client(
    endpoint: Endpoint,
    provider: ProviderSettings,
    *,
    pool_limit: int = 128,
    prices: PriceTable | None = None,
    seed: int = 0,
    paced: bool = True,
) -> Client:
    """The client for an endpoint; opens no connection.

    Args:
        endpoint: where and as what the model is asked.
        provider: limits of time, and what the server understands.
        pool_limit: requests at once; set it above the number of rows in flight.
        prices: those set for a run; they win over the settings and over what the server lists.
        seed: of the demo model.
        paced: whether the demo model speaks as slowly as a real one; batch runs do without.
    """
    if endpoint.kind == "demo":
        from hermes_engine.clients.demo import DemoClient

        return DemoClient(seed, paced=paced)
    if endpoint.kind == "local":
        from hermes_engine.clients.local import LocalClient
        from hermes_engine.paths import Home

        return LocalClient(Home.from_env(), provider, pool_limit=pool_limit)
    from hermes_engine.clients.openai_client import OpenAIClient

    client = OpenAIClient(endpoint, provider, pool_limit=pool_limit, prices=prices)
    if provider.tool_mode == "native":
        return client
    from hermes_engine.clients.schema_client import SchemaClient

    return SchemaClient(client)
