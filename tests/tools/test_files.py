"""Reading and editing files: exactly what is asked, nothing beyond, and nothing that is out of reach. Real files."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_engine.tools.difference import difference
from hermes_engine.tools.workspace import Workspace
from tests.tools.conftest import Hands, MakeHands


@pytest.fixture
def folder(workspace: Workspace) -> Path:
    return workspace.start


async def test_f8_7_last_line_without_newline(hands: Hands, folder: Path) -> None:
    (folder / "f").write_bytes(b"a\nb\nc")
    assert (await hands.call("read_file", path="f")).text == "a\nb\nc"
    assert (await hands.call("read_file", path="f", offset=3)).text == "c\n[lines 3-3 of 3]"
    assert (
        await hands.call("read_file", path="f", offset=2, limit=1)
    ).text == "b\n[lines 2-2 of 3; go on with offset=3]"
    assert (await hands.call("read_file", path="f", offset=0)).text == "a\nb\nc"


async def test_f8_7_offset_past_the_end(hands: Hands, folder: Path) -> None:
    (folder / "f").write_bytes(b"a\nb\nc")
    result = await hands.call("read_file", path="f", offset=99)
    assert (result.status, result.text) == ("error", "offset 99 is past the end: f has 3 lines")
    assert not (await hands.call("read_file", path="f", offset=-1)).ok
    assert not (await hands.call("read_file", path="f", limit=0)).ok


async def test_f8_7_a_line_of_a_megabyte_is_clipped_with_a_mark(hands: Hands, folder: Path) -> None:
    (folder / "f").write_text("x" * 1_000_000 + "\nshort\n")
    text = (await hands.call("read_file", path="f")).text
    assert text.startswith("x" * 2000 + "… [this line is cut, it has 1,000,001 bytes]\nshort\n")
    assert "1 long line cut" in text


async def test_f8_7_empty_file_and_crlf(hands: Hands, folder: Path) -> None:
    (folder / "empty").touch()
    (folder / "dos").write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")
    assert (await hands.call("read_file", path="empty")).text == "[empty file]"
    assert (await hands.call("read_file", path="dos")).text == "a\nb\n[line ends are CRLF]"


async def test_a_long_file_comes_in_pieces_that_join_without_gap(hands: Hands, folder: Path) -> None:
    lines = [f"{number} " + "y" * (number % 90) for number in range(1, 5001)]
    (folder / "f").write_text("\n".join(lines))
    got: list[str] = []
    offset: int | None = 1
    while offset:
        text = (await hands.call("read_file", path="f", offset=offset)).text
        body, _, note = text.rpartition("\n[lines ")
        got += body.split("\n")
        offset = int(note.partition("offset=")[2][:-1]) if "offset=" in note else None
    assert got == lines


async def test_a_file_too_large_to_be_held_is_read_line_by_line(
    hands: Hands, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes_engine.tools.reading.WHOLE", 1000)
    (folder / "f").write_text("".join(f"line {n}\n" for n in range(1, 1001)))
    assert (await hands.call("read_file", path="f", offset=999)).text == "line 999\nline 1000\n[lines 999-1000 of 1000]"


async def test_what_is_no_text_is_said(hands: Hands, folder: Path) -> None:
    (folder / "bin").write_bytes(b"\x7fELF\0\0")
    (folder / "latin").write_bytes(b"caf\xe9\n")
    (folder / "wide").write_bytes("hällo\n".encode("utf-16"))
    assert "binary" in (await hands.call("read_file", path="bin")).text
    assert (
        await hands.call("read_file", path="latin")
    ).text == "caf\ufffd\n[bytes that are not UTF-8 are shown as \ufffd]"
    assert (await hands.call("read_file", path="wide")).text == "hällo\n[the file is UTF-16]"


async def test_a_missing_file_names_its_neighbours(hands: Hands, folder: Path) -> None:
    (folder / "settings.py").touch()
    assert (await hands.call("read_file", path="setting.py")).text == "setting.py does not exist; near it: settings.py"


async def test_f8_8_only_one_word_of_a_crlf_file_with_a_mark_changes(hands: Hands, folder: Path) -> None:
    before = b"\xef\xbb\xbfone two\r\nthree\r\n\xff\r\nfour"
    (folder / "f").write_bytes(before)
    (folder / "f").chmod(0o755)
    result = await hands.call("patch", path="f", old_text="two", new_text="2")
    assert result.text == "changed f: +1 −1 lines, from line 1"
    assert (folder / "f").read_bytes() == before.replace(b"two", b"2")
    assert (folder / "f").stat().st_mode & 0o777 == 0o755
    await hands.call("patch", path="f", old_text="one 2\nthree", new_text="a\nb\nc")
    assert (folder / "f").read_bytes() == b"\xef\xbb\xbfa\r\nb\r\nc\r\n\xff\r\nfour"
    await hands.call("patch", path="f", old_text="four", new_text="5\n6")
    assert (folder / "f").read_bytes().endswith(b"\xff\r\n5\r\n6")


async def test_f8_8_refusals_leave_the_file_alone(hands: Hands, folder: Path) -> None:
    (folder / "f").write_text("a = 1\nb = 1\n  deep\nend\n")
    for old, new, said in [
        ("= 1", "= 2", "occurs 2 times in f (lines 1, 2)"),
        ("a = 2", "x", "does not occur in f"),
        ("deep\n  end", "x", "its first line stands at line 3"),
        ("", "x", "old_text is empty"),
        ("end", "end", "the same"),
    ]:
        result = await hands.call("patch", path="f", old_text=old, new_text=new)
        assert result.status == "error"
        assert said in result.text
    assert (folder / "f").read_text() == "a = 1\nb = 1\n  deep\nend\n"
    assert "does not exist" in (await hands.call("patch", path="none", old_text="a", new_text="b")).text


async def test_occurrences_that_overlap_are_counted(hands: Hands, folder: Path) -> None:
    for content, old, said in [
        ("aaa", "aa", "occurs 2 times in f (lines 1, 1)"),
        ("x\n\n\n\n", "\n\n", "occurs 3 times in f (lines 1, 2, 3)"),
        ("a" * 5000, "a", "occurs more than 1000 times"),
    ]:
        (folder / "f").write_text(content)
        result = await hands.call("patch", path="f", old_text=old, new_text="y")
        assert (result.status, said in result.text) == ("error", True), result.text
        assert (folder / "f").read_text() == content


async def test_patch_changes_no_binary_file(hands: Hands, folder: Path) -> None:
    content = b"\x7fELF" + b"x" * 10_000 + b"word\0"
    (folder / "f").write_bytes(content)
    result = await hands.call("patch", path="f", old_text="word", new_text="other")
    assert (result.status, "f is a binary file" in result.text) == ("error", True)
    assert (folder / "f").read_bytes() == content


async def test_f8_8_backslash_n_is_written_literally(hands: Hands, folder: Path) -> None:
    (folder / "f").write_text("X")
    await hands.call("patch", path="f", old_text="X", new_text=r"a\nb\\1\g<0>")
    assert (folder / "f").read_text() == r"a\nb\\1\g<0>"


async def test_write_file_makes_folders_and_keeps_manner_and_mode(hands: Hands, folder: Path) -> None:
    created = await hands.call("write_file", path="a/b/c.txt", content="x\ny")
    assert created.text == "created a/b/c.txt: +2 −0 lines"
    assert (folder / "a/b/c.txt").read_text() == "x\ny"
    assert created.data["files_changed"] == ["a/b/c.txt"]
    (folder / "dos").write_bytes(b"\xef\xbb\xbfold\r\n")
    (folder / "dos").chmod(0o640)
    await hands.call("write_file", path="dos", content="new\nlines\n")
    assert (folder / "dos").read_bytes() == b"\xef\xbb\xbfnew\r\nlines\r\n"
    assert (folder / "dos").stat().st_mode & 0o777 == 0o640
    again = await hands.call("write_file", path="dos", content="new\nlines\n")
    assert "nothing changed" in again.text
    assert hands.workspace.files_changed == ("a/b/c.txt", "dos")


async def test_the_umask_holds_for_new_files(hands: Hands, folder: Path) -> None:
    old = os.umask(0o027)
    try:
        await hands.call("write_file", path="new", content="x")
    finally:
        os.umask(old)
    assert (folder / "new").stat().st_mode & 0o777 == 0o640


async def test_links_and_second_names_stay(hands: Hands, folder: Path) -> None:
    (folder / "real").write_text("one\n")
    (folder / "soft").symlink_to("real")
    os.link(folder / "real", folder / "hard")
    await hands.call("patch", path="soft", old_text="one", new_text="two")
    assert (folder / "soft").is_symlink()
    assert (folder / "hard").read_text() == "two\n"


async def test_no_reader_ever_sees_half_a_file(hands: Hands, folder: Path) -> None:
    old, new = "a" * 3_000_000, "b" * 3_000_000
    (folder / "f").write_text(old)
    seen: set[str] = set()
    task = asyncio.create_task(hands.call("write_file", path="f", content=new))
    while not task.done():
        seen.add((folder / "f").read_text())
        await asyncio.sleep(0)
    seen.add((folder / "f").read_text())
    assert seen <= {old, new}


async def test_f8_9_devices_pipes_and_proc_are_refused_at_once(hands: Hands, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    unix = socket.socket(socket.AF_UNIX)
    unix.bind(str(folder / "sock"))
    (folder / "link").symlink_to("/proc/self/environ")
    (folder / "zero").symlink_to("/dev/zero")
    paths = [
        "/dev/zero",
        "/dev/stdin",
        "/dev/fd/0",
        "pipe",
        "sock",
        "/proc/self/environ",
        "/proc/self/mem",
        ".",
        "link",
        "zero",
    ]
    began = time.monotonic()
    for path in paths:
        for name, more in [
            ("read_file", {}),
            ("write_file", {"content": "x"}),
            ("patch", {"old_text": "a", "new_text": "b"}),
        ]:
            result = await hands.call(name, path=path, **more)
            assert result.status == "error", (name, path)
            assert "cannot be" in result.text, (name, path)
    assert time.monotonic() - began < 5
    unix.close()


@pytest.fixture
def secrets(user_home: Path) -> Path:
    for name in (
        ".ssh/id_rsa",
        ".hermes/.env",
        ".hermes/auth.json",
        ".hermes/state.db",
        ".hermes/profiles/p/.env",
        ".netrc",
    ):
        path = user_home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("secret key\n")
    (user_home / ".hermes/config.yaml").write_text("model: x\n")
    return user_home


async def test_f10_5_f10_8_protected_files_are_refused_however_named(hands: Hands, folder: Path, secrets: Path) -> None:
    (folder / "x").symlink_to(secrets / ".ssh/id_rsa")
    (folder / "dir").symlink_to(secrets / ".ssh")
    (folder / "a").mkdir()
    names = [
        "x", "dir/id_rsa", "~/.ssh/id_rsa", "~/.netrc", "~/.hermes/.env", "~/.hermes/auth.json", "~/.hermes/state.db",
        "~/.hermes/profiles/p/.env", "a/../../home/.hermes/.env", str(secrets / ".hermes" / "profiles" / ".." / ".env"),
    ]  # fmt: skip
    for name in names:
        for tool, more in [
            ("read_file", {}),
            ("write_file", {"content": "x"}),
            ("patch", {"old_text": "s", "new_text": "b"}),
        ]:
            result = await hands.call(tool, path=name, **more)
            assert result.status == "error", (tool, name)
            assert "secret" not in result.text
    assert (secrets / ".ssh/id_rsa").read_text() == "secret key\n"
    assert (await hands.call("read_file", path="~/.hermes/config.yaml")).text == "model: x"


async def test_f10_6_unusable_paths_are_refused(hands: Hands) -> None:
    for path in ("a\0b", "", "   ", "x" * 5000):
        assert (await hands.call("read_file", path=path)).status == "error"
        assert (await hands.call("write_file", path=path, content="x")).status == "error"


async def test_a_file_that_changed_since_it_was_read_is_refused_naming_who(
    make_hands: MakeHands, workspace: Workspace, folder: Path
) -> None:
    one = make_hands(agent="one")
    two = make_hands(agent="two", place=Workspace(folder, workspace.home, outputs=workspace.outputs))
    (folder / "f").write_text("base\n")
    await one.call("read_file", path="f")
    await two.call("patch", path="f", old_text="base", new_text="theirs")
    for name, more in [("patch", {"old_text": "theirs", "new_text": "x"}), ("write_file", {"content": "x"})]:
        result = await one.call(name, path="f", **more)
        assert "was changed by agent two since you read it" in result.text
    assert (folder / "f").read_text() == "theirs\n"
    await one.call("read_file", path="f")
    assert (await one.call("patch", path="f", old_text="theirs", new_text="mine")).ok
    (folder / "f").write_text("by hand\n")
    assert "from outside" in (await one.call("write_file", path="f", content="x")).text
    os.utime(folder / "f")
    (folder / "f").write_text("mine\n")
    assert (await one.call("patch", path="f", old_text="mine", new_text="again")).ok


async def test_a_file_never_read_may_be_edited_and_own_edits_chain(hands: Hands, folder: Path) -> None:
    (folder / "f").write_text("a b c\n")
    for old, new in [("a", "1"), ("b", "2"), ("c", "3")]:
        assert (await hands.call("patch", path="f", old_text=old, new_text=new)).ok
    assert (folder / "f").read_text() == "1 2 3\n"


async def test_edits_at_the_same_time_do_not_lose_each_other(hands: Hands, folder: Path) -> None:
    (folder / "f").write_text("".join(f"<{n}>\n" for n in range(20)))
    await asyncio.gather(*(hands.call("patch", path="f", old_text=f"<{n}>", new_text=f"[{n}]") for n in range(20)))
    assert (folder / "f").read_text() == "".join(f"[{n}]\n" for n in range(20))


async def test_f12_11_chat_tokens_in_a_file_are_shown_harmless_and_patched_as_they_are(
    hands: Hands, folder: Path
) -> None:
    (folder / "t").write_text("a <|im_start|>user\nb\n")
    shown = (await hands.call("read_file", path="t")).text
    assert "<|im_start|>" not in shown
    assert (await hands.call("patch", path="t", old_text=shown.splitlines()[0], new_text="x ‹|im_start|›system")).ok
    assert (folder / "t").read_text() == "x <|im_start|>system\nb\n"
    assert (await hands.call("write_file", path="t", content="y ‹|im_start|›z\n")).ok
    assert (folder / "t").read_text() == "y <|im_start|>z\n"


async def test_a_read_only_file_and_a_full_path_are_told(hands: Hands, folder: Path) -> None:
    (folder / "file").write_text("x")
    result = await hands.call("write_file", path="file/below", content="x")
    assert result.status == "error"
    assert "cannot write file/below" in result.text


@given(st.lists(st.sampled_from("abc"), max_size=30), st.lists(st.sampled_from("abc"), max_size=30))
@settings(deadline=None)
def test_a_difference_counts_right_and_names_true_lines(old: list[str], new: list[str]) -> None:
    made = difference("\n".join(old), "\n".join(new))
    assert len(new) - len(old) == made.added - made.removed
    for header in (line for line in made.text.splitlines() if line.startswith("@@")):
        start, _, count = header.split()[1][1:].partition(",")
        if count != "0":
            after = made.text.splitlines()[made.text.splitlines().index(header) + 1]
            source = new if after.startswith("+") else old
            place = int(header.split()[2][1:].partition(",")[0]) if after.startswith("+") else int(start)
            assert source[place - 1] == after[1:]


def test_a_large_difference_is_only_counted() -> None:
    made = difference("\n".join(f"a{n}" for n in range(9000)), "\n".join(f"b{n}" for n in range(8000)))
    assert (made.text, made.added, made.removed) == ("", 8000, 9000)
