"""A run from its options to its files, its rows played by a small agent."""

from __future__ import annotations

import asyncio
import json
import stat
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.batch.runner import BatchRun
from hermes_engine.errors import ConfigError, NotConfigured, UnknownName, UsageError
from hermes_engine.events import BatchFinished, BatchStarted, Event, Notice, RowFinished, RowStarted
from hermes_engine.messages import Message, Usage
from hermes_engine.protocols import AgentSpec
from tests.batch.support import Played, Player, Ran, dataset, fails, play, thinks, uses


def by_prompt(table: dict[str, Played]) -> Player:
    return lambda prompt, spec: table.get(prompt, thinks())


def adds_up(ran: Ran) -> None:
    """Files, statistics, checkpoint and the last event say the same, and it adds up."""
    counts = dict(ran.summary.counts)
    assert sum(counts.values()) == 2 * counts["total"]
    assert ran.json("statistics.json")["rows"] == counts
    assert ran.json("checkpoint.json")["rows"] == counts
    assert ran.heard(BatchFinished)[-1].counts == counts
    assert len(ran.rows()) == counts["kept"]
    assert len(ran.rows("failed.jsonl")) == counts["failed"]
    assert len(ran.rows("rejected.jsonl")) == counts["rejected"]


def test_f1_11_each_row_ends_in_one_state_and_the_files_say_the_same(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["good", "broken", "dull", b"{bad"])
    table = {"broken": fails("server_error", "500: oh"), "dull": Played([Message("assistant", "Yes.")])}
    ran = play(tmp_path, by_prompt(table))
    assert ran.summary.counts == {"total": 4, "kept": 1, "rejected": 1, "failed": 1, "invalid": 1, "pending": 0}
    assert (ran.summary.state, ran.summary.exit_code) == ("done", 1)
    adds_up(ran)
    figures = ran.json("statistics.json")
    assert figures["rejects"] == {"no_reasoning": 1}
    assert figures["failures"] == {"server_error": 1}
    assert figures["reasoning"] == {
        "turns": 2,
        "with_reasoning": 1,
        "without_reasoning": 1,
        "coverage": 0.5,
        "rejected_rows_included": True,
    }
    assert figures["invalid_lines"][0]["line"] == 4
    failed = ran.rows("failed.jsonl")[0]
    assert (failed["reason"], failed["error_kind"], failed["attempts"]) == ("500: oh", "server_error", 1)
    assert failed["conversations"][0] == {"from": "human", "value": "broken"}
    rejected = ran.rows("rejected.jsonl")[0]
    assert (rejected["reject_reason"], rejected["prompt_index"]) == ("no_reasoning", 2)
    assert any("prompts.jsonl:4" in notice.text for notice in ran.heard(Notice))


