"""Threads for boards: a database that is locked for a while must not hold up the workers' work on files."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from hermes_engine.board import BoardGone
from hermes_engine.errors import StateError

P = ParamSpec("P")
T = TypeVar("T")

_BOARDS = ThreadPoolExecutor(6, thread_name_prefix="hermes-boards")
_SHORTEST_WAIT, _LONGEST_WAIT = 0.2, 5.0

log = logging.getLogger(__name__)


async def on_board(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Runs blocking work there and returns its result."""
    return await asyncio.get_running_loop().run_in_executor(_BOARDS, lambda: function(*args, **kwargs))


async def on_board_at_last(function: Callable[[], T]) -> T:
    """The same, repeated as long as the board cannot be used; whoever waits for a board for too long is cancelled.

    For what a worker does with its card: an outage of the board costs no request and no try.

    Raises:
        BoardGone: there is nothing to wait for.
    """
    wait = _SHORTEST_WAIT
    while True:
        try:
            return await on_board(function)
        except BoardGone:
            raise
        except StateError as error:
            log.info("the board cannot be used, asked again in %g s: %s", wait, error)
        await asyncio.sleep(wait)
        wait = min(wait * 2, _LONGEST_WAIT)
