"""Tool `search_files`: lines that match, or files by name, under a folder. Honours .gitignore, stays bounded.

Links to folders are not followed; protected files are never looked into.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import stat
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_engine.errors import ToolFault
from hermes_engine.messages import Display, ToolResult
from hermes_engine.tools import search_match
from hermes_engine.tools.context import ToolContext
from hermes_engine.tools.pinned import open_inside
from hermes_engine.tools.pool import in_thread
from hermes_engine.tools.registry import tool
from hermes_engine.tools.workspace import Workspace

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

MOST_MATCHES = 200
MOST_FILES = 50_000
SECONDS = 20.0
RULES = 1024 * 1024
"""Bytes of a .gitignore that are read."""
_SKIPPED_FOLDERS = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".ruff_cache"}
)
_NAME_GLOB = re.compile(r"[\w./*?\[\]{},!@+ -]+\Z")
_UNBOUNDED = re.compile(r"(?<!\\)(?:[*+]|\{\d*,\})")


@tool("file", "Search", title="pattern")
async def search_files(ctx: ToolContext, pattern: str, path: str = ".") -> ToolResult:
    """Search the contents of files for a regular expression, or find files by name when the pattern is a glob
    such as *.py. Files ignored by git are left out.

    Args:
        pattern: Python regular expression for one line, or a glob with *. for names.
        path: Folder or file to search.
    """
    if not pattern:
        raise ToolFault("the pattern is empty")
    root = ctx.workspace.resolve(path)
    if reason := ctx.workspace.against_walls(root):
        raise ToolFault(f"{path} cannot be searched: {reason}")
    if not root.exists():
        raise ToolFault(f"{path} does not exist")
    if root.is_file():
        ctx.workspace.readable(path)
    stop = threading.Event()
    try:
        async with asyncio.timeout(SECONDS):
            if is_name_glob(pattern):
                found = await in_thread(_by_name, ctx.workspace, root, pattern, stop)
            else:
                found = await _by_content(ctx, root, pattern, stop)
    except TimeoutError:
        raise ToolFault(f"the search took longer than {SECONDS:g} s; narrow path or pattern") from None
    finally:
        stop.set()
    what = "files" if found.names else "matches"
    count = f"{len(found.lines)}{'+' if found.more else ''} {what}"
    text = "\n".join(found.lines) or f"[no {what}{' in ' + path if path != '.' else ''}]"
    if found.more:
        text += f"\n[more than {len(found.lines)} {what}; narrow path or pattern]"
    if found.files_left_out:
        text += f"\n[only the first {MOST_FILES:,} files were searched]"
    return ToolResult(text, display=Display("Search", pattern, count, body="\n".join(found.lines)))


@dataclass(slots=True)
class _Found:
    names: bool
    lines: list[str] = field(default_factory=list)
    more: bool = False
    files_left_out: bool = False


def is_name_glob(pattern: str) -> bool:
    """Whether a pattern means file names: `*.py`, `src/**/test_*.ts`; `a.*b` is a regular expression."""
    if not _NAME_GLOB.match(pattern) or ".*" in pattern or ".+" in pattern:
        return False
    return pattern.startswith("*") or "**" in pattern or "*." in pattern or "/*" in pattern


def _by_name(workspace: Workspace, root: Path, pattern: str, stop: threading.Event) -> _Found:
    found = _Found(names=True)
    matches = _glob(pattern)
    for count, path in enumerate(_files(workspace, root, stop)):
        if count >= MOST_FILES:
            found.files_left_out = True
            break
        inner = os.path.relpath(path, root)
        if matches.match(inner) or ("/" not in pattern and matches.match(Path(inner).name)):
            if len(found.lines) >= MOST_MATCHES:
                found.more = True
                break
            found.lines.append(workspace.shown(Path(path)))
    return found


async def _by_content(ctx: ToolContext, root: Path, pattern: str, stop: threading.Event) -> _Found:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ToolFault(
            f"{pattern!r} is no valid regular expression: {error}; escape special characters with \\"
        ) from None
    found = _Found(names=False)
    files = await in_thread(_listed, ctx.workspace, root, stop, found)
    walls = ctx.workspace.walls
    if may_take_for_ever(pattern):
        hits = await _in_process(pattern, files, walls)
    else:
        hits = await in_thread(_in_here, pattern, files, stop, walls)
    found.more = len(hits) > MOST_MATCHES
    found.lines = [
        f"{ctx.workspace.shown(Path(files[place]))}:{line}: {text}" for place, line, text in hits[:MOST_MATCHES]
    ]
    return found


def may_take_for_ever(pattern: str) -> bool:
    """Whether matching can blow up: a repeated group, a back reference, or several open repetitions."""
    return bool(re.search(r"\)[*+{]|\\\d|\(\?P=", pattern)) or len(_UNBOUNDED.findall(pattern)) > 2


def _in_here(
    pattern: str, files: Sequence[str], stop: threading.Event, walls: search_match.Walls
) -> list[search_match.Found]:
    hits: list[search_match.Found] = []
    for hit in search_match.matches(pattern, files, stop.is_set, walls):
        hits.append(hit)
        if len(hits) > MOST_MATCHES:
            break
    return hits


async def _in_process(pattern: str, files: Sequence[str], walls: search_match.Walls) -> list[search_match.Found]:
    asked = json.dumps({"pattern": pattern, "files": files, "most": MOST_MATCHES + 1, "walls": walls}).encode()
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-S",
        str(search_match.__file__),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        told, _ = await child.communicate(asked)
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    return [(place, line, text) for place, line, text in map(json.loads, told.splitlines())]


def _listed(workspace: Workspace, root: Path, stop: threading.Event, found: _Found) -> list[str]:
    files: list[str] = []
    for path in _files(workspace, root, stop):
        if len(files) >= MOST_FILES:
            found.files_left_out = True
            break
        files.append(path)
    return files


def _files(workspace: Workspace, root: Path, stop: threading.Event) -> Iterator[str]:
    """Ordinary, unprotected files under a folder in order of their names, each once."""
    if root.is_file():
        yield str(root)
        return
    around = _rules_above(root)
    if _ignored(f"{root}/", around):
        around = ()  # who names an ignored folder wants to see into it
    pending: list[tuple[str, tuple[_Rules, ...]]] = [(str(root), around)]
    while pending and not stop.is_set():
        folder, above = pending.pop()
        rules = above + _rules_of(folder)
        inner: list[tuple[str, tuple[_Rules, ...]]] = []
        try:
            with _listed_folder(workspace, folder) as entries:
                for path, entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name not in _SKIPPED_FOLDERS and not _ignored(path + "/", rules):
                            inner.append((path, rules))
                    elif _readable(workspace, path, entry) and not _ignored(path, rules):
                        yield path
        except OSError:
            continue
        pending.extend(reversed(inner))


@contextlib.contextmanager
def _listed_folder(workspace: Workspace, folder: str) -> Iterator[list[tuple[str, os.DirEntry[str]]]]:
    """What is in a folder, by name, with paths. Raises OSError."""
    if not workspace.walls:
        yield [(entry.path, entry) for entry in sorted(os.scandir(folder), key=lambda entry: entry.name)]
        return
    descriptor = open_inside(folder, os.O_RDONLY | os.O_DIRECTORY, workspace.walls)
    try:
        found = sorted(os.scandir(f"/proc/self/fd/{descriptor}"), key=lambda entry: entry.name)
        yield [(f"{folder}/{entry.name}", entry) for entry in found]
    finally:
        os.close(descriptor)


def _readable(workspace: Workspace, path: str, entry: os.DirEntry[str]) -> bool:
    try:
        if not entry.is_file():
            return False
    except OSError:
        return False
    real = Path(os.path.realpath(path)) if entry.is_symlink() else Path(path)
    return workspace.against_reading(real) is None


@dataclass(frozen=True, slots=True)
class _Rules:
    """The .gitignore of one folder."""

    folder: str
    spec: GitIgnoreSpec


def _rules_of(folder: str) -> tuple[_Rules, ...]:
    try:
        with open(f"{folder}/.gitignore", "rb", opener=search_match.at_once) as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                return ()
            lines = stream.read(RULES).decode("utf-8", "replace").splitlines()
    except OSError:
        return ()
    from pathspec import GitIgnoreSpec

    try:
        # `x/**` spares x itself in git but not in pathspec; `x/*` says the same of what lies in it.
        return (_Rules(folder, GitIgnoreSpec.from_lines(re.sub(r"/\*\*$", "/*", line) for line in lines)),)
    except ValueError:
        return ()


def _rules_above(root: Path) -> tuple[_Rules, ...]:
    """The rules of the folders above, up to the top of the repository."""
    chain: list[Path] = []
    for folder in root.parents:
        chain.append(folder)
        if (folder / ".git").exists():
            return tuple(rules for parent in reversed(chain) for rules in _rules_of(str(parent)))
    return ()


def _ignored(path: str, rules: tuple[_Rules, ...]) -> bool:
    for rule in reversed(rules):
        verdict = rule.spec.check_file(path[len(rule.folder.rstrip("/")) + 1 :]).include
        if verdict is not None:
            return verdict
    return False


def _glob(pattern: str) -> re.Pattern[str]:
    """A name pattern in which `**` crosses folders and `*` does not."""
    out: list[str] = []
    for part in re.split(r"(\*\*/?|\*|\?|\[[^]]*\])", pattern.removeprefix("./")):
        if part.startswith("**"):
            out.append("(?:.*/)?" if part.endswith("/") else ".*")
        elif part == "*":
            out.append("[^/]*")
        elif part == "?":
            out.append("[^/]")
        elif part.startswith("["):
            out.append(translate(part).removeprefix("(?s:").removesuffix(")\\Z"))
        else:
            out.append(re.escape(part))
    return re.compile("".join(out) + r"\Z")
