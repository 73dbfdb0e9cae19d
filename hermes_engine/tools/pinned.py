"""Files held by what was opened and not by their names, while a stranger's commands may exchange folders for links.

Used for agents whose commands are closed in a box; who works with all of this machine needs none of it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from hermes_engine.tools.search_match import Walls, lets

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


def open_inside(path: str | Path, flags: int, walls: Walls) -> int:
    """A descriptor of something that really lies within the walls, whatever the path has become meanwhile.

    Raises:
        OSError: it cannot be opened, or lies elsewhere.
    """
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    place = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 - what was opened, not what is there now
    if not lets(walls, place):
        os.close(descriptor)
        raise OSError(errno.EXDEV, "it lies outside of the folders that are open here")
    return descriptor


@contextlib.contextmanager
def held(path: Path, walls: Walls) -> Iterator[Path]:
    """Another path of an ordinary file, which stays this file. Raises OSError."""
    descriptor = open_inside(path, os.O_RDONLY | os.O_NONBLOCK, walls)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no ordinary file")
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def held_parent(path: Path, walls: Walls) -> Iterator[Path]:
    """Another path of a file that may be missing, below a folder that stays this folder; missing folders are made."""
    missing: list[str] = []
    folder = path.parent
    while not folder.exists():
        missing.insert(0, folder.name)
        folder = folder.parent
    descriptor = open_inside(folder, _FOLDER, walls)
    try:
        for name in missing:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=descriptor)
            inner = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield Path(f"/proc/self/fd/{descriptor}/{path.name}")
    finally:
        os.close(descriptor)
