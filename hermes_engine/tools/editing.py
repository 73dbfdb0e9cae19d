"""Tools `write_file` and `patch`: change exactly what is asked, keep everything else as it is.

Line ends, byte order mark, mode and the other bytes stay; the file is replaced in one step. A file that
changed since the agent read it is refused.
"""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

from hermes_engine.cleaning import restore_tokens
from hermes_engine.errors import ToolFault
from hermes_engine.messages import Display, ToolResult
from hermes_engine.paths import write_atomic
from hermes_engine.tools.context import ToolContext
from hermes_engine.tools.difference import Difference, difference
from hermes_engine.tools.ledger import LEDGER
from hermes_engine.tools.pool import in_thread
from hermes_engine.tools.registry import tool
from hermes_engine.tools.workspace import Workspace

MOST = 16 * 1024 * 1024
"""Bytes of a file that `patch` works on."""
_MOST_PLACES = 1000


def preview_write(workspace: Workspace, arguments: Mapping[str, Any]) -> str:
    """What `write_file` would change, for an approval."""
    target = workspace.writable(str(arguments["path"]))
    old = _content(target) or b""
    return _told(_compare(old, _written(old, str(arguments["content"]))), "the whole file")


def preview_patch(workspace: Workspace, arguments: Mapping[str, Any]) -> str:
    """What `patch` would change, for an approval."""
    target = workspace.writable(str(arguments["path"]))
    old = _existing(target, workspace.shown(target))
    new = _patched(old, str(arguments["old_text"]), str(arguments["new_text"]), workspace.shown(target))
    return _told(_compare(old, new), "a large part of the file")


@tool("file", "Write", effect="edit", title="path", preview=preview_write)
async def write_file(ctx: ToolContext, path: str, content: str) -> ToolResult:
    """Create a file, or replace a whole one. Missing folders are made.

    Args:
        path: File to write.
        content: Its whole new text.
    """
    target = ctx.workspace.writable(path)

    def change(old: bytes | None) -> bytes:
        return _written(old or b"", content)

    return await in_thread(_edit, ctx, target, path, "Write", change)


@tool("file", "Edit", effect="edit", title="path", preview=preview_patch)
async def patch(ctx: ToolContext, path: str, old_text: str, new_text: str) -> ToolResult:
    """Replace one passage of a file. The rest of the file stays as it is.

    Args:
        path: File to change.
        old_text: The passage exactly as it stands in the file, long enough to occur only once.
        new_text: What takes its place, literally.
    """
    target = ctx.workspace.writable(path)
    shown = ctx.workspace.shown(target)

    def change(old: bytes | None) -> bytes:
        return _patched(_existing(target, shown) if old is None else old, old_text, new_text, shown)

    return await in_thread(_edit, ctx, target, path, "Edit", change)


def _edit(ctx: ToolContext, target: Path, path: str, verb: str, change: Callable[[bytes | None], bytes]) -> ToolResult:
    workspace = ctx.workspace
    shown = workspace.shown(target)
    with LEDGER.alone(target):
        try:
            with workspace.held_parent(target) as place:
                old = _content(place)
                if old is not None:
                    workspace.check_unchanged(target, old)
                new = change(old)
                if new == old:
                    raise ToolFault(f"{shown} already has this content; nothing changed")
                _replace(place, new)
            workspace.wrote(target, ctx.agent, new)
        except OSError as error:
            raise ToolFault(f"cannot write {shown}: {error.strerror or error}") from error
    made = old is None
    changed = _compare(old or b"", new)
    text = f"{'created' if made else 'changed'} {shown}: {changed.summary} lines"
    if not made:
        text += f", from line {changed.line}"
    display = Display(verb, path, "new, " * made + changed.summary, "diff", changed.text)
    return ToolResult(text, display=display, data={"files_changed": [shown]})


def _content(target: Path) -> bytes | None:
    try:
        with _opened(target, "rb") as stream:
            state = os.fstat(stream.fileno())
            if not stat.S_ISREG(state.st_mode):
                raise ToolFault(f"{target.name} is no ordinary file")
            if state.st_size > MOST:
                raise ToolFault(f"{target.name} is larger than {MOST // 1024 // 1024} MB; change it by a command")
            return stream.read()
    except FileNotFoundError:
        return None


def _opened(target: Path, mode: str) -> IO[bytes]:
    """The file itself: its path was resolved, so that a link in its place has just been put there."""
    return cast(
        IO[bytes],
        open(target, mode, opener=lambda path, flags: os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)),
    )


