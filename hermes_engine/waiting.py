"""Waiting for what must not be left half done. Knows nothing of what that is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def to_its_end(work: Awaitable[T]) -> T:
    """Waits until the work has ended, however often the caller is cancelled meanwhile; then that counts."""
    running = asyncio.ensure_future(work)
    cancelled = False
    while not running.done():
        try:
            await asyncio.wait({running})
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        if not running.cancelled():
            running.exception()  # nobody is there to hear it
        raise asyncio.CancelledError
    return running.result()
