"""Tasks that go on when the program they were started in has ended: headless, in a process and a session of the
terminal's of their own. Knows the command line it starts, no front end.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes_engine.paths import open_private, private_dir
from hermes_tui.texts import _

if TYPE_CHECKING:
    from hermes_engine.profiles import Resolved
    from hermes_engine.session import AgentRow
    from hermes_engine.work.isolated import Isolation

LOG = "tasks.log"
"""In the home's `logs`: what such a process says."""

_started: list[subprocess.Popen[bytes]] = []
"""Nobody waits for them."""


def goes_on(row: AgentRow) -> bool:
    """Whether an agent at work can go on by itself in another process."""
    return not row.bound and row.kind not in ("batch", "worker")


def left_words(rows: Sequence[AgentRow]) -> list[str]:
    """What becomes of agents at work when they are left working, a sentence each."""
    told = [_("Left working: what it would ask is denied.")]
    if any(row.bound for row in rows):
        told.append(_("An agent that a turn started is stopped; that turn starts it again."))
    if batches := [row.name for row in rows if row.kind == "batch"]:
        told.append(
            _("A batch run stops; `hermes batch run --resume --run_name {name}` goes on.").format(name=batches[0])
        )
    if any(row.kind == "worker" for row in rows):
        told.append(_("A worker stops; its card waits for the next one."))
    return told


def go_on_without_us(agents: Sequence[str], resolved: Resolved) -> int:
    """Starts one process that goes on with these interrupted or handed-over tasks; its pid, 0 for no tasks.

    The engine that handed them over must be closed. Raises OSError.
    """
    if not agents:
        return 0
    log = open_private(private_dir(resolved.home.ensure().logs) / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "hermes_tui.cli", *_flags(resolved), "tasks", "resume", *agents],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=_environment(resolved),
            start_new_session=True,
        )
    finally:
        os.close(log)
    _started.append(process)
    return process.pid


def worker_process(resolved: Resolved, wish: str | None = None, *, silent: bool = False) -> Isolation | None:
    """How a worker of a board is started as a process of its own, with the flags this program was given; None where
    workers are agents of this program.

    Args:
        resolved: settings in effect.
        wish: of `kanban.isolation`; None: the settings'.
        silent: what the processes say goes to the log, since a screen stands where they would say it.
    """
    from hermes_engine.work.isolated import Isolation

    if (wish or resolved.settings.kanban.isolation) != "process":
        return None
    given = (("--model", resolved.overrides.model), ("--mode", resolved.overrides.mode))
    more = [part for flag, value in given if value is not None for part in (flag, value)]
    command = [sys.executable, "-m", "hermes_tui.cli", *_flags(resolved), *more, "kanban", "work"]
    log = private_dir(resolved.home.ensure().logs) / LOG if silent else None
    return Isolation(command, _environment(resolved), log)


def _flags(resolved: Resolved) -> list[str]:
    """The flags this program was given, but for those a task keeps by itself (model, mode, tools) and the key."""
    given = resolved.overrides
    values = (
        ("--profile", given.profile),
        ("--base-url", given.base_url),
        ("--max-turns", given.max_turns),
        ("--reasoning-effort", given.reasoning_effort),
    )
    return [part for flag, value in values if value is not None for part in (flag, str(value))]


def _environment(resolved: Resolved) -> dict[str, str]:
    """Our environment; a key of the command line goes with its address, since flags show in process lists."""
    environment = {**os.environ, "HERMES_HOME": str(resolved.home.root)}
    if resolved.overrides.api_key:
        endpoint = resolved.endpoint_for()
        environment |= {"OPENAI_BASE_URL": endpoint.base_url, "OPENAI_API_KEY": resolved.overrides.api_key}
        environment["OPENROUTER_API_KEY"] = ""
    return environment
