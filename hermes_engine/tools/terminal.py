"""Tools `terminal` and `process`: run shell commands, and look after those in the background.

Only the working directory is carried from call to call. What a command leaves running lives until the
agent closes.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any, Literal

from hermes_engine.cleaning import one_line
from hermes_engine.errors import ToolFault, UnknownName
from hermes_engine.messages import Display, ToolResult
from hermes_engine.protocols import CommandResult, Job
from hermes_engine.tools.context import ToolContext
from hermes_engine.tools.registry import tool

WAIT_SECONDS = 60.0
MOST_SECONDS = 1e7
_LOG_LINES = 200


@tool("terminal", "Run", effect="command", title="command")
async def terminal(
    ctx: ToolContext, command: str, timeout: float | None = None, cwd: str | None = None, background: bool = False
) -> ToolResult:
    """Run a bash command, without keyboard or pager. The working directory is kept for the next call,
    variables are not.

    Args:
        command: What to run.
        timeout: Seconds after which it is ended.
        cwd: Folder for this call only.
        background: Return at once; the tool process looks after it. For servers and other long work.
    """
    if timeout is not None and not 0 < timeout <= MOST_SECONDS:
        raise ToolFault(
            f"timeout must be a number of seconds above 0 and at most {MOST_SECONDS:.0f}, not {timeout:g}; leave it "
            "out for the usual limit, or use background=true for work without one"
        )
    folder, note = _folder(ctx, cwd)
    if background:
        return _started(await ctx.sandbox.start(command, cwd=folder, env=ctx.workspace.env), note)
    limit = ctx.limits.command_seconds if timeout is None else timeout
    result = await ctx.sandbox.run(command, cwd=folder, timeout=limit, env=ctx.workspace.env, on_output=ctx.progress)
    if cwd is None and result.cwd is not None and result.cwd != folder:
        ctx.workspace.move(result.cwd)
    return _ended(result, command, limit, note)


@tool("terminal", "Process", title="id")
async def process(
    ctx: ToolContext,
    action: Literal["list", "poll", "log", "wait", "kill"],
    id: str | None = None,
    timeout: float | None = None,
) -> ToolResult:
    """Look after commands started with terminal(background=true).

    Args:
        action: list all; poll one's state; log its output; wait for its end; kill it.
        id: Which command; all but list need it.
        timeout: Seconds to wait at most.
    """
    if action == "list":
        jobs = ctx.sandbox.jobs()
        lines = "\n".join(map(_job_line, jobs))
        running = sum(job.state == "running" for job in jobs)
        return ToolResult(
            lines or "[no background commands]",
            display=Display("Process", "list", f"{running} running", "list", lines),
        )
    if not id:
        raise ToolFault(f"action {action} needs an id: {_ids(ctx)}")
    try:
        if action == "wait":
            job = await ctx.sandbox.wait(id, WAIT_SECONDS if timeout is None else timeout)
        elif action == "kill":
            job = await ctx.sandbox.kill(id)
        else:
            job = ctx.sandbox.job(id)
    except UnknownName:
        raise ToolFault(f"there is no background command {id!r}: {_ids(ctx)}") from None
    output = job.output.rstrip("\n")
    if action != "log":
        output = "\n".join(output.splitlines()[-_LOG_LINES:][-20:])
    whole = f"\n[everything: {job.full_output}]" if job.full_output else ""
    text = f"{_job_line(job)}\n{output}{whole}".rstrip("\n")
    display = Display("Process", f"{action} {job.id}", state_of(job), "command", output)
    return ToolResult(text, display=display, data={"state": job.state, "exit_code": job.exit_code})


def state_of(job: Job) -> str:
    """`running`, `done`, `failed (3)`, `cancelled`: one form for people and models."""
    if job.state != "failed" or job.exit_code is None:
        return job.state
    return f"failed ({exit_text(job.exit_code)})" if job.exit_code < 0 else f"failed ({job.exit_code})"


def exit_text(code: int | None) -> str:
    """How a command ended: `exit 3`, `killed by SIGSEGV (−11)`, `exit 139 (SIGSEGV)`."""
    if code is None:
        return "still running"
    if code < 0:
        return f"killed by {_signal_name(-code)} (−{-code})"
    if 128 < code < 160 and (name := _signal_name(code - 128)).startswith("SIG"):
        return f"exit {code} ({name})"
    return f"exit {code}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _folder(ctx: ToolContext, cwd: str | None) -> tuple[Path, str]:
    place, note = ctx.workspace.place()
    if cwd is None:
        return place, note
    folder = ctx.workspace.resolve(cwd)
    if not ctx.workspace.is_folder(folder):
        raise ToolFault(f"cwd {cwd} is not a folder")
    return folder, note


def _ended(result: CommandResult, command: str, limit: float, note: str) -> ToolResult:
    notes = [note] if note else []
    failed = result.timed_out or result.exit_code != 0
    if result.timed_out:
        notes.append(
            f"[ended after {limit:g} s, with everything it started; for longer work give a timeout or background=true]"
        )
    elif failed:
        notes.append(f"[{exit_text(result.exit_code)}]")
    if result.still_running:
        notes.append(f"[still running: {', '.join(result.still_running)}; ended when this agent closes]")
    output = result.output.rstrip("\n")
    text = "\n".join(part for part in (output, *notes) if part) or "[no output]"
    summary = f"timeout {limit:g} s" if result.timed_out else exit_text(result.exit_code) if failed else ""
    seconds = round(result.seconds, 3)
    data: dict[str, Any] = {"exit_code": result.exit_code, "seconds": seconds, "timed_out": result.timed_out}
    if result.full_output:
        data["full_output"] = str(result.full_output)
    return ToolResult(
        text,
        "error" if failed else "ok",
        Display("Run", one_line(command, 300), summary or f"{result.seconds:.1f} s", "command", output),
        data,
    )


def _started(job: Job, note: str) -> ToolResult:
    output = job.output.rstrip("\n")
    parts = [note] if note else []
    if job.state == "running":
        parts.append(f"[started in the background as {job.id}; it is ended when this agent closes]")
    else:
        parts.append(f"[background command {job.id}: {state_of(job)}]")
    text = "\n".join(part for part in (*parts, output) if part)
    display = Display("Run", one_line(job.command, 300), f"{job.id} {state_of(job)}", "command", output)
    return ToolResult(
        text, "error" if job.state == "failed" else "ok", display, {"job": job.id, "exit_code": job.exit_code}
    )


def _job_line(job: Job) -> str:
    seconds = (job.ended or time.time()) - job.started
    return f"{job.id}  {state_of(job)}  {seconds:.0f} s  {one_line(job.command, 120)}"


def _ids(ctx: ToolContext) -> str:
    return "known are " + (", ".join(job.id for job in ctx.sandbox.jobs()) or "none")
