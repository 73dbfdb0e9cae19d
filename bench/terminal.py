"""A program under a pseudo terminal, read raw: when did bytes arrive that a person would see?

Answers what a terminal answers, so that no program waits for replies. Draws nothing: what is looked for is found
in the stream of bytes, letters that occur nowhere else stand for what was typed. Knows no program.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import pexpect

from bench.processes import cpu_clock

LETTERS = "БГДЁЗИЙЛПФЦЧШЫЭЮЯбгдёзийлпфцчшыэюяΓΔΘΛΞΠΣΦΨΩαβγδεζηθλμξπρστφψω"
"""Keys whose echo cannot be mistaken for anything else on the screen."""

_QUERY = re.compile(rb"\x1b\[\?2026\$p|\x1b\]11;\?(?:\x07|\x1b\\)|\x1b\[c|\x1b\[6n")
_REPLIES = {b"\x1b[?2026$p": b"\x1b[?2026;2$y", b"\x1b[c": b"\x1b[?62;22c", b"\x1b[6n": b"\x1b[1;1R"}
_BACKGROUND = b"\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\"


class NotSeen(RuntimeError):
    """What was waited for did not come."""


class Terminal:
    """One program on a terminal of its own, from `with` to the end of it."""

    def __init__(
        self, command: Sequence[str | Path], *, env: Mapping[str, str], cwd: Path, size: tuple[int, int] = (120, 36)
    ) -> None:
        """Args:
        command: program and arguments.
        env: its environment; what says which terminal it is, is added.
        cwd: its folder.
        size: columns and rows.
        """
        first, *rest = map(str, command)
        terminal = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self.began = time.monotonic()
        self._process = pexpect.spawn(
            first, rest, env={**env, **terminal}, cwd=str(cwd), dimensions=size[::-1], echo=False, timeout=None
        )
        self._fd = int(self._process.child_fd)
        self._tail = b""
        self.bytes_read = 0

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGTERM)
        end = time.monotonic() + 3
        while self._process.isalive() and time.monotonic() < end:
            with contextlib.suppress(NotSeen):
                self._read(0.05)
        self._process.close(force=True)

    @property
    def pid(self) -> int:
        """The program's process."""
        pid = int(self._process.pid or 0)
        return pid

    @property
    def cpu(self) -> float:
        """Seconds of processor time it has had, its children's not counted."""
        return cpu_clock(self.pid)

    @property
    def memory(self) -> float:
        """Megabytes of memory it has now (RSS), its children's not counted."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def write(self, keys: str) -> None:
        """Types."""
        os.write(self._fd, keys.encode())

    def wait_for(self, *texts: str, timeout: float = 60.0) -> float:
        """Reads until one of `texts` has arrived after what was read before.

        Returns:
            Seconds since the call.

        Raises:
            NotSeen: none came in time, or the program ended.
        """
        wanted = [text.encode() for text in texts]
        longest = max(map(len, wanted))
        began = time.monotonic()
        seen = b""
        while True:
            left = began + timeout - time.monotonic()
            if left <= 0:
                raise NotSeen(f"{texts} did not come within {timeout:g} s; last was {self._tail[-2000:]!r}")
            seen = seen[-longest:] + self._read(left)
            if any(text in seen for text in wanted):
                return time.monotonic() - began

    def echo(self, letter: str, timeout: float = 10.0) -> float:
        """Types a letter; seconds until it is painted."""
        self.write(letter)
        return self.wait_for(letter, timeout=timeout)

    def watch(self, seconds: float) -> None:
        """Reads for so long, as a terminal would that nobody touches."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._read(left)

    def settle(self, busy: float = 0.03, limit: float = 30.0) -> None:
        """Watches until the program has had less than a share `busy` of a core for half a second."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            before = self.cpu
            self.watch(0.5)
            if self.cpu - before < busy * 0.5:
                return
        raise NotSeen(f"the program was still busy after {limit:g} s")

    def _read(self, wait: float) -> bytes:
        ready, _, _ = select.select([self._fd], [], [], wait)
        if not ready:
            return b""
        try:
            data = os.read(self._fd, 65536)
        except OSError:
            data = b""
        if not data:
            raise NotSeen(f"the program ended; its last words were {self._tail[-2000:]!r}")
        self.bytes_read += len(data)
        self._reply(self._tail[-16:], data)
        self._tail = (self._tail + data)[-4096:]
        return data

    def _reply(self, before: bytes, data: bytes) -> None:
        for query in _QUERY.finditer(before + data):
            if query.end() > len(before):
                os.write(self._fd, _REPLIES.get(query.group(), _BACKGROUND))