def _existing(target: Path, shown: str) -> bytes:
    content = _content(target)
    if content is None:
        raise ToolFault(f"{shown} does not exist; write_file creates it")
    return content


def _written(old: bytes, content: str) -> bytes:
    """The new content in the old one's manner: its byte order mark and its line ends."""
    shown = restore_tokens(content)
    if shown != content and "‹".encode() not in old and "⁅".encode() not in old and old:
        content = shown
    new = content.encode()
    if old.startswith(codecs.BOM_UTF8) and not new.startswith(codecs.BOM_UTF8):
        new = codecs.BOM_UTF8 + new
    if _all_crlf(old) and b"\r\n" not in new:
        new = new.replace(b"\n", b"\r\n")
    return new


def _patched(old: bytes, old_text: str, new_text: str, shown: str) -> bytes:
    if not old_text:
        raise ToolFault("old_text is empty; to create or replace a whole file use write_file")
    if old_text == new_text:
        raise ToolFault("old_text and new_text are the same; nothing to change")
    if old.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ToolFault(f"{shown} is UTF-16; change it by a command")
    if b"\0" in old:
        raise ToolFault(f"{shown} is a binary file; change it by a command")
    for find, put in _manners(old_text, new_text, all_crlf=_all_crlf(old)):
        places = _places(old, find)
        if len(places) == 1:
            return old.replace(find, put, 1)
        if places:
            count = f"{len(places)} times" if len(places) <= _MOST_PLACES else f"more than {_MOST_PLACES} times"
            lines = _lines_of(old, places)
            raise ToolFault(f"old_text occurs {count} in {shown} (lines {lines}); give more of what is around it")
    raise ToolFault(f"old_text does not occur in {shown}{_near(old, old_text)}; copy it exactly as read_file shows it")


def _manners(old_text: str, new_text: str, *, all_crlf: bool) -> list[tuple[bytes, bytes]]:
    """The pair as given and with CRLF line ends, the file's own manner first; then with its chat tokens restored."""
    pairs = [(old_text, new_text), (_crlf(old_text), _crlf(new_text))]
    if all_crlf:
        pairs.reverse()
    pairs += [(restore_tokens(find), restore_tokens(put)) for find, put in pairs if restore_tokens(find) != find]
    return [(find.encode(), put.encode()) for find, put in pairs]


def _all_crlf(content: bytes) -> bool:
    return b"\r\n" in content and content.count(b"\n") == content.count(b"\r\n")


def _crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _places(content: bytes, find: bytes) -> list[int]:
    """Where it occurs, also where occurrences overlap; one more than _MOST_PLACES at most."""
    places: list[int] = []
    place = content.find(find)
    while place >= 0 and len(places) <= _MOST_PLACES:
        places.append(place)
        place = content.find(find, place + 1)
    return places


def _lines_of(content: bytes, places: Sequence[int]) -> str:
    lines = [str(content.count(b"\n", 0, place) + 1) for place in places[:5]]
    return ", ".join(lines) + (", …" if len(places) > 5 else "")


def _near(content: bytes, old_text: str) -> str:
    """Where its first line stands but for blanks, as a hint."""
    first = next((line.strip() for line in old_text.splitlines() if line.strip()), "")
    lines = content.decode("utf-8", "replace").splitlines()
    found = [str(number) for number, line in enumerate(lines, 1) if first and line.strip() == first][:3]
    return f" (its first line stands at line {', '.join(found)}, what follows or the blanks differ)" if found else ""


def _replace(target: Path, content: bytes) -> None:
    try:
        state = target.lstat()
    except FileNotFoundError:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as stream:
            stream.write(content)
        return
    if not os.access(target, os.W_OK):
        raise PermissionError(13, "the file is read-only")
    if state.st_nlink > 1 or not os.access(target.parent, os.W_OK):
        with _opened(target, "r+b") as stream:  # other names of the file, or a closed folder: only in place
            stream.write(content)
            stream.truncate()
        return
    owner = (state.st_uid, state.st_gid)
    write_atomic(target, content, mode=stat.S_IMODE(state.st_mode), owner=owner, sync=False, follow=False)


def _compare(old: bytes, new: bytes) -> Difference:
    return difference(old.decode("utf-8", "replace"), new.decode("utf-8", "replace"))


def _told(changed: Difference, otherwise: str) -> str:
    return changed.text or f"{changed.summary} lines: {otherwise}"
