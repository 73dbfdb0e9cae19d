"""Where the rows of a run work: real agents, tools and commands in bubblewrap and containers, or skipped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.batch.runner import BatchRun
from hermes_engine.errors import UsageError
from hermes_engine.events import Event, Notice
from hermes_engine.profiles import resolve
from hermes_engine.sandbox.processes import everyone, marked, this_instance
from hermes_engine.settings import Overrides
from tests.batch.served import Batch, prompt_of, results_in, run
from tests.batch.support import dataset, options, play, thinks
from tests.conftest import Serve
from tests.containers import there
from tests.server.scripted import Answer, Seen, call, calls, say

boxed = pytest.mark.usefixtures("bubblewrap_here")


def by_prompt(table: dict[str, list[tuple[str, dict[str, Any]]]]) -> Any:
    """A script: the calls of each prompt one after another, then an answer."""

    def script(seen: Seen) -> Answer:
        steps, done = table[prompt_of(seen)], results_in(seen)
        return call(*steps[done], reasoning="So.") if done < len(steps) else say("Done.", "Thus.")

    return script


def results(batch: Batch, index: int = 0) -> list[str]:
    """What the tools of a row said."""
    row = next(row for row in batch.rows() if row["prompt_index"] == index)
    return [item["value"] for item in row["conversations"] if item["from"] == "tool"]


def told(batch: Batch) -> list[str]:
    return [event.text for event in batch.events if isinstance(event, Notice)]


def sandbox_of(batch: Batch) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((batch.folder / "run.json").read_text())["sandbox"]
    return value


FILES: list[tuple[str, dict[str, Any]]] = [
    ("terminal", {"command": "echo one > made; pwd; echo $HOME"}),
    ("read_file", {"path": "made"}),
    ("write_file", {"path": "sub/new.txt", "content": "two\n"}),
    ("terminal", {"command": "cat sub/new.txt; cd sub"}),
    ("patch", {"path": "new.txt", "old_text": "two", "new_text": "three"}),
    ("search_files", {"pattern": "three", "path": ".."}),
    ("terminal", {"command": "cat new.txt; seq 100000"}),
]


@boxed
@pytest.mark.parametrize("with_cwd", [False, True])
def test_commands_and_file_tools_of_a_row_mean_the_same_files(serve: Serve, tmp_path: Path, with_cwd: bool) -> None:
    (tmp_path / "project").mkdir()
    row = {"prompt": "work", **({"cwd": "project"} if with_cwd else {})}
    done = run(tmp_path, serve(by_prompt({"work": FILES})), [row], sandbox="auto", work_dir=tmp_path / "work")
    assert done.counts == {"total": 1, "kept": 1}
    first, read, wrote, cat, patched, found, last = results(done)
    place, home = first.splitlines()
    assert place == str(tmp_path / "project") if with_cwd else place == home
    assert home.startswith(str(tmp_path / "work"))
    assert (read, cat) == ("one", "two")
    assert "created" in wrote
    assert "changed" in patched
    assert "three" in found
    assert last.startswith("three\n1\n2\n")
    assert (tmp_path / "project" / "sub" / "new.txt").exists() == with_cwd
    assert list((tmp_path / "work").iterdir()) == []
    assert marked(f"{this_instance()}:") == []
    assert sandbox_of(done) == {"kind": "bubblewrap", "image": "", "network": False}
    assert "commands of the rows run in bubblewrap, without network" in told(done)


@boxed
def test_what_lies_outside_is_closed_to_every_tool(serve: Serve, tmp_path: Path) -> None:
    home = Path.home()
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "config").write_text("Host secret-host")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "note").write_text("secret-note")
    outside, key = str(tmp_path / "other" / "note"), str(home / ".ssh" / "config")
    steps: list[tuple[str, dict[str, Any]]] = [
        ("terminal", {"command": f"cat {outside} {key}; ln -s {outside} link; ln -s {tmp_path}/other folder"}),
        ("read_file", {"path": outside}),
        ("read_file", {"path": key}),
        ("read_file", {"path": "link"}),
        ("read_file", {"path": "folder/note"}),
        ("read_file", {"path": "/etc/hostname"}),
        ("write_file", {"path": "folder/note", "content": "changed"}),
        ("patch", {"path": "link", "old_text": "secret", "new_text": "open"}),
        ("search_files", {"pattern": "secret", "path": str(tmp_path / "other")}),
        ("search_files", {"pattern": "secret"}),
        ("terminal", {"command": "pwd", "cwd": str(tmp_path / "other")}),
    ]
    done = run(tmp_path, serve(by_prompt({"look": steps})), ["look"], sandbox="bubblewrap", mode="yolo", max_turns=20)
    said = results(done)
    assert len(said) == len(steps)
    assert "secret-" not in "".join(said)
    assert all("outside of the folders that are open here" in text for text in said[1:9]), said
    assert said[9].startswith("[no matches")
    assert "there is no folder" in said[10]
    assert (tmp_path / "other" / "note").read_text() == "secret-note"


@boxed
def test_long_results_can_be_read_by_their_row_alone(serve: Serve, tmp_path: Path) -> None:
    named: dict[str, str] = {}

    def script(seen: Seen) -> Answer:
        prompt, done = prompt_of(seen), results_in(seen)
        if done == 0 and prompt == "long":
            return call("terminal", {"command": "seq 100000"}, reasoning="So.")
        if done == 1 and prompt == "long":
            said = str(seen.messages[-1]["content"])
            named["file"] = said.split("The whole text is in ", 1)[1].partition(";")[0]
            return call("read_file", {"path": named["file"], "offset": 99_999})
        if done == 2 and prompt == "long":
            return call("search_files", {"path": named["file"], "pattern": "^77777$"})
        if done == 0:
            return call("read_file", {"path": named["file"]}, reasoning="So.")
        return say("Done.", "Thus.")

    done = run(tmp_path, serve(script), ["long", "other"], sandbox="bubblewrap", num_workers=1)
    assert results(done)[1].startswith("99999\n100000")
    assert results(done)[2].endswith(":77777: 77777")
    assert "outside of the folders" in results(done, 1)[0]


@boxed
def test_children_of_a_row_are_in_its_sandbox(serve: Serve, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("secret")

    def script(seen: Seen) -> Answer:
        prompt, done = prompt_of(seen), results_in(seen)
        if prompt == "parent":
            if done == 0:
                return call("terminal", {"command": "echo shared > /tmp/note"}, reasoning="So.")
            if done == 1:
                return call("spawn_agent", {"prompt": "child"})
            if done == 2:
                return call("spawn_agent", {"prompt": "tree", "workspace": "worktree"})
            return say("Done.")
        if done == 0:
            look = ("terminal", {"command": f"cat /tmp/note {outside}"})
            return calls([look, ("read_file", {"path": str(outside)})])
        return say(" | ".join(str(item["content"]) for item in seen.messages if item["role"] == "tool"))

    row = {"prompt": "parent", "toolsets": ["terminal", "file", "delegation"]}
    done = run(tmp_path, serve(script), [row], sandbox="bubblewrap", toolsets="terminal,file,delegation")
    _, child, tree = results(done)
    assert "shared" in child
    assert "No such file" in child
    assert "outside of the folders" in child
    assert "secret" not in child
    assert "no worktrees in a sandbox" in tree


@boxed
@pytest.mark.parametrize("place", ["/", "/etc", "~", "~/.ssh/deep", ".."])
def test_a_row_opens_no_folder_that_holds_what_is_closed(serve: Serve, tmp_path: Path, place: str) -> None:
    (Path.home() / ".ssh" / "deep").mkdir(parents=True)
    folder = Path.home().parent if place == ".." else Path(place.replace("~", str(Path.home())))
    done = run(tmp_path, serve(by_prompt({})), [{"prompt": "x", "cwd": str(folder)}], sandbox="bubblewrap")
    assert done.counts == {"total": 1, "failed": 1}
    failed = done.rows("failed.jsonl")[0]
    assert failed["error_kind"] == "row_place"
    assert "is not opened to a sandbox" in failed["reason"]


@pytest.mark.parametrize("kind", ["bubblewrap", "container"])
def test_a_cwd_around_the_run_shows_no_other_row_and_no_result(
    serve: Serve, tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    image = request.getfixturevalue("image" if kind == "container" else "bubblewrap_here")
    look = "echo x > ~/mine; cat ~/mine; ls data/run; echo bad > data/run/run.json; find work -name note; echo y > seen"
    own = {"image": image} if kind == "container" else {}
    table: dict[str, list[tuple[str, dict[str, Any]]]] = {
        "a": [("terminal", {"command": look}), ("read_file", {"path": "data/run/run.json"})],
        "b": [("terminal", {"command": "echo secret > note; echo $HOME"})],
    }
    rows = [{"prompt": "b"}, {"prompt": "a", "cwd": ".", **own}]
    more: dict[str, Any] = {"sandbox": "auto", "work_dir": tmp_path / "work", "keep_work": True, "num_workers": 1}
    done = run(tmp_path, serve(by_prompt(table)), rows, **more)
    assert done.counts == {"total": 2, "kept": 2}
    shown, read = results(done, 1)
    assert shown == "x"
    assert "outside of the folders that are open here" in read
    assert (tmp_path / "seen").read_text() == "y\n"
    assert len(list((tmp_path / "work").glob("*/*/note"))) == 1
    again = run(tmp_path, serve(by_prompt({})), [{"prompt": "c", "cwd": "data/run", **own}], resume=True)
    assert "it holds the run's own files" in again.rows("failed.jsonl")[0]["reason"]


def test_a_resume_keeps_the_sandbox_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a"])
    here = ""
    monkeypatch.setattr("hermes_engine.sandbox.bubblewrap.why_not", lambda: here)

    def kind(**values: Any) -> str:
        ran = play(tmp_path, lambda prompt, spec: thinks(), **values)
        return str(ran.json("run.json")["sandbox"]["kind"])

    assert kind(sandbox="auto") == "bubblewrap"
    assert kind(resume=True) == "bubblewrap"
    here = "it is broken"
    with pytest.raises(UsageError, match=r"^--sandbox bubblewrap: it is broken"):
        kind(resume=True)
    assert kind(resume=True, sandbox="local") == "local"
    ran = play(tmp_path, lambda prompt, spec: thinks(), sandbox="auto", run_name="two")
    notices = [event.text for event in ran.heard(Notice)]
    assert notices == ["no sandbox (it is broken): commands of the rows run on this machine, as you"]
    here = ""
    assert kind(resume=True, run_name="two") == "local"


def test_rows_with_an_image_run_in_nothing_else(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", [{"prompt": "a", "image": "python:3.12"}, "b"])
    ran = play(tmp_path, lambda prompt, spec: thinks(), sandbox="local")
    failed = ran.rows("failed.jsonl")
    assert [row["reason"] for row in failed] == [
        "the row names an image (python:3.12), and the run is one of --sandbox local"
    ]
    assert ran.agents.prompts == ["b"]


def test_what_cannot_be_asked_for(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a"])
    (Path.home() / ".hermes").mkdir(parents=True)
    (Path.home() / ".hermes" / "config.yaml").write_text("batch: {container_command: nosuchprogram}\n")
    with pytest.raises(UsageError, match=r"^--sandbox container: there is no nosuchprogram here"):
        play(tmp_path, lambda prompt, spec: thinks(), sandbox="container")
    with pytest.raises(UsageError, match=r"^--image is for --sandbox container"):
        play(tmp_path, lambda prompt, spec: thinks(), image="a")
    assert not (tmp_path / "data").exists()


def test_rows_run_in_containers(serve: Serve, tmp_path: Path, image: str) -> None:
    (tmp_path / "project").mkdir()
    rows = [
        {"prompt": "own", "docker_image": image},
        {"prompt": "at", "image": image, "cwd": "project"},
        {"prompt": "missing", "image": "localhost/nosuch:1"},
    ]
    look = ("terminal", {"command": "pwd; ls -d /bin/busybox; ls /sys/class/net; echo $HOME"})
    server = serve(by_prompt({"own": [look, *FILES], "at": [look, *FILES]}))
    done = run(tmp_path, server, rows, sandbox="auto", work_dir=tmp_path / "work", max_turns=20)
    assert done.counts == {"total": 3, "kept": 2, "failed": 1}
    for index in (0, 1):
        place, applet, nets, _home = results(done, index)[0].splitlines()
        assert (applet, nets) == ("/bin/busybox", "lo")
        assert results(done, index)[2] == "one"
        assert results(done, index)[-1].startswith("three\n1\n")
        assert (place == str(tmp_path / "project")) == bool(index)
    failed = done.rows("failed.jsonl")[0]
    assert "fetch it with `podman pull localhost/nosuch:1`, or give --pull" in failed["reason"]
    assert failed["error_kind"] == "row_place"
    assert list((tmp_path / "work").iterdir()) == []
    assert there() == []


def test_a_run_in_containers_has_an_image_for_rows_without(serve: Serve, tmp_path: Path, image: str) -> None:
    server = serve(by_prompt({"a": [("terminal", {"command": "ls -d /bin/busybox"})]}))
    without = run(tmp_path, server, ["a"], sandbox="container", run_name="without")
    assert "the row names no image, and the run has none (--image)" in without.rows("failed.jsonl")[0]["reason"]
    done = run(tmp_path, server, ["a"], sandbox="container", image=image)
    assert results(done) == ["/bin/busybox"]
    assert sandbox_of(done) == {"kind": "container", "image": image, "network": False}
    again = run(tmp_path, server, ["a"], resume=True)
    assert sandbox_of(again) == sandbox_of(done)
    assert there() == []


@pytest.mark.parametrize("how", ["timeout", "interrupt"])
def test_however_a_row_ends_its_container_goes(serve: Serve, tmp_path: Path, image: str, how: str) -> None:
    server = serve(by_prompt({"a": [("terminal", {"command": "touch here; sleep 4326; sleep 4326"})]}))
    dataset(tmp_path / "prompts.jsonl", [{"prompt": "a", "image": image}])
    limit = {"timeout_seconds": 2} if how == "timeout" else {}
    work = tmp_path / "work"
    given = options(tmp_path, model="scripted", base_url=server.base_url, sandbox="auto", work_dir=work, **limit)
    events: list[Event] = []
    batch = BatchRun(given, resolve(Overrides()), events.append)
    if how == "interrupt":

        def stop() -> None:
            deadline = time.monotonic() + 20
            while not list(work.glob("*/*/here")) and time.monotonic() < deadline:
                time.sleep(0.02)
            batch.stop()

        threading.Thread(target=stop).start()
    summary = batch.run()
    assert summary.counts["failed" if how == "timeout" else "pending"] == 1
    assert there() == []
    assert _running("4326") == []
    assert list(work.iterdir()) == []


def _running(word: str) -> list[int]:
    found = []
    for one in everyone():
        try:
            if word.encode() in Path(f"/proc/{one.pid}/cmdline").read_bytes().split(b"\0"):
                found.append(one.pid)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("kind", ["bubblewrap", "container"])
def test_after_a_kill_the_next_start_leaves_nothing(
    serve: Serve, tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    image = request.getfixturevalue("image" if kind == "container" else "bubblewrap_here")
    row = {"prompt": "a", **({"image": image} if kind == "container" else {})}
    first = True

    def script(seen: Seen) -> Answer:
        if results_in(seen) or not first:
            return say("Done.", "Thus.")
        return call("terminal", {"command": "touch here; sleep 4327"}, reasoning="So.")

    server = serve(script)
    dataset(tmp_path / "prompts.jsonl", [row])
    program = Path(__file__).parents[2] / "batch_runner.py"
    words = [
        sys.executable, str(program), "--dataset_file=prompts.jsonl", "--batch_size=1", "--run_name=r",
        "--model=scripted", f"--base_url={server.base_url}", "--work_dir=work", "--quiet",
    ]  # fmt: skip
    env = {**os.environ, "OPENAI_API_KEY": "none"}
    with subprocess.Popen(words, cwd=tmp_path, env=env) as killed:
        deadline = time.monotonic() + 30
        while not list((tmp_path / "work").glob("*/*/here")) and time.monotonic() < deadline:
            assert killed.poll() is None
            time.sleep(0.02)
        killed.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20
    while kind == "container" and there() and time.monotonic() < deadline:
        time.sleep(0.05)
    if kind == "container":
        assert there() == [], "it goes with its program"
    assert _running("4327") == []
    first = False
    done = subprocess.run([*words, "--resume"], cwd=tmp_path, env=env, timeout=60, check=False)
    assert done.returncode == 0
    assert _running("4327") == []
    assert list((tmp_path / "work").iterdir()) == []
    if kind == "container":
        assert there() == []
