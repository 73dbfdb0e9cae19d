"""Children in git worktrees of their own: real repositories, and what is left of them afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.events import AgentFinished, AgentStarted, ToolFinished, ToolStarted, TurnFinished
from tests.conftest import Serve
from tests.server.answers import hang
from tests.work.conftest import Hear
from tests.work.support import Heard, by_prompt, call, say, spawn


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    top = tmp_path / "repo"
    (top / "part").mkdir(parents=True)
    (top / "shared.txt").write_text("first\n")
    (top / "part" / "inner.txt").write_text("inner\n")
    git(top, "init", "-q", "-b", "main")
    git(top, "add", ".")
    git(top, "-c", "user.name=T", "-c", "user.email=t@x", "commit", "-q", "-m", "first")
    return top


def folders() -> list[str]:
    place = Path(tempfile.gettempdir()) / f"hermes-worktrees-{os.getuid()}"
    return sorted(path.name for path in place.iterdir() if path.name.startswith("repo-")) if place.exists() else []


def tree(prompt: str, **fields: Any) -> dict[str, Any]:
    return {"prompt": prompt, "workspace": "worktree", **fields}


def write(path: str, content: str) -> Any:
    return [call("write_file", {"path": path, "content": content}), say("wrote it")]


def branch(entry: dict[str, Any]) -> str:
    words = str(entry["workspace"]).removeprefix("branch ").partition(":")
    return words[0]


def go(heard: Heard) -> list[dict[str, Any]]:
    heard.ask("go")
    results: list[dict[str, Any]] = heard.results()["results"]
    return results


def test_the_work_is_on_a_branch_and_the_folder_is_gone(hear: Hear, repository: Path) -> None:
    heard = hear(by_prompt({"go": [spawn(tree("low")), say("ok")], "low": write("new.txt", "x\ny\n")}),
                 mode="auto", cwd=repository)  # fmt: skip
    [entry] = go(heard)
    assert (entry["status"], entry["files_changed"]) == ("ok", ["new.txt"])
    assert entry["workspace"].startswith("branch hermes/low-")
    assert entry["workspace"].endswith("1 file changed, 2 insertions(+)")
    assert git(repository, "show", f"{branch(entry)}:new.txt") == "x\ny"
    assert not (repository / "new.txt").exists()
    assert (git(repository, "status", "--porcelain"), git(repository, "branch", "--show-current")) == ("", "main")
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert folders() == []
    assert heard.of(AgentFinished)[0].note == entry["workspace"]


def test_two_children_that_change_the_same_file_do_not_clash(hear: Hear, repository: Path) -> None:
    heard = hear(by_prompt({"go": [spawn(tree("low a"), tree("low b")), say("ok")],
                            "low a": write("shared.txt", "a\n"), "low b": write("shared.txt", "b\n")}),
                 mode="auto", cwd=repository)  # fmt: skip
    entries = go(heard)
    assert [git(repository, "show", f"{branch(entry)}:shared.txt") for entry in entries] == ["a", "b"]
    assert (repository / "shared.txt").read_text() == "first\n"
    assert folders() == []


def test_files_that_commands_changed_are_told_and_what_the_worktree_began_without(hear: Hear, repository: Path) -> None:
    (repository / "shared.txt").write_text("not committed\n")
    shell = call("terminal", {"command": "cat shared.txt; echo low > shared.txt; mkdir -p sub && echo x > sub/é.txt"})
    heard = hear(by_prompt({"go": [spawn(tree("low")), say("ok")], "low": [shell, say("did it")]}),
                 mode="auto", cwd=repository)  # fmt: skip
    [entry] = go(heard)
    assert entry["files_changed"] == ["shared.txt", "sub/é.txt"]
    assert entry["workspace"].endswith("begun without what was not committed")
    [ran] = [event for event in heard.of(ToolFinished) if event.name == "terminal"]
    assert ran.text.startswith("first"), "the commit, not the person's folder"
    assert (repository / "shared.txt").read_text() == "not committed\n"


def test_nothing_changed_leaves_no_branch(hear: Hear, repository: Path) -> None:
    heard = hear(by_prompt({"go": [spawn(tree("low")), say("ok")]}), cwd=repository)
    [entry] = go(heard)
    assert entry["workspace"] == "no files changed"
    assert git(repository, "branch", "--format", "%(refname:short)") == "main"


def test_a_folder_within_the_repository_is_the_same_place_in_the_worktree(hear: Hear, repository: Path) -> None:
    script = {"go": [spawn(tree("low")), say("ok")],
              "low": [call("terminal", {"command": "cat inner.txt; echo more >> inner.txt"}), say("ok")]}  # fmt: skip
    heard = hear(by_prompt(script), mode="auto", cwd=repository / "part")
    [entry] = go(heard)
    assert git(repository, "show", f"{branch(entry)}:part/inner.txt") == "inner\nmore"
    assert (repository / "part" / "inner.txt").read_text() == "inner\n"


def test_without_a_repository_it_is_an_error_of_that_task(hear: Hear, tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    heard = hear(by_prompt({"go": [spawn(tree("low 1"), "low 2"), say("ok")]}), cwd=tmp_path / "bare")
    first, second = go(heard)
    assert (first["status"], second["status"]) == ("error", "ok")
    assert "repository" in first["error"]
    assert "shared" in first["error"], "what to do instead"


def test_a_repository_without_a_commit_is_an_error_too(hear: Hear, tmp_path: Path) -> None:
    top = tmp_path / "empty"
    top.mkdir()
    git(top, "init", "-q")
    heard = hear(by_prompt({"go": [spawn(tree("low")), say("ok")]}), cwd=top)
    [entry] = go(heard)
    assert (entry["status"], "commit" in entry["error"]) == ("error", True)


def test_a_dirty_repository_is_left_as_it_is(hear: Hear, repository: Path) -> None:
    (repository / "shared.txt").write_text("mine, not committed\n")
    (repository / "loose.txt").write_text("loose\n")
    git(repository, "add", "loose.txt")
    before = git(repository, "status", "--porcelain")
    heard = hear(by_prompt({"go": [spawn(tree("low")), say("ok")], "low": write("shared.txt", "b\n")}),
                 mode="auto", cwd=repository)  # fmt: skip
    [entry] = go(heard)
    assert git(repository, "status", "--porcelain") == before
    assert (repository / "shared.txt").read_text() == "mine, not committed\n"
    assert git(repository, "show", f"{branch(entry)}:shared.txt") == "b"


def test_what_a_repository_would_run_by_itself_does_not_run(hear: Hear, repository: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    (repository / ".gitattributes").write_text("*.txt filter=x\n*.md filter=a=b\n")
    (repository / "text.md").write_text("text\n")
    git(repository, "add", ".")
    git(repository, "-c", "user.name=T", "-c", "user.email=t@x", "commit", "-q", "-m", "attributes")
    for name in ("post-checkout", "pre-commit", "commit-msg", "post-commit", "prepare-commit-msg", "post-index-change",
                 "reference-transaction"):  # fmt: skip
        hook = repository / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\necho {name} >> {mark}\n")
        hook.chmod(0o755)
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\necho fsmonitor >> {mark}\n")
    script.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(script))
    git(repository, "config", "diff.external", str(script))
    git(repository, "config", "commit.gpgSign", "true")
    git(repository, "config", "gpg.program", str(script))
    git(repository, "config", "filter.x.clean", f"{script}; cat")
    git(repository, "config", "filter.x.smudge", f"{script}; cat")
    git(repository, "config", "filter.a=b.process", str(script))
    git(repository, "config", "filter.a=b.required", "true")
    (tmp_path / "more").write_text(f'[filter "x"]\n\tprocess = {script}\n\trequired = true\n')
    git(repository, "config", "include.path", str(tmp_path / "more"))
    mark.unlink(missing_ok=True)
    heard = hear(by_prompt({"go": [spawn(tree("low")), say("ok")], "low": write("new.txt", "x\n")}),
                 mode="auto", cwd=repository)  # fmt: skip
    [entry] = go(heard)
    assert git(repository, "show", f"{branch(entry)}:new.txt") == "x"
    assert not mark.exists(), mark.read_text()


@pytest.mark.parametrize("mode", ["edits", "yolo"])
def test_a_child_cannot_have_our_git_obey_its_settings(hear: Hear, repository: Path, tmp_path: Path, mode: str) -> None:
    mark = tmp_path / "mark"
    settings = f'[core]\n\trepositoryformatversion = 0\n[filter "x"]\n\tclean = "touch {mark}; cat"\n'
    files = {".git": "gitdir: other\n", "other/HEAD": "ref: refs/heads/main\n", "other/config": settings,
             "other/objects/x": "", "other/refs/x": "", ".gitattributes": "* filter=x\n", "new.txt": "x\n"}  # fmt: skip
    work = [*(call("write_file", {"path": path, "content": text}) for path, text in files.items()), say("ok")]
    heard = hear(by_prompt({"go": [spawn(tree("low")), say("ok")], "low": work}), mode=mode, cwd=repository)
    [entry] = go(heard)
    assert not mark.exists()
    assert heard.of(ToolFinished)[0].status == ("ok" if mode == "yolo" else "denied"), "it is no mere edit either"
    assert git(repository, "show", f"{branch(entry)}:new.txt") == "x"
    assert folders() == []
    assert len(git(repository, "worktree", "list").splitlines()) == 1


def test_a_folder_of_any_name_can_have_worktrees(hear: Hear, repository: Path, tmp_path: Path) -> None:
    top = repository.rename(tmp_path / "repo- my ~ [code].lock")
    heard = hear(by_prompt({"go": [spawn(tree("low")), say("ok")], "low": write("new.txt", "x\n")}),
                 mode="auto", cwd=top)  # fmt: skip
    [entry] = go(heard)
    assert git(top, "show", f"{branch(entry)}:new.txt") == "x"
    assert folders() == []
    assert len(git(top, "worktree", "list").splitlines()) == 1


def test_a_folder_somebody_else_made_is_not_used(hear: Hear, repository: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"hermes-worktrees-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    heard = hear(by_prompt({"go": [spawn(tree("low")), say("ok")]}), cwd=repository)
    [entry] = go(heard)
    assert (entry["status"], "somebody else" in entry["error"]) == ("error", True)
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("stops", [1, 3])
def test_a_stop_keeps_what_was_done_and_takes_the_folder_away(hear: Hear, repository: Path, stops: int) -> None:
    heard = hear(by_prompt({"go": [spawn(tree("low")), say("ok")],
                            "low": [call("write_file", {"path": "half.txt", "content": "x"}), hang(60)]}),
                 mode="auto", cwd=repository)  # fmt: skip
    heard.engine.send(heard.session, "go")
    assert heard.server.wait_until(lambda: len(heard.server.requests) == 3)
    for _ in range(stops):
        heard.engine.interrupt(heard.session)
    heard.wait(lambda: any(e.session == heard.session for e in heard.of(TurnFinished)))
    ended = heard.of(AgentFinished)[0]
    assert ended.state == "cancelled"
    [made] = [name for name in git(repository, "branch", "--format", "%(refname:short)").split() if name != "main"]
    assert git(repository, "show", f"{made}:half.txt") == "x"
    assert made in ended.note
    assert folders() == []
    assert len(git(repository, "worktree", "list").splitlines()) == 1


def test_a_stop_while_the_folder_is_being_made_leaves_none(hear: Hear, repository: Path) -> None:
    for number in range(300):
        (repository / f"file{number}").write_text("x" * 1000)
    git(repository, "add", ".")
    git(repository, "-c", "user.name=T", "-c", "user.email=t@x", "commit", "-q", "-m", "many")
    heard = hear(by_prompt({"go": [spawn(*[tree(f"low {n}") for n in range(4)]), say("ok")], "low": hang(60)}),
                 mode="auto", cwd=repository)  # fmt: skip
    heard.engine.send(heard.session, "go")
    assert heard.server.wait_until(lambda: bool(folders()))
    heard.engine.interrupt(heard.session)
    heard.engine.interrupt(heard.session)
    heard.wait(lambda: any(e.session == heard.session for e in heard.of(TurnFinished)))
    heard.rest()
    assert folders() == []
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert git(repository, "branch", "--format", "%(refname:short)") == "main"
    assert len(heard.of(AgentFinished)) == len([e for e in heard.of(AgentStarted) if e.kind == "child"])


def test_a_person_says_more_to_a_task_in_a_worktree_and_it_goes_on_there(hear: Hear, repository: Path) -> None:
    def low(seen: Any) -> Any:
        said = [m["content"] for m in seen.messages if m["role"] == "user"]
        if seen.last["role"] == "tool":
            return say(f"done {len(said)}")
        return call("write_file", {"path": f"file{len(said)}.txt", "content": said[-1]})

    heard = hear(by_prompt({"low": low}), mode="auto", cwd=repository)
    tasks = heard.engine.tasks
    task = tasks.start(heard.session, "low", kind="background", worktree=True)
    heard.wait(lambda: len(heard.of(AgentFinished)) == 1)
    made = branch({"workspace": heard.of(AgentFinished)[0].note})
    tasks.tell(task.id, "more")
    heard.wait(lambda: len(heard.of(AgentFinished)) == 2)
    assert heard.of(AgentFinished)[1].answer == "done 2"
    assert git(repository, "show", f"{made}:file1.txt") == "low"
    assert git(repository, "show", f"{made}:file2.txt") == "more"
    assert git(repository, "status", "--porcelain") == ""
    assert folders() == []
    again = tasks.retry(task.id)
    heard.wait(lambda: len(heard.of(AgentFinished)) == 3)
    last = heard.of(AgentFinished)[2]
    assert (last.agent, last.state) == (again.id, "done")
    assert branch({"workspace": last.note}) != made
    assert git(repository, "status", "--porcelain") == ""


def test_handed_over_it_goes_on_in_its_worktree(hear: Hear, repository: Path) -> None:
    script = by_prompt({"low": [call("terminal", {"command": "sleep 0.4; echo 1 > one"}),
                                call("terminal", {"command": "cat one; echo 2 > two"}), say("done")]})  # fmt: skip
    heard = hear(script, mode="auto", cwd=repository)
    task = heard.engine.tasks.start(heard.session, "low", kind="background", worktree=True)
    heard.wait(lambda: heard.of(ToolStarted))
    assert heard.engine.leave() == [task.id]
    made = branch({"workspace": heard.of(AgentFinished)[0].note})
    assert git(repository, "show", f"{made}:one") == "1"
    heard.engine.close()
    assert folders() == []
    again = hear(script, mode="auto", cwd=repository)
    again.engine.tasks.resume(task.id)
    again.wait(lambda: again.of(AgentFinished))
    assert again.of(AgentFinished)[0].answer == "done"
    assert again.of(ToolFinished)[0].text.startswith("1")
    assert git(repository, "show", f"{made}:two") == "2"
    assert (folders(), git(repository, "status", "--porcelain")) == ([], "")


KILLED = """
import sys, tempfile, time
from pathlib import Path
tempfile.tempdir = sys.argv[3]
from hermes_engine.events import ToolStarted
from hermes_engine.profiles import resolve
from hermes_engine.session import Engine
from hermes_engine.settings import Overrides

