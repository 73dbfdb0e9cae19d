"""The plain shell as slash commands see it. Commands may call from any thread: everything is posted to the front's."""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from hermes_engine.paths import write_atomic
from hermes_tui.commands.host import HostKind, Output
from hermes_tui.printing.streams import control, dumb, is_terminal
from hermes_tui.texts import _

if TYPE_CHECKING:
    from hermes_engine.profiles import Resolved
    from hermes_engine.session import Engine
    from hermes_tui.repl.shell import Shell


class ShellHost:
    """A `CommandHost` over a `Shell`."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="hermes-commands")
        self._begun = self._done = 0

    @property
    def kind(self) -> HostKind:
        """repl, or linear without a line editor."""
        return self._shell.front.kind

    @property
    def working(self) -> bool:
        """Whether a command still works in the background; what it shows was posted before this turns false."""
        return self._begun > self._done

    @property
    def session(self) -> str:
        """Id of the open chat."""
        return self._shell.session

    @property
    def engine(self) -> Engine:
        """The running engine."""
        return self._shell.engine

    @property
    def resolved(self) -> Resolved:
        """Settings in effect."""
        return self._shell.resolved

    def show(self, output: Output) -> None:
        """Prints a command's words."""
        self._shell.front.post(lambda: self._shell.show(output))

    def open_screen(self, name: str, **options: str) -> bool:
        """There are no screens here; `clear` empties the terminal, one of the `agents` is watched. Blocks for that."""
        if name == "clear":
            self._shell.front.post(self._shell.front.clear)
            return True
        if name == "agents" and options.get("agent"):
            self._shell.watch.start(options["agent"])
            return True
        return False

    def ask_quit(self) -> None:
        """Leaves, after one more question while work runs."""
        self._shell.front.post(self._shell.ask_quit)

    def copy(self, text: str) -> str:
        """Hands the text to the terminal's clipboard (OSC 52) where there is one, and keeps it in a file."""
        path = self._shell.resolved.home.ensure().root / "copied.txt"
        write_atomic(path, text.encode("utf-8", "replace"), sync=False)
        if not is_terminal(sys.stdout) or dumb():
            return _("Copied to {path}.").format(path=path)
        control(f"\x1b]52;c;{base64.b64encode(text.encode('utf-8', 'replace')).decode()}\x07")
        return _("Copied; where the terminal does not take it, it is in {path}.").format(path=path)

    def set_draft(self, text: str) -> None:
        """Puts text into the prompt."""
        self._shell.front.post(lambda: self._shell.front.set_draft(text))

    def steer(self, text: str) -> None:
        """Sends a text into the running turn."""
        self._shell.front.post(lambda: self._shell.steer(text))

    def new_session(self) -> None:
        """Starts an empty chat."""
        self._shell.open(None)

    def run_session(self, *, resume: str) -> None:
        """Goes on with a saved chat."""
        self._shell.open(resume)

    def in_background(self, work: Callable[[], None]) -> None:
        """Runs work on the commands' own thread, one piece after another; what it raises ends in the log."""

        def run() -> None:
            try:
                work()
            except Exception as fault:
                from hermes_tui.printing.faults import log_fault

                line = _("that failed: {fault}").format(fault=fault)
                path = log_fault(fault)
                self.show(Output("error", f"{line} ({path})" if path else line))
            finally:
                self._done += 1

        self._begun += 1
        self._pool.submit(run)
