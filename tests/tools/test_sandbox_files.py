"""File tools of an agent in a box: they reach what its commands reach, whatever is exchanged meanwhile."""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes_engine.paths import Home
from hermes_engine.protocols import Confined
from hermes_engine.sandbox.bubblewrap import Bubble
from hermes_engine.tools.pinned import held, held_parent, open_inside
from hermes_engine.tools.workspace import Workspace
from tests.tools.conftest import Hands, MakeHands


@pytest.fixture
def row(tmp_path: Path, user_home: Path) -> Path:
    """A row's folder; `tmp_path/outside` holds what it must not reach."""
    (tmp_path / "row").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "note").write_text("secret\n")
    return tmp_path / "row"


@pytest.fixture
def boxed(row: Path, user_home: Path, make_hands: MakeHands) -> Hands:
    """The tools of an agent in a box that is not opened."""
    box = Bubble(Confined("bubblewrap", (row,)), {})
    place = Workspace(row, Home(user_home / ".hermes"), outputs=box.outputs, env={"HOME": str(row)}, box=box)
    return make_hands(place=place)


async def test_outside_is_out_of_reach_by_any_name(boxed: Hands, row: Path, tmp_path: Path) -> None:
    (row / "link").symlink_to(tmp_path / "outside" / "note")
    (row / "folder").symlink_to(tmp_path / "outside")
    for path in (
        "link",
        "folder/note",
        "../outside/note",
        str(tmp_path / "outside" / "note"),
        "/etc/passwd",
        "folder/new",
    ):
        for name, more in (
            ("read_file", {}),
            ("write_file", {"content": "x"}),
            ("patch", {"old_text": "secret", "new_text": "open"}),
            ("search_files", {"pattern": "secret"}),
        ):
            result = await boxed.call(name, path=path, **more)
            assert result.status == "error", (name, path)
            assert "it lies outside of the folders that are open here" in result.text, (name, path)
    assert (await boxed.call("search_files", pattern="secret|root")).text == "[no matches]"
    assert (await boxed.call("search_files", pattern="*note*")).text == "[no files]"
    assert sorted(path.name for path in (tmp_path / "outside").iterdir()) == ["note"]
    assert (tmp_path / "outside" / "note").read_text() == "secret\n"


async def test_inside_they_work_as_anywhere(boxed: Hands, row: Path) -> None:
    assert (await boxed.call("write_file", path="a/b/new.txt", content="one\r\ntwo\n")).status == "ok"
    (row / "a" / "b" / "new.txt").chmod(0o750)
    assert (await boxed.call("read_file", path="~/a/b/new.txt")).text.startswith("one\ntwo")
    assert (await boxed.call("patch", path="a/b/new.txt", old_text="two", new_text="three")).status == "ok"
    assert (row / "a" / "b" / "new.txt").read_bytes() == b"one\r\nthree\n"
    assert (row / "a" / "b" / "new.txt").stat().st_mode & 0o777 == 0o750
    os.link(row / "a" / "b" / "new.txt", row / "twin")
    assert (await boxed.call("patch", path="twin", old_text="three", new_text="four")).status == "ok"
    assert (row / "a" / "b" / "new.txt").read_bytes() == b"one\r\nfour\n"
    assert (await boxed.call("search_files", pattern="four")).text == "twin:2: four\na/b/new.txt:2: four"
    assert (await boxed.call("search_files", pattern="(f+o+)+u+r")).text.startswith("twin:2: four")
    assert (await boxed.call("search_files", pattern="*.txt")).text == "a/b/new.txt"
    missing = await boxed.call("read_file", path="a/b/nev.txt")
    assert "near it: new.txt" in missing.text


@contextmanager
def exchanging(one: Path, other: Path) -> Iterator[None]:
    """Two names change places without rest."""
    going = threading.Event()

    exchange = ctypes.CDLL(None).renameat2

    def work() -> None:
        while not going.is_set():
            assert exchange(-100, bytes(one), -100, bytes(other), 2) == 0

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        going.set()
        thread.join()


async def test_what_is_exchanged_meanwhile_leads_nobody_out(boxed: Hands, row: Path, tmp_path: Path) -> None:
    (row / "d").mkdir()
    (row / "d" / "note").write_text("open\n")
    (row / "trap").symlink_to(tmp_path / "outside")
    said: list[str] = []
    with exchanging(row / "d", row / "trap"):
        for number in range(100):
            said.append((await boxed.call("read_file", path="d/note")).text)
            said.append((await boxed.call("search_files", pattern="^secret$", path=".")).text)
            await boxed.call("write_file", path="d/note", content=f"open {number}\n")
            await boxed.call("write_file", path=f"d/made{number % 3}/x", content="x")
    assert not [text for text in said if "secret" in re.sub(r"pattern.*", "", text)]
    assert (tmp_path / "outside" / "note").read_text() == "secret\n"
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["note"]


def test_what_is_held_stays_what_it_is(row: Path, tmp_path: Path) -> None:
    (row / "d").mkdir()
    (row / "d" / "note").write_text("open\n")
    outside = tmp_path / "outside"
    walls = ((f"{row}/",), (), ())
    with held(row / "d" / "note", walls) as place, held_parent(row / "d" / "deep" / "new", walls) as new:
        (row / "d").rename(row / "e")
        (row / "d").symlink_to(outside)
        assert place.read_text() == "open\n"
        new.write_text("made")
    assert (row / "e" / "deep" / "new").read_text() == "made"
    with pytest.raises(OSError, match="outside"), held(row / "d" / "note", walls):
        pass
    with pytest.raises(OSError, match="outside"), held_parent(row / "d" / "deep" / "new", walls):
        pass
    with pytest.raises(OSError, match="outside"):
        open_inside(row / "d", os.O_RDONLY | os.O_DIRECTORY, walls)
    os.mkfifo(row / "pipe")
    with pytest.raises(OSError, match="no ordinary file"), held(row / "pipe", walls):
        pass
    assert [path.name for path in outside.iterdir()] == ["note"]


async def test_what_is_hidden_in_an_open_folder_is_out_of_reach(
    tmp_path: Path, row: Path, make_hands: MakeHands
) -> None:
    """A project that holds the rows' folders and the run's results."""
    project, other = tmp_path, tmp_path / "work" / "row-2"
    own = tmp_path / "work" / "row-1"
    for folder in (own, other, tmp_path / "data" / "run"):
        folder.mkdir(parents=True)
        (folder / "note").write_text("needle\n")
    confined = Confined("bubblewrap", (own, project), (tmp_path / "work", tmp_path / "data" / "run"))
    box = Bubble(confined, {})
    results = tmp_path / "data" / "run"
    shown = [(tmp_path / "work", box.aside / "empty0"), (results, box.aside / "empty1")]
    assert box.mounts == [(project, project), *shown, (own, own)]
    hands = make_hands(place=Workspace(project, Home(tmp_path / ".h"), outputs=box.outputs, box=box))
    for path in ("work/row-2/note", "data/run/note", "work", "data/run"):
        assert "outside of the folders" in (await hands.call("read_file", path=path)).text
        assert (await hands.call("write_file", path=f"{path}/x", content="x")).status == "error"
    (tmp_path / "data" / "here").write_text("needle\n")
    found = (await hands.call("search_files", pattern="needle")).text.splitlines()
    assert found == ["data/here:1: needle"], "what is its own is found where it is"
    assert (await hands.call("search_files", pattern="needle", path=str(own))).text == "work/row-1/note:1: needle"
    assert (await hands.call("read_file", path=str(own / "note"))).text == "needle"
