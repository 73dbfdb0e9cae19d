"""The plain shell on plain lines: for screen readers (`--linear`), dumb terminals and pipes. Appends, never redraws.

At a terminal lines are taken at any time. From a pipe each line waits until what the one before it started has
ended; answers go to standard output, everything else to standard error, and the end of the pipe ends the shell when
also what runs beside the chat (a batch) has ended.
"""

from __future__ import annotations

import queue
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from hermes_tui.commands.host import HostKind
from hermes_tui.printing.lines import Line
from hermes_tui.printing.streams import ascii_marks, err, out
from hermes_tui.repl.shell import Opening, Shell, safely

_ENDS = (signal.SIGTERM, signal.SIGHUP)
POLL_SECONDS = 0.2
"""From a pipe: how often it is looked whether a turn has ended without a last word."""


def run_plain(opening: Opening, *, attended: bool) -> int:
    """Runs the shell until its input ends or it is left.

    Returns:
        0; with a pipe 1 when a turn failed, 2 when that is because no model is set up; 130 when a signal ended it.
    """
    front = PlainFront(attended=attended)
    shell = Shell(opening, front, attended=attended)
    try:
        return front.run(shell)
    finally:
        shell.close(hung_up=front.hung_up)


class PlainFront:
    """A `Front` on standard input and output."""

    kind: HostKind = "linear"

    def __init__(self, *, attended: bool) -> None:
        self._attended = attended
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._wanted = threading.Semaphore(0)
        self._asked = False
        self._left = self.hung_up = False
        self._ended = False
        self._code = 0
        self._prompted = ""

    # -- Front ----------------------------------------------------------------------------------------------------

    def post(self, work: Callable[[], None]) -> None:
        """Runs work on the main thread, in order."""
        self._work.put(work)

    def put(self, lines: Sequence[Line]) -> None:
        """Prints lines, on a line of their own even while a prompt stands."""
        if lines and self._prompted:
            out()
            self._prompted = ""
        for line in lines:
            if self._attended or line.answer:
                out(line.text if line.answer else ascii_marks(line.text), style=line.style)
            elif line.text:
                err(line.text, style=line.style)

    def changed(self) -> None:
        """Nothing is drawn anew here; `run` prints the prompt when it is time."""

    def set_draft(self, text: str) -> None:
        """There is no draft to change: the text is shown, to be typed again."""
        self.put([Line(text, "dim")])

    def clear(self) -> None:
        """Nothing printed is taken back."""

    def leave(self) -> None:
        """Ends the shell after this piece of work."""
        self._left = True

    # -- running --------------------------------------------------------------------------------------------------

    def run(self, shell: Shell) -> int:
        """Takes lines and events in, one at a time."""
        before: dict[signal.Signals, Any] = {}
        for number in (signal.SIGINT, *_ENDS):
            before[number] = signal.signal(number, lambda got, _frame: self.post(lambda: self._signalled(shell, got)))
        threading.Thread(target=self._read, args=(shell,), name="hermes-stdin", daemon=True).start()
        try:
            if self._attended:
                shell.greet()
            while not self._left and not (self._ended and not self._at_work(shell)):
                self._ask_for_line(shell)
                try:
                    work = self._work.get(timeout=None if self._attended else POLL_SECONDS)
                except queue.Empty:
                    continue
                safely(work, self)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        if self._code or self._attended or not shell.failed:
            return self._code
        return 1 if shell.answerable() else 2

    def _at_work(self, shell: Shell) -> bool:
        """Whether something is still to be waited for when the input has ended; a person who left waits for nothing."""
        if self._attended:
            return False
        return shell.host.working or shell.busy or not self._work.empty() or shell.beside

    def _ask_for_line(self, shell: Shell) -> None:
        """Lets the next line in when it is time for one, and prints the prompt for it."""
        if not self._attended:
            if not self._asked and not shell.host.working and not shell.busy and self._work.empty():
                self._asked = True
                self._wanted.release()
            return
        words = shell.prompt() if shell.asking.prompt or not shell.busy else ""
        if words and words != self._prompted and self._work.empty():
            out(ascii_marks(words), end="")
            self._prompted = words

    def _read(self, shell: Shell) -> None:
        """Reads lines on a thread of its own; from a pipe only as many as were asked for."""
        while True:
            if not self._attended:
                self._wanted.acquire()
            try:
                line = sys.stdin.readline() if sys.stdin is not None else ""
            except (OSError, ValueError):
                line = ""
            if not line:
                self.post(self._end_of_input)
                return
            text = line.rstrip("\r\n")
            self.post(lambda text=text: self._typed(shell, text))  # type: ignore[misc]

    def _typed(self, shell: Shell, text: str) -> None:
        self._prompted, self._asked = "", False
        if not self._attended and not text.strip():
            return
        if not shell.take(text) and not self._attended:
            shell.failed += 1

    def _end_of_input(self) -> None:
        self._ended = True

    def _signalled(self, shell: Shell, number: int) -> None:
        if number in _ENDS or not self._attended:
            self._code, self.hung_up = 130, number == signal.SIGHUP and self._attended
            if not self.hung_up:
                shell.stop()
            self._left = True
        else:
            shell.interrupt()
