"""Keeps what is written and not sent, one file a chat in the home: a program that is killed loses no draft.

Knows the prompt and the desk of one chat screen. Files are private; they are written by the desk's pool, a moment
after the last key.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_engine.errors import HermesError
from hermes_engine.paths import private_dir, write_atomic

if TYPE_CHECKING:
    from textual.timer import Timer

    from hermes_tui.screens.chat.screen import ChatScreen

PAUSE = 0.4
"""Seconds without a key after which a draft is kept."""

MOST = 1_000_000
"""Characters; a longer draft is not kept."""


class Drafts:
    """See the module's docstring."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen, self._desk, self._prompt = screen, screen.desk, screen.prompt
        self._session, self._wanted = "", ("", "")
        self._timer: Timer | None = None
        self._lock = threading.Lock()
        self._prompt.changed = self._changed

    def opened(self) -> None:
        """A chat is open: its draft comes back; one that is in the prompt already is that chat's from now on."""
        session = self._desk.session
        if session == self._session:
            return
        if self._session:
            self._keep("")
        self._session = session
        if self._prompt.own_text:
            self._keep(self._prompt.own_text)
        elif (path := self._path(session)) is not None:
            self._screen.run_worker(self._restore(path, session), exit_on_error=False)

    async def _restore(self, path: Path, session: str) -> None:
        text = await self._desk.off_loop(lambda: _read(path))
        if text and session == self._desk.session and self._prompt.empty and not self._prompt.lent:
            self._prompt.set_draft(text)

    def _changed(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        self._timer = self._screen.set_timer(PAUSE, lambda: self._keep(self._prompt.own_text))

    def _keep(self, text: str) -> None:
        path = self._path(self._session)
        if path is None or (self._session, text) == self._wanted:
            return
        self._wanted = (self._session, text)
        self._desk.pool.submit(self._write, path)

    def _write(self, path: Path) -> None:
        with self._lock, suppress(HermesError, OSError):
            text = self._wanted[1] if self._wanted[0] == path.stem else ""
            if text and len(text) <= MOST:
                write_atomic(private_dir(path.parent) / path.name, text.encode("utf-8", "surrogatepass"), sync=False)
            else:
                path.unlink(missing_ok=True)

    def _path(self, session: str) -> Path | None:
        resolved = self._desk.resolved
        if resolved is None or self._desk.start.ephemeral or not session:
            return None
        return resolved.home.drafts / f"{session}.txt"


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "surrogatepass")
    except (OSError, UnicodeDecodeError):
        return ""
