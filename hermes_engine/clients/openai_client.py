"""A model behind any OpenAI-compatible endpoint: one request, streamed, put together by our own reader.

Sends once (but for a server that refuses a field it may do without); every fault becomes a `ProviderError`. Reads no
environment. Knows nothing of tools, turns or retrying.

Limits of time: until the first piece of the answer `first_byte_timeout_seconds`, then between two events
`idle_timeout_seconds`. Comments that keep a connection alive say nothing of the model and count for neither,
nor does a first chunk that only names the role.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import importlib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hermes_engine.clients import faults
from hermes_engine.clients.dialects import dialect_of, effort_fields, sampling_fields, with_further
from hermes_engine.clients.listing import ModelListing
from hermes_engine.clients.prices import Price, PriceTable, costed
from hermes_engine.clients.reading import ReplyReader
from hermes_engine.clients.text_calls import MarkupHider, with_text_calls
from hermes_engine.clients.truncation import suspected_truncation
from hermes_engine.clients.wire import BodyWriter, encoded
from hermes_engine.errors import KeyRefused, ProviderError, StreamStalled
from hermes_engine.messages import Reply
from hermes_engine.protocols import DeltaSink, ModelRequest
from hermes_engine.settings import Endpoint, ProviderSettings
from hermes_engine.settings.addresses import parted

if TYPE_CHECKING:
    from hermes_engine.clients.door import Door

PATH = "/chat/completions"
LISTING_SECONDS = 10.0
SHORTEST_SECRET = 8
"""Shorter keys are the placeholders of local servers ("none", "ollama"), and words of ordinary messages."""


class OpenAIClient:
    """Implements `protocols.Client`; belongs to the loop that first uses it."""

    def __init__(
        self,
        endpoint: Endpoint,
        provider: ProviderSettings,
        *,
        pool_limit: int = 128,
        prices: PriceTable | None = None,
        reuse: bool = True,
    ) -> None:
        """Args:
        endpoint: address and key.
        provider: limits of time, and what the server understands.
        pool_limit: requests at once; further ones wait for a connection.
        prices: those set for a run; they win over those of the settings.
        reuse: whether a connection may serve several requests; some servers close it without a word.
        """
        self._endpoint = endpoint
        self._provider = provider
        self._pool_limit = pool_limit
        self._reuse = reuse
        self._prices = _table(provider, prices)
        self._writer = BodyWriter(provider.send_reasoning)
        self._dialect = dialect_of(endpoint.base_url, provider.send_effort)
        self._key = (endpoint.api_key or "").strip()
        self._secrets = (self._key,) if len(self._key) >= SHORTEST_SECRET else ()
        self._base_url, self._user = parted(endpoint.base_url)
        self._host = urlsplit(self._base_url).netloc
        self._listing = ModelListing(self._fetch, self._base_url)
        self._refused: set[str] = set()
        self._untold: list[str] = []
        self._warned: set[int] = set()
        self._opening: asyncio.Task[Door] | None = None
        self._door: Door | None = None
        self._foreign: tuple[type[BaseException], ...] = ()

    async def complete(self, request: ModelRequest, on_delta: DeltaSink | None = None) -> Reply:
        """See `protocols.Client`."""
        while True:
            try:
                return await self._ask(request, self._spared(request), on_delta)
            except _FieldRefused as refused:
                if refused.name not in self._refused and refused.name.startswith("reasoning"):
                    self._untold.append(f"{self._host} does not let reasoning be switched off")
                self._refused.add(refused.name)

    async def context_window(self, model: str) -> int | None:
        """Tokens that fit, as the server tells, else as the settings say; None when neither does."""
        return await self._listing.window(model) or self._provider.context_window

    async def price(self, model: str) -> Price | None:
        """The price of a model, as set or as the server lists it; None when unknown. Asks at most once."""
        return self._set_price(model) or await self._listing.price(model)

    async def close(self) -> None:
        """Closes the connections; closing twice is fine."""
        door, self._door, self._opening = self._door, None, None
        if door is not None:
            await door.close()

    async def _ask(self, request: ModelRequest, spared: dict[str, Any], on_delta: DeltaSink | None) -> Reply:
        door = await self._opened()
        hider = MarkupHider(on_delta) if on_delta and self._provider.text_tool_calls else None
        reader = ReplyReader(
            hider or on_delta,
            idle=self._provider.idle_timeout_seconds,
            host=self._host,
            most=self._provider.max_reply_characters,
            tokens=request.tokens,
        )
        stream = not _TOKEN_FIELDS.keys() & spared.keys()
        body = self._writer.body(request, spared | self._fields(request), stream=stream)
        first = self._provider.first_byte_timeout_seconds
        try:
            async with asyncio.timeout(first) as limit:
                response = await door.send(PATH, body)
                try:
                    reply = await reader.read(response, limit)
                finally:
                    await response.aclose()
        except TimeoutError:
            reply = self._stalled(reader, first)
        except self._foreign as error:
            if not reader.whole:
                raise self._fault(error, reader, spared) from error
            reply = reader.finished()
        except ProviderError as error:
            raise self._presentable(error) from None
        reply = self._settled(reply, request, reader)
        if hider is not None:
            hider.settle(reply.text)
        return reply

    def _fields(self, request: ModelRequest) -> dict[str, Any]:
        fields = sampling_fields(request.sampling, self._dialect)
        if (effort := self._effort(request)) != "none" or self._dialect.effort_in_template:
            fields |= effort_fields(effort, self._dialect)
        return with_further(fields, self._provider.extra_body, request.extra_body)

    def _spared(self, request: ModelRequest) -> dict[str, Any]:
        """Fields without which a request is asked again where a server refuses them, and from then on."""
        fields: dict[str, Any] = {}
        if request.tokens and not _TOKEN_FIELDS.keys() & self._refused:
            fields |= _TOKEN_FIELDS
        elif self._provider.stream_usage:
            fields |= {"stream_options": {"include_usage": True}}
        if self._effort(request) == "none" and not self._dialect.effort_in_template:
            fields |= effort_fields("none", self._dialect)
        given = self._provider.extra_body.keys() | request.extra_body.keys()
        return {name: value for name, value in fields.items() if name not in self._refused | given}

    def _effort(self, request: ModelRequest) -> str | None:
        return request.reasoning_effort or self._provider.reasoning_effort

    def _stalled(self, reader: ReplyReader, first: float) -> Reply:
        """The reply when only the end of the connection was missing; else a stall."""
        if reader.whole:
            return reader.finished()
        if reader.began:
            raise StreamStalled(
                f"{self._host} went silent within the reply for {reader.silence:g} s",
                partial=reader.text,
                hint="raise provider.idle_timeout_seconds for slow models",
            )
        raise StreamStalled(
            f"{self._host} gave no piece of an answer within {first:g} s",
            hint="raise provider.first_byte_timeout_seconds for slow models",
        )

    def _fault(self, error: BaseException, reader: ReplyReader, spared: Iterable[str]) -> Exception:
        """What a library's exception means."""
        response = getattr(error, "response", None)
        if response is None or not hasattr(response, "status_code"):
            return faults.from_exception(
                error, host=self._host, began=reader.began, partial=reader.text, secrets=self._secrets
            )
        body = response.content.decode("utf-8", "replace")
        status = response.status_code
        for name in spared if status in (400, 422) else ():
            if any(word in body.lower() for word in _NAMED_AS[name]):
                return _FieldRefused(name)
        rejection = faults.Rejection(status, body, response.headers, self._secrets, self._host)
        return self._presentable(faults.from_response(rejection))

    def _presentable(self, error: ProviderError) -> ProviderError:
        """The error without the key, and with the reason why none was sent where that is what it is about."""
        for secret in self._secrets:
            error.args = (str(error).replace(secret, "[key]"),)
            error.hint = error.hint.replace(secret, "[key]")
        if isinstance(error, KeyRefused):
            error.hint = self._endpoint.note or error.hint
        return error

    def _set_price(self, model: str) -> Price | None:
        """The price a person set, under the name of the wire or the one they typed."""
        typed = (self._endpoint.typed_model,) if model == self._endpoint.model else ()
        return self._prices.of(model, *typed)

    def _settled(self, reply: Reply, request: ModelRequest, reader: ReplyReader) -> Reply:
        """The reply with its cost, with calls written as text where wanted, with a warning where due."""
        price = self._set_price(request.model) or self._listing.known_price(request.model)
        told = reply.usage.prompt_tokens
        told_now, self._untold = self._untold, []
        note = "" if told in self._warned or reader.cached_tokens else suspected_truncation(request, told)
        if note:
            self._warned.add(told)
            told_now.append(note)
        notes = (*reply.notes, *told_now) if told_now else reply.notes
        reply = dataclasses.replace(reply, usage=costed(reply.usage, price), notes=notes)
        return with_text_calls(reply, request) if self._provider.text_tool_calls else reply

    async def _opened(self) -> Door:
        """The door; opened at the first call, in a thread, since that loads a large package."""
        if self._door is None:
            if not self._key.isascii() or not self._key.isprintable():
                raise KeyRefused("the key holds characters that no key has", hint="copy it again")
            if self._opening is None:
                self._opening = asyncio.create_task(self._open_in_thread())
            self._door = await asyncio.shield(self._opening)
        return self._door

    async def _open_in_thread(self) -> Door:
        pool = ThreadPoolExecutor(1, thread_name_prefix="open-client")
        try:
            door, self._foreign = await asyncio.get_running_loop().run_in_executor(pool, self._open)
        finally:
            pool.shutdown(wait=False)
        return door

    def _open(self) -> tuple[Door, tuple[type[BaseException], ...]]:
        module = importlib.import_module("hermes_engine.clients.door")
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        headers["Accept"] = "application/json, text/event-stream"
        if not self._reuse:
            headers["Connection"] = "close"
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        elif self._user:
            headers["Authorization"] = f"Basic {base64.b64encode(self._user.encode()).decode()}"
        door: Door = module.Door(
            self._base_url,
            headers,
            pool_limit=self._pool_limit,
            connect_timeout=self._provider.connect_timeout_seconds,
        )
        return door, module.FOREIGN_ERRORS

    async def _fetch(self, path: str, body: Mapping[str, Any] | None) -> bytes | None:
        """A small document of the server; None on any fault."""
        try:
            door = await self._opened()
            async with asyncio.timeout(LISTING_SECONDS):
                response = await (door.fetch(path) if body is None else door.send(path, encoded(body)))
                try:
                    return await response.aread()
                finally:
                    await response.aclose()
        except (TimeoutError, ProviderError):
            return None
        except self._foreign:
            return None


def _table(provider: ProviderSettings, prices: PriceTable | None) -> PriceTable:
    given = prices or PriceTable()
    own = {name: Price(price.input, price.output) for name, price in provider.prices.items()}
    return PriceTable({**({} if given.default else own), **given.by_model}, given.default)


_TOKEN_FIELDS: Mapping[str, Any] = {"logprobs": True, "return_token_ids": True}
"""Asks vLLM and SGLang for a reply's tokens. Such a reply is not streamed: SGLang tells them in no stream, and vLLM had
left out those of calls."""

_NAMED_AS = {
    "logprobs": ("logprob",),
    "return_token_ids": ("return_token_ids",),
    "stream_options": ("stream_options", "include_usage"),
    "reasoning_effort": ("reasoning",),
    "reasoning": ("reasoning",),
}
"""Fields that are spared, and what an error that is about one says."""


class _FieldRefused(Exception):
    """The server does not take this field."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name
