"""Finds the lines of files that match a pattern. Also a program of its own: patterns that can take for ever
run in a process that can be ended. Knows only the standard library, so that it starts fast.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

Walls = Sequence[Sequence[str]]
"""What is open to an agent that may not reach all of this machine, as beginnings of real paths with a slash at the
end: what is its own, open folders, and what is hidden in those."""

LINE = 300
"""Characters shown of a matching line."""
SEARCHED = 2000
"""Characters of a line that are searched."""
CPU_SECONDS = 60
FILE = 4 * 1024 * 1024
"""Larger files are left out."""

Found = tuple[int, int, str]
"""Place of the file in the list, line number, line."""


def matches(
    pattern: str, files: Iterable[str], stopped: Callable[[], bool] = lambda: False, walls: Walls = ()
) -> Iterator[Found]:
    """The matching lines, file by file; binary, large and unreadable files are passed over, and, where there are
    walls, those that turn out to lie outside of them. Raises re.error.
    """
    search = re.compile(pattern).search
    for place, path in enumerate(files):
        if stopped():
            return
        try:
            with open(path, "rb", opener=at_once) as stream:
                if walls and not lets(walls, os.readlink(f"/proc/self/fd/{stream.fileno()}")):  # noqa: PTH115
                    continue
                content = stream.read(FILE + 1) or b""
        except OSError:
            continue
        if len(content) > FILE or b"\0" in content[:8192]:
            continue
        text = content.decode("utf-8", "replace")
        for number, line in enumerate(text.split("\n"), 1):
            if search(line[:SEARCHED]):
                yield place, number, line.rstrip("\r")[:LINE]


def lets(walls: Walls, path: str) -> bool:
    """Whether a real path may be reached."""
    own, folders, hidden = map(tuple, walls)
    path = f"{path}/"
    return path.startswith(own) or (path.startswith(folders) and not path.startswith(hidden))


def at_once(path: str, flags: int) -> int:
    """Opens without waiting, should it be or have become a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def main() -> None:
    """Reads {"pattern", "files", "most"} from stdin, writes one JSON array a match."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))  # should nobody be left to end it
    asked = json.load(sys.stdin)
    for count, found in enumerate(matches(asked["pattern"], asked["files"], walls=asked["walls"])):
        if count >= asked["most"]:
            break
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
