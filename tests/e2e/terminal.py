"""The real program in a pseudo terminal, its screen kept by a terminal emulator."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pexpect
import pyte

from tests.e2e.program import COMMAND, environment


class Terminal:
    """Runs a command in a pseudo terminal; `screen` is what a person sees, `raw` every byte it sent.

    Attributes:
        raw: everything the program wrote.
    """

    def __init__(
        self,
        *args: str,
        columns: int = 100,
        rows: int = 30,
        cwd: Path | None = None,
        term: str = "xterm-256color",
        command: Sequence[str] = COMMAND,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._screen = pyte.HistoryScreen(columns, rows, history=2000, ratio=1.0)
        self._screen.write_process_input = self.send  # type: ignore[method-assign, assignment]
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""
        self.process: Any = pexpect.spawn(
            command[0],
            [*command[1:], *args],
            dimensions=(rows, columns),
            cwd=str(cwd) if cwd else None,
            env=environment(**{"TERM": term, "PROMPT_TOOLKIT_NO_CPR": "", **(env or {})}),
            timeout=5,
            echo=True,
        )

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.close(force=True)

    @property
    def pid(self) -> int:
        """Of the program."""
        return int(self.process.pid)

    def pump(self, seconds: float = 0.05) -> None:
        """Reads what came within so many seconds."""
        deadline = time.monotonic() + seconds
        while True:
            left = deadline - time.monotonic()
            try:
                data = self.process.read_nonblocking(65536, timeout=max(0.0, left))
            except pexpect.TIMEOUT:
                return
            except pexpect.EOF:
                return
            self.raw += data
            self._stream.feed(data)
            if left <= 0:
                return

    @property
    def screen(self) -> str:
        """The visible lines."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    @property
    def text(self) -> str:
        """The lines that scrolled away and the visible ones."""
        width = self._screen.columns
        gone = ["".join(line[column].data for column in range(width)).rstrip() for line in self._screen.history.top]
        return "\n".join([*gone, self.screen])

    def until(self, wanted: str | Callable[[Terminal], bool], timeout: float = 15) -> float:
        """Waits until a text stands on the screen (or was there), or a condition holds; returns the seconds."""
        began = time.monotonic()
        while time.monotonic() - began < timeout:
            self.pump()
            if (wanted in self.text) if isinstance(wanted, str) else wanted(self):
                return time.monotonic() - began
            if not self.process.isalive():
                self.pump(0.2)
                if (wanted in self.text) if isinstance(wanted, str) else wanted(self):
                    return time.monotonic() - began
                break
        raise AssertionError(f"waited {time.monotonic() - began:.1f} s for {wanted!r}; the screen:\n{self.text}")

    def send(self, keys: str) -> None:
        """Types."""
        self.process.send(keys)

    def line(self, text: str) -> None:
        """Types a line and Enter."""
        self.process.send(text + "\r")

    def resize(self, columns: int, rows: int) -> None:
        """Changes the size of the window."""
        self._screen.resize(rows, columns)
        self.process.setwinsize(rows, columns)

    def signal(self, number: signal.Signals) -> None:
        """Sends the program a signal."""
        os.kill(self.pid, number)

    def ended(self, timeout: float = 10) -> int:
        """Waits for the end and returns the exit code (128 + N for a signal)."""
        deadline = time.monotonic() + timeout
        while self.process.isalive():
            self.pump(0.05)
            if time.monotonic() > deadline:
                raise AssertionError(f"still alive after {timeout} s; the screen:\n{self.text}")
        self.pump(0.1)
        self.process.close()
        if self.process.exitstatus is not None:
            return int(self.process.exitstatus)
        return 128 + int(self.process.signalstatus or 0)
