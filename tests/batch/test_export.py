"""Exports, and how runs are listed."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from hermes_engine.batch.export import Exported, export, form_of
from hermes_engine.batch.folder import RunFolder, find_run, held
from hermes_engine.batch.overview import run_state, run_states
from hermes_engine.errors import UnknownName
from hermes_engine.messages import Message
from hermes_engine.protocols import AgentSpec
from tests.batch.support import Played, Ran, dataset, fails, play, read_rows, thinks, uses


@pytest.fixture
def ran(tmp_path: Path) -> Ran:
    dataset(tmp_path / "prompts.jsonl", ["a", "half", "b", "dull", "broken"])

    def player(prompt: str, spec: AgentSpec) -> Played:
        half = Played([Message("assistant", "half", reasoning="hm")], "max_turns")
        return {"half": half, "dull": thinks(thought=""), "broken": fails("rate_limit")}.get(prompt) or uses()

    return play(tmp_path, player)


def test_sharegpt_is_the_completed_rows_as_they_are(ran: Ran, tmp_path: Path) -> None:
    told = export(RunFolder(ran.folder), form_of("sharegpt"), tmp_path / "out.jsonl")
    left_out = {"not completed: max_turns": 1, "rejected: no_reasoning": 1, "failed: rate_limit": 1}
    assert told == Exported(2, left_out)
    assert read_rows(tmp_path / "out.jsonl") == [row for row in ran.rows() if row["completed"]]


def test_all_rows_to_a_stream(ran: Ran) -> None:
    stream = io.BytesIO()
    assert export(RunFolder(ran.folder), form_of("sharegpt"), stream, everything=True).written == 3
    assert stream.getvalue() == (ran.folder / "trajectories.jsonl").read_bytes()


def test_a_killed_run_exports_what_it_has(ran: Ran, tmp_path: Path) -> None:
    (ran.folder / "trajectories.jsonl").unlink()
    with (ran.folder / "batch_0.jsonl").open("ab") as stream:
        stream.write(b'{"torn')
    assert export(RunFolder(ran.folder), form_of("sharegpt"), tmp_path / "out.jsonl").written == 2


def test_rows_that_are_not_merged_yet_come_after_the_merged(ran: Ran, tmp_path: Path) -> None:
    record = {**ran.rows()[0], "prompt_index": 9}
    record["metadata"] = {**record["metadata"], "row_id": "new-0"}
    (ran.folder / "batch_1.jsonl").write_text(json.dumps(record) + "\n")
    export(RunFolder(ran.folder), form_of("sharegpt"), tmp_path / "out.jsonl")
    assert [row["prompt_index"] for row in read_rows(tmp_path / "out.jsonl")] == [0, 2, 9]


def test_unknown_names_list_the_known(ran: Ran) -> None:
    with pytest.raises(UnknownName, match="sharegpt"):
        form_of("parquet")
    with pytest.raises(UnknownName, match="valid: run"):
        find_run(ran.folder.parent, "rum")
    with pytest.raises(UnknownName, match="valid: none"):
        find_run(ran.folder / "nowhere", "run")


def test_how_a_run_stands(ran: Ran) -> None:
    folder = RunFolder(ran.folder)
    state = run_state(folder)
    assert (state.name, state.state, state.holder) == ("run", "done", "")
    assert state.rows == dict(ran.summary.counts)
    assert state.as_dict()["model"] == "demo"
    checkpoint = ran.json("checkpoint.json")
    folder.checkpoint.write_text(json.dumps({**checkpoint, "state": "running"}))
    assert run_state(folder).state == "killed"
    with held(folder, None):
        assert run_state(folder).state == "running"
    folder.checkpoint.write_text("{")
    assert run_state(folder).state == "new"


def test_runs_of_a_folder(ran: Ran) -> None:
    (ran.folder.parent / "no_run").mkdir()
    (ran.folder.parent / "prompts.jsonl").touch()
    assert [state.name for state in run_states(ran.folder.parent)] == ["run"]
    assert run_states(ran.folder / "nowhere") == []
