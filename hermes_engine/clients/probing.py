"""Whether a server answers at all, asked with a request of one token. Knows nothing of rows."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from hermes_engine.errors import EndpointDown, ProviderError, StreamBroken
from hermes_engine.messages import user
from hermes_engine.protocols import Client, ModelRequest

PROBE_SECONDS = 60.0
"""How long the answer to a probe may take."""


async def probed(
    client: Client, model: str, sampling: Mapping[str, Any], extra_body: Mapping[str, Any]
) -> EndpointDown | None:
    """Asks a model for one token; the error when nobody answers. Any other refusal is an answer."""
    request = ModelRequest(model, [user("Hello")], sampling={**sampling, "max_tokens": 1}, extra_body=extra_body)
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            await client.complete(request)
    except EndpointDown as error:
        return error
    except (TimeoutError, StreamBroken) as error:
        return EndpointDown(f"the server does not answer ({error or 'too slow'})")
    except ProviderError:
        return None
    return None
