"""What was sent before, newest last, walked through with the draft kept. The file is private and append-only."""

from __future__ import annotations

import json
import os
from pathlib import Path

from hermes_engine.paths import open_private

MAX_ENTRIES = 1_000
MAX_LENGTH = 100_000
"""Longer messages are not kept in the file."""


class History:
    """The entries, and where in them the person is. Pure but for `load` and `keep`."""

    def __init__(self) -> None:
        self.entries: list[str] = []
        self._place: int | None = None
        self._draft = ""

    def add(self, text: str) -> bool:
        """Remembers a text; False when it is empty or the same as the last."""
        self.leave()
        if not text.strip() or (self.entries and self.entries[-1] == text):
            return False
        self.entries.append(text)
        del self.entries[:-MAX_ENTRIES]
        return True

    def move(self, step: int, draft: str) -> str | None:
        """The text one step back (-1) or forth (1), or None where there is none; forth past the end is the draft."""
        if self._place is None:
            if step > 0 or not self.entries:
                return None
            self._draft = draft
            self._place = len(self.entries)
        place = self._place + step
        if place < 0:
            return None
        if place >= len(self.entries):
            self._place = None
            return self._draft
        self._place = place
        return self.entries[place]

    def leave(self) -> None:
        """The person edits or sends what they recalled: the draft that waited is one step back from now on."""
        walked, self._place = self.walking, None
        if walked:
            self.add(self._draft)

    @property
    def walking(self) -> bool:
        """Whether an old entry is in the prompt."""
        return self._place is not None

    def merge(self, older: list[str]) -> None:
        """Puts entries from the file before those of this run."""
        self.entries[:0] = older
        del self.entries[:-MAX_ENTRIES]


def load(path: Path) -> list[str]:
    """The entries of the file, oldest first; lines nobody can read are passed over. Blocks."""
    try:
        lines = path.read_text("utf-8", errors="replace").split("\n")[-MAX_ENTRIES - 1 :]
    except OSError:
        return []
    entries: list[str] = []
    for line in lines:
        try:
            text = json.loads(line)
        except ValueError:
            continue
        if isinstance(text, str) and text:
            entries.append(text)
    return entries


def keep(path: Path, text: str) -> None:
    """Adds an entry to the file, 0600 from its first moment. Blocks; raises OSError."""
    if len(text) > MAX_LENGTH:
        return
    descriptor = open_private(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, (json.dumps(text) + "\n").encode())
    finally:
        os.close(descriptor)
