"""The plain shell with a line editor: one prompt_toolkit session for its whole life, answers printed above it.

A request that waits changes the prompt's words; no second prompt is opened.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.patch_stdout import patch_stdout

from hermes_engine.errors import HermesError
from hermes_engine.paths import open_private
from hermes_tui.commands.host import HostKind
from hermes_tui.printing.lines import Line
from hermes_tui.printing.streams import control, out
from hermes_tui.repl.completing import SlashCompleter
from hermes_tui.repl.keys import bindings
from hermes_tui.repl.shell import Opening, Shell, safely

if TYPE_CHECKING:
    from hermes_engine.paths import Home

KEY_SECONDS = 0.1
"""How long Esc waits for the rest of an Alt key."""

REDRAW_SECONDS = 0.05
"""At least so long between two drawings of the prompt, however many rows a batch ends."""

_ENDS = (signal.SIGTERM, signal.SIGHUP)


def run_editor(opening: Opening) -> int:
    """Runs the shell on this terminal until it is left. Returns the exit code."""
    front = EditorFront()
    shell = Shell(opening, front, attended=True)
    try:
        with patch_stdout(raw=True):
            return asyncio.run(front.run(shell))
    finally:
        shell.close(hung_up=front.hung_up)


class EditorFront:
    """A `Front` on prompt_toolkit."""

    kind: HostKind = "repl"

    def __init__(self) -> None:
        self._work: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()
        self._scheduled = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._session: PromptSession[str] | None = None
        self._draft = ""
        self._left = self.hung_up = False
        self._code = 0

    # -- Front ----------------------------------------------------------------------------------------------------

    def post(self, work: Callable[[], None]) -> None:
        """Runs work on this front's loop, in order; what comes before the loop runs waits for it."""
        with self._lock:
            self._work.append(work)
            wake = self._loop is not None and not self._scheduled
            self._scheduled = self._scheduled or wake
        if wake:
            self._wake()

    def put(self, lines: Sequence[Line]) -> None:
        """Prints lines above the prompt."""
        for line in lines:
            out(line.text, style=line.style)

    def changed(self) -> None:
        """Draws the prompt anew."""
        if self._session is not None and self._session.app.is_running:
            self._session.app.invalidate()

    def set_draft(self, text: str) -> None:
        """Puts text into the prompt, now or when it comes next."""
        if self._session is not None and self._session.app.is_running:
            self._session.default_buffer.text = text
            self._session.default_buffer.cursor_position = len(text)
        else:
            self._draft = text

    def clear(self) -> None:
        """Empties the terminal."""
        if self._session is not None and self._session.app.is_running:
            self._session.app.renderer.clear()
        else:
            control("\x1b[2J\x1b[H")

    def leave(self) -> None:
        """Ends the prompt and with it the shell."""
        self._left = True
        if self._session is not None and self._session.app.is_running:
            self._session.app.exit(exception=EOFError())

    # -- running --------------------------------------------------------------------------------------------------

    async def run(self, shell: Shell) -> int:
        """Reads lines until the shell is left."""
        loop = asyncio.get_running_loop()
        for number in _ENDS:
            loop.add_signal_handler(number, self._end, number)
        session: PromptSession[str] = PromptSession(
            message=shell.prompt,
            multiline=True,
            prompt_continuation="  ",
            completer=SlashCompleter(shell.host),
            complete_in_thread=True,
            complete_while_typing=True,
            reserve_space_for_menu=6,
            history=_history(shell.resolved.home),
            bottom_toolbar=shell.status,
            key_bindings=bindings(shell),
            enable_suspend=True,
        )
        self._session = session
        session.app.ttimeoutlen = session.app.timeoutlen = KEY_SECONDS
        session.app.min_redraw_interval = REDRAW_SECONDS
        shell.greet()
        with self._lock:
            self._loop, self._scheduled = loop, True
        self._wake()
        while not self._left:
            draft, self._draft = self._draft, ""
            try:
                text = await session.prompt_async(default=draft)
            except EOFError:
                if not self._left:
                    shell.ask_quit()
                continue
            except KeyboardInterrupt:
                continue
            if not shell.take(text) and not self._draft:
                self._draft = text
        return self._code

    def _end(self, number: int) -> None:
        self._code, self.hung_up = 130, number == signal.SIGHUP
        self.leave()

    def _wake(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._run_work)

    def _run_work(self) -> None:
        while True:
            with self._lock:
                if not self._work:
                    self._scheduled = False
                    return
                work = self._work.popleft()
            safely(work, self)


def _history(home: Home) -> History:
    """What was typed before, kept private in the home."""
    try:
        path = home.ensure().root / "repl_history"
        os.close(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND))
    except (OSError, HermesError):
        return InMemoryHistory()
    return FileHistory(str(path))
