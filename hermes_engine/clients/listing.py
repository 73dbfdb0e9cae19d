"""What a server says about its models: context sizes and prices. Asked at most once; faults mean "unknown"."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from hermes_engine.clients import prices
from hermes_engine.clients.prices import Price

OLLAMA_PORT = 11434
Fetch = Callable[[str, Mapping[str, Any] | None], Awaitable[bytes | None]]
"""(path from the server's root or from base_url, body to POST or None) → the answer's body, None on any fault."""


class ModelListing:
    """Remembers what was told."""

    def __init__(self, fetch: Fetch, base_url: str) -> None:
        self._fetch = fetch
        self._base_url = base_url
        self._asking = asyncio.Lock()
        self._answer: Any = None
        self._asked = False
        self._windows: dict[str, int | None] = {}

    async def window(self, model: str) -> int | None:
        """Tokens that fit into the context of `model`, or None."""
        await self._ask()
        async with self._asking:
            if model not in self._windows:
                entry = prices.entry_of(self._answer, model) or {}
                told = prices.listed_window(entry)
                if told is None and self._like_ollama(entry):
                    told = prices.ollama_window(await self._json(self._root("/api/show"), {"model": model}))
                self._windows[model] = told
        return self._windows[model]

    async def price(self, model: str) -> Price | None:
        """What the server charges for `model`, or None."""
        await self._ask()
        return self.known_price(model)

    def known_price(self, model: str) -> Price | None:
        """The same, without asking the server when it was not asked yet."""
        entry = prices.entry_of(self._answer, model)
        return None if entry is None else prices.listed_price(entry)

    async def _ask(self) -> None:
        async with self._asking:
            if not self._asked:
                self._answer = await self._json("/models", None)
                self._asked = True

    async def _json(self, path: str, body: Mapping[str, Any] | None) -> Any:
        data = await self._fetch(path, body)
        try:
            return None if data is None else json.loads(data)
        except (ValueError, RecursionError):
            return None

    def _like_ollama(self, entry: Mapping[str, Any]) -> bool:
        try:
            port = urlsplit(self._base_url).port
        except ValueError:
            port = None
        return port == OLLAMA_PORT or entry.get("owned_by") == "library"

    def _root(self, path: str) -> str:
        parts = urlsplit(self._base_url)
        return f"{parts.scheme}://{parts.netloc}{path}"
