"""Reading datasets: what is a row, what is none and why, and how a row is known."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.batch.dataset import Dataset, Invalid, Place
from hermes_engine.batch.job import Row
from hermes_engine.errors import StateError, UsageError


def read(path: Path, content: bytes, limit: int | None = None) -> tuple[list[Row], list[Invalid]]:
    path.write_bytes(content)
    data = Dataset(path)
    found = list(data.scan(limit))
    rows = [data.row(item) for item in found if isinstance(item, Place)]
    data.close()
    return rows, [item for item in found if isinstance(item, Invalid)]


def line(**values: Any) -> bytes:
    return json.dumps(values).encode() + b"\n"


def test_f1_5_mark_crlf_and_blank_lines_at_the_end(tmp_path: Path) -> None:
    rows, invalid = read(tmp_path / "d", b'\xef\xbb\xbf{"prompt":"hi"}\r\n{"prompt":"ho"}\r\n\r\n\n  \n')
    assert [(row.index, row.prompt) for row in rows] == [(0, "hi"), (1, "ho")]
    assert invalid == []


def test_f1_6_bad_lines_are_named_by_number_and_the_rest_are_rows(tmp_path: Path) -> None:
    content = (
        line(prompt="a")
        + b"{bad\n"
        + b'{"prompt":"x\xff"}\n'
        + b"5\n"
        + b'["prompt"]\n'
        + b"{}\n"
        + line(prompt=123)
        + line(prompt=None)
        + line(prompt=" ")
        + b'{"prompt":"n","x":NaN}\n'
        + b'{"prompt":"n","x":1e999}\n'
        + line(prompt="z", cwd=3)
        + line(prompt="z", toolsets=["nosuch"])
        + line(prompt="z", toolsets=[1])
        + b"[" * 100_000
        + b"\n"
        + line(prompt="b")
    )
    rows, invalid = read(tmp_path / "d", content)
    assert [(row.index, row.prompt) for row in rows] == [(0, "a"), (15, "b")]
    assert [item.line for item in invalid] == list(range(2, 16))
    reasons = [item.reason for item in invalid]
    assert reasons[0] == "not JSON: expecting property name enclosed in double quotes, at character 2"
    assert reasons[1] == "not UTF-8 at byte 13 of the line"
    assert reasons[2:4] == ["not a JSON object"] * 2
    assert reasons[4] == "it has no prompt"
    assert reasons[5:7] == ["its prompt is not a text"] * 2
    assert reasons[7] == "its prompt is empty"
    assert "NaN" in reasons[8]
    assert reasons[9] == "it holds a number that is too large"
    assert "nosuch" in reasons[11]


def test_a_last_line_without_its_end_is_a_row(tmp_path: Path) -> None:
    rows, invalid = read(tmp_path / "d", b'{"prompt":"a"}\n{"prompt":"b"}')
    assert [row.prompt for row in rows] == ["a", "b"]
    assert invalid == []


def test_f2_6_lines_end_at_lf_only(tmp_path: Path) -> None:
    rows, invalid = read(tmp_path / "d", '{"prompt":"a\u2028b\u2029c\x85d"}\n'.encode())
    assert [row.prompt for row in rows] == ["a\u2028b\u2029c\x85d"]
    assert invalid == []


def test_what_a_line_holds_beside_the_prompt(tmp_path: Path) -> None:
    content = line(
        prompt="p", cwd="sub", docker_image="python:3.12", toolsets=["web", "file"], id="x1", source={"a": 1}
    )
    row = read(tmp_path / "d", content)[0][0]
    assert row.cwd == tmp_path / "sub"
    assert row.image == "python:3.12"
    assert row.toolsets == ("file", "web")
    assert json.loads(row.extra) == {"id": "x1", "source": {"a": 1}}
    assert read(tmp_path / "e", line(prompt="p", image="i", toolsets="file, terminal"))[0][0].toolsets == (
        "terminal",
        "file",
    )
    assert read(tmp_path / "e", line(prompt="p"))[0][0].toolsets is None
    assert read(tmp_path / "e", line(prompt="p", toolsets=[]))[0][0].toolsets == ()


def test_a_row_is_known_by_content_and_multiplicity(tmp_path: Path) -> None:
    twice = read(tmp_path / "d", line(prompt="a") + line(prompt="b") + line(prompt="a", note=1))[0]
    assert twice[0].key.removesuffix("-0") == twice[2].key.removesuffix("-1")
    assert len({row.ident for row in twice}) == 3
    moved = read(tmp_path / "e", line(prompt="b") + line(prompt="a") + line(prompt="a"))[0]
    assert {row.ident for row in moved} == {row.ident for row in twice}
    others = line(prompt="a", cwd="/x") + line(prompt="a", image="i") + line(prompt="a", toolsets=["web"])
    assert len({row.key for row in read(tmp_path / "f", others)[0]} | {twice[0].key}) == 4


def test_only_the_first_lines(tmp_path: Path) -> None:
    content = line(prompt="a") + b"{bad\n" + b"\n" + line(prompt="b") + line(prompt="c")
    rows, invalid = read(tmp_path / "d", content, limit=3)
    assert [row.prompt for row in rows] == ["a", "b"]
    assert [item.line for item in invalid] == [2]


def test_a_file_changed_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "d"
    path.write_bytes(line(prompt="a") + line(prompt="b"))
    data = Dataset(path)
    places = [item for item in data.scan() if isinstance(item, Place)]
    path.write_bytes(line(prompt="x") + line(prompt="b"))
    assert data.row(places[1]).prompt == "b"
    with pytest.raises(StateError, match="line 1"):
        data.row(places[0])
    data.close()


def test_what_is_no_dataset(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        Dataset(tmp_path / "missing")
    with pytest.raises(UsageError, match="directory"):
        Dataset(tmp_path)
    with pytest.raises(UsageError, match="not a file"):
        Dataset(Path("/dev/null"))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="not a file") as caught:
        Dataset(tmp_path / "pipe")  # nobody writes to it: it must not be waited for
    assert "a pipe cannot be resumed" in caught.value.hint


def test_a_line_without_end_is_invalid_and_costs_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermes_engine.batch.dataset.LONGEST_LINE", 1 << 20)
    path = tmp_path / "d"
    content = line(prompt="a") + b'{"prompt": "' + b"x" * (5 << 20) + b'"}\n' + line(prompt="b") + b"y" * (3 << 20)
    path.write_bytes(content)
    data = Dataset(path)
    found = list(data.scan())
    assert [item for item in found if isinstance(item, Invalid)] == [
        Invalid(2, "longer than 1 MiB"),
        Invalid(4, "longer than 1 MiB"),
    ]
    assert [data.row(item).prompt for item in found if isinstance(item, Place)] == ["a", "b"]
    assert data.digest == hashlib.sha256(content).hexdigest()
    data.close()


def test_a_line_of_exactly_the_longest_length_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = line(prompt="x" * 100)
    monkeypatch.setattr("hermes_engine.batch.dataset.LONGEST_LINE", len(text))
    (tmp_path / "d").write_bytes(text * 2)
    data = Dataset(tmp_path / "d")
    assert [type(item) for item in data.scan()] == [Place, Place]
    data.close()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (gzip.compress(line(prompt="a")), "not UTF-8 but gzip; unpack the file"),
        (b'[{"prompt": "a"}, {"prompt": "b"}]', "a JSON list of objects; each one needs a line of its own"),
    ],
)
def test_a_file_of_another_form_is_told_as_what_it_is(tmp_path: Path, content: bytes, reason: str) -> None:
    assert read(tmp_path / "d", content)[1][0] == Invalid(1, reason)


def test_utf16_is_told_as_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "d").write_bytes('{"prompt": "a"}\n'.encode("utf-16"))
    data = Dataset(tmp_path / "d")
    first = next(iter(data.scan()))
    data.close()
    assert isinstance(first, Invalid)
    assert "UTF-16" in first.reason


def test_a_number_python_would_not_read_is_told_in_our_words(tmp_path: Path) -> None:
    (tmp_path / "d").write_bytes(b'{"prompt": "a", "n": ' + b"9" * 5000 + b"}\n" + line(prompt="b", n=int("9" * 3000)))
    data = Dataset(tmp_path / "d")
    found = list(data.scan())
    assert found[0] == Invalid(1, "not JSON: a number of 5000 digits")
    assert isinstance(found[1], Place)
    data.close()


def test_a_set_a_row_may_not_have_makes_it_invalid(tmp_path: Path) -> None:
    path = tmp_path / "d"
    path.write_bytes(line(prompt="a", toolsets=["web"]) + line(prompt="b", toolsets=["file"]))
    data = Dataset(path, refused=lambda name: "is off" if name == "web" else "")
    found = list(data.scan())
    data.close()
    assert found[0] == Invalid(1, "its toolset web is off")
    assert isinstance(found[1], Place)


@pytest.mark.parametrize("cwd", ["a\0b", "\ud800"])
def test_a_folder_no_system_can_name_makes_its_line_invalid(tmp_path: Path, cwd: str) -> None:
    rows, invalid = read(tmp_path / "d", line(prompt="a", cwd=cwd) + line(prompt="b"))
    assert invalid == [Invalid(1, "its cwd is no path")]
    assert [row.prompt for row in rows] == ["b"]


def test_a_folder_behind_links_without_end_is_its_rows_own_fault(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    rows, invalid = read(tmp_path / "d", line(prompt="a", cwd="a") + line(prompt="b", cwd="x" * 5000))
    assert [row.prompt for row in rows] == ["a", "b"]
    assert invalid == []


@pytest.mark.parametrize("everything", ["all", "*"])
def test_all_sets_are_those_that_rows_may_have(tmp_path: Path, everything: str) -> None:
    path = tmp_path / "d"
    path.write_bytes(line(prompt="a", toolsets=[everything]) + line(prompt="b", toolsets=[everything, "web"]))
    data = Dataset(path, refused=lambda name: "" if name in ("file", "terminal") else "is off")
    first, second = list(data.scan())
    assert isinstance(first, Place)
    assert data.row(first).toolsets == ("terminal", "file")
    assert second == Invalid(2, "its toolset web is off"), "what is named is wanted"
    data.close()
