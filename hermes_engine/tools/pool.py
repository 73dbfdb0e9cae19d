"""Threads for work on files, so that a slow disk stops no loop; the loop's own pool stays free for look-ups."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_FILES = ThreadPoolExecutor(4, thread_name_prefix="hermes-files")


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Runs blocking work there and returns its result."""
    return await asyncio.get_running_loop().run_in_executor(_FILES, lambda: function(*args, **kwargs))
