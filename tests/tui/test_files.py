"""Files proposed after `@` that lie outside the folder."""

from __future__ import annotations

from pathlib import Path

from hermes_tui.commands.listing import file_completions
from hermes_tui.files import FileFinder


def test_a_name_after_a_tilde_that_is_no_user_s_proposes_what_is_here(tmp_path: Path) -> None:
    (tmp_path / "~nosuch.txt").write_text("")
    finder = FileFinder()
    assert finder.find(tmp_path, "~nosuch") == ["~nosuch.txt"]
    assert finder.find(tmp_path, "~nosuch/x") == []
    assert [item.text for item in file_completions("~nosuch", (".txt",), tmp_path)] == ["~nosuch.txt"]


def test_a_tilde_is_the_home_folder(tmp_path: Path, isolated_home: Path) -> None:
    (isolated_home.parent / "notes.txt").write_text("")
    assert FileFinder().find(tmp_path, "~/no") == ["~/notes.txt"]
