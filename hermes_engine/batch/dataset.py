"""Reads a dataset of prompts line by line: which rows there are, and which lines are none, with the reason.

A row is known by content and multiplicity, never by its place. Texts are not kept: a row is read again, by its
place in the file, when its turn comes. Knows no run.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from hermes_engine.batch.job import Row
from hermes_engine.batch.trajectory import whole_characters
from hermes_engine.errors import StateError, UnknownName, UsageError
from hermes_engine.toolsets import expand

BOM = b"\xef\xbb\xbf"
LONGEST_LINE = 64 << 20
"""Bytes a line may have; a longer one is no prompt, and would not fit into memory several times."""

LONGEST_NUMBER = 4000
"""Digits a whole number may have; Python refuses more than 4300."""

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_GZIP = b"\x1f\x8b"
_OWN = frozenset({"prompt", "cwd", "docker_image", "image", "toolsets"})


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row stands in the file, and what scheduling needs to know of it.

    Attributes:
        index: place of the line, from 0.
        offset, length: bytes of the line.
        key: see `key_of`, with the multiplicity.
        cwd: real path of the folder it names, or "".
        extra: hash of what else its line holds.
    """

    index: int
    offset: int
    length: int
    key: str
    cwd: str = ""
    extra: int = 0


@dataclass(frozen=True, slots=True)
class Invalid:
    """A line that is no row. `line` counts from 1."""

    line: int
    reason: str


def key_of(prompt: str, cwd: str, image: str, toolsets: Collection[str] | None) -> str:
    """Hash of what a row asks and where: 16 hex digits."""
    sets = None if toolsets is None else sorted(toolsets)
    text = json.dumps([prompt, cwd, image, sets])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


