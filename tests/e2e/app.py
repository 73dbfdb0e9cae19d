"""The app in a person's terminal: keys by name, pastes, what is on the screen now."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.e2e.program import COMMAND
from tests.e2e.terminal import Terminal

KEYS = {
    "enter": "\r",
    "escape": "\x1b",
    "tab": "\t",
    "shift+tab": "\x1b[Z",
    "backspace": "\x7f",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "home": "\x1b[H",
    "end": "\x1b[F",
    "pageup": "\x1b[5~",
    "pagedown": "\x1b[6~",
    "alt+enter": "\x1b\r",
    "shift+enter": "\x1b[13;2u",
    "f1": "\x1bOP",
    "ctrl+end": "\x1b[1;5F",
}
KEYS |= {f"ctrl+{letter}": chr(number) for number, letter in enumerate("abcdefghijklmnopqrstuvwxyz", 1)}

RESETS = (b"\x1b[?1000l", b"\x1b[?1003l", b"\x1b[?1006l", b"\x1b[?2004l", b"\x1b[?1049l", b"\x1b[?25h")
"""What a terminal must hear at the end: no mouse, no paste marks, the first screen, a cursor."""

READY = "/ for commands"


class AppTerminal(Terminal):
    """`hermes` on a pseudo terminal."""

    def __init__(
        self,
        *args: str,
        columns: int = 100,
        rows: int = 30,
        cwd: Path,
        command: Sequence[str] = COMMAND,
        **env: str,
    ) -> None:
        super().__init__(*args, columns=columns, rows=rows, cwd=cwd, command=command, env=env)
        self.process.delaybeforesend = None

    def __enter__(self) -> AppTerminal:
        return self

    def press(self, *keys: str, pause: float = 0.03) -> None:
        """Presses keys by name, or types characters."""
        for key in keys:
            self.send(KEYS.get(key, key))
            self.pump(pause)

    def paste(self, text: str) -> None:
        """Pastes as a terminal with bracketed paste does."""
        data = f"\x1b[200~{text}\x1b[201~"
        for start in range(0, len(data), 2048):
            self.process.send(data[start : start + 2048])
            self.pump(0.001)

    def shows(self, words: str, timeout: float = 15) -> float:
        """Waits until the words are on the screen; returns the seconds."""
        return self.until(lambda terminal: words in terminal.screen, timeout)

    def gone(self, words: str, timeout: float = 15) -> float:
        """Waits until the words are not on the screen."""
        return self.until(lambda terminal: words not in terminal.screen, timeout)

    def idle(self, timeout: float = 15) -> None:
        """Waits until no turn runs."""
        self.until(lambda terminal: "Esc stops" not in terminal.screen, timeout)

    def when(self, condition: Callable[[], bool], timeout: float = 15) -> float:
        """Waits until something outside the screen holds."""
        return self.until(lambda terminal: condition(), timeout)

    def left(self, timeout: float = 5) -> tuple[int, float]:
        """Waits for the end; the exit code and the seconds it took."""
        began = time.monotonic()
        return self.ended(timeout), time.monotonic() - began

    @property
    def restored(self) -> bool:
        """Whether the terminal was put in order: every mode that was set is reset after the last time it was set."""
        for reset in RESETS:
            at = self.raw.rfind(reset)
            opposite = reset[:-1] + (b"h" if reset.endswith(b"l") else b"l")
            if at < 0 or self.raw.rfind(opposite) > at:
                return False
        return True
