"""Threads for boards: a database that is locked for a while must not hold up the workers' work on files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_BOARDS = ThreadPoolExecutor(6, thread_name_prefix="hermes-boards")


async def on_board(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Runs blocking work there and returns its result."""
    return await asyncio.get_running_loop().run_in_executor(_BOARDS, lambda: function(*args, **kwargs))
