"""Files of lines that survive a kill: whole lines appended, torn ends cut off, whole files replaced.

Knows nothing of what the lines say.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from hermes_engine.errors import StateError
from hermes_engine.paths import open_private

LineAt = tuple[int, int, dict[str, Any]]
"""Offset and length in bytes of a line, and the object in it."""


class Appender:
    """A file that grows by whole lines, each in one write. Lines are what a reader splits at LF, nothing else.

    Raises:
        StateError: it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._descriptor = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        except OSError as error:
            raise StateError(f"cannot write {path}: {error.strerror or error}") from error
        self.length = os.fstat(self._descriptor).st_size

    def append(self, line: bytes) -> int:
        """Writes a line; returns its offset.

        Raises:
            StateError: the disk is full or broken; nothing of the line stays.
        """
        offset, rest = self.length, memoryview(line)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, offset)
            raise StateError(f"cannot write {self.path}: {error.strerror or error}") from error
        self.length += len(line)
        return offset

    def sync(self) -> None:
        """Forces what was written to the disk. Raises StateError."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise StateError(f"cannot write {self.path}: {error.strerror or error}") from error

    def close(self) -> None:
        """Closes the file."""
        os.close(self._descriptor)


def read_lines(path: Path, on_bad: Callable[[int], None] | None = None) -> Iterator[LineAt]:
    """The lines of a file as objects, mending it on the way: a torn end is cut off, lines that are none are taken out.

    Args:
        path: may be missing.
        on_bad: told how many whole lines were unreadable; they are put into `damaged.txt` beside the file.

    Raises:
        StateError: it cannot be read or mended.
    """
    try:
        if not path.exists():
            return
        cut_torn_end(path)
        stream = path.open("rb")
    except OSError as error:
        raise StateError(f"cannot read {path} and mend its end: {error.strerror or error}") from error
    offset = 0
    try:
        while line := stream.readline():
            value = object_of(line)
            if value is None:
                stream.close()
                bad = _take_out_bad(path)
                if on_bad:
                    on_bad(bad)
                stream = path.open("rb")
                stream.seek(offset)
                continue
            yield offset, len(line), value
            offset += len(line)
    finally:
        stream.close()


def cut_torn_end(path: Path) -> None:
    """Cuts off what follows the last line end."""
    with path.open("r+b") as stream:
        size = end = stream.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - (1 << 16))
            stream.seek(start)
            found = stream.read(end - start).rfind(b"\n")
            if found >= 0:
                end = start + found + 1
                break
            end = start
        if end < size:
            stream.truncate(end)


def _take_out_bad(path: Path) -> int:
    """Rewrites the file without lines that are no JSON object; returns how many there were."""
    bad: list[bytes] = []
    with replacing(path) as target, path.open("rb") as source:
        for line in source:
            if object_of(line) is None:
                bad.append(line)
            else:
                target.write(line)
    damaged = Appender(path.parent / "damaged.txt")
    damaged.append(b"".join(bad))
    damaged.close()
    return len(bad)


def object_of(line: bytes) -> dict[str, Any] | None:
    """The object in a line; None when there is none."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


@contextlib.contextmanager
def replacing(path: Path, name: Path | None = None) -> Iterator[BinaryIO]:
    """A stream whose content takes the file's place when the block ends well; private, on the disk before it shows.

    `name` is what errors call it. Raises StateError.
    """
    shown = name or path
    try:
        descriptor, made = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise StateError(f"cannot write {shown}: {error.strerror or error}") from error
    temporary = Path(made)
    try:
        with os.fdopen(descriptor, "wb", buffering=1 << 18) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StateError(f"cannot write {shown}: {error.strerror or error}") from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def sync_folder(path: Path) -> None:
    """Forces names of new files to the disk, where the file system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
