"""The app as slash commands see it: shows, asks, opens. Its methods may be called from any thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hermes_engine.errors import HermesError, NotConfigured
from hermes_engine.paths import private_dir, write_atomic
from hermes_tui.cleaning import one_line
from hermes_tui.screens.steady import SteadyScreen
from hermes_tui.texts import _
from hermes_tui.widgets.blocks import NoticeBlock, OutputBlock

if TYPE_CHECKING:
    from textual.app import App

    from hermes_engine.profiles import Resolved
    from hermes_engine.session import Engine
    from hermes_tui.commands import Output
    from hermes_tui.commands.host import HostKind
    from hermes_tui.desk import Desk
    from hermes_tui.screens.chat import ChatScreen

MAX_CLIPBOARD = 70_000
"""Bytes a terminal takes by OSC 52 (100 kB encoded)."""

OVERLAYS = frozenset({"model", "mode", "theme", "keys", "sessions", "palette", "mouse", "sidebar"})
"""Overlays this version has."""

SCREENS = ("chat", "agents", "kanban", "batch")
"""The screens; the header names them."""


class Host:
    """See `commands.CommandHost`."""

    kind: HostKind = "app"

    chat: ChatScreen
    """The chat on the screen; set once by the app."""

    def __init__(self, app: App[Any], desk: Desk) -> None:
        self._app, self.desk = app, desk
        self._thread = threading.get_ident()

    @property
    def session(self) -> str:
        """Id of the chat on the screen."""
        return self.desk.session

    @property
    def engine(self) -> Engine:
        """The running engine."""
        if self.desk.engine is None:
            raise NotConfigured("no model is set up yet")
        return self.desk.engine

    @property
    def resolved(self) -> Resolved:
        """Settings the app was started with."""
        if self.desk.resolved is None:
            raise NotConfigured("the settings are not read yet")
        return self.desk.resolved

    def _soon(self, action: Callable[..., object], *args: object) -> None:
        """On the app's loop: at once when called there."""
        if threading.get_ident() == self._thread:
            action(*args)
        else:
            self._app.call_later(action, *args)

    def show(self, output: Output) -> None:
        """Shows a command's words in the chat."""
        block = OutputBlock(output.kind, output.text, title=output.title, columns=output.columns, rows=output.rows)
        self._soon(self._say, block)

    def open_screen(self, name: str, **options: str) -> bool:
        """Opens a screen or an overlay; False when there is none of that name. `agent` of agents: only that one; `goal`
        of the board: to be planned into cards; `run` of batch: to be shown.
        """
        if name in SCREENS:
            agent, goal = options.get("agent", ""), options.get("goal") or options.get("run", "")
            self._soon(self._run_action, f"agent({agent!r})" if agent else f"screen({name!r}, {goal!r})")
            return True
        if name == "clear":
            self._soon(self.chat.clear_view)
            return True
        if name not in OVERLAYS:
            return False
        self._soon(self._open_overlay, name, options)
        return True

    def ask_quit(self) -> None:
        """Leaves, after the question asked while work runs."""
        self._soon(self._app.run_worker, self._app.run_action("app.quit_or_ask"))

    def copy(self, text: str) -> str:
        """Puts the text on the clipboard by OSC 52, or into a file where it is too long for that; says which."""
        if len(text.encode("utf-8", "replace")) > MAX_CLIPBOARD:
            path = private_dir(self.resolved.home.outputs) / "copied.txt"
            write_atomic(path, text.encode("utf-8", "replace"))
            return _("Too long for the clipboard; saved in {path}").format(path=path)
        self._soon(self._app.copy_to_clipboard, text.encode("utf-8", "replace").decode())
        lines = text.count("\n") + 1
        return _("Copied 1 line") if lines == 1 else _("Copied {count} lines").format(count=lines)

    def set_draft(self, text: str) -> None:
        """Puts text into the prompt, which comes into view."""
        self._soon(self._run_action, "screen('chat')")
        self._soon(self.chat.prompt.set_draft, text)

    def steer(self, text: str) -> None:
        """Sends a text into the running turn."""
        self._soon(self.chat.sending.steer_in, text)

    def new_session(self) -> None:
        """Starts an empty chat."""
        self._soon(self._open_chat, None)

    def run_session(self, *, resume: str) -> None:
        """Goes on with a saved chat."""
        self._soon(self._open_chat, resume)

    def in_background(self, work: Callable[[], None]) -> None:
        """Runs blocking work off the loop, one piece after another."""

        def run() -> None:
            try:
                work()
            except HermesError as error:
                self._soon(self._say, OutputBlock("error", error.line))
            except Exception as error:
                self._soon(self.report, error)

        self.desk.commands.submit(run)

    # On the app's loop

    def _run_action(self, action: str) -> None:
        self._app.run_worker(self._app.run_action(action), exit_on_error=False)

    def _say(self, block: OutputBlock) -> None:
        self.chat.output(block)
        if (screen := self._app.screen) is not self.chat and isinstance(screen, SteadyScreen):
            screen.remark(_("In the chat: {words}").format(words=one_line(block.title or block.text, 200)))
        self.desk.refresh()
        self.chat.refresh_facts()

    def report(self, error: BaseException) -> None:
        """Shows a fault of work in the background; its traceback is in the log."""
        from hermes_tui.screens.faults import write_fault

        words = _("{error} — see {path}").format(error=error, path=write_fault(self.desk.resolved, error))
        self.chat.say(NoticeBlock(words, "error"))

    def _open_overlay(self, name: str, options: dict[str, str]) -> None:
        from hermes_tui.screens.overlays.opening import open_overlay

        self._app.run_worker(open_overlay(self._app, self, name, options), exit_on_error=False)

    def _open_chat(self, resume: str | None) -> None:
        self.chat.sending.opening()
        self._app.run_worker(self._change_chat(resume), exclusive=True, group="open", exit_on_error=False)

    async def _change_chat(self, resume: str | None) -> None:
        desk, engine = self.desk, self.engine
        try:
            view = await desk.off_loop(lambda: engine.open_session(desk.cwd, resume=resume, mode=desk.mode))
        except HermesError as error:
            self._say(OutputBlock("error", error.line))
            self.chat.sending.opened()
            return
        desk.show(view)
        await self.chat.opened(view)
