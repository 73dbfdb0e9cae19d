"""Files of a run that are not what they were: cut short, of another form, not writable. Rows win; people get a line."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.batch.export import export, form_of
from hermes_engine.batch.files import replacing
from hermes_engine.batch.folder import RunFolder, all_runs, write_object
from hermes_engine.batch.overview import examples, run_state
from hermes_engine.errors import ConfigError, StateError, UsageError
from hermes_engine.events import Notice
from hermes_engine.protocols import AgentSpec
from tests.batch.support import Played, Ran, adds_up, dataset, fails, play, thinks, uses


def mixed(prompt: str, spec: AgentSpec) -> Played:
    return {"dull": thinks(thought=""), "bad": fails("rate_limit", "slow down")}.get(prompt) or uses()


@pytest.fixture
def ran(tmp_path: Path) -> Ran:
    dataset(tmp_path / "prompts.jsonl", ["a", "b", "dull", "c", "bad"])
    return play(tmp_path, mixed, batch_size=2)


def sizes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.glob("*.jsonl")}


def test_the_checkpoint_tells_how_long_each_file_is(ran: Ran) -> None:
    found = sizes(ran.folder)
    batches = {name: size for name, size in found.items() if name.startswith("batch_")}
    assert ran.json("checkpoint.json")["files"] == {
        "trajectories.jsonl": found["trajectories.jsonl"],
        "rejected.jsonl": found["rejected.jsonl"],
        "failed.jsonl": found["failed.jsonl"],
        "batches": {"files": len(batches), "bytes": sum(batches.values()), "open": {}},
    }
    assert len(batches) == 2
    assert min(found.values()) > 0


def test_a_checkpoint_at_work_names_the_open_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset(tmp_path / "prompts.jsonl", [f"p{number}" for number in range(8)])
    told: list[dict[str, object]] = []
    written = write_object

    def note(path: Path, value: dict[str, object], *, sync: bool = True) -> None:
        if path.name == "checkpoint.json":
            told.append(value)
        written(path, value, sync=sync)

    monkeypatch.setattr("hermes_engine.batch.writer.write_object", note)

    async def slow(prompt: str) -> Played:
        import asyncio

        await asyncio.sleep(0.5)
        return uses()

    play(tmp_path, lambda prompt, spec: slow(prompt), batch_size=4, num_workers=1)
    middle = [files["batches"]["open"] for item in told if isinstance(files := item["files"], dict)]
    assert {tuple(names) for names in middle} >= {(), ("batch_0.jsonl",), ("batch_1.jsonl",)}


def test_the_checkpoint_does_not_grow_with_the_run(tmp_path: Path) -> None:
    lengths = []
    for rows in (5, 300):
        dataset(tmp_path / "prompts.jsonl", [f"p{number}" for number in range(rows)])
        ran = play(tmp_path, mixed, batch_size=1, run_name=f"r{rows}")
        lengths.append((ran.folder / "checkpoint.json").stat().st_size)
    assert lengths[1] - lengths[0] < 60


def test_rows_that_the_disk_lost_are_told_and_run_again(ran: Ran, tmp_path: Path) -> None:
    batch = ran.folder / "batch_0.jsonl"
    lines = batch.read_bytes().splitlines(keepends=True)
    batch.write_bytes(lines[0])
    again = play(tmp_path, mixed, resume=True)
    told = [event.text for event in again.events if isinstance(event, Notice) and "are gone" in event.text]
    assert told == [f"{len(lines[1])} bytes of rows that were written are gone from the files; their rows run again"]
    assert again.summary.counts["kept"] == 3
    adds_up(again)


@pytest.mark.parametrize("name", ["checkpoint.json", "statistics.json"])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b"5",
        b'{"rows": 5, "spent": 7, "seconds": "x", "invocations": [], "files": 3}',
        b'{"spent": {"total_tokens": "x"}, "seconds": null, "files": {"batches": 1, "rejected.jsonl": "x"}}',
        b'{"spent": {"total_tokens": 1e999, "prompt_tokens": "x"}, "invocations": 1e999}',
        b'{"files": {"batches": {"bytes": "x"}, "rejected.jsonl": []}}',
    ],
)
def test_an_index_of_another_form_is_an_index_lost(ran: Ran, tmp_path: Path, name: str, content: bytes) -> None:
    (ran.folder / name).write_bytes(content)
    assert run_state(RunFolder(ran.folder)).name == "run"
    again = play(tmp_path, mixed, resume=True)
    assert again.agents.prompts == ["bad"]
    adds_up(again)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        b'{"options": 5}',
        b'{"tools": 5}',
        b'{"tools": [5]}',
        b'{"dataset": 5}',
        b'{"changes": 7}',
        b'{"system_prompt": 1}',
        b'{"options": {"batch_size": "x"}}',
    ],
)
def test_settings_of_another_form_are_told_with_what_to_do(ran: Ran, tmp_path: Path, content: bytes) -> None:
    kept = sizes(ran.folder)
    (ran.folder / "run.json").write_bytes(content)
    assert run_state(RunFolder(ran.folder)).rows["kept"] == 3
    with pytest.raises((StateError, ConfigError), match=r"run\.json") as caught:
        play(tmp_path, mixed, resume=True)
    assert "delete it" in caught.value.line
    assert sizes(ran.folder) == kept
    (ran.folder / "run.json").unlink()
    assert play(tmp_path, mixed, resume=True).agents.prompts == ["bad"]


def test_a_line_nested_without_end_is_damaged_like_any_other(ran: Ran, tmp_path: Path) -> None:
    with (ran.folder / "batch_0.jsonl").open("ab") as stream:
        stream.write(b"[" * 200_000 + b"\n")
    again = play(tmp_path, mixed, resume=True)
    assert again.agents.prompts == ["bad"]
    assert (ran.folder / "damaged.txt").stat().st_size == 200_001
    adds_up(again)


def test_when_the_merge_cannot_be_written_the_rest_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk: the rows are in their batches, counters and state are true, the next resume merges."""

    def full(*_: object) -> None:
        raise StateError("cannot write trajectories.jsonl: No space left on device")

    dataset(tmp_path / "prompts.jsonl", ["a", "b"])
    with monkeypatch.context() as patch:
        patch.setattr("hermes_engine.batch.writer.merge", full)
        ran = play(tmp_path, mixed)
    assert (ran.summary.state, ran.summary.exit_code, ran.summary.merged) == ("failed", 1, False)
    assert "No space left" in ran.summary.reason
    assert ran.json("checkpoint.json")["state"] == ran.json("statistics.json")["state"] == "failed"
    assert ran.json("checkpoint.json")["rows"]["kept"] == 2
    again = play(tmp_path, mixed, resume=True)
    assert (again.agents.prompts, len(again.rows()), again.summary.merged) == ([], 2, True)


