"""Files of lines survive kills: whole lines, torn ends cut, one write a line."""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.batch.files import Appender, read_lines, replacing
from hermes_engine.errors import StateError


def values(path: Path, **more: Any) -> list[Any]:
    return [value for _offset, _length, value in read_lines(path, **more)]


def test_f1_4_long_lines_of_many_writers_stay_whole(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    texts = [chr(97 + number % 26) * (1_000_000 if number % 8 == 0 else 100) for number in range(64)]

    def write(numbers: range) -> None:
        file = Appender(path)
        for number in numbers:
            file.append(json.dumps({"n": number, "text": texts[number]}).encode() + b"\n")
        file.close()

    threads = [threading.Thread(target=write, args=(range(start, 64, 8),)) for start in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
    assert sorted(item["n"] for item in found) == list(range(64))
    assert all(item["text"] == texts[item["n"]] for item in found)


@pytest.mark.parametrize("torn", [b'{"a": 3', b'{"a": 3}', b"\xff", b'{"a"' + b"x" * 200_000])
def test_a_torn_end_is_cut_off(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "rows.jsonl"
    whole = b'{"a": 1}\n{"a": 2}\n'
    path.write_bytes(whole + torn)
    assert values(path) == [{"a": 1}, {"a": 2}]
    assert path.read_bytes() == whole
    path.write_bytes(torn)
    assert values(path) == []
    assert path.read_bytes() == b""


def test_unreadable_lines_are_taken_out_and_kept_aside(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n\x00\x00\x00\n{"a": 2}\n[3]\n{"a": 4}\n{"to')
    bad: list[int] = []
    found = list(read_lines(path, bad.append))
    assert [value for _, _, value in found] == [{"a": 1}, {"a": 2}, {"a": 4}]
    assert bad == [2]
    content = path.read_bytes()
    assert content == b'{"a": 1}\n{"a": 2}\n{"a": 4}\n'
    assert [content[offset : offset + length] for offset, length, _ in found] == content.splitlines(keepends=True)
    assert (tmp_path / "damaged.txt").read_bytes() == b"\x00\x00\x00\n[3]\n"


def test_a_missing_file_has_no_lines(tmp_path: Path) -> None:
    assert values(tmp_path / "none") == []


def test_f10_4_new_files_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Appender(tmp_path / "a").close()
        with replacing(tmp_path / "b") as stream:
            stream.write(b"x")
    finally:
        os.umask(before)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def test_a_full_disk_leaves_no_part_of_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = Appender(tmp_path / "rows.jsonl")
    file.append(b'{"a": 1}\n')
    real, calls = os.write, []

    def full(descriptor: int, data: memoryview) -> int:
        calls.append(len(data))
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data[:4])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StateError, match="No space left"):
        file.append(b'{"a": 2}\n')
    monkeypatch.undo()
    assert (tmp_path / "rows.jsonl").read_bytes() == b'{"a": 1}\n'
    assert file.append(b'{"a": 3}\n') == 9
    file.close()


def test_replacing_shows_the_old_or_the_new_whole(tmp_path: Path) -> None:
    path = tmp_path / "whole"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), replacing(path) as stream:
        stream.write(b"half")
        1 / 0  # noqa: B018
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    with replacing(path) as stream:
        stream.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
