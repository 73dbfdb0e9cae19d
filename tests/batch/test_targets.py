"""Files that are made of a run: what stands at their place already, and what the run still writes meanwhile."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hermes_engine.batch.export import Exported, export, form_of
from hermes_engine.batch.export.kept import kept_by_prompt, kept_rows
from hermes_engine.batch.folder import RunFolder
from hermes_engine.batch.quality_preview import preview
from hermes_engine.batch.report import write_report
from hermes_engine.errors import StateError, UsageError
from tests.batch.support import Ran, dataset, play, read_rows, thinks


@pytest.fixture
def ran(tmp_path: Path) -> Ran:
    dataset(tmp_path / "prompts.jsonl", ["a", "b", "c"])
    return play(tmp_path, lambda prompt, spec: thinks(f"{prompt}!"), num_generations=2, num_workers=1)


def written(ran: Ran, target: Path, form: str = "sharegpt") -> Exported:
    return export(RunFolder(ran.folder), form_of(form), target)


def test_a_file_keeps_its_mode_and_a_link_stays_one(ran: Ran, tmp_path: Path) -> None:
    (tmp_path / "old.jsonl").write_text("old\n")
    (tmp_path / "old.jsonl").chmod(0o644)
    (tmp_path / "link").symlink_to("old.jsonl")
    assert written(ran, tmp_path / "link").written == 6
    assert (tmp_path / "link").is_symlink()
    assert len(read_rows(tmp_path / "old.jsonl")) == 6
    assert stat.S_IMODE((tmp_path / "old.jsonl").stat().st_mode) == 0o644
    written(ran, tmp_path / "new.jsonl")
    assert stat.S_IMODE((tmp_path / "new.jsonl").stat().st_mode) == 0o600


def test_a_pipe_is_written_and_stays_one(ran: Ran, tmp_path: Path) -> None:
    """A device or pipe that is replaced is gone for everybody: as root, `-o /dev/null` took it from the machine."""
    os.mkfifo(tmp_path / "pipe")
    heard: list[bytes] = []
    reader = threading.Thread(target=lambda: heard.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    written(ran, tmp_path / "pipe", "llamafactory")
    reader.join(20)
    assert heard[0].count(b"\n") == 6
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert not (tmp_path / "dataset_info.json").exists(), "nobody finds a pipe by it"


@pytest.mark.parametrize("name", ["/dev/stdout", "-"])
@pytest.mark.parametrize("verb", ["export", "filter", "report"])
def test_standard_output_by_its_name_goes_behind_what_is_there(ran: Ran, tmp_path: Path, verb: str, name: str) -> None:
    more = ["min_turns:1"] if verb == "filter" else []
    command = [sys.executable, "-m", "hermes_tui.cli", "batch", verb, "run", *more, "-o", name]
    with (tmp_path / "log").open("ab") as stream:
        stream.write(b"before\n")
        stream.flush()
        subprocess.run(command, cwd=tmp_path, stdout=stream, timeout=120, check=True)
    assert (tmp_path / "log").read_bytes().startswith(b"before\n" + (b"<!doctype" if verb == "report" else b'{"prompt'))
    assert not (tmp_path / "-").exists()


@pytest.mark.parametrize("name", ["trajectories.jsonl", "batch_0.jsonl", "batch_9.jsonl", "failed.jsonl", "run.json"])
def test_no_file_of_the_run_is_replaced(ran: Ran, tmp_path: Path, name: str) -> None:
    folder = RunFolder(ran.folder)
    before = {path.name: path.read_bytes() for path in ran.folder.iterdir()}
    (tmp_path / "way").symlink_to(ran.folder)
    for target in (ran.folder / name, tmp_path / "way" / name):
        for make in (
            lambda target: written(ran, target),
            lambda target: write_report(folder, target),
            lambda target: preview(folder, ["min_turns:1"], target),
        ):
            with pytest.raises(UsageError, match="is a file of the run itself"):
                make(target)
    assert {path.name: path.read_bytes() for path in ran.folder.iterdir()} == before
    assert written(ran, ran.folder / "mine.jsonl").written == 6


def test_a_folder_and_a_full_device_are_one_line(ran: Ran, tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"cannot write .*data: it is a folder"):
        written(ran, tmp_path / "data")
    with pytest.raises(StateError, match="cannot write /dev/full: No space left on device"):
        written(ran, Path("/dev/full"))


def test_a_disk_that_gets_full_leaves_the_old_file(ran: Ran, tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text("old\n")
    line = 'ulimit -f 2; exec "$0" -m hermes_tui.cli batch export run -o out.jsonl'
    done = subprocess.run(
        ["bash", "-c", f"trap '' XFSZ; {line}", sys.executable],
        cwd=tmp_path,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},  # Python keeps a compiled module that the limit cut off
        capture_output=True,
        timeout=120,
        text=True,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "hermes: cannot write out.jsonl: File too large\n"
    assert (tmp_path / "out.jsonl").read_text() == "old\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "out.jsonl", "prompts.jsonl"]


def test_a_closed_standard_output_is_one_line(ran: Ran, tmp_path: Path) -> None:
    command = f"exec {sys.executable} -m hermes_tui.cli batch export run >&-"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, timeout=120, text=True)
    assert (done.returncode, done.stderr) == (1, "hermes: cannot write to standard output: it is closed\n")


@pytest.mark.parametrize(("content", "why"), [("{bad", "cannot be read"), ("[1]", "holds no JSON object")])
def test_data_sets_that_cannot_be_read_stay_as_they_are(ran: Ran, tmp_path: Path, content: str, why: str) -> None:
    (tmp_path / "dataset_info.json").write_text(content)
    with pytest.raises(StateError, match=f"dataset_info.json {why}, so the export has no place in it"):
        written(ran, tmp_path / "out.jsonl", "llamafactory")
    assert (tmp_path / "dataset_info.json").read_text() == content
    assert not (tmp_path / "out.jsonl").exists()


def answers(records: list[dict[str, object]]) -> list[str]:
    return [json.dumps(record["conversations"]) for record in records]


def test_a_merge_meanwhile_gives_no_other_rows(ran: Ran) -> None:
    """A resume puts another file in the place of the merged one; the places of its rows are others."""
    folder = RunFolder(ran.folder)
    before = [answers(group) for group in kept_by_prompt(folder)]
    groups, rows = kept_by_prompt(folder), kept_rows(folder)
    found, first = [answers(next(groups))], next(rows)
    lines = folder.trajectories.read_bytes().splitlines(keepends=True)
    other = ran.folder / "other"
    other.write_bytes(b"".join(reversed(lines)))
    other.replace(folder.trajectories)
    assert found + [answers(group) for group in groups] == before
    assert [first.line, *(kept.line for kept in rows)] == lines


def test_lines_that_hold_no_row_are_passed_over(ran: Ran, tmp_path: Path) -> None:
    with (ran.folder / "trajectories.jsonl").open("ab") as stream:
        stream.write(b"7\n{bad\n" + b"[" * 100_000 + b"\n\xff\n")
    assert written(ran, tmp_path / "out.jsonl").written == 6
