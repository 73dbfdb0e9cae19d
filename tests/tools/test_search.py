"""Tool `search_files`: content and names, bounded, honouring .gitignore, never into what is protected. Real files."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_engine.tools.search import is_name_glob, may_take_for_ever
from hermes_engine.tools.workspace import Workspace
from tests.tools.conftest import Hands


@pytest.fixture
def tree(workspace: Workspace) -> Path:
    files = {
        "a.py": "import os\nvalue = 1\n",
        "src/b.py": "value = 2\r\n",
        "src/deep/c.ts": "const value = 3",
        "build/x.py": "value",
        "src/.gitignore": "*.log\n!keep.log\n",
        "src/x.log": "value",
        "src/keep.log": "value kept",
        ".gitignore": "build/\n/top.txt\n",
        "top.txt": "value",
        "src/top.txt": "value here",
        ".git/config": "value",
        "node_modules/m.js": "value",
        "bin": "value\0",
    }
    for name, text in files.items():
        path = workspace.start / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, newline="")
    return workspace.start


async def test_contents_are_found_with_place_and_gitignore_is_honoured(hands: Hands, tree: Path) -> None:
    result = await hands.call("search_files", pattern=r"\bvalue\b")
    assert result.text.splitlines() == [
        "a.py:2: value = 1", "src/b.py:1: value = 2", "src/keep.log:1: value kept", "src/top.txt:1: value here",
        "src/deep/c.ts:1: const value = 3",
    ]  # fmt: skip
    assert result.display.summary == "5 matches"


async def test_rules_of_the_folders_above_hold_within_a_repository(hands: Hands, tree: Path) -> None:
    assert (await hands.call("search_files", pattern="value", path="build")).text == "build/x.py:1: value"
    (tree / ".gitignore").write_text("deep/\n")
    assert "c.ts" not in (await hands.call("search_files", pattern="value", path="src")).text


async def test_names_are_found_by_globs(hands: Hands, tree: Path) -> None:
    assert (await hands.call("search_files", pattern="*.py")).text == "a.py\nsrc/b.py"
    assert (await hands.call("search_files", pattern="**/*.ts")).text == "src/deep/c.ts"
    assert (await hands.call("search_files", pattern="src/*.py")).text == "src/b.py"
    assert (await hands.call("search_files", pattern="*.none")).text == "[no files]"


async def test_one_file_can_be_searched(hands: Hands, tree: Path) -> None:
    assert (await hands.call("search_files", pattern="v.lue", path="src/b.py")).text == "src/b.py:1: value = 2"


async def test_what_is_wrong_is_said(hands: Hands, tree: Path) -> None:
    assert "no valid regular expression" in (await hands.call("search_files", pattern="a(b")).text
    assert "does not exist" in (await hands.call("search_files", pattern="a", path="nowhere")).text
    assert "empty" in (await hands.call("search_files", pattern="")).text
    assert (await hands.call("search_files", pattern="nothing-like-it")).text == "[no matches]"


async def test_many_matches_are_bounded_and_said_to_be(hands: Hands, workspace: Workspace) -> None:
    (workspace.start / "f").write_text("x\n" * 5000)
    result = await hands.call("search_files", pattern="x")
    assert len(result.text.splitlines()) == 201
    assert result.text.endswith("[more than 200 matches; narrow path or pattern]")
    (workspace.start / "long").write_text("y" * 10_000)
    assert len((await hands.call("search_files", pattern="y", path="long")).text) < 400


async def test_f10_8_f10_5_protected_files_are_never_looked_into(
    hands: Hands, workspace: Workspace, user_home: Path
) -> None:
    for name in (".hermes/.env", ".hermes/auth.json", ".ssh/id_rsa", "notes.txt"):
        (user_home / name).parent.mkdir(parents=True, exist_ok=True)
        (user_home / name).write_text("TOPSECRET\n")
    (workspace.start / "link.txt").symlink_to(user_home / ".ssh/id_rsa")
    (workspace.start / "linked").symlink_to(user_home / ".ssh")
    assert (await hands.call("search_files", pattern="TOPSECRET", path="~")).text.endswith("notes.txt:1: TOPSECRET")
    assert len((await hands.call("search_files", pattern="TOPSECRET", path="~")).text.splitlines()) == 1
    assert (await hands.call("search_files", pattern="TOPSECRET")).text == "[no matches]"
    for path in ("~/.hermes/.env", "link.txt", "linked/id_rsa"):
        result = await hands.call("search_files", pattern="TOPSECRET", path=path)
        assert result.status == "error"


async def test_f8_9_pipes_and_devices_are_passed_over(hands: Hands, workspace: Workspace) -> None:
    os.mkfifo(workspace.start / "pipe")
    (workspace.start / "zero").symlink_to("/dev/zero")
    (workspace.start / "loop").symlink_to(workspace.start)
    (workspace.start / "f").write_text("found\n")
    assert (await hands.call("search_files", pattern="found")).text == "f:1: found"


async def test_a_pattern_that_takes_for_ever_is_ended_and_stops_nobody(
    hands: Hands, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes_engine.tools.search.SECONDS", 1.0)
    (workspace.start / "f").write_text("a" * 60 + "\n")
    gaps: list[float] = []

    async def pulse() -> None:
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.02)
            gaps.append(time.monotonic() - began)

    beating = asyncio.create_task(pulse())
    result = await hands.call("search_files", pattern="(a+)+$x")
    beating.cancel()
    assert "took longer than 1 s" in result.text
    assert max(gaps) < 0.5


async def test_a_cautious_pattern_finds_the_same(hands: Hands, tree: Path) -> None:
    assert may_take_for_ever(r"(value)+ = \d")
    assert (await hands.call("search_files", pattern=r"(value)+ = \d")).text == (
        await hands.call("search_files", pattern=r"value = \d")
    ).text


async def test_cancelling_a_search_shows_at_once(hands: Hands, workspace: Workspace) -> None:
    (workspace.start / "f").write_text("a" * 60 + "\n")
    task = asyncio.create_task(hands.call("search_files", pattern="(a+)+$x"))
    await asyncio.sleep(0.3)
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - began < 0.3


@pytest.mark.parametrize("pattern", ["*.py", "**/x", "src/*.ts", "test_*.py", "src/**", "*", "*test*"])
def test_what_is_taken_for_a_glob(pattern: str) -> None:
    assert is_name_glob(pattern)


@pytest.mark.parametrize(
    "pattern", ["a.*b", r"\*.py", "foo", "def main", "x+", "a|b", "^*", "[abc]", "a.b", "f(x)", "$HOME/*", ".*.py"]
)
def test_what_is_taken_for_an_expression(pattern: str) -> None:
    assert not is_name_glob(pattern)


IGNORE = st.sampled_from(["*.o", "a", "a/", "/b", "!b", "b/c", "**/c", "a/**", "#x", "", "!*.o", "a/*.o", "[ab].o"])


@given(rules=st.lists(IGNORE, max_size=5), inner=st.lists(IGNORE, max_size=3))
@settings(max_examples=25, deadline=None)
def test_what_is_ignored_is_what_git_ignores(
    rules: list[str], inner: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    from hermes_engine.paths import Home
    from hermes_engine.tools.search import _files

    folder = tmp_path_factory.mktemp("repo")
    for name in ("x.o", "a/x.o", "a/y", "a/c/z", "b/c", "b/x.o", "c/d", "d/a", "d/b/c", "b.o"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (folder / ".gitignore").write_text("\n".join(rules))
    (folder / "a" / ".gitignore").write_text("\n".join(inner))
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    told = subprocess.run(
        ["git", "-C", str(folder), "ls-files", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    )
    place = Workspace(folder, Home(folder / ".none"), outputs=folder / ".none")
    import threading

    ours = {os.path.relpath(path, folder) for path in _files(place, folder, threading.Event())}
    assert ours == set(told.stdout.split("\n")) - {""}, (rules, inner)


def test_every_glob_of_names_becomes_a_sound_expression() -> None:
    from hermes_engine.tools.search import _glob

    assert _glob("src/**/t_[a-c]?.py").match("src/x/y/t_b1.py")
    assert _glob("src/**/t.py").match("src/t.py")
    assert not _glob("*.py").match("a/b.py")
    assert re.compile(_glob("[!a].py").pattern)
    assert _glob("[!a].py").match("b.py")


async def test_rules_that_have_no_end_are_no_rules(hands: Hands, workspace: Workspace) -> None:
    """Whoever makes the files of a folder could else stop the search, or take all memory."""
    for name in ("pipe", "zero", "folder"):
        (workspace.start / name).mkdir()
        (workspace.start / name / "found").write_text("needle\n")
    os.mkfifo(workspace.start / "pipe" / ".gitignore")
    (workspace.start / "zero" / ".gitignore").symlink_to("/dev/zero")
    (workspace.start / "folder" / ".gitignore").mkdir()
    result = await hands.call("search_files", pattern="needle")
    assert sorted(result.text.splitlines()) == [f"{name}/found:1: needle" for name in ("folder", "pipe", "zero")]
