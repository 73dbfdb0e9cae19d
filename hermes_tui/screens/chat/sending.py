"""What leaves the prompt: commands, messages, the queue, steering, stopping. Knows the parts of one chat screen."""

from __future__ import annotations

import shlex
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_engine.errors import HermesError
from hermes_tui.screens.chat.drafts import Drafts
from hermes_tui.texts import _
from hermes_tui.widgets.blocks import NoticeBlock, OutputBlock, UserBlock
from hermes_tui.widgets.prompt import history as history_file

if TYPE_CHECKING:
    from hermes_tui.screens.chat.screen import ChatScreen

REMARK_SECONDS = 3.0
BACK_SECONDS = 0.6
"""For so long after the chat came back into view Esc stops nothing: it was one too many."""

MODES = ("ask", "edits", "plan", "auto")
"""What Shift+Tab goes through; `yolo` has to be typed."""


class Sending:
    """The way from the prompt to the engine."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen, self._desk = screen, screen.desk
        self._early: list[tuple[str, UserBlock]] = []
        self._opening = False
        self._back = 0.0
        self._drafts = Drafts(screen)
        self.set_up: Callable[[], None] | None = None
        """Opens the first-run card; set while no model is set up."""
        self.stay_open: Callable[[], None] | None = None
        """Takes back that the app closes when nothing runs any more; set while it would."""
        self.hint = ""

    def without_model(self, set_up: Callable[[], None]) -> None:
        """No model is set up: what is sent from now on opens the card again and stays in the prompt."""
        if self.set_up is None:
            self._screen.say(NoticeBlock(_("No model is set up. Send something to choose one; Ctrl+D leaves.")))
        self.set_up = set_up

    # Enter

    def enter(self, text: str, *, now: bool = False) -> None:
        """Enter took this text out of the prompt, or Ctrl+S did, `now` to be heard by the running turn. Texts come here
        one after another, in the order of the keys.
        """
        if not text.strip():
            self._send_queued()
            return
        self._remember(text)
        self._dispatch(text, now)

    def _dispatch(self, text: str, now: bool) -> None:
        """Sends a text or runs a command; while no chat is open, once one is."""
        ready = self._desk.engine is not None and self._desk.session and not self._opening and not self._early
        if self.set_up is None and not ready:
            block = UserBlock(text, _("goes out when the model is ready"))
            self._early.append((text, block))
            self._screen.transcript.add(block)
        else:
            self._run(text, now)

    def _run(self, text: str, now: bool = False) -> None:
        if text.startswith("/"):
            self._command(text, now)
        else:
            self.send(text, now=now)

    def _command(self, text: str, now: bool) -> None:
        from hermes_tui.commands import dispatch

        try:
            outcome = dispatch(text, self._screen.host)
        except HermesError as error:
            self._screen.output(OutputBlock("error", error.line))
            return
        if outcome == "text":
            self.send(text, now=now)
        elif outcome == "refused" and self._screen.prompt.empty:
            self._screen.prompt.set_draft(text)
        self._desk.refresh()

    def send(self, text: str, *, now: bool = False) -> None:
        """Sends a message; while a turn runs it is queued, or goes into the turn `now`."""
        screen, engine = self._screen, self._desk.engine
        if self.set_up is not None:
            screen.prompt.put_back(text)
            self.set_up()
        elif now and self._desk.busy:
            self.steer_in(text)
        elif engine is not None:
            engine.send(self._desk.session, text)
            screen.transcript.action_newest()
            screen.refresh_facts()

    def opening(self) -> None:
        """Another chat is being opened: what is sent from now on is for that one."""
        self._opening = True

    def opened(self) -> None:
        """A chat is open, or could not be opened: what was sent meanwhile goes out."""
        self.set_up, self._opening = None, False
        self._drafts.opened()
        while self._early and not self._opening:
            text, block = self._early.pop(0)
            self._screen.transcript.take_out(block)
            self._run(text)

    def _send_queued(self) -> None:
        if self._screen.queue.items and self._desk.engine is not None:
            busy = self._desk.busy
            first = self._screen.queue.items[0]
            if self._desk.engine.send_next(self._desk.session) and busy:
                self._screen.presenter.steered(first)

    def take_back(self) -> None:
        """The last queued message back into the prompt."""
        engine, items = self._desk.engine, self._desk.queued
        if engine is not None and items and self._screen.prompt.empty:
            engine.set_queue(self._desk.session, items[:-1])
            self._screen.prompt.set_draft(items[-1])

    def steer_in(self, text: str) -> None:
        """Sends a text into the running turn, or as a turn when none runs, and shows it."""
        engine = self._desk.engine
        if engine is None:
            return
        if self._desk.busy:
            self._screen.presenter.steered(text)
        self._screen.transcript.action_newest()
        engine.steer(self._desk.session, text)

    # Stopping

    def came_back(self) -> None:
        """The chat is in view again."""
        self._back = time.monotonic()

    def escape(self) -> None:
        """Esc with nothing to close."""
        if time.monotonic() - self._back >= BACK_SECONDS:
            self.stop()

    def stop(self) -> bool:
        """Stops the running turn; whether one ran."""
        engine = self._desk.engine
        if engine is None or not self._desk.session or not engine.interrupt(self._desk.session):
            return False
        self._screen.presenter.doing = _("stopping")
        return True

    def set_aside(self) -> bool:
        """Clears the draft; the arrow up brings it back. False when there was none."""
        screen = self._screen
        if screen.prompt.lent:
            screen.prompt.give_back()
            return True
        text = screen.prompt.text
        if not text:
            return False
        self.remember(text)
        screen.prompt.clear()
        return True

    # Small things

    def remark(self, words: str) -> None:
        """A passing word in the status line."""
        self.hint = words
        self._screen.set_timer(REMARK_SECONDS, lambda: self._forget(words))
        self._screen.refresh_facts()

    def _forget(self, words: str) -> None:
        if self.hint == words:
            self.hint = ""
            self._screen.refresh_facts()

    def next_mode(self) -> None:
        """The next approval mode."""
        engine = self._desk.engine
        if engine is None or not self._desk.session:
            return
        place = MODES.index(self._desk.mode) + 1 if self._desk.mode in MODES else 0
        self._desk.mode = MODES[place % len(MODES)]
        engine.set_mode(self._desk.session, self._desk.mode)
        self._screen.refresh_facts()

    def remember(self, text: str) -> None:
        """Puts a text into the history of this run only."""
        self._screen.history.add(text)

    def _remember(self, text: str) -> None:
        resolved = self._desk.resolved
        if not self._screen.history.add(text) or resolved is None or self._desk.start.ephemeral:
            return
        path = resolved.home.root / "history"

        def write() -> None:
            resolved.home.ensure()
            history_file.keep(path, text)

        future = self._desk.pool.submit(write)
        future.add_done_callback(lambda done: done.exception())

    async def load_history(self) -> None:
        """Reads what was sent in earlier runs."""
        resolved = self._desk.resolved
        if resolved is not None and not self._desk.start.ephemeral:
            path = resolved.home.root / "history"
            self._screen.history.merge(await self._desk.off_loop(lambda: history_file.load(path)))

    async def search_history(self) -> None:
        """A list of what was sent, to take one from; the arrow up brings the draft back."""
        from hermes_tui.screens.overlays.picker import Item, Picker

        entries = list(dict.fromkeys(reversed(self._screen.history.entries)))
        items = [Item(str(place), entry) for place, entry in enumerate(entries)]
        chosen = await self._screen.app.push_screen_wait(Picker(_("What you sent"), items))
        if chosen is not None:
            self.remember(self._screen.prompt.own_text)
            self._screen.prompt.set_draft(entries[int(chosen)])

    async def edit_outside(self) -> None:
        """The draft in $VISUAL or $EDITOR; what is saved there comes back."""
        import os
        import subprocess

        screen = self._screen
        command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        with tempfile.TemporaryDirectory(prefix="hermes-") as folder:
            path = Path(folder) / "prompt.md"
            path.write_text(screen.prompt.text, "utf-8", newline="")
            try:
                with screen.app.suspend():
                    ended = subprocess.run([*shlex.split(command), str(path)], check=False)
            except (OSError, ValueError) as error:
                screen.say(
                    NoticeBlock(_("{command} cannot be run: {reason}").format(command=command, reason=error), "error")
                )
                return
            text = path.read_bytes().decode("utf-8", errors="replace")
        if ended.returncode == 0:
            screen.prompt.set_draft(text.removesuffix("\n"))
