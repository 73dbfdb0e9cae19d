"""Resuming: rows are found by content, what is finished stays, files are the truth."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_engine.batch.folder import RunFolder, held
from hermes_engine.errors import StateError, UsageError
from hermes_engine.events import BatchStarted, Notice, RowFinished
from hermes_engine.protocols import AgentSpec
from tests.batch.support import Played, Ran, dataset, fails, play, read_rows, thinks, uses


def good(prompt: str, spec: AgentSpec) -> Played:
    return uses()


def prompts(ran: Ran) -> list[str]:
    return [row["conversations"][0]["value"] for row in ran.rows()]


def first(tmp_path: Path, rows: list[Any], **values: Any) -> Ran:
    dataset(tmp_path / "prompts.jsonl", rows)
    return play(tmp_path, good, **values)


def again(tmp_path: Path, rows: list[Any] | None = None, **values: Any) -> Ran:
    if rows is not None:
        dataset(tmp_path / "prompts.jsonl", rows)
    return play(tmp_path, good, resume=True, **values)


def test_f1_1_rows_are_found_by_content_not_by_place(tmp_path: Path) -> None:
    first(tmp_path, ["A", "B"])
    ran = again(tmp_path, ["X", "A", "B", "C"])
    assert sorted(ran.agents.prompts) == ["C", "X"]
    assert prompts(ran) == ["X", "A", "B", "C"]
    assert [row["prompt_index"] for row in ran.rows()] == [0, 1, 2, 3]


def test_f1_1_reordered_duplicated_edited_and_removed_rows(tmp_path: Path) -> None:
    first(tmp_path, ["A", "B", "A", "C"])
    ran = again(tmp_path, ["C", "A", "A", "A", "B edited"])
    assert sorted(ran.agents.prompts) == ["A", "B edited"]
    assert prompts(ran) == ["C", "A", "A", "A", "B edited"]
    assert ran.summary.counts == {"total": 5, "kept": 5, "rejected": 0, "failed": 0, "invalid": 0, "pending": 0}
    assert ran.json("statistics.json")["removed"] == 1
    assert ran.json("statistics.json")["tools"]["terminal"]["count"] == 5
    old = [row["conversations"][0]["value"] for row in ran.rows("batch_0.jsonl")]
    assert Counter(old) == Counter(["A", "B", "A", "C"])
    back = again(tmp_path, ["B", "C"])
    assert back.agents.prompts == []
    assert prompts(back) == ["B", "C"]


def test_f1_1_where_a_row_runs_is_part_of_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    first(tmp_path, ["A"])
    ran = again(
        tmp_path, [{"prompt": "A", "cwd": "p"}, {"prompt": "A", "toolsets": ["terminal"]}, {"prompt": "A", "n": 1}]
    )
    assert len(ran.agents.prompts) == 2
    assert ran.summary.counts["kept"] == 3


def test_f1_2_batch_numbers_go_on_and_old_files_stay_as_they_are(tmp_path: Path) -> None:
    first(tmp_path, ["a", "b"], batch_size=10)
    before = (tmp_path / "data" / "run" / "batch_0.jsonl").read_bytes()
    ran = again(tmp_path, ["a", "b", "c", "d"])
    assert (ran.folder / "batch_0.jsonl").read_bytes() == before
    assert [row["conversations"][0]["value"] for row in ran.rows("batch_1.jsonl")] == ["c", "d"]
    figures = ran.json("statistics.json")
    assert figures["rows"]["kept"] == 4
    assert figures["tools"]["terminal"]["count"] == 4
    assert figures["usage"]["total_tokens"] == 60
    assert figures["invocations"] == 2
    assert figures["duration_seconds"] > 0


def test_f1_2_more_than_ten_batches_are_merged_in_order(tmp_path: Path) -> None:
    ran = first(tmp_path, [f"p{number}" for number in range(25)], batch_size=2, num_workers=1)
    assert prompts(ran) == [f"p{number}" for number in range(25)]
    assert RunFolder(ran.folder).batches() == list(range(13))


def test_f1_7_a_resume_that_did_nothing_hides_no_earlier_one(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", list("abcde"))
    play(tmp_path, lambda prompt, spec: fails("server_error") if prompt in "de" else uses())
    folder = tmp_path / "data" / "run"
    # a resume killed at once: the checkpoint says it runs, nothing else has changed
    checkpoint = json.loads((folder / "checkpoint.json").read_text())
    (folder / "checkpoint.json").write_text(json.dumps({**checkpoint, "state": "running"}))
    (folder / "lock").write_text('{"pid": 1, "host": "gone", "since": "…", "work": "/nowhere/hermes-rows-x"}')
    for name in ("trajectories.jsonl", "README.md", "control", "run.json"):
        (folder / f".{name}.abc123").write_text("half")
    ran = again(tmp_path)
    assert sorted(ran.agents.prompts) == ["d", "e"]
    assert ran.summary.counts["kept"] == 5
    assert not list(folder.glob(".*"))


def test_f1_9_progress_begins_where_it_was(tmp_path: Path) -> None:
    first(tmp_path, ["a", "b"])
    ran = again(tmp_path, ["a", "b", "c", b"{bad"])
    started = ran.heard(BatchStarted)[0]
    assert (started.total, started.done) == (4, 3)
    assert started.counts["kept"] == 2


def test_finished_rejected_and_invalid_rows_are_never_run_again(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["good", "dull", "broken", b"{bad"])

    def player(prompt: str, spec: AgentSpec) -> Played:
        if prompt == "broken":
            return fails("server_error", "500")
        return thinks(thought="" if prompt == "dull" else "hm")

    play(tmp_path, player)
    ran = again(tmp_path)
    assert ran.agents.prompts == ["broken"]
    assert ran.rows("failed.jsonl") == []
    assert ran.summary.counts == {"total": 4, "kept": 2, "rejected": 1, "failed": 0, "invalid": 1, "pending": 0}
    assert ran.json("statistics.json")["failures"] == {}
    assert again(tmp_path).agents.prompts == []


def test_failed_rows_count_their_attempts_and_leave_the_file_when_they_succeed(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "b", "c"])

    def two_fail(prompt: str, spec: AgentSpec) -> Played:
        return uses() if prompt == "a" else fails("server_error", "500")

    play(tmp_path, two_fail)
    ran = play(tmp_path, two_fail, resume=True)
    assert [row["attempts"] for row in ran.rows("failed.jsonl")] == [2, 2]
    assert ran.summary.counts["failed"] == 2
    assert ran.json("statistics.json")["failures"] == {"server_error": 2}
    ran = play(tmp_path, lambda prompt, spec: uses() if prompt == "b" else fails("rate_limit"), resume=True)
    assert [(row["attempts"], row["error_kind"]) for row in ran.rows("failed.jsonl")] == [(3, "rate_limit")]
    figures = ran.json("statistics.json")
    assert figures["failures"] == {"rate_limit": 1}
    assert figures["usage"]["prompt_tokens"] == 30
    assert figures["spent"]["prompt_tokens"] == 70


def test_f11_9_retry_runs_the_failed_rows_only(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "b"])
    play(tmp_path, lambda prompt, spec: uses() if prompt == "a" else fails("server_error"))
    dataset(tmp_path / "prompts.jsonl", ["a", "b", "new"])
    ran = play(tmp_path, good, only_failed=True, resume=True)
    assert ran.agents.prompts == ["b"]
    assert ran.summary.counts == {"total": 3, "kept": 2, "rejected": 0, "failed": 0, "invalid": 0, "pending": 1}
    assert prompts(ran) == ["a", "b"]


def test_an_interrupted_retry_leaves_the_others_failed(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "b"])
    play(tmp_path, lambda prompt, spec: fails("server_error"))
    ran = play(tmp_path, good, resume=True, prepare=lambda run: run.stop())
    assert ran.summary.counts == {"total": 2, "kept": 0, "rejected": 0, "failed": 2, "invalid": 0, "pending": 0}
    assert len(ran.rows("failed.jsonl")) == 2


def test_the_same_name_without_resume_is_refused(tmp_path: Path) -> None:
    first(tmp_path, ["a"])
    with pytest.raises(UsageError, match="exists already") as caught:
        play(tmp_path, good)
    assert "--resume" in caught.value.hint


def test_a_resume_of_nothing_starts_the_run(tmp_path: Path) -> None:
    assert again(tmp_path, ["a"]).summary.counts["kept"] == 1
    shutil.rmtree(tmp_path / "data")
    (tmp_path / "data" / "run").mkdir(parents=True)
    (tmp_path / "data" / "run" / "lock").touch()
    assert again(tmp_path).summary.counts["kept"] == 1
    (tmp_path / "data" / "new").mkdir()
    assert play(tmp_path, good, run_name="new").summary.counts["kept"] == 1


def test_rows_win_over_the_index_and_torn_ends_are_cut(tmp_path: Path) -> None:
    ran = first(tmp_path, ["a", "b", "c"], batch_size=2)
    for name in ("checkpoint.json", "statistics.json", "trajectories.jsonl", "README.md"):
        (ran.folder / name).unlink()
    with (ran.folder / "batch_1.jsonl").open("ab") as stream:
        stream.write(b'{"prompt_index": 7, "conv')
    with (ran.folder / "failed.jsonl").open("ab") as stream:
        stream.write(b"\x00\x00\n{")
    after = again(tmp_path)
    assert after.agents.prompts == []
    assert prompts(after) == ["a", "b", "c"]
    assert after.json("statistics.json")["usage"]["total_tokens"] == 45
    for path in after.folder.glob("*.jsonl"):
        read_rows(path)
    assert any("damaged.txt" in notice.text for notice in after.heard(Notice))


def test_a_torn_row_runs_again(tmp_path: Path) -> None:
    ran = first(tmp_path, ["a", "b"], num_workers=1)
    path = ran.folder / "batch_0.jsonl"
    path.write_bytes(path.read_bytes()[:-10])
    after = again(tmp_path)
    assert after.agents.prompts == ["b"]
    assert prompts(after) == ["a", "b"]


def test_a_row_written_twice_counts_once(tmp_path: Path) -> None:
    ran = first(tmp_path, ["a", "b"])
    shutil.copy(ran.folder / "batch_0.jsonl", ran.folder / "batch_5.jsonl")
    after = again(tmp_path)
    assert prompts(after) == ["a", "b"]
    assert after.json("statistics.json")["tools"]["terminal"]["count"] == 2


def test_statistics_are_the_same_whether_read_back_or_just_made(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", [f"p{number}" for number in range(30)] + ["dull", "broken", "made up"])

    def player(prompt: str, spec: AgentSpec) -> Played:
        table = {"dull": thinks(thought=""), "broken": fails("rate_limit", "429"), "made up": uses("coffee", "{}")}
        return table.get(prompt) or uses(status=random.choice(["ok", "error"]))

    made = play(tmp_path, player, distribution="balanced", seed=1).json("statistics.json")
    read = play(tmp_path, player, resume=True, prepare=lambda run: run.stop()).json("statistics.json")
    moving = {"updated_at", "duration_seconds", "invocations", "throughput", "times", "state"}
    assert {key: value for key, value in made.items() if key not in moving} == {
        key: value for key, value in read.items() if key not in moving
    }


def test_counters_stay_dense_when_tools_are_added(tmp_path: Path) -> None:
    first(tmp_path, ["a"], distribution="terminal_only")
    ran = again(tmp_path, ["a", "b"], distribution="terminal_file")
    rows = ran.rows()
    assert [list(row["tool_stats"]) for row in rows] == [list(rows[1]["tool_stats"])] * 2
    assert "read_file" in rows[0]["tool_stats"]
    assert rows[0]["tool_error_counts"]["read_file"] == 0
    assert "read_file" not in ran.rows("batch_0.jsonl")[0]["tool_stats"]


def test_f12_1_flags_not_given_are_the_runs_own_and_a_changed_meaning_is_said(tmp_path: Path) -> None:
    first(tmp_path, ["a"], distribution="terminal_only", max_turns=3, num_workers=2, seed=9, temperature=0.5)
    quiet = play(tmp_path, good, resume=True, model=None)
    assert not [notice for notice in quiet.heard(Notice) if notice.level == "warning"]
    (tmp_path / "prompts.jsonl").write_text('{"prompt":"a"}\n{"prompt":"b"}\n')
    ran = play(tmp_path, good, resume=True, model=None, temperature=0.9, num_workers=7)
    spec = ran.agents.specs[0]
    assert (spec.model, spec.toolsets, spec.limits.max_turns) == ("demo", ("terminal",), 3)
    assert spec.sampling["temperature"] == 0.9
    told = [notice.text for notice in ran.heard(Notice) if notice.level == "warning"]
    assert told[0] == "temperature: 0.5 until now, 0.9 from here on"
    assert "dataset has changed" in told[1]
    assert ran.json("run.json")["changes"][0]["what"] == [told[0]]
    assert ran.json("run.json")["options"]["temperature"] == 0.9
    assert {row["metadata"]["model"] for row in ran.rows()} == {"demo"}


def test_f12_1_each_row_carries_its_model(tmp_path: Path) -> None:
    first(tmp_path, ["a"])
    server = {"model": "other", "base_url": "http://127.0.0.1:9/v1"}
    ran = again(tmp_path, ["a", "b"], **server)
    assert [row["metadata"]["model"] for row in ran.rows()] == ["demo", "other"]
    told = [notice.text for notice in ran.heard(Notice)]
    assert "model: demo until now, other from here on" in told
    assert ran.json("statistics.json")["models"] == {"demo": 1, "other": 1}


def test_the_dataset_need_not_be_named_again(tmp_path: Path) -> None:
    dataset(tmp_path / "other.jsonl", ["a", "b"])
    play(tmp_path, lambda prompt, spec: fails("x") if prompt == "b" else uses(), dataset_file=tmp_path / "other.jsonl")
    assert again(tmp_path).agents.prompts == ["b"]
    with pytest.raises(UsageError, match="dataset_file"):
        play(tmp_path, good, run_name="fresh")


def test_a_run_that_is_worked_is_refused_and_the_holder_named(tmp_path: Path) -> None:
    ran = first(tmp_path, ["a"])
    with held(RunFolder(ran.folder), None), pytest.raises(UsageError, match=f"process {os.getpid()} on") as caught:
        again(tmp_path)
    assert caught.value.exit_code == 2
    assert again(tmp_path).summary.exit_code == 0


def test_what_a_killed_process_left_of_its_rows_folders_goes(tmp_path: Path) -> None:
    ran = first(tmp_path, ["a"])
    left, other = tmp_path / "hermes-rows-left", tmp_path / "precious"
    for folder in (left, other):
        (folder / "row-0-x").mkdir(parents=True)
    (ran.folder / "lock").write_text(json.dumps({"work": str(left)}))
    again(tmp_path)
    assert not left.exists()
    (ran.folder / "lock").write_text(json.dumps({"work": str(other)}))
    again(tmp_path)
    assert other.exists()
    left.mkdir()
    (ran.folder / "lock").write_text(json.dumps({"work": str(left), "keep_work": True}))
    again(tmp_path)
    assert left.exists()


def test_a_dataset_changed_under_the_run_ends_it(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["aa", "bb", "cc"])

    def player(prompt: str, spec: AgentSpec) -> Played:
        dataset(tmp_path / "prompts.jsonl", ["xx", "yy", "zz"])
        return thinks()

    ran = play(tmp_path, player, num_workers=1)
    assert (ran.summary.state, ran.summary.exit_code) == ("failed", 1)
    assert "was changed" in ran.summary.reason
    assert ran.summary.counts["kept"] == 1
    assert play(tmp_path, good, resume=True).summary.counts["kept"] == 3


def test_a_full_disk_ends_the_run_and_loses_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hermes_engine.batch.files import Appender

    dataset(tmp_path / "prompts.jsonl", ["a", "b", "c"])
    real, lines = Appender.append, []

    def full(self: Appender, line: bytes) -> int:
        lines.append(line)
        if len(lines) == 2:
            raise StateError("cannot write: No space left on device")
        return real(self, line)

    monkeypatch.setattr(Appender, "append", full)
    ran = play(tmp_path, good, num_workers=1)
    monkeypatch.undo()
    assert (ran.summary.state, ran.summary.exit_code) == ("failed", 1)
    assert "No space left" in ran.summary.reason
    assert ran.summary.counts["kept"] == 1
    assert sorted(again(tmp_path).agents.prompts) == ["b", "c"]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_any_history_of_interrupts_edits_and_failures_adds_up(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tmp_path = tmp_path_factory.mktemp("history")
    lines: list[Any] = data.draw(st.lists(st.sampled_from(["a", "b", "c", "d", "e", b"{bad"]), max_size=12))
    ever: Counter[str] = Counter()
    for step in range(data.draw(st.integers(1, 4))):
        dataset(tmp_path / "prompts.jsonl", lines)
        stop_at = data.draw(st.integers(0, 8))
        kinds = data.draw(st.lists(st.sampled_from(["kept", "kept", "dull", "fails"]), min_size=12, max_size=12))
        done: list[str] = []

        def prepare(run: Any, stop_at: int = stop_at, done: list[str] = done) -> None:
            hear = run._sink

            def count(event: Any) -> None:
                hear(event)
                if isinstance(event, RowFinished) and event.outcome != "cancelled":
                    done.append(event.outcome)
                    if len(done) == stop_at:
                        run.stop(now=True)

            run._sink = count

        async def player(prompt: str, spec: AgentSpec, kinds: list[str] = kinds, done: list[str] = done) -> Played:
            await asyncio.sleep(0)
            return {"kept": uses(), "dull": thinks(thought=""), "fails": fails("server_error")}[kinds[len(done) % 12]]

        ran = play(tmp_path, player, prepare=prepare, resume=step > 0, num_workers=data.draw(st.integers(1, 4)))
        counts = dict(ran.summary.counts)
        assert sum(counts.values()) == 2 * counts["total"]
        assert counts["total"] == len(lines)
        assert counts["invalid"] == lines.count(b"{bad")
        ever.update(outcome for outcome in done if outcome in ("kept", "rejected"))
        lines = data.draw(st.permutations(lines))
        lines = list(lines) + data.draw(st.lists(st.sampled_from(["a", "f"]), max_size=2))
    dataset(tmp_path / "prompts.jsonl", lines)
    ran = play(tmp_path, good, resume=True)
    counts = dict(ran.summary.counts)
    assert counts["pending"] == counts["failed"] == 0
    found = [row["conversations"][0]["value"] for row in (*ran.rows(), *ran.rows("rejected.jsonl"))]
    assert Counter(found) == Counter(line for line in lines if isinstance(line, str))
    assert [row["prompt_index"] for row in ran.rows()] == sorted(row["prompt_index"] for row in ran.rows())
    for row in ran.rows():
        assert lines[row["prompt_index"]] == row["conversations"][0]["value"]
    assert len(found) == sum(ever.values()) + len(ran.agents.prompts)