def test_f1_11_an_empty_dataset_divides_nothing_by_zero(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", [])
    ran = play(tmp_path, by_prompt({}))
    assert ran.summary.counts["total"] == 0
    assert ran.summary.exit_code == 1
    adds_up(ran)
    assert ran.json("statistics.json")["reasoning"]["coverage"] is None


def test_rejected_rows_are_no_failure_but_nothing_kept_is(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["good", "dull"])
    dull = {"dull": Played([Message("assistant", "Yes.")])}
    assert play(tmp_path, by_prompt(dull)).summary.exit_code == 0
    dataset(tmp_path / "prompts.jsonl", ["dull"])
    assert play(tmp_path, by_prompt(dull), run_name="two").summary.exit_code == 1
    assert play(tmp_path, by_prompt(dull), run_name="three", keep_without_reasoning=True).summary.exit_code == 0


def test_f1_12_a_run_without_an_answer_is_no_trajectory(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a"])
    ran = play(tmp_path, lambda prompt, spec: Played([Message("assistant", " ", reasoning="hm")]))
    assert ran.rows() == []
    failed = ran.rows("failed.jsonl")[0]
    assert (failed["error_kind"], failed["completed"], failed["stop_reason"]) == ("empty_answer", False, "error")


def test_f2_9_unfinished_rows_are_kept_as_such(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["turns", "length", "fine"])
    said = [Message("assistant", "half", reasoning="hm")]
    ran = play(tmp_path, by_prompt({"turns": Played(said, "max_turns"), "length": Played(said, "length")}))
    assert [(row["stop_reason"], row["completed"], row["partial"]) for row in ran.rows()] == [
        ("max_turns", False, True),
        ("length", False, True),
        ("done", True, False),
    ]
    assert ran.json("statistics.json")["stop_reasons"] == {"done": 1, "length": 1, "max_turns": 1}
    assert play(tmp_path, by_prompt({}), resume=True).agents.prompts == []


def test_batches_and_the_merged_file_in_the_datasets_order(tmp_path: Path) -> None:
    prompts = [f"p{number}" for number in range(23)]
    dataset(tmp_path / "prompts.jsonl", prompts)

    async def slow_first(prompt: str, spec: AgentSpec) -> Played:
        await asyncio.sleep(0.05 if prompt in ("p0", "p11") else 0.001)
        return uses()

    ran = play(tmp_path, slow_first, num_workers=5, batch_size=10)
    assert [row["prompt_index"] for row in ran.rows()] == list(range(23))
    assert [row["conversations"][0]["value"] for row in ran.rows()] == prompts
    sizes = [len(ran.rows(f"batch_{number}.jsonl")) for number in range(3)]
    assert sizes == [10, 10, 3]
    assert {row["metadata"]["batch_num"] for row in ran.rows("batch_1.jsonl")} == {1}
    assert ran.rows("batch_0.jsonl")[0]["prompt_index"] != 0
    assert ran.agents.most == 5
    assert ran.agents.closed


def test_f10_4_everything_in_the_folder_is_private(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "b"])
    ran = play(tmp_path, by_prompt({"b": fails("server_error")}))
    assert stat.S_IMODE(ran.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(ran.folder.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in ran.folder.iterdir()} == {0o600}


def test_every_row_is_on_disk_before_its_worker_takes_the_next(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", [f"p{number}" for number in range(12)])
    lines: list[int] = []

    def look(prompt: str, spec: AgentSpec) -> Played:
        files = (tmp_path / "data" / "run").glob("batch_*.jsonl")
        lines.append(sum(path.read_bytes().count(b"\n") for path in files))
        return thinks()

    play(tmp_path, look, num_workers=1, batch_size=5)
    assert lines == list(range(12))


@pytest.mark.parametrize("fsync", ["row", "second", "end"])
def test_every_way_of_forcing_to_disk_gives_the_same_files(tmp_path: Path, fsync: str) -> None:
    dataset(tmp_path / "prompts.jsonl", [f"p{number}" for number in range(20)])
    ran = play(tmp_path, lambda prompt, spec: uses(), fsync=fsync, batch_size=3)
    assert len(ran.rows()) == 20
    adds_up(ran)


def test_events_pair_up_and_counts_grow(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "b", "c"])
    ran = play(tmp_path, by_prompt({"b": fails("server_error")}), num_workers=2)
    assert len(ran.heard(BatchStarted)) == len(ran.heard(BatchFinished)) == 1
    started, ended = ran.heard(RowStarted), ran.heard(RowFinished)
    assert sorted(event.index for event in started) == sorted(event.index for event in ended) == [0, 1, 2]
    assert [event.seq for event in ran.events] == list(range(1, len(ran.events) + 1))
    assert [event.counts["pending"] for event in ended] == [2, 1, 0]
    assert {event.session for event in ran.events} == {"run"}
    assert ran.heard(BatchStarted)[0].total == 3


def test_a_sink_that_raises_stops_nothing(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "b"])

    def broken(event: Event) -> None:
        raise ZeroDivisionError

    def prepare(run: BatchRun) -> None:
        run._sink = broken

    assert play(tmp_path, lambda prompt, spec: thinks(), prepare=prepare).summary.counts["kept"] == 2


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


def test_f2_11_no_secret_reaches_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "sk-test-0123456789abcdef"
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    dataset(tmp_path / "prompts.jsonl", [{"prompt": f"tell {secret}", "note": secret}, "fails"])
    said = Played([Message("assistant", secret, reasoning=secret)])
    ran = play(
        tmp_path,
        by_prompt({f"tell {secret}": said, "fails": fails("key_refused", f"bad key {secret}")}),
        extra_body={"user": secret},
        api_key=secret,
    )
    for path in ran.folder.iterdir():
        assert secret.encode() not in path.read_bytes(), path.name
    assert len(ran.rows()) == 1
    assert not any(secret in str(event) for event in ran.heard(RowFinished))
    with pytest.raises(UsageError, match="extra_body"):
        play(tmp_path, by_prompt({}), resume=True)
    assert play(tmp_path, by_prompt({}), resume=True, extra_body={"user": secret}).summary.counts["kept"] == 2


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


def test_all_rejected_is_said_loudly_once(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", [f"p{number}" for number in range(40)])
    ran = play(tmp_path, lambda prompt, spec: Played([Message("assistant", "Yes.")]))
    loud = [notice for notice in ran.heard(Notice) if "rejected" in notice.text]
    assert len(loud) == 1
    assert ran.summary.exit_code == 1


def stop_after(rows: int, *, now: bool, again: bool = False) -> Any:
    """Prepares a run that is asked to stop from another thread once some rows have ended."""

    def prepare(run: BatchRun) -> None:
        hear = run._sink
        ended = 0

        def count(event: Any) -> None:
            nonlocal ended
            hear(event)
            if isinstance(event, RowFinished):
                ended += 1
                if ended == rows:
                    threading.Thread(target=ask).start()

        def ask() -> None:
            run.stop(now=now)
            if again:
                time.sleep(0.2)
                run.stop(now=True)

        run._sink = count

    return prepare


async def quick_or_endless(prompt: str, spec: AgentSpec) -> Played:
    await asyncio.sleep(60 if prompt.startswith("slow") else 0.001)
    return thinks()


def test_f1_8_an_interrupt_ends_in_seconds_and_keeps_what_is_done(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "b", "c", "slow1", "slow2", "slow3", "slow4", "d"])
    begun = time.monotonic()
    ran = play(tmp_path, quick_or_endless, prepare=stop_after(3, now=False), num_workers=4)
    assert time.monotonic() - begun < 5
    assert (ran.summary.state, ran.summary.exit_code) == ("interrupted", 130)
    assert ran.summary.counts["kept"] == 3
    assert ran.summary.counts["pending"] == 5
    adds_up(ran)
    cancelled = [event for event in ran.heard(RowFinished) if event.outcome == "cancelled"]
    assert len(cancelled) == len(ran.heard(RowStarted)) - 3
    again = play(tmp_path, lambda prompt, spec: thinks(), resume=True)
    assert sorted(again.agents.prompts) == ["d", "slow1", "slow2", "slow3", "slow4"]
    assert again.summary.exit_code == 0


def test_f1_8_a_second_interrupt_ends_at_once(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "slow1", "slow2"])
    begun = time.monotonic()
    ran = play(tmp_path, quick_or_endless, prepare=stop_after(1, now=False, again=True))
    assert time.monotonic() - begun < 2
    assert ran.summary.exit_code == 130
    assert len(ran.rows("batch_0.jsonl")) == 1
    assert play(tmp_path, lambda prompt, spec: thinks(), resume=True).summary.counts["kept"] == 3


