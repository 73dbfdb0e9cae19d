"""What is refused before anything is written, and what ends a run: caps, one refusal for all rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes_engine.errors import ConfigError, NotConfigured, UnknownName, UsageError
from hermes_engine.messages import Usage
from tests.batch.support import Played, adds_up, by_prompt, dataset, fails, play, thinks


def test_caps_on_tokens_and_cost_end_the_run(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", [f"p{number}" for number in range(50)])
    costly = Played(thinks().messages, usage=Usage(100, 50, 0, True, 0.5, True))
    ran = play(tmp_path, lambda prompt, spec: costly, num_workers=1, max_cost_usd=2.0)
    assert (ran.summary.state, ran.summary.exit_code) == ("stopped", 1)
    assert len(ran.agents.prompts) == 4
    assert "cost cap" in ran.summary.reason
    assert ran.agents.specs[-1].limits.max_cost_usd == pytest.approx(0.5)
    adds_up(ran)
    again = play(tmp_path, lambda prompt, spec: costly, resume=True)
    assert again.agents.prompts == []
    ran = play(tmp_path, lambda prompt, spec: costly, num_workers=1, max_total_tokens=301, run_name="two")
    assert len(ran.agents.prompts) == 3


def test_a_cost_cap_needs_a_price(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a"])
    here: dict[str, Any] = {"base_url": "http://127.0.0.1:9/v1", "model": "m", "max_cost_usd": 1}
    with pytest.raises(UsageError, match="price") as caught:
        play(tmp_path, by_prompt({}), **here)
    assert "--price_in" in caught.value.hint
    assert not (tmp_path / "data").exists()
    assert play(tmp_path, by_prompt({}), price_in=1, price_out=2, **here).summary.counts["kept"] == 1


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"distribution": "nosuch"}, UnknownName),
        ({"dataset_file": "missing.jsonl"}, UsageError),
        ({"model": None}, NotConfigured),
        ({"base_url": "not an address"}, ConfigError),
        ({"prefill_messages_file": "missing.json"}, UsageError),
        ({"only_failed": True}, UsageError),
        ({"toolsets": ("nosuch",)}, UsageError),
        ({"batch_size": 0}, UsageError),
        ({"num_workers": 0}, UsageError),
        ({"price_in": 1}, UsageError),
        ({"reasoning_effort": "huge"}, UsageError),
    ],
)
def test_what_cannot_be_met_is_refused_before_anything_is_written(
    tmp_path: Path, values: dict[str, Any], error: type[Exception]
) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a"])
    with pytest.raises(error) as caught:
        play(tmp_path, by_prompt({}), **values)
    assert getattr(caught.value, "exit_code", 0) == 2
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("name", ["../../x", "/abs", "a\0b", "..", "", ".hidden", "a/b", "x" * 200])
def test_f10_6_run_names_are_no_paths(tmp_path: Path, name: str) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a"])
    with pytest.raises(UsageError, match="run_name"):
        play(tmp_path, by_prompt({}), run_name=name)
    assert [path.name for path in tmp_path.iterdir()] == ["prompts.jsonl"]


def test_a_folder_that_is_no_runs_is_left_alone(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a"])
    (tmp_path / "data" / "run").mkdir(parents=True)
    (tmp_path / "data" / "run" / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="no run"):
        play(tmp_path, by_prompt({}), resume=True)
    assert [path.name for path in (tmp_path / "data" / "run").iterdir()] == ["thesis.txt"]


def test_twenty_refusals_of_one_kind_end_the_run_and_nothing_is_failed(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", [f"p{number}" for number in range(100)])
    ran = play(tmp_path, lambda prompt, spec: fails("key_refused", "401 bad key"), num_workers=30)
    assert (ran.summary.state, ran.summary.exit_code) == ("stopped", 1)
    assert "401 bad key" in ran.summary.reason
    assert ran.summary.counts["failed"] == 0
    assert ran.summary.counts["pending"] == 100
    assert len(ran.agents.prompts) <= 50
    adds_up(ran)
    assert play(tmp_path, by_prompt({}), resume=True).summary.counts["kept"] == 100


def test_fewer_equal_refusals_are_failed_rows(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", [f"p{number}" for number in range(19)])
    ran = play(tmp_path, lambda prompt, spec: fails("key_refused", "401 bad key"))
    assert (ran.summary.state, ran.summary.counts["failed"]) == ("done", 19)
    adds_up(ran)
