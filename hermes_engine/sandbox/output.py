"""What a command wrote: head and tail in memory, everything in a private file once it is more than that."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable
from pathlib import Path

from hermes_engine.cleaning import decode, plain
from hermes_engine.paths import open_private
from hermes_engine.redaction import Redactor, StreamRedactor

HEAD = 16 * 1024
"""Bytes kept of the beginning."""
TAIL = 48 * 1024
"""Bytes kept of the end."""
FILE_LIMIT = 64 * 1024 * 1024
"""Bytes of output that go into the file; what follows is only counted."""


class Output:
    """Takes bytes as they come. Secrets are redacted in the file too.

    Args:
        new_file: called once, when the file is needed; returns its path in an existing private folder.
    """

    def __init__(self, new_file: Callable[[], Path], redactor: Redactor | None = None) -> None:
        self._new_file = new_file
        self._redactor = redactor or Redactor()
        self._head = bytearray()
        self._tail = bytearray()
        self._file: _File | None = None
        self.total = 0
        self.path: Path | None = None

    def feed(self, data: bytes) -> None:
        """Adds what was read."""
        self.total += len(data)
        if self._file is None and self.total <= HEAD + TAIL:
            self._head += data
            return
        if self._file is None:
            self.path = self._new_file()
            self._file = _File(self.path, self._redactor)
            self._file.write(bytes(self._head))
            room = max(0, HEAD - len(self._head))
            self._tail += self._head[HEAD:]
            del self._head[HEAD:]
            self._head += data[:room]
            self._tail += data[room:]
        else:
            self._tail += data
        self._file.write(data)
        if len(self._tail) > 2 * TAIL:
            del self._tail[:-TAIL]

    def text(self) -> str:
        """Head and tail, cleaned; a line between them says what is left out and where the whole is."""
        if self._file is None:
            return plain(decode(bytes(self._head)))
        tail = bytes(self._tail[-TAIL:])
        left_out = self.total - len(self._head) - len(tail)
        note = f"\n[… {left_out:,} bytes left out; the whole output is in {self.path} …]\n"
        return plain(decode(bytes(self._head))) + note + plain(decode(tail))

    def latest(self, size: int = 2048) -> str:
        """The newest output, cleaned; for showing progress."""
        source = self._head if self._file is None else self._tail
        return plain(decode(bytes(source[-size:])))

    def close(self) -> None:
        """Ends the file."""
        if self._file is not None:
            self._file.close()


class _File:
    def __init__(self, path: Path, redactor: Redactor) -> None:
        self._descriptor = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._stream = StreamRedactor(redactor)
        self._room = FILE_LIMIT
        self._open = True

    def write(self, data: bytes) -> None:
        if not self._open:
            return
        self._put(self._stream.feed(self._decoder.decode(data[: self._room])))
        self._room -= len(data)
        if self._room <= 0:
            self._put(f"\n[the file ends here: {FILE_LIMIT:,} bytes]\n")
            self.close()

    def close(self) -> None:
        if self._open:
            self._put(self._stream.feed(self._decoder.decode(b"", True)) + self._stream.end())
            self._open = False
            os.close(self._descriptor)

    def _put(self, text: str) -> None:
        data = text.replace("\0", "").encode("utf-8", "replace")
        while data and self._open:
            try:
                data = data[os.write(self._descriptor, data) :]
            except OSError:  # a full disk must not end the command; memory still has head and tail
                self._open = False
                os.close(self._descriptor)