def test_rows_in_flight_get_a_moment_to_end(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "b", "c", "d"])

    async def player(prompt: str, spec: AgentSpec) -> Played:
        await asyncio.sleep(0.0 if prompt == "a" else 0.3)
        return thinks()

    ran = play(tmp_path, player, prepare=stop_after(1, now=False), num_workers=2)
    assert ran.summary.counts["kept"] in (2, 3)
    assert not [event for event in ran.heard(RowFinished) if event.outcome == "cancelled"]


def test_a_stop_before_the_start_and_after_the_end(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a"])
    runs: list[BatchRun] = []

    def prepare(run: BatchRun) -> None:
        runs.append(run)
        run.stop()

    ran = play(tmp_path, lambda prompt, spec: thinks(), prepare=prepare)
    assert (ran.summary.state, ran.agents.prompts) == ("interrupted", [])
    runs[0].stop(now=True)


def test_another_process_can_ask_the_run_to_stop(tmp_path: Path) -> None:
    from hermes_engine.batch.folder import RunFolder, holder

    folder = RunFolder(tmp_path / "data" / "run")
    with pytest.raises(UsageError, match="not running"):
        folder.ask_to_stop()
    dataset(tmp_path / "prompts.jsonl", ["a", "slow1"])
    asked: list[str] = []

    async def player(prompt: str, spec: AgentSpec) -> Played:
        if prompt == "slow1":
            asked.append(holder(folder))
            folder.ask_to_stop()
        return await quick_or_endless(prompt, spec)

    ran = play(tmp_path, player)
    assert ran.summary.exit_code == 130
    assert "process " in asked[0]
    assert not folder.control.exists()
    assert holder(folder) == ""


def test_a_row_that_timed_out_while_the_server_was_down_runs_again(tmp_path: Path) -> None:
    from hermes_engine.errors import EndpointDown

    dataset(tmp_path / "prompts.jsonl", ["a", "b"])
    tries: list[str] = []
    box: list[Ran] = []

    def player(prompt: str, spec: AgentSpec) -> Any:
        tries.append(prompt)
        if len(tries) == 1:
            return timed_out()
        return thinks()

    agents_outage: list[Any] = []

    async def timed_out() -> Played:
        outage = agents_outage[0].outage
        await outage.wait_out(EndpointDown("connection refused"))
        outage.back()
        return Played([], "timeout", "stopped after 1 s", "timeout")

    def prepare(run: BatchRun) -> None:
        made = run._make_agents

        def make(setup: Any, outage: Any) -> Any:
            agents = made(setup, outage)
            agents_outage.append(agents)
            return agents

        run._make_agents = make

    box.append(play(tmp_path, player, prepare=prepare, num_workers=1))
    assert box[0].summary.counts["kept"] == 2
    assert sorted(tries) == ["a", "a", "b"]
    assert box[0].json("statistics.json")["failures"] == {}


def test_a_server_that_stays_away_stops_the_run_and_fails_no_row(tmp_path: Path) -> None:
    from hermes_engine.errors import EndpointDown

    dataset(tmp_path / "prompts.jsonl", ["a", "b", "c"])
    outages: list[Any] = []

    async def player(prompt: str, spec: AgentSpec) -> Played:
        try:
            while True:
                await outages[0].wait_out(EndpointDown("connection refused"))
        except EndpointDown:
            return fails("endpoint_down", "connection refused")

    def prepare(run: BatchRun) -> None:
        made = run._make_agents
        run._make_agents = lambda setup, outage: outages.append(outage) or made(setup, outage)  # type: ignore[func-returns-value]

    ran = play(tmp_path, player, prepare=prepare, endpoint_wait=0.2)
    assert (ran.summary.state, ran.summary.exit_code) == ("stopped", 1)
    assert "down" in ran.summary.reason
    assert ran.summary.counts == {"total": 3, "kept": 0, "rejected": 0, "failed": 0, "invalid": 0, "pending": 3}
    adds_up(ran)


def test_the_card_names_every_key_of_a_record(tmp_path: Path) -> None:
    import yaml

    dataset(tmp_path / "prompts.jsonl", ["a"])
    ran = play(tmp_path, lambda prompt, spec: uses())
    head = (ran.folder / "README.md").read_text().split("---\n")[1]
    features = yaml.safe_load(head)["dataset_info"]["features"]
    assert [item["name"] for item in features] == list(ran.rows()[0])
    for item in features:
        if "struct" in item:
            assert [part["name"] for part in item["struct"]] == list(ran.rows()[0][item["name"]])


def test_run_json_holds_the_run(tmp_path: Path) -> None:
    import hashlib

    path = dataset(tmp_path / "prompts.jsonl", ["a", "b"])
    ran = play(tmp_path, lambda prompt, spec: uses(), seed=3, distribution="terminal_only")
    settings = ran.json("run.json")
    assert settings["dataset"] == {
        "path": str(path),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "lines": 2,
    }
    assert settings["seed"] == 3
    assert settings["toolset_odds"] == {"terminal": 1.0}
    assert settings["endpoint"] == {"kind": "demo", "base_url": "", "model": "demo"}
    assert "api_key" not in json.dumps(settings["options"])
