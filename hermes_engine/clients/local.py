"""The model `local`: a small real one on this machine, asked through the ordinary client at the server of the home.

The server is started at the first request and again at the next one after it died. A model this small learns a form
from examples, not from being told: each request with tools begins with a few. Knows no process; see `local_process`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from hermes_engine.clients.local_port import CONTEXT_TOKENS, Running
from hermes_engine.clients.local_process import ensure, find, port_file
from hermes_engine.clients.openai_client import OpenAIClient
from hermes_engine.clients.prices import Price, PriceTable
from hermes_engine.clients.schema_client import SchemaClient
from hermes_engine.messages import Message, Reply, ToolCall, user
from hermes_engine.paths import Home
from hermes_engine.protocols import DeltaSink, ModelRequest, ToolSchema
from hermes_engine.settings import Endpoint, ProviderSettings

SAMPLING: Mapping[str, Any] = {"max_tokens": 512, "temperature": 0, "frequency_penalty": 0.3}
"""Unless the request says otherwise: it wanders when it may, and repeats itself for ever when it must not."""

MOST_LETTERS, MOST_ITEMS = 120, 3
"""Of a text and of a list in an answer that must follow a schema."""

_EXAMPLES: tuple[tuple[str, str, dict[str, str], str, str], ...] = (
    ("", "Hi!", {}, "", "Hello! What can I do for you?"),
    ("read_file", "What does notes.txt say?", {"path": "notes.txt"}, "Buy milk.", "notes.txt says: Buy milk."),
    ("terminal", "Which files are here?", {"command": "ls"}, "a.txt\nb.txt", "There are a.txt and b.txt."),
    ("kanban_complete", "Card k9: Name a colour", {"summary": "Blue."}, "k9 is done", "k9 is done."),
)
"""Tool ("" for none), question, arguments, result, answer."""


class LocalClient:
    """Implements `protocols.Client`."""

    def __init__(self, home: Home, provider: ProviderSettings, *, pool_limit: int = 128) -> None:
        """Args:
        home: whose server is asked.
        provider: limits of time.
        pool_limit: requests at once; the server answers one after another.
        """
        self._home, self._provider, self._pool_limit = home, provider, pool_limit
        self._asked: dict[int, SchemaClient] = {}

    async def complete(self, request: ModelRequest, on_delta: DeltaSink | None = None) -> Reply:
        """See `protocols.Client`. Raises EndpointDown when the server does not start."""
        client = self._client_of(find(self._home) or await self._started())
        with suppress(OSError):  # tells the server that it is of use
            os.utime(port_file(self._home))
        return await client.complete(_shown(request), on_delta)

    async def context_window(self, model: str) -> int | None:
        """What the server is started with."""
        return CONTEXT_TOKENS

    async def price(self, model: str) -> Price | None:
        """It costs nothing."""
        return Price(0.0, 0.0)

    async def close(self) -> None:
        """Closes the connections; the server stays for others until it has been idle."""
        for client in self._asked.values():
            await client.close()
        self._asked.clear()

    async def _started(self) -> Running:
        pool = ThreadPoolExecutor(1, thread_name_prefix="start-local-model")
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, ensure, self._home)
        finally:
            pool.shutdown(wait=False)

    def _client_of(self, running: Running) -> SchemaClient:
        if running.port not in self._asked:
            endpoint = Endpoint("openai", running.base_url, model="local", typed_model="local")
            prices = PriceTable({}, Price(0.0, 0.0))
            inner = OpenAIClient(endpoint, self._provider, pool_limit=self._pool_limit, prices=prices, reuse=False)
            self._asked[running.port] = SchemaClient(inner)
        return self._asked[running.port]


def _shown(request: ModelRequest) -> ModelRequest:
    """The request in the smallest form: examples first, of each tool only the arguments it needs."""
    head = [message for message in request.messages[:1] if message.role == "system"]
    rest = request.messages[len(head) :]
    names = {tool["function"]["name"] for tool in request.tools}
    examples = list(_examples(names)) if names else []
    return dataclasses.replace(
        request,
        messages=[*head, *examples, *rest],
        tools=[_needed(tool) for tool in request.tools],
        sampling={**SAMPLING, **request.sampling},
        answer_schema=_short(request.answer_schema) if request.answer_schema else None,
    )


def _examples(names: set[str]) -> Iterator[Message]:
    for name, question, arguments, result, answer in _EXAMPLES:
        if name in names or not name:
            yield user(question)
            if name:
                yield Message("assistant", tool_calls=(ToolCall("", name, json.dumps(arguments)),))
                yield Message("tool", result, name=name)
            yield Message("assistant", answer)


def _needed(tool: ToolSchema) -> ToolSchema:
    """A tool without the arguments that may be left out: it would fill each of them with something."""
    function = tool["function"]
    parameters = function.get("parameters") or {}
    needed = parameters.get("required", ())
    properties = {name: value for name, value in parameters.get("properties", {}).items() if name in needed}
    if function["name"].startswith("kanban_"):
        properties = _short(properties)  # words for people, not content of files
    return {**tool, "function": {**function, "parameters": {**parameters, "properties": properties}}}


def _short(schema: Any) -> Any:
    """A schema whose texts and lists have an end that this model reaches within its tokens."""
    if isinstance(schema, list):
        return [_short(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    short = {name: _short(value) for name, value in schema.items()}
    for kind, name, most in (("string", "maxLength", MOST_LETTERS), ("array", "maxItems", MOST_ITEMS)):
        if short.get("type") == kind:
            short[name] = min(short.get(name, most), most)
    return short
