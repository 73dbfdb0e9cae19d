"""Files of the folder for `@`: found off the app's loop, ranked as a person types. Knows no screen."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from hermes_engine.paths import expanded

MAX_FILES = 20_000
MAX_SECONDS = 2.0
FRESH_SECONDS = 15.0
_SKIPPED = frozenset((".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", "dist", "build", "target"))
_SKIPPED |= {".mypy_cache", ".ruff_cache", ".pytest_cache", ".tox"}


class FileFinder:
    """The files under a folder, read again when the list is old. `find` blocks."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._files: list[str] = []
        self._read = 0.0

    def find(self, folder: Path, typed: str, limit: int = 50) -> list[str]:
        """Paths from `folder` that match, the best first. A typed path that leaves the folder lists there."""
        if typed.startswith(("/", "~", "..")):
            return list(_beside(folder, typed))[:limit]
        if folder != self._folder or time.monotonic() - self._read > FRESH_SECONDS:
            self._folder, self._files, self._read = folder, list(_walk(folder)), time.monotonic()
        return rank(self._files, typed)[:limit]


def mention(before: str) -> int | None:
    """Where the `@` of the word before the cursor stands, or None."""
    at = before.rfind("@")
    if at < 0 or (at and not before[at - 1].isspace()):
        return None
    word = before[at + 1 :]
    return None if any(letter.isspace() for letter in word) else at


def _walk(folder: Path) -> Iterator[str]:
    """Files and folders (ending in `/`), nearest first."""
    end = time.monotonic() + MAX_SECONDS
    waiting = [""]
    count = 0
    while waiting:
        here = waiting.pop(0)
        try:
            with os.scandir(folder / here) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in found:
            if entry.name in _SKIPPED or "\n" in entry.name:
                continue
            count += 1
            if count > MAX_FILES or time.monotonic() > end:
                return
            path = f"{here}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                waiting.append(path + "/")
                yield path + "/"
            else:
                yield path


def _beside(folder: Path, typed: str) -> Iterator[str]:
    path = expanded(typed)
    head, slash, tail = typed.rpartition("/")
    parent = path if typed.endswith("/") else path.parent
    try:
        names = sorted((folder / parent).iterdir())
    except OSError:
        return
    for item in names:
        if item.name.startswith(tail):
            yield f"{head}{slash}{item.name}" + ("/" if item.is_dir() else "")


def rank(paths: Sequence[str], typed: str) -> list[str]:
    """Those paths that hold the typed letters in order: name first, then whole words, then anywhere; among equals
    those nearest, those written as typed, the shortest.
    """
    wanted = typed.lower()
    if not wanted:
        return list(paths)
    scored: list[tuple[int, int, bool, int, int, str]] = []
    for place, path in enumerate(paths):
        lower = path.lower()
        name = lower.rstrip("/").rpartition("/")[2]
        if name.startswith(wanted):
            score = 0
        elif wanted in name:
            score = 1
        elif wanted in lower:
            score = 2
        elif _in_order(wanted, lower):
            score = 3
        else:
            continue
        scored.append((score, lower.count("/"), typed not in path, len(path), place, path))
    return [path for *_rest, path in sorted(scored)]


def _in_order(wanted: str, text: str) -> bool:
    position = 0
    for letter in wanted:
        position = text.find(letter, position) + 1
        if not position:
            return False
    return True