def test_a_run_whose_lock_cannot_be_written_is_named(ran: Ran, tmp_path: Path) -> None:
    lock = RunFolder(ran.folder).lock
    lock.unlink()
    lock.mkdir()
    with pytest.raises(StateError, match=rf"^cannot write {re.escape(str(lock))}: Is a directory$"):
        play(tmp_path, mixed, resume=True)


def test_a_file_in_no_folder_cannot_be_written(tmp_path: Path) -> None:
    with (
        pytest.raises(StateError, match=r"cannot write .*nowhere/out\.jsonl: No such file"),
        replacing(tmp_path / "nowhere" / "out.jsonl"),
    ):
        pass


def test_a_folder_nobody_may_read_hides_no_run(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = ran.folder.parent / "closed"
    closed.mkdir()
    (closed / "run.json").write_text("{}")
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != closed and may(path, mode))
    assert [folder.root.name for folder in all_runs(ran.folder.parent)] == ["run"]


def test_why_rows_failed_is_read_from_them(ran: Ran) -> None:
    assert examples(RunFolder(ran.folder)) == {"rate_limit": "slow down"}
    (ran.folder / "failed.jsonl").write_bytes(b"{\n")
    assert examples(RunFolder(ran.folder)) == {}
    (ran.folder / "failed.jsonl").unlink()
    assert examples(RunFolder(ran.folder)) == {}


def test_an_export_does_not_count_a_kept_row_as_failed(ran: Ran, tmp_path: Path) -> None:
    """After a kill an earlier failure of a row that is kept by now still stands in `failed.jsonl`."""
    failure = ran.rows("failed.jsonl")[0]
    kept = ran.rows()[0]
    failure["metadata"]["row_id"] = kept["metadata"]["row_id"]
    with (ran.folder / "failed.jsonl").open("a") as stream:
        stream.write(json.dumps(failure) + "\n")
    told = export(RunFolder(ran.folder), form_of("sharegpt"), tmp_path / "out.jsonl")
    assert told.left_out == {"rejected: no_reasoning": 1, "failed: rate_limit": 1}


def test_an_output_folder_that_is_a_file_is_wrong_usage(ran: Ran, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in ("file", "file/below"):
        with pytest.raises(UsageError, match="file is a file") as caught:
            play(tmp_path, mixed, output_dir=tmp_path / place)
        assert "--output_dir" in caught.value.hint


def test_a_row_file_that_may_not_be_read_is_named(ran: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Path.open

    def refused(path: Path, *args: Any, **more: Any) -> Any:
        if path.name == "batch_0.jsonl":
            raise PermissionError(13, "Permission denied")
        return opened(path, *args, **more)

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(StateError, match=r"cannot read .*batch_0\.jsonl.*: Permission denied"):
        play(tmp_path, mixed, resume=True)
