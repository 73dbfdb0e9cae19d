"""Resuming, the finer points: numbers of invocations and batches, and what a row carries of its present line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.errors import Interrupted, UsageError
from hermes_engine.events import Notice
from hermes_engine.protocols import AgentSpec
from tests.batch.served import run
from tests.batch.support import Played, dataset, fails, play, thinks, uses
from tests.batch.test_resume import again, first
from tests.conftest import Serve
from tests.server.scripted import say


def test_a_kill_before_the_first_row_is_an_invocation_too(tmp_path: Path) -> None:
    """The index files are there before the first row, so that a list knows the run and its rows."""
    seen: list[dict[str, Any]] = []

    def look(prompt: str, spec: AgentSpec) -> Played:
        folder = tmp_path / "data" / "run"
        seen.append(json.loads((folder / "checkpoint.json").read_text()))
        assert json.loads((folder / "statistics.json").read_text())["rows"]["total"] == 2
        return uses()

    dataset(tmp_path / "prompts.jsonl", ["a", "b"])
    play(tmp_path, look)
    assert (seen[0]["state"], seen[0]["invocations"], seen[0]["rows"]["pending"]) == ("running", 1, 2)
    assert again(tmp_path).json("checkpoint.json")["invocations"] == 2


def test_batch_numbers_go_on_after_batches_that_kept_nothing(tmp_path: Path) -> None:
    """Rejected and failed rows carry the number of their batch: no later batch may have it as well."""
    dataset(tmp_path / "prompts.jsonl", ["a", "dull", "bad"])

    def player(prompt: str, spec: AgentSpec) -> Played:
        return {"dull": thinks(thought=""), "bad": fails("server_error")}.get(prompt) or uses()

    ran = play(tmp_path, player, batch_size=1)
    numbers = [row["metadata"]["batch_num"] for name in ("rejected", "failed") for row in ran.rows(f"{name}.jsonl")]
    assert numbers == [1, 2]
    ran = again(tmp_path, ["a", "dull", "bad", "new"])
    assert [row["metadata"]["batch_num"] for row in ran.rows()] == [0, 3, 4]


def test_what_a_row_carries_follows_its_line(tmp_path: Path) -> None:
    """An `id` that was mended, or that changed places with an equal prompt's, is the one of the present line."""
    first(tmp_path, [{"prompt": "A", "id": 1}, {"prompt": "A", "id": 2}, {"prompt": "B", "id": 3}])
    ran = again(tmp_path, [{"prompt": "B", "id": "mended"}, {"prompt": "A", "id": 2}, {"prompt": "A", "id": 1}])
    assert ran.agents.prompts == []
    assert [json.loads(row["metadata"]["extra"])["id"] for row in ran.rows()] == ["mended", 2, 1]
    assert [json.loads(row["metadata"]["extra"])["id"] for row in ran.rows("batch_0.jsonl")] == [1, 2, 3]


def test_a_dataset_that_was_moved_is_asked_for(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a"])
    play(tmp_path, lambda prompt, spec: thinks())
    moved = (tmp_path / "prompts.jsonl").rename(tmp_path / "moved.jsonl")
    with pytest.raises(UsageError, match=r"^cannot read the dataset .*: No such file or directory$") as caught:
        play(tmp_path, lambda prompt, spec: thinks(), resume=True, dataset_file=None)
    assert caught.value.hint == "--dataset_file tells where it is now"
    again = play(tmp_path, lambda prompt, spec: thinks(), resume=True, dataset_file=moved)
    assert (again.summary.counts["kept"], again.agents.prompts) == (1, [])


def test_f1_8_a_stop_while_a_long_dataset_is_read_ends_the_run_at_once(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", [f"p{number}" for number in range(5000)])
    with pytest.raises(Interrupted, match="no row was begun") as caught:
        play(tmp_path, lambda prompt, spec: uses(), prepare=lambda run: run.stop())
    assert caught.value.exit_code == 130
    assert again(tmp_path, ["a"]).summary.exit_code == 0


def test_another_server_than_before_is_named(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, now = serve([say("Done.", "I think.")]), serve([say("Done.", "I think.")])
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", before.base_url)
    run(tmp_path, "", ["a", "b"], max_samples=1)
    monkeypatch.setenv("OPENAI_BASE_URL", now.base_url)
    more = run(tmp_path, "", resume=True, max_samples=2)
    told = [event.text for event in more.events if isinstance(event, Notice)]
    assert f"server: {before.base_url} until now, {now.base_url} from here on" in told
    assert more.counts == {"total": 2, "kept": 2}
    same = run(tmp_path, "", resume=True)
    assert not [event for event in same.events if isinstance(event, Notice) and event.text.startswith("server: ")]
