"""A toolbox of three small tools for tests of the loop: it keeps the protocol's promises and nothing more."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hermes_engine.events import Emitter, ToolFinished, ToolStarted
from hermes_engine.messages import Display, ToolCall, ToolResult
from hermes_engine.protocols import ToolSchema


def schema(name: str) -> ToolSchema:
    return {"type": "function", "function": {"name": name, "description": name, "parameters": {"type": "object"}}}


class SmallToolbox:
    """`echo` gives its arguments back, `read_file` takes a moment, `slow` takes for ever."""

    def __init__(self) -> None:
        self.running = 0
        self.most_running = 0
        self.closed = False
        self._schemas = [schema(name) for name in self.names]

    @property
    def names(self) -> Sequence[str]:
        return ("echo", "read_file", "slow")

    def schemas(self) -> Sequence[ToolSchema]:
        return self._schemas

    async def call(self, call: ToolCall, emit: Emitter) -> ToolResult:
        emit(ToolStarted, call_id=call.id, name=call.name, display=Display("Use", call.name))
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            if call.name == "slow":
                await asyncio.sleep(3600)
            await asyncio.sleep(0.01)
            known = call.name in self.names
            result = ToolResult(call.arguments if known else f"no tool {call.name}", "ok" if known else "error")
        except asyncio.CancelledError:
            emit(ToolFinished, call_id=call.id, name=call.name, status="cancelled")
            raise
        finally:
            self.running -= 1
        emit(ToolFinished, call_id=call.id, name=call.name, status=result.status)
        return result

    async def close(self) -> None:
        self.closed = True
