"""The standard streams: what they can show, and writing to them. Every write of this package goes through here.

Knows no events and no commands. Colours only on a terminal, never with NO_COLOR or TERM=dumb.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from typing import Literal, TextIO

from hermes_tui.cleaning import clean

Style = Literal["", "bold", "dim", "red", "yellow", "green", "cyan"]

_CODES: dict[Style, str] = {"bold": "1", "dim": "2", "red": "31", "yellow": "33", "green": "32", "cyan": "36"}


class OutputLost(OSError):
    """Standard output takes nothing: it is closed, or a disk is full; a reader that went away is a BrokenPipeError."""

    def __init__(self, fault: OSError) -> None:
        super().__init__(f"cannot write to standard output: {fault.strerror or fault}")


def prepare() -> None:
    """Lets the streams write any text: what the encoding cannot hold becomes `?`, never an exception.

    A stream that came closed is pointed to nowhere, so that no file opened later gets its number.
    """
    with contextlib.suppress(OSError):
        while (number := os.open(os.devnull, os.O_RDWR)) < 3:
            os.set_inheritable(number, True)
        os.close(number)
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def is_terminal(stream: TextIO | None) -> bool:
    """Whether the stream is open and a terminal."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def dumb() -> bool:
    """Whether the terminal understands no control codes."""
    return os.environ.get("TERM", "") in ("dumb", "unknown", "")


def colour(stream: TextIO | None) -> bool:
    """Whether colours may be sent to the stream."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and not dumb()


def width() -> int:
    """Columns of the terminal; `COLUMNS` or 80 where there is none."""
    return max(20, shutil.get_terminal_size().columns)


def fancy(stream: TextIO | None) -> bool:
    """Whether the stream's encoding holds the symbols we draw with; else ASCII stands in for them."""
    encoding = getattr(stream, "encoding", None) or "ascii"
    try:
        "▸✓✗◆·…".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


_PLAIN = str.maketrans({"▸": ">", "✓": "+", "✗": "x", "◆": "!", "·": "-", "…": "...", "❯": ">", "—": "-", "→": ">"})


def fitted(text: str, stream: TextIO | None) -> str:
    """The text with our symbols replaced where the stream cannot show them."""
    return text if fancy(stream) else ascii_marks(text)


def ascii_marks(text: str) -> str:
    """The text with ASCII for our symbols: for old terminals, and for readers that would spell them out."""
    return text.translate(_PLAIN)


def styled(text: str, style: Style, stream: TextIO | None) -> str:
    """The text in a style, where the stream shows any."""
    if not style or not text or not colour(stream):
        return text
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m"


def out(text: str = "", *, style: Style = "", end: str = "\n") -> None:
    """Writes cleaned text to standard output. Raises as `write_out` does."""
    write_out(styled(clean(text), style, sys.stdout) + end)


def write_out(text: str) -> None:
    """Writes text that is safe already to standard output, at once. Raises BrokenPipeError or OutputLost."""
    if sys.stdout is None:
        if text:
            raise OutputLost(OSError("it is closed"))
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as fault:
        raise OutputLost(fault) from None


def err(text: str, *, style: Style = "") -> None:
    """Writes a cleaned line to standard error; a closed standard error is passed over."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(styled(fitted(clean(text), sys.stderr), style, sys.stderr) + "\n")
            sys.stderr.flush()


def error(text: str) -> None:
    """Writes `hermes: TEXT` to standard error, on one line."""
    err("hermes: " + " ".join(text.split()), style="red")


def control(sequence: str) -> None:
    """Sends a control sequence of our own to the terminal, as it is. Never for foreign text."""
    if sys.__stdout__ is not None:
        with contextlib.suppress(OSError, ValueError):
            sys.__stdout__.write(sequence)
            sys.__stdout__.flush()


def close_quietly() -> None:
    """After a broken pipe: points standard output to nowhere, so that the interpreter's last flush is silent."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