class Dataset:
    """A JSONL file of prompts.

    Args:
        path: the file. Raises UsageError when it cannot be read or is no regular file.
        refused: toolsets a row may not name, with the reason.
    """

    def __init__(self, path: Path, *, refused: Callable[[str], str] | None = None) -> None:
        self.path = path
        self.digest = ""
        """SHA-256 of the bytes, after `scan` read all of them."""
        self._refused = refused or (lambda name: "")
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe is not waited for
        except OSError as error:
            raise UsageError(f"cannot read the dataset {path}: {error.strerror or error}") from None
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            os.close(descriptor)
            if stat.S_ISDIR(mode):
                raise UsageError(f"the dataset {path} is a directory, not a file", hint="name the file in it")
            raise UsageError(f"the dataset {path} is not a file", hint="a pipe cannot be resumed; write it to a file")
        self._file: BinaryIO = os.fdopen(descriptor, "rb")

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def scan(self, limit: int | None = None) -> Iterator[Place | Invalid]:
        """Each line that is not blank, in order, at most `limit` of them."""
        hasher = hashlib.sha256()
        equal: Counter[str] = Counter()
        self._file.seek(0)
        offset = taken = 0
        for index, (line, length) in enumerate(self._lines(hasher.update)):
            start, offset = offset, offset + length
            if (limit is not None and taken >= limit) or not line.removeprefix(BOM).strip():
                continue
            taken += 1
            try:
                if length > LONGEST_LINE:
                    raise ValueError(f"longer than {LONGEST_LINE >> 20} MiB")
                row = self._parsed(line, index)
            except ValueError as error:
                yield Invalid(index + 1, str(error))
                continue
            times = equal[row.key]
            equal[row.key] += 1
            cwd = os.path.realpath(row.cwd) if row.cwd else ""  # links that lead to themselves are found by its row
            yield Place(index, start, length, f"{row.key}-{times}", cwd, hash(row.extra))
        self.digest = hasher.hexdigest()

    def _lines(self, read: Callable[[bytes], object]) -> Iterator[tuple[bytes, int]]:
        """Each line with its length; of one that is too long its beginning. `read` gets all bytes."""
        while line := self._file.readline(LONGEST_LINE + 1):
            read(line)
            length, end = len(line), line
            while len(end) > LONGEST_LINE and not end.endswith(b"\n"):
                end = self._file.readline(LONGEST_LINE + 1)
                read(end)
                length += len(end)
            yield line, length

    def row(self, place: Place, sample: int = 0) -> Row:
        """The row at a place.

        Raises:
            StateError: the file was changed since it was scanned.
        """
        line = os.pread(self._file.fileno(), place.length, place.offset)
        try:
            row = self._parsed(line, place.index)
        except ValueError:
            row = None
        if row is None or row.key != place.key.rpartition("-")[0]:
            raise StateError(
                f"{self.path} was changed while the run was reading it (line {place.index + 1})",
                hint="go on with --resume: rows are found by their content",
            )
        return Row(row.index, place.key, row.prompt, row.cwd, row.image, row.toolsets, row.extra, sample)

    def _parsed(self, line: bytes, index: int) -> Row:
        """The line as a row whose key lacks the multiplicity. Raises ValueError with the reason."""
        data = _object(line.removeprefix(BOM))
        prompt = data.get("prompt")
        if not isinstance(prompt, str):
            raise ValueError("it has no prompt" if "prompt" not in data else "its prompt is not a text")
        prompt = whole_characters(prompt)
        if not prompt.strip():
            raise ValueError("its prompt is empty")
        cwd, image = _text(data, "cwd"), _text(data, "docker_image") or _text(data, "image")
        toolsets = self._toolsets(data.get("toolsets"))
        extra = {name: value for name, value in data.items() if name not in _OWN}
        try:
            carried = json.dumps(extra, ensure_ascii=False, allow_nan=False)
        except ValueError:
            raise ValueError("it holds a number that is too large") from None
        return Row(index, key_of(prompt, cwd, image, toolsets), prompt, self._folder(cwd), image, toolsets, carried)

    def _folder(self, cwd: str) -> Path | None:
        if not cwd:
            return None
        if "\0" in cwd or whole_characters(cwd) != cwd:
            raise ValueError("its cwd is no path")
        try:
            return self.path.absolute().parent / Path(cwd).expanduser()
        except RuntimeError as error:
            raise ValueError(f"its cwd: {error}") from None

    def _toolsets(self, value: Any) -> tuple[str, ...] | None:
        if value is None:
            return None
        names = [name.strip() for name in value.split(",")] if isinstance(value, str) else value
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("its toolsets are not a list of names")
        try:
            sets = expand(name for name in names if name)
        except UnknownName as error:
            raise ValueError(f"its toolsets: {error.line}") from None
        reasons = {name: reason for name in sets if (reason := self._refused(name))}
        for name in names:
            if name in reasons:
                raise ValueError(f"its toolset {name} {reasons[name]}")
        return tuple(name for name in sets if name not in reasons)  # `all` means those that rows may have


def _object(line: bytes) -> dict[str, Any]:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        if line.startswith(_UTF16):
            raise ValueError("not UTF-8 but UTF-16; save the file as UTF-8") from None
        if line.startswith(_GZIP):
            raise ValueError("not UTF-8 but gzip; unpack the file") from None
        raise ValueError(f"not UTF-8 at byte {error.start + 1} of the line") from None
    try:
        data = json.loads(text, parse_constant=_no_number, parse_int=_whole_number)
    except json.JSONDecodeError as error:  # its own words count lines too, and there is one
        raise ValueError(f"not JSON: {error.msg[:1].lower()}{error.msg[1:]}, at character {error.pos + 1}") from None
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    except RecursionError:
        raise ValueError("not JSON: nested too deeply") from None
    if isinstance(data, list) and any(isinstance(item, dict) for item in data):
        raise ValueError("a JSON list of objects; each one needs a line of its own")
    if not isinstance(data, dict):
        raise ValueError("not a JSON object")
    return data


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _whole_number(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _text(data: dict[str, Any], name: str) -> str:
    value = data.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"its {name} is not a text")
    return value
