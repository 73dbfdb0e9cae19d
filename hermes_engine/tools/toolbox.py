"""The tools of one agent: finds, checks, asks, runs, cleans, redacts, cuts. Whatever goes wrong becomes a result.

Knows no tool by name. A call never raises but for cancellation, and each has exactly one `ToolFinished`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes_engine.cleaning import clean_for_model, one_line, printable
from hermes_engine.errors import HermesError, ToolFault, UnknownName
from hermes_engine.events import Emitter, ToolFinished, ToolProgress, ToolStarted
from hermes_engine.messages import CANCELLED_RESULT, Display, ToolCall, ToolResult
from hermes_engine.protocols import CutOff, Sandbox, ToolSchema
from hermes_engine.redaction import Redactor
from hermes_engine.tools.context import ToolContext, ToolLimits
from hermes_engine.tools.permissions import Gate
from hermes_engine.tools.registry import Tool, registered
from hermes_engine.tools.result import cut, small
from hermes_engine.tools.schema import check_arguments, parse_arguments, whole
from hermes_engine.tools.workspace import Workspace

log = logging.getLogger(__name__)

PROGRESS_EVERY = 0.25
"""Seconds between two `ToolProgress` of a call, at least."""


def build_toolbox(
    names: Sequence[str],
    *,
    agent: str,
    workspace: Workspace,
    sandbox: Sandbox,
    gate: Gate,
    redactor: Redactor,
    extra: Sequence[Tool] = (),
    limits: ToolLimits | None = None,
) -> Toolbox:
    """The toolbox of an agent.

    Args:
        names: tools on offer, in this order; those of `extra` may be among them.
        agent: id of the agent.
        workspace: its place; the gate is bound to it.
        sandbox: where its commands run; closed with the toolbox.
        gate: its permissions.
        redactor: takes secrets out of results.
        extra: tools that are in no table, made for this agent.
        limits: from the settings.

    Raises:
        UnknownName: a name that no tool has.
    """
    known = {**registered(), **{tool.name: tool for tool in extra}}
    for name in names:
        if name not in known:
            raise UnknownName("tool", name, known)
    wanted = [known[name] for name in dict.fromkeys([*names, *(tool.name for tool in extra)])]
    gate.workspace = workspace
    return Toolbox(wanted, agent, workspace, sandbox, gate, redactor, limits or ToolLimits())


class Toolbox:
    """See `protocols.Toolbox`."""

    def __init__(
        self,
        tools: Sequence[Tool],
        agent: str,
        workspace: Workspace,
        sandbox: Sandbox,
        gate: Gate,
        redactor: Redactor,
        limits: ToolLimits,
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._agent, self._workspace, self._sandbox = agent, workspace, sandbox
        self._gate, self._redactor, self._limits = gate, redactor, limits
        self._schemas = [tool.schema for tool in tools]

    @property
    def names(self) -> Sequence[str]:
        """Names on offer, in the order of the schemas."""
        return list(self._tools)

    def schemas(self) -> Sequence[ToolSchema]:
        """What goes into the request; the same objects each time."""
        return self._schemas

    async def call(self, call: ToolCall, emit: Emitter) -> ToolResult:
        """See `protocols.Toolbox.call`."""
        began = time.monotonic()
        tool = self._tools.get(call.name)
        arguments, fault = self._arguments(tool, call)
        started = self._clean_display(Display(tool.verb if tool else "Call", self._title(tool, call, arguments)))
        shown = arguments if fault is None else whole(call.recorded())
        emit(
            ToolStarted, call_id=call.id, name=call.name, display=started, arguments=self._redactor.value(_plain(shown))
        )
        try:
            if tool is None or fault is not None:
                result = ToolResult(fault or "", "error", dataclasses.replace(started, summary="not run"))
            else:
                result = await self._run(tool, arguments, call, emit, started)
        except CutOff as cut:
            cut.result = self._finish(call, emit, began, self._tidy(cut.result, call.name))
            raise
        except asyncio.CancelledError:
            cancelled = dataclasses.replace(started, summary="cancelled")
            self._finish(call, emit, began, ToolResult(CANCELLED_RESULT, "cancelled", cancelled))
            raise
        return self._finish(call, emit, began, self._tidy(result, call.name))

    async def close(self) -> None:
        """Ends what the agent's tools still run."""
        await self._sandbox.close()

    def _arguments(self, tool: Tool | None, call: ToolCall) -> tuple[dict[str, Any], str | None]:
        """The checked arguments, or what is wrong with the call."""
        if tool is None:
            offered = ", ".join(self._tools) or "none"
            return {}, f"there is no tool {one_line(call.name, 80)!r}; on offer: {offered}"
        try:
            given = parse_arguments(tool.name, call.arguments or "", alone=tool.signature.alone)
            return check_arguments(tool.name, tool.signature, given), None
        except ToolFault as error:
            return {}, str(error)

    async def _run(
        self, tool: Tool, arguments: Mapping[str, Any], call: ToolCall, emit: Emitter, started: Display
    ) -> ToolResult:
        progress = _Progress(emit, call.id, self._redactor)
        try:
            verdict = await self._gate.check(tool, arguments, emit, call.id, hide=self._redactor.text)
            if not verdict.allowed:
                return ToolResult(verdict.text, verdict.status, dataclasses.replace(started, summary="not run"))
            context = ToolContext(
                self._agent, self._workspace, self._sandbox, self._gate, self._limits, emit, call.id, progress
            )
            result = await tool.function(context, **arguments)
            return result if isinstance(result, ToolResult) else ToolResult(result, display=started)
        except ToolFault as error:
            return ToolResult(str(error), "error", dataclasses.replace(started, summary=one_line(str(error), 60)))
        except HermesError as error:
            return ToolResult(error.line, "error", dataclasses.replace(started, summary=one_line(error.line, 60)))
        except Exception as error:  # border: a fault in a tool is told to the model and ends nothing
            log.exception("tool %s failed", tool.name)
            text = f"{tool.name} failed: {type(error).__name__}: {one_line(str(error), 300)}"
            return ToolResult(text, "error", dataclasses.replace(started, summary="failed"))
        finally:
            progress.stop()

    def _tidy(self, result: ToolResult, name: str) -> ToolResult:
        text = self._redactor.text(clean_for_model(result.text))
        whole = result.data.get("full_output")
        text = cut(text, outputs=self._workspace.outputs, name=name, whole=Path(str(whole)) if whole else None)
        data = self._redactor.value(_plain(result.data)) if result.data else {}
        return ToolResult(text, result.status, self._clean_display(result.display), data, result.usage)

    def _clean_display(self, display: Display) -> Display:
        hide: Callable[[str], str] = self._redactor.text
        return small(
            Display(
                display.verb,
                one_line(hide(display.title), 300),
                one_line(hide(display.summary), 80),
                display.kind,
                hide(printable(display.body)),
            )
        )

    def _title(self, tool: Tool | None, call: ToolCall, arguments: Mapping[str, Any]) -> str:
        if tool is None:
            return call.name
        return tool.titled(arguments) or tool.titled(call.parsed() or {})

    def _finish(self, call: ToolCall, emit: Emitter, began: float, result: ToolResult) -> ToolResult:
        emit(
            ToolFinished,
            call_id=call.id,
            name=call.name,
            status=result.status,
            seconds=round(time.monotonic() - began, 3),
            display=result.display,
            text=result.text,
            data=result.data,
        )
        return result


