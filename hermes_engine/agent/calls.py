"""Runs the calls of one reply: neighbours that change nothing at the same time, all others one after another."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from hermes_engine.events import Emitter
from hermes_engine.messages import ToolCall, ToolResult
from hermes_engine.protocols import CutOff, Toolbox
from hermes_engine.toolsets import SIDE_BY_SIDE


async def run_side_by_side(
    group: Sequence[ToolCall], toolbox: Toolbox, emit: Emitter, done: dict[str, ToolResult]
) -> None:
    """Fills `done` (call id → result) as calls end, so that a cancelled group keeps what it has."""

    async def one(call: ToolCall) -> None:
        try:
            done[call.id] = await toolbox.call(call, emit)
        except CutOff as cut:
            done[call.id] = cut.result
            raise asyncio.CancelledError from None  # timeouts know their own cancellation by its type

    if len(group) == 1:
        await one(group[0])
    else:
        await asyncio.gather(*(one(call) for call in group))


def grouped(calls: Sequence[ToolCall]) -> Iterator[list[ToolCall]]:
    """The calls in runs that may go at the same time; a call that may change something stands alone."""
    group: list[ToolCall] = []
    for call in calls:
        if call.name in SIDE_BY_SIDE:
            group.append(call)
            continue
        if group:
            yield group
            group = []
        yield [call]
    if group:
        yield group
