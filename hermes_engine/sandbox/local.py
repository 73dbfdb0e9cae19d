"""Runs commands on this machine, as the person, with no wall around them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from hermes_engine.protocols import Job
from hermes_engine.redaction import Redactor
from hermes_engine.sandbox.commands import Commands
from hermes_engine.sandbox.environment import command_env
from hermes_engine.sandbox.launch import Entrance, Shell, find_shell
from hermes_engine.sandbox.processes import MARK


class LocalSandbox(Commands):
    """The commands of one agent; see `protocols.Sandbox`.

    Args:
        agent, outputs, redactor, on_job_end: see `Commands`.
        pass_env: variables handed on although their names look like secrets.
        environ: environment to start from; this program's own by default.
        env: what commands see of it, where somebody has worked that out already.
        shell: path of the shell.
    """

    def __init__(
        self,
        *,
        agent: str,
        outputs: Path,
        redactor: Redactor | None = None,
        pass_env: Iterable[str] = (),
        environ: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        on_job_end: Callable[[Job], None] | None = None,
        shell: str | None = None,
    ) -> None:
        source = os.environ if environ is None else environ
        super().__init__(
            agent=agent,
            outputs=outputs,
            env=command_env(source, pass_env=pass_env) if env is None else env,
            around=source.get(MARK, ""),
            redactor=redactor,
            on_job_end=on_job_end,
        )
        self._shell = Shell(shell or find_shell())

    async def _entrance(self) -> Entrance:
        return self._shell
