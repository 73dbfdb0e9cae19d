"""Cuts long results, in this one place: head and tail for the model, the whole in a private file it can read on.

What comes here is cleaned and redacted already, so the file holds no secret either.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import secrets
import time
from pathlib import Path

from hermes_engine.messages import Display
from hermes_engine.paths import FILE_MODE, private_dir, write_atomic

MOST = 30_000
"""Characters of a result that the model gets; longer ones are cut."""
_HEAD, _TAIL = 10_000, 18_000
BODY_LINES = 200
BODY_WIDTH = 400
TITLE = 300


def cut(text: str, *, outputs: Path, name: str, whole: Path | None = None) -> str:
    """The text, or its head and tail with a line between them that says how to read the rest.

    Args:
        text: cleaned and redacted.
        outputs: folder for whole texts; created when first needed.
        name: of the tool, for the file's name.
        whole: a file that holds everything already.
    """
    if len(text) <= MOST:
        return text
    head, tail = _whole_lines(text[:_HEAD]), _whole_lines(text[-_TAIL:], end=True)
    if whole is None:
        whole = keep(text, outputs, name)
    left_out = len(text) - len(head) - len(tail)
    next_line = head.count("\n") + 1
    note = (
        f"[… cut: {left_out:,} characters left out here. The whole text is in {whole}; "
        f"read_file it with offset={next_line} to read on, or search_files in it …]"
    )
    return f"{head}{note}\n{tail}"


def keep(text: str, outputs: Path, name: str) -> Path:
    """Writes a whole text into a private file of its own and returns its path."""
    safe = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:40]
    path = private_dir(outputs) / f"{safe}-{time.time_ns() // 1_000_000}-{secrets.token_hex(3)}.txt"
    write_atomic(path, text.encode("utf-8", "replace"), mode=FILE_MODE, sync=False)
    return path


def prune(outputs: Path, keep_days: float) -> int:
    """Deletes a folder's texts older than `keep_days`; returns how many."""
    limit = time.time() - keep_days * 86_400
    count = 0
    for path in outputs.glob("*.txt") if outputs.is_dir() else ():
        with contextlib.suppress(OSError):
            if path.lstat().st_mtime < limit:
                path.unlink()
                count += 1
    return count


def small(display: Display) -> Display:
    """The display with title, summary and body cut to what a screen can use."""
    lines = display.body.split("\n")
    body = [line if len(line) <= BODY_WIDTH else line[: BODY_WIDTH - 1] + "…" for line in lines]
    if len(body) > BODY_LINES:
        half = BODY_LINES // 2
        body = [*body[:half], f"… {len(body) - 2 * half} lines …", *body[-half:]]
    title = display.title if len(display.title) <= TITLE else display.title[: TITLE - 1] + "…"
    return dataclasses.replace(display, title=title, summary=display.summary[:80], body="\n".join(body))


def _whole_lines(text: str, *, end: bool = False) -> str:
    """Without the line cut in two, unless that is most of it."""
    place = text.find("\n") + 1 if end else text.rfind("\n") + 1
    kept = text[place:] if end else text[:place]
    if len(kept) >= len(text) // 2:
        return kept
    return text if end else text + "\n"
