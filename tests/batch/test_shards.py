"""Parts of a dataset as runs of their own, and one run made of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_engine.errors import UsageError
from tests.batch.support import adds_up, dataset, play, thinks


def test_the_parts_are_disjoint_and_make_the_whole(tmp_path: Path) -> None:
    """Also with equal prompts, lines that are no rows and blank lines: a row is the same row as in a run of all."""
    dataset(tmp_path / "prompts.jsonl", ["a", "same", b"{bad", b"", "same", "b", "c", b"nothing", "same", "d", "e"])
    whole = play(tmp_path, lambda prompt, spec: thinks(), run_name="whole")
    parts = [play(tmp_path, lambda prompt, spec: thinks(), run_name=f"p{n}", shard=f"{n}/3") for n in (1, 2, 3)]
    for part in parts:
        adds_up(part)
    rows = sorted((row for part in parts for row in part.rows()), key=lambda row: int(row["prompt_index"]))
    known = [(row["prompt_index"], row["metadata"]["row_id"], row["conversations"][0]["value"]) for row in rows]
    assert known == [
        (row["prompt_index"], row["metadata"]["row_id"], row["conversations"][0]["value"]) for row in whole.rows()
    ]
    assert [part.summary.counts["total"] for part in parts] == [4, 3, 3]
    assert sum(part.summary.counts["invalid"] for part in parts) == 2
    assert [part.json("run.json")["options"]["shard"] for part in parts] == ["1/3", "2/3", "3/3"]
    assert {part.json("run.json")["dataset"]["lines"] for part in parts} == {10}


def test_a_part_counts_after_the_first_n_lines_and_before_the_samples(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", [f"p{number}" for number in range(10)])
    ran = play(tmp_path, lambda prompt, spec: thinks(), shard="2/2", max_samples=5, num_generations=2)
    assert [(row["prompt_index"], row["sample"]) for row in ran.rows()] == [(1, 0), (1, 1), (3, 0), (3, 1)]


def test_a_part_is_resumed_as_the_same_part(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "b", "c", "d"])
    first = play(tmp_path, lambda prompt, spec: thinks(), shard="1/2")
    before = (first.folder / "trajectories.jsonl").read_bytes()
    with pytest.raises(UsageError, match="the run run has shard 1/2, not shard 2/2"):
        play(tmp_path, lambda prompt, spec: thinks(), resume=True, shard="2/2")
    again = play(tmp_path, lambda prompt, spec: thinks(), resume=True)
    assert again.agents.prompts == []
    assert (first.folder / "trajectories.jsonl").read_bytes() == before
    assert play(tmp_path, lambda prompt, spec: thinks(), resume=True, shard=" 1/2").summary.exit_code == 0
    play(tmp_path, lambda prompt, spec: thinks(), run_name="all")
    with pytest.raises(UsageError, match="the run all has the whole dataset, not shard 1/2"):
        play(tmp_path, lambda prompt, spec: thinks(), run_name="all", resume=True, shard="1/2")
