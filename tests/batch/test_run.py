"""A run from its options to its files, its rows played by a small agent."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path

import pytest

from hermes_engine.errors import UsageError
from hermes_engine.events import BatchFinished, BatchStarted, Notice, RowFinished, RowStarted
from hermes_engine.messages import Message
from hermes_engine.protocols import AgentSpec
from tests.batch.support import Played, adds_up, by_prompt, dataset, fails, play, thinks, uses


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


def test_all_rejected_is_said_loudly_once(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", [f"p{number}" for number in range(40)])
    ran = play(tmp_path, lambda prompt, spec: Played([Message("assistant", "Yes.")]))
    loud = [notice for notice in ran.heard(Notice) if "rejected" in notice.text]
    assert len(loud) == 1
    assert ran.summary.exit_code == 1


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


@pytest.mark.parametrize(("bad", "last"), [(3, ""), (4, "names them"), (101, "names the first 100")])
def test_f1_6_bad_lines_are_told_and_a_few_of_them_as_warnings(tmp_path: Path, bad: int, last: str) -> None:
    """Warnings stand in a chat, which twenty of them would fill."""
    ran = play(tmp_path, by_prompt({}), dataset_file=dataset(tmp_path / "d.jsonl", [*[b"{bad"] * bad, "good"]))
    told = [event for event in ran.heard(Notice) if "no row" in event.text]
    named = [event for event in told if ": no row: not JSON" in event.text]
    assert [event.text.rpartition("/")[2].partition(" ")[0] for event in named] == [
        f"d.jsonl:{number}:" for number in range(1, min(bad, 20) + 1)
    ]
    assert sum(event.level == "warning" for event in named) == 3
    words = [(event.level, event.text) for event in told if event not in named]
    assert words == ([("warning", f"{bad} lines are no rows; statistics.json {last}")] if last else [])
