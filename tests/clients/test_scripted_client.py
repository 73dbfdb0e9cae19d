"""The client that plays a script."""

from __future__ import annotations

import pytest

from hermes_engine.clients.scripted import ScriptedClient, calling
from hermes_engine.errors import RateLimited
from hermes_engine.messages import Message, Reply, user
from hermes_engine.protocols import Client, ModelRequest
from tests.clients.test_openai_client import Heard


async def test_replies_are_played_and_the_last_repeats() -> None:
    client = ScriptedClient(
        ["one", calling(("t", "{}"), ("t", "{}")), RateLimited("wait"), Reply("end", "why")], window=9
    )
    as_client: Client = client
    messages: list[Message] = [user("hi")]
    request, heard = ModelRequest("m", messages), Heard()
    assert (await as_client.complete(request, heard)).text == "one"
    messages.append(user("more"))
    calls = (await as_client.complete(request)).tool_calls
    assert len({call.id for call in calls}) == 2
    with pytest.raises(RateLimited):
        await as_client.complete(request)
    for _ in range(2):
        assert (await as_client.complete(request, heard)).text == "end"
    assert heard.pieces == [("text", "one"), *[("reasoning", "why"), ("text", "end")] * 2]
    assert [len(seen.messages) for seen in client.requests] == [1, 2, 2, 2, 2]
    assert await client.context_window("m") == 9
    await client.close()
    assert client.closed


async def test_a_reply_can_be_made_from_the_request() -> None:
    client = ScriptedClient([lambda request: Reply(request.messages[-1].content.upper())])
    assert (await client.complete(ModelRequest("m", [user("hi")]))).text == "HI"
    with pytest.raises(ValueError, match="at least one"):
        ScriptedClient([])
