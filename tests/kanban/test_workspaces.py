"""Where a card is worked: a folder of its own, one that exists, a worktree that begins where the last try ended."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from hermes_engine.board import CardDraft
from tests.e2e.program import hermes
from tests.kanban.shop import OpenShop, Shop, calls_made, finishing, first_line, until
from tests.server.answers import Answer, Seen, call, hang, say


def git(folder: Path, *words: str) -> str:
    """What git says."""
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(work: Path) -> Path:
    """The folder hermes is started in, as a repository with a commit."""
    git(work, "init", "-q", "-b", "main")
    git(work, "config", "user.email", "x@example.org")
    git(work, "config", "user.name", "x")
    (work / "base").write_text("base")
    git(work, "add", ".")
    git(work, "commit", "-q", "-m", "first")
    return work


def worktree(one: Shop, **values: object) -> str:
    """Makes a card for a worktree; its id."""
    return one.board.create(CardDraft("x", workspace="worktree", **values)).id  # type: ignore[arg-type]


def test_a_board_made_anew_under_its_old_name_finds_no_old_folders(shop: OpenShop) -> None:
    def script(seen: Seen) -> Answer:
        if calls_made(seen) == 0:
            return call("terminal", {"command": "ls -A; touch old"})
        return call("kanban_complete", {"summary": seen.last["content"]})

    one = shop(script)
    boards = one.engine.kanban.boards
    folders = []
    for _ in range(2):
        boards.create("b")
        one.engine.kanban.make_anew("b")
        board = one.engine.kanban.board("b")
        board.create(CardDraft("x"))
        assert one.work(slug="b") == 0
        assert "old" not in board.card("k1").result
        folders.append(board.runs("k1")[0].workspace)
        boards.delete("b")
    assert folders[1] == f"{folders[0]}.2"


def test_each_attempt_has_a_folder_of_its_own_and_is_told_the_old_one(shop: OpenShop) -> None:
    def script(seen: Seen) -> Answer:
        tries = str(seen.messages[1]["content"]).count("<attempt-")
        match tries, calls_made(seen):
            case 0, 0:
                return call("write_file", {"path": "notes", "content": "half"})
            case 0, _:
                return say("I stop")
            case _, 0:
                return call("terminal", {"command": "ls -A"})
            case _:
                return call("kanban_complete", {"summary": seen.last["content"]})

    one = shop(script)
    one.board.create(CardDraft("x"))
    assert one.work() == 0
    first, second = one.board.runs("k1")
    assert first.workspace != second.workspace
    assert (Path(first.workspace) / "notes").read_text() == "half"
    assert "notes" not in one.board.card("k1").result
    assert f"It worked in {first.workspace}" in one.first_requests()[1].messages[1]["content"]


def test_a_worktrees_next_attempt_starts_from_the_last_commit(shop: OpenShop, repository: Path) -> None:
    def script(seen: Seen) -> Answer:
        tries = str(seen.messages[1]["content"]).count("<attempt-")
        match tries, calls_made(seen):
            case ((0 | 1), 0):
                return call("terminal", {"command": f"ls; echo {tries} > try-{tries}"})
            case ((0 | 1), _):
                return say("I stop")
            case _, 0:
                return call("terminal", {"command": "ls; echo end > end"})
            case _:
                return call(
                    "kanban_complete", {"summary": next(m for m in seen.messages if m["role"] == "tool")["content"]}
                )

    one = shop(script)
    worktree(one, max_retries=2)
    assert one.work() == 0
    result = one.board.card("k1").result
    assert [name for name in ("base", "try-0", "try-1") if name in result] == ["base", "try-0", "try-1"]
    runs = one.board.runs("k1")
    assert [run.state for run in runs] == ["failed", "failed", "done"]
    asked = one.first_requests()[2].messages[1]["content"]
    assert f"It worked in {runs[1].workspace}\nWhat it committed is on branch {runs[1].commit}" in asked
    assert git(repository, "ls-tree", "--name-only", runs[2].commit).split() == ["base", "end", "try-0", "try-1"]
    assert git(repository, "worktree", "list").count("\n") == 0
    assert sorted(path.name for path in repository.iterdir()) == [".git", "base"]


def test_a_worktree_that_a_reviewer_sent_back_goes_on_with_the_work(
    shop: OpenShop, repository: Path, home: Path
) -> None:
    def script(seen: Seen) -> Answer:
        reviews = "You review" in seen.messages[0]["content"]
        again = "add tests" in seen.messages[1]["content"]
        match reviews, again, calls_made(seen):
            case True, False, _:
                return call("kanban_send_back", {"note": "add tests"})
            case True, True, 0:
                return call("terminal", {"command": "ls"})
            case True, True, _:
                return call("kanban_complete", {"summary": seen.last["content"]})
            case False, _, 0:
                return call("terminal", {"command": "ls; touch tests" if again else "touch code"})
            case _:
                return call("kanban_request_review", {"summary": "see"})

    one = shop(script)
    worktree(one, reviewer="reviewer")
    assert one.work() == 0
    runs = one.board.runs("k1")
    assert [run.state for run in runs] == ["review", "sent_back", "review", "done"]
    assert {"code", "tests"} <= set(runs[3].summary.split()), "the reviewer sees the work"
    assert git(repository, "ls-tree", "--name-only", runs[2].commit).split() == ["base", "code", "tests"]


def test_a_workers_files_are_named_on_its_card_and_to_the_cards_behind_it(shop: OpenShop) -> None:
    def script(seen: Seen) -> Answer:
        if "Card k2" in first_line(seen):
            return call("kanban_complete", {"summary": "read"})
        match calls_made(seen):
            case 0:
                return call("write_file", {"path": "report.md", "content": "x"})
            case 1:
                return call("kanban_complete", {"summary": "see file", "files": ["report.md", "missing.md"]})
            case _:
                assert "missing.md is not a file" in seen.last["content"]
                return call("kanban_complete", {"summary": "see file", "files": ["report.md"]})

    one = shop(script)
    one.board.create_all([CardDraft("write"), CardDraft("read", parents=("@0",))])
    assert one.work() == 0
    [file] = one.board.show("k1").attachments
    assert (file.name, file.by) == ("report.md", "default")
    assert file.path == str(Path(one.board.runs("k1")[0].workspace) / "report.md")
    assert f"see file\nFile: {file.path}" in one.first_requests()[1].messages[1]["content"]


def test_the_branch_of_a_worktree_is_told_as_long_as_it_is_there(shop: OpenShop, repository: Path) -> None:
    """A reviewer that changes nothing has none, and files of a folder that goes are not named."""

    def script(seen: Seen) -> Answer:
        match "You review" in seen.messages[0]["content"], calls_made(seen):
            case True, _:
                return call("kanban_complete", {"summary": "good"})
            case False, 0:
                return call("terminal", {"command": "echo x > made"})
            case False, 1:
                return call("kanban_request_review", {"summary": "see", "files": ["made"]})
            case _:
                assert "kept on your branch" in seen.last["content"]
                return call("kanban_request_review", {"summary": "see"})

    one = shop(script)
    worktree(one, reviewer="reviewer")
    assert one.work() == 0
    worked, judged = one.board.runs("k1")
    assert judged.commit == ""
    assert git(repository, "branch", "--list", "hermes/*").strip() == worked.commit
    assert ["branch", worked.commit] in hermes("kanban", "show", "k1").rows
    assert hermes("kanban", "show", "k1", "--json").json["runs"][0]["branch"] == worked.commit
    git(repository, "merge", "-q", worked.commit)
    assert (repository / "made").exists()


@pytest.mark.parametrize(
    "place", ["dir:/nowhere/at/all", f"dir:/{'x' * 300}", "dir:/etc/hostname"], ids=["missing", "unusable", "a file"]
)
def test_a_folder_that_cannot_be_used_fails_the_try_with_its_name(shop: OpenShop, place: str) -> None:
    one = shop(finishing)
    one.board.create(CardDraft("x", workspace=place, max_retries=0))
    assert one.work() == 1
    assert [run.state for run in one.board.runs("k1")] == ["failed"]
    assert place.removeprefix("dir:")[:20] in one.board.card("k1").reason
    assert one.server.requests == []


def test_a_worktree_where_there_is_no_repository_fails_the_try(shop: OpenShop) -> None:
    one = shop(finishing)
    worktree(one, max_retries=0)
    assert one.work() == 1
    assert "a worktree needs a git repository" in one.board.card("k1").reason
    assert "give the card another workspace" in one.board.card("k1").reason


def test_f5_17_a_workspace_that_vanishes_while_its_card_runs_leaves_no_ghost(shop: OpenShop, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()

    def script(seen: Seen) -> Answer:
        if calls_made(seen) == 0:
            shutil.rmtree(folder, ignore_errors=True)
            return call("terminal", {"command": "pwd"})
        return say(f"I cannot: {seen.last['content']}")

    one = shop(script)
    one.board.create(CardDraft("x", workspace=f"dir:{folder}", max_retries=1))
    assert one.work() == 1
    assert [run.state for run in one.board.runs("k1")] == ["failed", "failed"]
    assert f"the card's folder {folder} does not exist" in one.board.card("k1").reason
    told = next(seen.last["content"] for seen in one.server.requests if calls_made(seen))
    assert "mine" in told


def test_f5_17_a_run_stopped_by_hand_is_stopped_and_not_completed(shop: OpenShop) -> None:
    one = shop(lambda seen: hang(30) if seen.index == 0 else finishing(seen))
    one.board.create(CardDraft("x"))
    working = one.working()
    until(lambda: one.server.open_requests == 1)
    one.board.reclaim("k1", by="maria")
    working.join(20)
    assert not working.is_alive()
    runs = one.board.runs("k1")
    assert [run.state for run in runs] == ["stopped", "done"]
    assert runs[0].error == "reclaimed by maria"
    assert [row.state for row in one.engine.agents()] == ["cancelled", "done"]
    assert first_line(one.server.requests[0]) == "Card k1: x"
