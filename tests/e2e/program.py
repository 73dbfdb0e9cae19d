"""Runs the real program as a process, in a folder and a home of the test's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "hermes_tui.cli")


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        """Standard output as tab-separated records."""
        return [line.split("\t") for line in self.out.splitlines()]


def environment(**extra: str) -> dict[str, str]:
    """The test's environment (home and keys are its own already), with the checkout importable.

    Tests that run beside one another are told a size of the window, which would stand above the terminal's own.
    """
    own = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    return {**own, "PYTHONPATH": str(ROOT), "PROMPT_TOOLKIT_NO_CPR": "1", **extra}


def hermes(
    *args: str,
    stdin: str | bytes = "",
    cwd: Path | None = None,
    timeout: float = 60,
    command: Sequence[str] = COMMAND,
    **env: str,
) -> Done:
    """Runs `hermes ARGS` to its end; standard streams are pipes."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        [*command, *args],
        input=data,
        capture_output=True,
        cwd=cwd,
        env=environment(**env),
        timeout=timeout,
        check=False,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def start(*args: str, cwd: Path | None = None, **env: str) -> subprocess.Popen[bytes]:
    """Starts `hermes ARGS` with pipes and returns at once."""
    return subprocess.Popen(
        [*COMMAND, *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env=environment(**env),
    )
