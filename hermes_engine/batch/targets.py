"""Files that a person names for what is made of a run: an export, rows, a page. Knows no content."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from hermes_engine.batch.files import replacing
from hermes_engine.batch.folder import RunFolder
from hermes_engine.errors import StateError, UsageError

_OF_THE_RUN = re.compile(
    r"(?:batch_\d+|trajectories|rejected|failed|exchanges|tokens)\.jsonl|(?:run|checkpoint|statistics)\.json"
    r"|README\.md|damaged\.txt|lock|control"
)

_STREAMS = ("/dev/std", "/dev/fd/", "/proc/")


def is_file(target: Path) -> bool:
    """Whether a file stands there or may: no device or pipe, nor one of the process's own streams by its name."""
    if str(target.absolute()).startswith(_STREAMS):
        return False
    mode = _mode(target)
    return mode is None or stat.S_ISREG(mode) or stat.S_ISDIR(mode)


@contextlib.contextmanager
def writing(target: Path, run: RunFolder) -> Iterator[BinaryIO]:
    """A stream to `target`.

    A file is replaced whole when the block ends well, where a link points to, and keeps its mode; a new one is private.
    A device or a pipe is written as it is, never replaced.

    Raises:
        UsageError: it is a file of the run itself.
        StateError: it cannot be written.
    """
    real = Path(os.path.realpath(target))
    if real.parent == Path(os.path.realpath(run.root)) and _OF_THE_RUN.fullmatch(real.name):
        raise UsageError(f"{target} is a file of the run itself", hint="name another")
    if not is_file(target):
        try:
            with target.open("ab") as stream:
                yield stream
        except OSError as error:
            raise StateError(f"cannot write {target}: {error.strerror or error}") from error
        return
    mode = _mode(real)
    if mode is not None and stat.S_ISDIR(mode):
        raise StateError(f"cannot write {target}: it is a folder")
    with replacing(real, target) as stream:
        if mode is not None:
            os.fchmod(stream.fileno(), stat.S_IMODE(mode))
        yield stream


def _mode(target: Path) -> int | None:
    """What stands there and its permissions; None when nothing does, or nobody may look."""
    try:
        return target.stat().st_mode
    except OSError:
        return None
