"""One run of the runs of a dataset's shards: what a run of the whole dataset would have written."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.batch.export import export, form_of
from hermes_engine.batch.folder import RunFolder, held
from hermes_engine.batch.joining import Joined, join
from hermes_engine.batch.overview import run_state, run_states
from hermes_engine.errors import UsageError
from hermes_engine.messages import Usage
from hermes_engine.profiles import resolve
from hermes_engine.protocols import AgentSpec
from hermes_engine.settings import Overrides
from tests.batch.ray_cluster import wait_until
from tests.batch.support import Played, Ran, changed, dataset, fails, play, read_rows, thinks, uses
from tests.e2e.program import hermes, start

ROWS: list[Any] = [
    "a",
    "b",
    b"{bad",
    "same",
    "dull",
    "c",
    "same",
    {"prompt": "w", "toolsets": ["web"]},
    "broken",
    "d",
    "e",
]


def player(prompt: str, spec: AgentSpec) -> Played:
    special = {"dull": thinks(thought=""), "broken": fails("rate_limit"), "same": uses(), "w": uses("web_fetch", "{}")}
    return special.get(prompt, thinks())


def shard(tmp_path: Path, which: int, of: int = 3, play_row: Callable[..., Played] = player, **values: Any) -> Ran:
    return play(tmp_path, play_row, run_name=f"p{which}", shard=f"{which}/{of}", batch_size=2, **values)


def merged(tmp_path: Path, *names: str, **values: Any) -> Joined:
    data = tmp_path / "data"
    runs = [RunFolder(data / name) for name in names]
    return join(RunFolder(data / "all"), runs, resolve(Overrides()), **values)


def without_place(row: dict[str, Any]) -> dict[str, Any]:
    return changed(row, metadata={**row["metadata"], "batch_num": 0, "timestamp": ""})


WRITTEN = re.compile(r"written at [^\"]+")


def test_the_shards_of_a_dataset_make_the_run_of_all(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ROWS)
    parts = [shard(tmp_path, which) for which in (1, 2, 3)]
    files = {path: path.read_bytes() for part in parts for path in part.folder.iterdir()}
    whole = play(tmp_path, player, run_name="whole", batch_size=2)
    told = merged(tmp_path, "p3", "p1", "p2")
    assert told.counts.as_dict() == whole.summary.counts
    assert (told.state, told.reason, told.missing) == ("done", "", ())
    folder = tmp_path / "data" / "all"
    for name in ("trajectories.jsonl", "rejected.jsonl", "failed.jsonl"):
        rows = sorted(read_rows(folder / name), key=lambda row: int(row["prompt_index"]))
        assert [without_place(row) for row in rows] == [without_place(row) for row in whole.rows(name)], name
    assert [row["prompt_index"] for row in read_rows(folder / "trajectories.jsonl")] == [0, 1, 3, 5, 6, 7, 9, 10]
    figures, of_whole = json.loads((folder / "statistics.json").read_text()), whole.json("statistics.json")
    for name in ("rows", "completed", "tools", "reasoning", "rejects", "failures", "spent", "usage", "stop_reasons"):
        assert figures[name] == of_whole[name], name
    assert figures["invocations"] == 3
    assert figures["invalid_lines"][0]["line"] == 3
    settings, of_whole = json.loads((folder / "run.json").read_text()), whole.json("run.json")
    assert settings["options"] == {**of_whole["options"], "run_name": "all"}
    assert {item["function"]["name"] for item in settings["tools"]} == {
        item["function"]["name"] for item in of_whole["tools"]
    }
    assert settings["dataset"] == of_whole["dataset"]
    assert [(item["run"], item["shard"]) for item in settings["merged"]] == [
        ("p1", "1/3"),
        ("p2", "2/3"),
        ("p3", "3/3"),
    ]
    card, of_whole_card = ((place / "README.md").read_text() for place in (folder, whole.folder))
    assert WRITTEN.sub("", card) == WRITTEN.sub("", of_whole_card).replace("whole", "all")
    assert {path: path.read_bytes() for path in files} == files, "the shards are as they were"
    numbers = [row["metadata"]["batch_num"] for path in folder.glob("batch_*.jsonl") for row in read_rows(path)]
    assert sorted(numbers) == sorted(
        int(path.stem[6:]) for path in folder.glob("batch_*.jsonl") for _ in read_rows(path)
    )
    assert [path.name for path in folder.parent.iterdir() if path.name.startswith(".")] == []
    assert (folder.stat().st_mode & 0o777, (folder / "run.json").stat().st_mode & 0o777) == (0o700, 0o600)


def test_what_reads_a_run_reads_a_merged_one(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ROWS)
    for which in (1, 2, 3):
        shard(tmp_path, which)
    merged(tmp_path, "p1", "p2", "p3")
    folder = RunFolder(tmp_path / "data" / "all")
    assert export(folder, form_of("openai", folder.settings()["tools"]), tmp_path / "out.jsonl").written == 8
    assert (run_state(folder).state, run_state(folder).name) == ("done", "all")
    assert [state.name for state in run_states(folder.root.parent)] == ["all", "p1", "p2", "p3"]
    datasets = pytest.importorskip("datasets", reason="datasets is not installed: make test does it")
    loaded = datasets.load_dataset(str(folder.root), split="train", cache_dir=str(tmp_path / "cache"))
    assert loaded["prompt_index"] == [0, 1, 3, 5, 6, 7, 9, 10] or list(loaded["prompt_index"]) == [
        0,
        1,
        3,
        5,
        6,
        7,
        9,
        10,
    ]


def test_a_missing_shard_is_named_and_pending_and_a_resume_works_it(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ROWS)
    shard(tmp_path, 1)
    shard(tmp_path, 3)
    told = merged(tmp_path, "p1", "p3")
    assert told.missing == ("2/3",)
    assert told.reason == "not there: shard 2/3"
    assert told.counts.as_dict() == {"total": 11, "kept": 5, "rejected": 0, "failed": 1, "invalid": 1, "pending": 4}
    again = play(tmp_path, player, run_name="all", resume=True)
    assert sorted(again.agents.prompts) == ["b", "broken", "dull", "e", "w"]
    assert again.summary.counts == {"total": 11, "kept": 8, "rejected": 1, "failed": 1, "invalid": 1, "pending": 0}
    assert [row["prompt_index"] for row in again.rows()] == [0, 1, 3, 5, 6, 7, 9, 10]
    assert [item["shard"] for item in again.json("run.json")["merged"]] == ["1/3", "3/3"]
    retried = play(tmp_path, lambda prompt, spec: thinks(), run_name="all", only_failed=True)
    assert retried.agents.prompts == ["broken"]
    assert retried.summary.counts["kept"] == 9


def test_a_shard_that_was_killed_gives_what_it_has(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "b", "c", "d", "e", "f"])
    shard(tmp_path, 1, 2)
    second = shard(tmp_path, 2, 2)
    lines = (second.folder / "batch_0.jsonl").read_bytes().splitlines(keepends=True)
    (second.folder / "batch_0.jsonl").write_bytes(lines[0] + lines[1][:40])
    for name in ("trajectories.jsonl", "batch_1.jsonl", "statistics.json"):
        (second.folder / name).unlink()
    told = merged(tmp_path, "p1", "p2")
    assert told.counts.as_dict()["kept"] == 4
    assert (told.counts.pending, told.state) == (2, "stopped")
    again = play(tmp_path, player, run_name="all", resume=True)
    assert len(again.agents.prompts) == 2
    assert again.summary.counts["kept"] == 6


def test_a_merge_that_is_killed_leaves_nothing_half_done_and_is_made_anew(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ROWS)
    for which in (1, 2, 3):
        shard(tmp_path, which)
    failed = tmp_path / "data" / "p3" / "failed.jsonl"
    rows = failed.read_bytes() if failed.exists() else b""
    failed.unlink(missing_ok=True)
    os.mkfifo(failed)
    merge = ["batch", "merge", "all", "p1", "p2", "p3"]
    process = start(*merge, cwd=tmp_path)
    held_open: list[int] = []
    wait_until(lambda: held_open or _read_by_somebody(failed, held_open))
    assert (tmp_path / "data" / ".all.merging" / "batch_0.jsonl").exists()
    second = hermes(*merge, cwd=tmp_path)
    assert (second.code, "data/all is being made by process" in second.err) == (2, True)
    assert [line.split("\t")[0] for line in hermes("batch", "list", cwd=tmp_path).out.splitlines()] == [
        "p1",
        "p2",
        "p3",
    ]
    process.kill()
    process.communicate()
    os.close(held_open.pop())
    assert not (tmp_path / "data" / "all").exists()
    failed.unlink()
    failed.write_bytes(rows)
    again = hermes(*merge, cwd=tmp_path)
    assert (again.code, again.err) == (0, "")
    assert "kept 8 · rejected 1 · failed 1 · invalid 1 · pending 0 · total 11" in again.out
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["all", "p1", "p2", "p3"]


def _read_by_somebody(pipe: Path, held_open: list[int]) -> bool:
    """Whether somebody waits at a pipe to read it, who then waits on."""
    try:
        held_open.append(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


def test_spending_on_rows_that_ran_again_is_not_lost(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "b"])
    costly = Played(fails("server_error").messages, "error", "no", "server_error", usage=Usage(100, 50, cost_usd=0.5))
    first = shard(tmp_path, 1, 2, lambda prompt, spec: costly)
    assert first.summary.counts["failed"] == 1
    shard(tmp_path, 1, 2, resume=True)
    shard(tmp_path, 2, 2)
    merged(tmp_path, "p1", "p2")
    figures = json.loads((tmp_path / "data" / "all" / "statistics.json").read_text())
    assert figures["spent"]["total_tokens"] == 150 + 15 + 15
    assert figures["spent"]["cost_usd"] == 0.5
    assert figures["usage"]["total_tokens"] == 30
    last = play(tmp_path, player, run_name="all", resume=True).json("statistics.json")
    assert (last["spent"]["total_tokens"], last["invocations"]) == (180, 4)


@pytest.mark.parametrize(
    ("values", "differs"),
    [
        ({"temperature": 0.5}, "temperature"),
        ({"max_turns": 3, "num_generations": 2}, "max_turns|num_generations"),
        ({"distribution": "terminal_only"}, "distribution"),
        ({"ephemeral_system_prompt": "Be short."}, "ephemeral_system_prompt"),
    ],
)
def test_runs_whose_rows_mean_something_else_are_no_one_run(
    tmp_path: Path, values: dict[str, Any], differs: str
) -> None:
    dataset(tmp_path / "prompts.jsonl", ROWS)
    shard(tmp_path, 1)
    shard(tmp_path, 2)
    shard(tmp_path, 3, **values)
    with pytest.raises(UsageError, match=rf"^p1 and p3 differ in: .*({differs})") as caught:
        merged(tmp_path, "p1", "p2", "p3")
    assert "\n" not in caught.value.line
    assert not (tmp_path / "data" / "all").exists()


def test_what_makes_no_whole_is_refused(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ROWS)
    shard(tmp_path, 1)
    shard(tmp_path, 2)
    play(tmp_path, player, run_name="whole")
    shutil.copytree(tmp_path / "data" / "p1", tmp_path / "data" / "copy")
    play(tmp_path, player, run_name="half", shard="1/2")
    with pytest.raises(UsageError, match="the run whole is of no shard"):
        merged(tmp_path, "p1", "whole")
    with pytest.raises(UsageError, match="are both shard 1/3"):
        merged(tmp_path, "p1", "copy")
    with pytest.raises(UsageError, match=r"is shard 1/2 and .* is 1/3: not of one division"):
        merged(tmp_path, "p1", "half")
    with pytest.raises(UsageError, match="exists already in") as there:
        join(RunFolder(tmp_path / "data" / "p2"), [RunFolder(tmp_path / "data" / "p1")], resolve(Overrides()))
    assert there.value.hint == "take another name"
    with held(RunFolder(tmp_path / "data" / "p2"), None), pytest.raises(UsageError, match="p2 is being worked by"):
        merged(tmp_path, "p1", "p2")
    moved = tmp_path / "moved.jsonl"
    (tmp_path / "prompts.jsonl").rename(moved)
    with pytest.raises(UsageError, match="cannot read the dataset"):
        merged(tmp_path, "p1", "p2")
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "another"}\n')
    with pytest.raises(UsageError, match="is not the one of the shards"):
        merged(tmp_path, "p1", "p2")
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["copy", "half", "p1", "p2", "whole"]
    assert merged(tmp_path, "p1", "p2", dataset_file=moved).counts.kept == 7
