"""What is refused before anything is written, and what ends a run: caps, one refusal for all rows."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.batch.runner import BatchRun
from hermes_engine.errors import ConfigError, NotConfigured, UnknownName, UsageError
from hermes_engine.events import Notice
from hermes_engine.messages import Usage
from hermes_engine.protocols import AgentSpec
from tests.batch.served import run
from tests.batch.support import Played, adds_up, by_prompt, dataset, fails, play, thinks
from tests.conftest import Serve
from tests.server.scripted import Answer, Seen, call, hang, say


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


def test_what_rows_in_flight_use_beyond_a_cap_is_bounded_and_told(serve: Serve, tmp_path: Path) -> None:
    """Eight rows of many steps: each may use what was left when it began, and the last word tells what it came to."""

    def script(seen: Seen) -> Answer:
        return call("terminal", {"command": "true"}, reasoning="On.", usage=usage, first_delay=0.05)

    usage = {"prompt_tokens": 900, "completion_tokens": 100, "total_tokens": 1000}
    server = serve(script)
    done = run(
        tmp_path, server, [f"p{n}" for n in range(40)], num_workers=8, max_turns=1000, max_total_tokens=5000,
        toolsets=("terminal",),
    )  # fmt: skip
    used = done.statistics["spent"]["total_tokens"]
    assert done.summary.state == "stopped"
    assert done.summary.reason == f"the token cap is reached: {used:,} of 5,000"
    assert used == 1000 * len(server.requests)
    assert 5000 <= used <= 8 * 5000
    assert done.counts["kept"] == 8
    assert {row["stop_reason"] for row in done.rows()} == {"budget"}
    served = len(server.requests)
    again = run(tmp_path, server, resume=True)
    assert (again.summary.state, len(server.requests)) == ("stopped", served)


def test_rows_begin_with_what_those_in_flight_have_left(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["long", "a", "b", "c"])
    costly = Played(thinks().messages, usage=Usage(100, 50, 0, True, 0.25, True))
    runs: list[BatchRun] = []

    async def long(prompt: str, spec: AgentSpec) -> Played:
        (at_work,) = [row for row in runs[0].floor.rows if row.prompt == "long"]
        at_work.cost = 1.0  # as its first replies would have told
        while runs[0].floor.counts["kept"] < 2:
            await asyncio.sleep(0.01)
        return Played(thinks().messages, usage=Usage(100, 50, 0, True, 1.0, True))

    def player(prompt: str, spec: AgentSpec) -> Any:
        return long(prompt, spec) if prompt == "long" else costly

    ran = play(tmp_path, player, prepare=runs.append, num_workers=2, max_cost_usd=1.5)
    left = [spec.limits.max_cost_usd for spec in ran.agents.specs]
    assert left == [1.5, 1.5, pytest.approx(0.25)] or left == [1.5, pytest.approx(0.5), pytest.approx(0.25)]
    assert ran.summary.reason == "the cost cap is reached: $1.5000 of $1.5000"
    assert ran.summary.counts["pending"] == 1
    adds_up(ran)


def test_a_cap_on_time_ends_the_run_in_order(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("Done.", "I think."), hang(60)])
    began = time.monotonic()
    done = run(tmp_path, server, ["a", "b", "c"], num_workers=1, max_seconds=6)
    assert time.monotonic() - began < 30
    assert (done.summary.state, done.summary.exit_code) == ("stopped", 1)
    assert done.summary.reason == "the time cap is reached: 6 s"
    assert done.counts == {"total": 3, "kept": 1, "pending": 2}
    assert len(done.rows()) == 1
    server.script = [say("Done.", "I think.")]
    assert run(tmp_path, server, resume=True, max_seconds=60).counts == {"total": 3, "kept": 3}


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


def test_toolsets_that_leave_nothing_to_draw_are_named_as_given(tmp_path: Path) -> None:
    """The profile is not at fault: `hermes tools enable` would change nothing."""
    dataset(tmp_path / "prompts.jsonl", ["a"])
    with pytest.raises(UsageError) as caught:
        play(tmp_path, by_prompt({}), toolsets=("delegation",), distribution="terminal_file")
    assert caught.value.line == (
        "--toolsets delegation leaves the distribution terminal_file nothing to draw — it has terminal, file; name one "
        "of these, or another --distribution"
    )
    ran = play(tmp_path, by_prompt({}), toolsets=("file",), distribution="terminal_file")
    assert "never drawn, not among --toolsets: terminal" in [event.text for event in ran.heard(Notice)]


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