engine = Engine(resolve(Overrides(base_url=sys.argv[1], model="m", mode="auto")), lambda event: None, attended=False)
engine.start()
session = engine.open_session(Path(sys.argv[2])).id
print(engine.tasks.start(session, "low", kind="background", worktree=True).id, flush=True)
time.sleep(60)
"""


def test_after_kill_9_it_goes_on_in_its_worktree(hear: Hear, serve: Serve, repository: Path, tmp_path: Path) -> None:
    server = serve(by_prompt({"low": [call("write_file", {"path": "half.txt", "content": "x"}), hang(60)]}))
    words = [sys.executable, "-c", KILLED, server.base_url, str(repository), str(tmp_path)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    agent = process.stdout.readline().strip()
    assert server.wait_until(lambda: len(server.requests) == 2)
    process.kill()
    process.wait()
    process.stdout.close()
    [left] = folders()
    heard = hear(by_prompt({"low": say("done")}), mode="auto", cwd=repository)
    assert heard.engine.tasks.record(agent).state == "interrupted"
    heard.engine.tasks.resume(agent)
    heard.wait(lambda: heard.of(AgentFinished))
    ended = heard.of(AgentFinished)[0]
    assert (ended.answer, left.removeprefix("repo-") in ended.note) == ("done", True)
    assert git(repository, "show", f"{branch({'workspace': ended.note})}:half.txt") == "x"
    assert folders() == []
