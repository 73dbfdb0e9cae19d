"""A real client against a scripted server, closed at the end of the test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from hermes_engine.clients.openai_client import OpenAIClient
from hermes_engine.settings import Endpoint, ProviderSettings
from tests.server.scripted import Script, ScriptedServer

Connect = Callable[..., OpenAIClient]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """`connect(server_or_url, key=None, prices=None, **provider_settings)` gives a client."""
    clients: list[OpenAIClient] = []

    def make(
        server: ScriptedServer | str, *, key: str | None = None, note: str = "", options: Any = None, **provider: Any
    ) -> OpenAIClient:
        url = server if isinstance(server, str) else server.base_url
        endpoint = Endpoint("openai", url, key, "m", "m", note)
        client = OpenAIClient(endpoint, ProviderSettings(**provider), **(options or {}))
        clients.append(client)
        return client

    yield make
    for client in clients:
        await client.close()


@pytest.fixture
def talk(serve: Callable[..., ScriptedServer], connect: Connect) -> Callable[..., tuple[OpenAIClient, ScriptedServer]]:
    """`talk(script, **provider_settings)` gives a client and the server it asks."""

    def start(script: Script, **options: Any) -> tuple[OpenAIClient, ScriptedServer]:
        server = serve(script)
        return connect(server, **options), server

    return start
