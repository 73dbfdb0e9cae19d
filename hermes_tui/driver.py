"""The terminal driver: hands pasted text on whole and untouched, and never waits for a terminal that has gone.

The toolkit's own reader takes an escape character inside a paste for the start of a key, and would send what follows
as keys; here the text between the paste marks is cut out before it is looked at.
"""

from __future__ import annotations

import os
import selectors
from codecs import getincrementaldecoder
from collections.abc import Iterator
from typing import NamedTuple

from textual import events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._xterm_parser import BRACKETED_PASTE_END, BRACKETED_PASTE_START, XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from hermes_tui.printing.streams import is_terminal

READ_SIZE = 64 * 1024
ALT_ENTER = "\x1b\r"
"""What terminals send for Alt+Enter; the toolkit's reader does not know it."""


class _Named(NamedTuple):
    """A key by its name, as the toolkit's table has them."""

    value: str


for _digit in "0123456789":
    # the toolkit takes Alt and a digit for a sign that one terminal of one system would write for them
    ANSI_SEQUENCES_KEYS[f"\x1b{_digit}"] = (_Named(f"alt+{_digit}"),)  # type: ignore[index]

KEEP_TITLE, OLD_TITLE = "\x1b[22;2t", "\x1b[23;2t"
"""The terminal keeps its title aside, and takes it back."""

END_PROGRESS = "\x1b]9;4;0\x1b\\"


class PasteSplitter:
    """Separates pasted text from keys in what a terminal sends, however it is cut."""

    def __init__(self) -> None:
        self._pasting = False
        self._held = ""
        self._pasted: list[str] = []

    def feed(self, data: str) -> Iterator[tuple[bool, str]]:
        """(whether it was pasted, text) in order; a paste comes when it is whole."""
        data, self._held = self._held + data, ""
        while data:
            mark = BRACKETED_PASTE_END if self._pasting else BRACKETED_PASTE_START
            at = data.find(mark)
            if at < 0:
                kept = _overlap(data, mark)
                self._held, data = data[len(data) - kept :], data[: len(data) - kept]
                if self._pasting:
                    self._pasted.append(data)
                elif data:
                    yield False, data
                return
            if self._pasting:
                self._pasted.append(data[:at])
                yield True, "".join(self._pasted)
                self._pasted = []
            elif at:
                yield False, data[:at]
            self._pasting = not self._pasting
            data = data[at + len(mark) :]

    def release(self) -> str:
        """What was held back because it could have been the start of a mark, when nothing more came."""
        if self._pasting:
            return ""
        held, self._held = self._held, ""
        return held


def _overlap(data: str, mark: str) -> int:
    """How many characters at the end of `data` may be the start of `mark`."""
    for length in range(min(len(mark) - 1, len(data)), 0, -1):
        if mark.startswith(data[-length:]):
            return length
    return 0


class HermesDriver(LinuxDriver):
    """See the module's docstring."""

    _progress: int | None = None
    _marks = True

    def write(self, data: str) -> None:
        """Writes to the terminal; nothing when that is gone, since the queue to a dead writer would fill and block."""
        writer = self._writer_thread
        if writer is not None and writer.is_alive():
            writer.write(data)

    def set_mouse(self, mode: str) -> None:
        """on: clicks, wheel and marking; wheel: no marking by the app; off: the terminal has the mouse."""
        self._disable_mouse_support()
        self._mouse, self._marks = mode != "off", mode == "on"
        self._enable_mouse_support()

    def _enable_mouse_support(self) -> None:
        if self._marks or not self._mouse:
            super()._enable_mouse_support()
        else:
            self.write("\x1b[?1000h\x1b[?1006h")

    def set_progress(self, percent: int | None) -> None:
        """Shows how far the work beside the chat is, in the terminal's title and its own progress sign; None: there
        is none, and the title is what it was before.
        """
        if percent == self._progress or os.environ.get("TERM", "") in ("dumb", "linux") or not is_terminal(self._file):
            return
        if percent is None:
            self.write(f"{END_PROGRESS}{OLD_TITLE}")
        else:
            began = KEEP_TITLE if self._progress is None else ""
            self.write(f"{began}\x1b]2;Hermes {percent}%\x1b\\\x1b]9;4;1;{percent}\x1b\\")
        self._progress = percent

    def stop_application_mode(self) -> None:
        """Gives the terminal back as it was."""
        self.set_progress(None)
        super().stop_application_mode()

    def run_input_thread(self) -> None:
        """Reads the terminal until the driver stops."""
        parser = XTermParser(self._debug)
        splitter = PasteSplitter()
        decode = getincrementaldecoder("utf-8")(errors="replace").decode
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if selector.select(0.1 if not splitter._held else 0.02):
                    data = os.read(self.fileno, READ_SIZE)
                    if not data:
                        break
                    for pasted, text in splitter.feed(decode(data)):
                        self._pass(parser, pasted, text)
                elif held := splitter.release():
                    self._pass(parser, False, held)
                for message in parser.tick():
                    self.process_message(message)

    def _pass(self, parser: XTermParser, pasted: bool, text: str) -> None:
        for message in _messages(parser, pasted, text):
            self.process_message(message)


def _messages(parser: XTermParser, pasted: bool, text: str) -> Iterator[Message]:
    """The keys, clicks and pastes a piece of input stands for."""
    if pasted:
        yield events.Paste(text)
        return
    for number, part in enumerate(text.split(ALT_ENTER)):
        if number:
            yield events.Key("alt+enter", None)
        if part:
            yield from parser.feed(part)