class _Progress:
    """Sends the latest text of a call, at most four times a second and never for a short one."""

    def __init__(self, emit: Emitter, call_id: str, redactor: Redactor) -> None:
        self._emit, self._call_id, self._redactor = emit, call_id, redactor
        self._loop = asyncio.get_running_loop()
        self._next = self._loop.time() + PROGRESS_EVERY
        self._timer: asyncio.TimerHandle | None = None
        self._text = ""
        self._stopped = False

    def __call__(self, text: str) -> None:
        """Notes what there is to show."""
        self._text = text
        if self._timer is None and not self._stopped:
            self._timer = self._loop.call_at(self._next, self._send)

    def stop(self) -> None:
        """Nothing more is sent."""
        self._stopped = True
        if self._timer:
            self._timer.cancel()

    def _send(self) -> None:
        self._timer = None
        self._next = self._loop.time() + PROGRESS_EVERY
        lines = [line for line in printable(self._redactor.text(self._text)).splitlines() if line.strip()][-2:]
        if lines:
            self._emit(ToolProgress, call_id=self._call_id, text="\n".join(one_line(line, 200) for line in lines))


def _plain(value: Any) -> Any:
    """Arguments as JSON values: models within them become objects again."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    dump = getattr(value, "model_dump", None)
    return dump() if callable(dump) else value
