"""Tool `read_file`: the text of a file in pieces that fit, as it stands in the file, without line numbers.

Plain text is what `patch` needs: what is copied from it matches. Notes stand in square brackets after it.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hermes_engine.errors import ToolFault
from hermes_engine.messages import Display, ToolResult
from hermes_engine.tools.context import ToolContext
from hermes_engine.tools.pool import in_thread
from hermes_engine.tools.registry import tool

MOST_LINES = 2000
MOST_CHARS = 28_000
LINE_CHARS = 2000
WHOLE = 16 * 1024 * 1024
"""Bytes up to which a file is read at once; a larger one line by line."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some lines of a file: the first one's number, how many, and how many the file has."""

    text: str
    first: int
    count: int
    total: int
    notes: tuple[str, ...]


@tool("file", "Read", title="path")
async def read_file(ctx: ToolContext, path: str, offset: int = 1, limit: int = MOST_LINES) -> ToolResult:
    """Read a text file. Long files come in pieces; a note says how to read on.

    Args:
        path: File to read.
        offset: First line, counted from 1.
        limit: Most lines to return.
    """
    if offset < 0 or limit < 1:
        raise ToolFault("offset counts lines from 1, limit is at least 1")
    target = ctx.workspace.readable(path)
    page = await in_thread(_read, ctx, target, max(offset, 1), min(limit, MOST_LINES))
    if page.total == 0:
        return ToolResult("[empty file]", display=Display("Read", path, "empty"))
    notes = "".join(f"\n[{note}]" for note in page.notes)
    last = page.first + page.count - 1
    if page.first > 1 or last < page.total:
        onward = f"; go on with offset={last + 1}" if last < page.total else ""
        notes += f"\n[lines {page.first}-{last} of {page.total}{onward}]"
    shown = f"{page.count} lines" if page.count == page.total else f"lines {page.first}-{last} of {page.total}"
    return ToolResult(page.text + notes, display=Display("Read", path, shown), data={"lines": page.count})


def _read(ctx: ToolContext, target: Path, offset: int, limit: int) -> Page:
    shown = ctx.workspace.shown(target)
    try:
        with ctx.workspace.held(target) as place:
            size = place.stat().st_size
            if size > WHOLE:
                ctx.workspace.saw(target, None)
                with place.open("rb") as stream:
                    _refuse_binary(stream.read(8192), shown)
                    stream.seek(0)
                    return _page(shown, stream, offset, limit, [])
            content = place.read_bytes()
        ctx.workspace.saw(target, content)
    except FileNotFoundError:
        raise ToolFault(f"{shown} does not exist{_siblings(target)}") from None
    except OSError as error:
        raise ToolFault(f"cannot read {shown}: {error.strerror or error}") from error
    notes: list[str] = []
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        content = content.decode("utf-16", "replace").encode()
        notes.append("the file is UTF-16")
    _refuse_binary(content[:8192], shown)
    if b"\r\n" in content:
        notes.append("line ends are CRLF")
    return _page(
        shown, content.splitlines(keepends=True) if b"\r" not in content else _lines(content), offset, limit, notes
    )


def _lines(content: bytes) -> list[bytes]:
    """Split at LF only: a lone CR is no line end here, nor are the others that `splitlines` knows."""
    parts = content.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _page(shown: str, lines: Iterable[bytes], offset: int, limit: int, notes: list[str]) -> Page:
    taken: list[str] = []
    room, total, clipped, broken, full = MOST_CHARS, 0, 0, False, False
    for number, raw in enumerate(lines, 1):
        total = number
        if number < offset or len(taken) >= limit or full:
            continue
        text = (
            raw[: LINE_CHARS * 4 + 3].removeprefix(codecs.BOM_UTF8 if number == 1 else b"").decode("utf-8", "replace")
        )
        text = text.removesuffix("\n").removesuffix("\r")
        broken = broken or "\ufffd" in text
        if len(text) > LINE_CHARS:
            text = f"{text[:LINE_CHARS]}… [this line is cut, it has {len(raw):,} bytes]"
            clipped += 1
        room -= len(text) + 1
        if room < 0 and taken:
            full = True
            continue
        taken.append(text)
    if total and offset > total:
        raise ToolFault(f"offset {offset} is past the end: {shown} has {total} line{'s' if total > 1 else ''}")
    if broken:
        notes.append("bytes that are not UTF-8 are shown as \ufffd")
    if clipped:
        notes.append(f"{clipped} long line{'s' if clipped > 1 else ''} cut; a command such as cut -c shows the rest")
    return Page("\n".join(taken), offset, len(taken), total, tuple(notes))


def _refuse_binary(start: bytes, shown: str) -> None:
    if b"\0" in start:
        raise ToolFault(f"{shown} is a binary file; a command such as file, xxd or strings can look into it")


def _siblings(target: Path) -> str:
    """Names that look like the missing one, as a hint."""
    import difflib

    try:
        names = [entry.name for entry in target.parent.iterdir()]
    except OSError:
        return ""
    near = difflib.get_close_matches(target.name, names[:2000], n=3)
    return f"; near it: {', '.join(near)}" if near else ""
