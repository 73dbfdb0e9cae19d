"""What a row is given, where it runs, and what its tools did."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path
from typing import Any

from hermes_engine.protocols import AgentSpec
from tests.batch.support import Played, adds_up, by_prompt, dataset, play, thinks, uses


def test_what_a_row_is_given(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "prefill.json").write_text('[{"role":"user","content":"hello"},{"role":"assistant","content":"hi"}]')
    dataset(tmp_path / "prompts.jsonl", ["own", {"prompt": "there", "cwd": "project"}])
    seen: dict[str, Any] = {}

    def look(prompt: str, spec: AgentSpec) -> Played:
        home = Path(spec.env["HOME"])
        (home / "left").mkdir()
        (home / "left" / "over").write_text("x")
        (home / "left").chmod(0o500)
        seen[prompt] = (spec, home, list(home.iterdir()), stat.S_IMODE(home.stat().st_mode))
        return thinks()

    ran = play(
        tmp_path,
        look,
        num_workers=1,
        max_turns=3,
        timeout_seconds=9,
        max_tokens=100,
        temperature=0.5,
        sampling={"top_p": 0.9},
        extra_body={"x": 1},
        reasoning_effort="high",
        ephemeral_system_prompt="Be terse.",
        prefill_messages_file=tmp_path / "prefill.json",
        work_dir=tmp_path / "work",
        seed=5,
    )
    spec, home, _, mode = seen["own"]
    assert spec.cwd == home
    assert home.is_relative_to(tmp_path / "work")
    assert mode == 0o700
    assert seen["there"][0].cwd == tmp_path / "project"
    assert home != seen["there"][1]
    assert (spec.kind, spec.limits.max_turns, spec.limits.timeout_seconds, spec.mode) == ("row", 3, 9, "auto")
    assert dict(spec.sampling) == {"top_p": 0.9, "max_tokens": 100, "temperature": 0.5, "seed": spec.sampling["seed"]}
    assert spec.sampling["seed"] != seen["there"][0].sampling["seed"]
    assert (spec.extra_body, spec.reasoning_effort, spec.system_prompt) == ({"x": 1}, "high", "Be terse.")
    assert list((tmp_path / "work").iterdir()) == []
    assert [len(row["conversations"]) for row in ran.rows()] == [2, 2]
    settings = ran.json("run.json")
    assert settings["system_prompt"] == "You are a test."
    assert [item["content"] for item in settings["prefill"]] == ["hello", "hi"]
    assert {tool["function"]["name"] for tool in settings["tools"]} >= {"terminal", "read_file"}


def test_rows_folders_can_be_kept(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "b"])
    play(tmp_path, lambda prompt, spec: thinks(), work_dir=tmp_path / "work", keep_work=True)
    kept = next((tmp_path / "work").iterdir())
    assert len(list(kept.iterdir())) == 2


def test_no_seed_is_sent_unless_one_was_given(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a"])
    assert "seed" not in play(tmp_path, lambda prompt, spec: thinks()).agents.specs[0].sampling


def test_rows_that_cannot_run_where_they_say(tmp_path: Path) -> None:
    rows = [{"prompt": "a", "docker_image": "python:3.12"}, {"prompt": "b", "cwd": "/no/such/place"}, "c"]
    dataset(tmp_path / "prompts.jsonl", rows)
    ran = play(tmp_path, lambda prompt, spec: thinks())
    assert ran.agents.prompts == ["c"]
    reasons = [row["reason"] for row in ran.rows("failed.jsonl")]
    assert "python:3.12" in reasons[0]
    assert "/no/such/place" in reasons[1]
    adds_up(ran)


def test_rows_of_one_folder_run_one_after_another(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    rows = [{"prompt": f"p{number}", "cwd": "p" if number % 2 else "./p/../p"} for number in range(6)]
    dataset(tmp_path / "prompts.jsonl", rows)

    async def slow(prompt: str, spec: AgentSpec) -> Played:
        await asyncio.sleep(0.01)
        return thinks()

    assert play(tmp_path, slow, num_workers=6).agents.most == 1
    assert play(tmp_path, slow, num_workers=6, shared_cwd=True, run_name="two").agents.most == 6


def test_a_fault_of_ours_is_a_failed_row_not_the_end(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "b", "c"])

    def player(prompt: str, spec: AgentSpec) -> Played:
        return {"a": thinks(), "c": thinks()}[prompt]

    ran = play(tmp_path, player)
    assert ran.summary.counts["kept"] == 2
    assert ran.rows("failed.jsonl")[0]["reason"] == "KeyError: 'b'"


def test_f1_14_retries_are_in_the_record(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a"])
    ran = play(tmp_path, lambda prompt, spec: Played(thinks().messages, api_calls=3, retries=2))
    assert (ran.rows()[0]["api_calls"], ran.rows()[0]["retries"]) == (3, 2)
    assert ran.json("statistics.json")["retries"] == 2


def test_tools_are_dense_and_counted(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "b", {"prompt": "c", "toolsets": ["todo"]}, "made up"])
    table = {"a": uses(), "b": uses(status="error"), "c": uses("todo", "{}"), "made up": uses("make_coffee", "{}")}
    ran = play(tmp_path, by_prompt(table))
    rows = ran.rows()
    assert (
        len({tuple(row["tool_stats"]) for row in rows}) == len({tuple(row["tool_error_counts"]) for row in rows}) == 1
    )
    assert set(rows[0]["tool_stats"]) >= {"terminal", "read_file", "todo"}
    tools = ran.json("statistics.json")["tools"]
    assert tools["terminal"] == {"count": 2, "success": 1, "failure": 1, "success_rate": 0.5, "failure_rate": 0.5}
    assert tools["todo"]["count"] == 1
    assert tools["read_file"]["success_rate"] is None
    assert "make_coffee" not in tools
    assert ran.json("statistics.json")["invented_tools"] == {"make_coffee": 1}
    assert ran.rows("rejected.jsonl")[0]["reject_detail"].endswith("make_coffee")
    assert rows[1]["tool_error_counts"]["terminal"] == 1
