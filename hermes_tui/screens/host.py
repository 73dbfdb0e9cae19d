"""The app as slash commands see it: shows, asks, opens. Its methods may be called from any thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from hermes_engine.errors import HermesError, NotConfigured
from hermes_tui.texts import _
from hermes_tui.widgets.blocks import OutputBlock

if TYPE_CHECKING:
    from hermes_engine.profiles import Resolved
    from hermes_engine.session import Engine
    from hermes_tui.commands import Output
    from hermes_tui.commands.host import HostKind
    from hermes_tui.desk import Desk

OVERLAYS = frozenset({"model", "mode", "theme", "keys", "sessions"})
"""Overlays this version has."""


class HostApp(Protocol):
    """What the host needs of the app; all of it on the app's loop."""

    def call_later(self, callback: Callable[..., object], *args: object) -> bool:
        """Runs something on the app's loop soon; may be called from any thread."""

    def say(self, block: OutputBlock) -> None:
        """Shows a block in the chat."""

    def empty_view(self) -> None:
        """Empties the transcript; the chat itself stays."""

    def open_overlay(self, name: str, options: dict[str, str]) -> None:
        """Opens an overlay."""

    def open_chat(self, resume: str | None) -> None:
        """Opens a new chat, or a saved one."""

    def set_draft(self, text: str) -> None:
        """Puts text into the prompt."""

    def leave_or_ask(self) -> None:
        """Leaves, after a question while something runs."""

    def copy_out(self, text: str) -> None:
        """Puts text on the clipboard."""

    def report(self, error: BaseException) -> None:
        """Shows a fault of work in the background."""


class Host:
    """See `commands.CommandHost`."""

    kind: HostKind = "app"

    def __init__(self, app: HostApp, desk: Desk) -> None:
        self._app, self._desk = app, desk
        self._thread = threading.get_ident()

    @property
    def session(self) -> str:
        """Id of the chat on the screen."""
        return self._desk.session

    @property
    def engine(self) -> Engine:
        """The running engine."""
        if self._desk.engine is None:
            raise NotConfigured("no model is set up yet")
        return self._desk.engine

    @property
    def resolved(self) -> Resolved:
        """Settings the app was started with."""
        if self._desk.resolved is None:
            raise NotConfigured("the settings are not read yet")
        return self._desk.resolved

    def _soon(self, action: Callable[..., object], *args: object) -> None:
        """On the app's loop: at once when called there."""
        if threading.get_ident() == self._thread:
            action(*args)
        else:
            self._app.call_later(action, *args)

    def show(self, output: Output) -> None:
        """Shows a command's words in the chat."""
        block = OutputBlock(output.kind, output.text, title=output.title, columns=output.columns, rows=output.rows)
        self._soon(self._app.say, block)

    def open_screen(self, name: str, **options: str) -> bool:
        """Opens an overlay; False when there is none of that name."""
        if name == "clear":
            self._soon(self._app.empty_view)
            return True
        if name not in OVERLAYS:
            return False
        self._soon(self._app.open_overlay, name, options)
        return True

    def ask_quit(self) -> None:
        """Leaves, after the question asked while work runs."""
        self._soon(self._app.leave_or_ask)

    def copy(self, text: str) -> str:
        """Puts the text on the clipboard by OSC 52; says so."""
        self._soon(self._app.copy_out, text)
        lines = text.count("\n") + 1
        return _("Copied 1 line") if lines == 1 else _("Copied {count} lines").format(count=lines)

    def set_draft(self, text: str) -> None:
        """Puts text into the prompt."""
        self._soon(self._app.set_draft, text)

    def new_session(self) -> None:
        """Starts an empty chat."""
        self._soon(self._app.open_chat, None)

    def run_session(self, *, resume: str) -> None:
        """Goes on with a saved chat."""
        self._soon(self._app.open_chat, resume)

    def in_background(self, work: Callable[[], None]) -> None:
        """Runs blocking work off the loop, one piece after another."""

        def run() -> None:
            try:
                work()
            except HermesError as error:
                self._soon(self._app.say, OutputBlock("error", error.line))
            except Exception as error:
                self._soon(self._app.report, error)

        self._desk.commands.submit(run)
