"""What tests of commands share: running one, and looking at processes."""

from __future__ import annotations

from pathlib import Path

from hermes_engine.protocols import CommandResult
from hermes_engine.sandbox.local import LocalSandbox
from hermes_engine.sandbox.processes import marked, read_process, this_instance


async def run(sandbox: LocalSandbox, command: str, cwd: Path, timeout: float | None = 20) -> CommandResult:
    return await sandbox.run(command, cwd=cwd, timeout=timeout, env={})


def gone(pid: int) -> bool:
    process = read_process(pid)
    return process is None or process.state in "ZX"


def pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def ours() -> list[str]:
    return [process.label for process in marked(f"{this_instance()}:tester:")]
