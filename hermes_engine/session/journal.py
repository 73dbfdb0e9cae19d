"""Writes a chat's messages into the store as they come, on the store's own thread."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

from hermes_engine.messages import Message
from hermes_engine.protocols import Store
from hermes_engine.redaction import Redactor


class StoreJournal:
    """A `Journal` on a `Store`. System messages are not kept: they are built anew at each start."""

    def __init__(self, store: Store, session: str, pool: Executor, redactor: Redactor) -> None:
        self._store, self._session, self._pool, self._redactor = store, session, pool, redactor

    async def append(self, messages: Sequence[Message]) -> None:
        """Messages joined at the end."""
        await self._run(self._store.append, messages)

    async def replace(self, messages: Sequence[Message]) -> None:
        """The conversation was shortened to these."""
        await self._run(self._store.replace, messages)

    async def _run(self, write: Callable[[str, Sequence[Message]], None], messages: Sequence[Message]) -> None:
        kept = [clean(message, self._redactor) for message in messages if message.role != "system"]
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._pool, write, self._session, kept)


def clean(message: Message, redactor: Redactor) -> Message:
    """The message without secrets, as it may be written."""
    calls = tuple(dataclasses.replace(c, arguments=redactor.text(c.arguments)) for c in message.tool_calls)
    return dataclasses.replace(
        message,
        content=redactor.text(message.content),
        reasoning=redactor.text(message.reasoning),
        tool_calls=calls,
    )
