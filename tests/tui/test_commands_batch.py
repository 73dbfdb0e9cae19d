"""`/batch` on a real engine and a scripted server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes_engine.events import BatchFinished
from hermes_tui.commands import complete
from hermes_tui.commands.batch import run_name
from hermes_tui.commands.batch_flags import values_of
from tests.server.scripted import say
from tests.tui.command_desk import Sit, said, sit

__all__ = ["sit"]


def test_a_batch_file_is_looked_for_in_the_folder_of_the_chat(
    sit: Sit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, _server = sit([say("row answer")])
    (tmp_path / "here" / "mine 2.jsonl").write_text('{"prompt": "one"}\n{"prompt": "two"}\n')
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert [item.text for item in complete("/batch mi", desk)] == ["mine 2.jsonl"]
    assert "runs beside this chat" in desk.do("/batch mine 2.jsonl 1").text
    desk.until(lambda: any(isinstance(event, BatchFinished) for event in desk.events), 60)
    (event,) = [event for event in desk.events if isinstance(event, BatchFinished)]
    assert event.counts["total"] == 1


def test_batch_runs_beside_the_chat(sit: Sit) -> None:
    desk, server = sit([say("<think>r</think>done")])
    assert "No batch runs" in said(desk.do("/batch"))
    Path("my prompts.jsonl").write_text("".join(json.dumps({"prompt": f"p{number}"}) + "\n" for number in range(5)))
    assert [item.text for item in complete("/batch my", desk)] == ["my prompts.jsonl"]
    told = said(desk.do("/batch my prompts.jsonl 2"))
    assert "my-prompts-" in told
    desk.until(lambda: any(isinstance(event, BatchFinished) for event in desk.events), 60)
    finished = next(event for event in desk.events if isinstance(event, BatchFinished))
    assert finished.counts["total"] == finished.counts["kept"] == 2
    assert sorted(seen.messages[-1]["content"] for seen in server.requests) == ["p0", "p1"]
    desk.until(lambda: desk.do("/batch").rows[0][1] == "done")
    (row,) = desk.do("/batch").rows
    assert row[:4] == (finished.name, "done", "2/2", "2 kept")
    shown = desk.do(f"/batch show {finished.name}")
    facts = {row[0]: row[1] for row in shown.rows}
    assert (shown.kind, shown.title) == ("table", f"Batch {finished.name}"), "there is no screen here"
    assert (facts["state"], facts["rows"]) == ("done", "total 2, kept 2")
    assert facts["folder"].endswith(f"data/{finished.name}")
    assert desk.do("/batch nosuch.jsonl").kind == "error"
    assert desk.do("/batch show nosuch").kind == "error"
    assert desk.do("/batch stop nosuch").kind == "error"


def test_batch_takes_the_flags_of_a_run(sit: Sit, tmp_path: Path) -> None:
    desk, server = sit([say("<think>r</think>done")])
    Path("p.jsonl").write_text('{"prompt": "one"}\n{"prompt": "two"}\n')
    Path("sampling.json").write_text('{"top_p": 0.5}')
    line = "/batch p.jsonl 1 --run_name night --num-workers=2 --sampling sampling.json -m other --seed 7"
    assert "Batch night runs" in said(
        desk.do(line + " --keep_without_reasoning --filter min_turns:1 --filter finished")
    )
    desk.until(lambda: any(isinstance(event, BatchFinished) for event in desk.events), 60)
    told = json.loads(Path("data/night/run.json").read_text())["options"]
    wanted = {
        "num_workers": 2, "sampling": {"top_p": 0.5}, "seed": 7, "max_samples": 1, "keep_without_reasoning": True,
        "filter": ["min_turns:1", "finished"], "model": "other",
    }  # fmt: skip
    assert {name: told[name] for name in wanted} == wanted
    assert told["base_url"] == [server.base_url], "whoever resumes it asks the same server"
    assert [(seen.body["model"], seen.body["top_p"]) for seen in server.requests] == [("other", 0.5)]
    assert [item.text for item in complete("/batch p.jsonl --num-w", desk)] == ["--num_workers "]
    desk.until(lambda: not desk.engine.runs.names)
    assert "Batch night runs" in said(desk.do("/batch --run_name night --resume --max_samples 2"))
    desk.until(lambda: sum(isinstance(event, BatchFinished) for event in desk.events) == 2, 60)
    assert [seen.body["model"] for seen in server.requests] == ["other", "other"]


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ("--bogus 3", "there is no flag --bogus"),
        ("--num_worker 3", "did you mean --num_workers?"),
        ("--num_workers", "--num_workers needs a value"),
        ("--num_workers --seed 3", "--num_workers needs a value"),
        ("--num_workers many", "--num_workers: "),
        ("--num_workers 0", "--num_workers: 0 is too small"),
        ("--record=perhaps", "--record: 'perhaps' is neither true nor false"),
        ("--sampling [1]", "--sampling: [1] is no JSON object"),
        ("--sampling nosuch.json", "No such file"),
        ("--distribution nosuch", "unknown"),
        ("--max_cost_usd 1", "the price of"),
        ("--api_key sk-secret", "--api_key cannot be given here"),
        ("--run_name 'x", "a quote is not closed"),
        ("--seed 3 stray", "there is no flag stray"),
    ],
)
def test_wrong_flags_of_a_batch_are_named_and_nothing_begins(flags: str, says: str, sit: Sit) -> None:
    desk, server = sit([say("done")])
    Path("p.jsonl").write_text('{"prompt": "one"}\n')
    told = desk.do(f"/batch p.jsonl {flags}")
    assert told.kind == "error"
    assert says in told.text
    assert not desk.engine.runs.names
    assert not Path("data").exists()
    assert not server.requests


def test_switches_of_a_batch_are_spelled_as_on_the_command_line() -> None:
    on, off = {"record": True}, {"record": False}
    for text in ("--record", "--record=True", "--record true", "--record=1", "--norecord=no"):
        assert values_of(text, Path()) == on
    for text in ("--record=False", "--record false", "--norecord", "--no-record", "--record --no_record"):
        assert values_of(text, Path()) == off
    assert values_of("--pull --max_cost_usd none", Path()) == {"pull": True, "max_cost_usd": "none"}


def test_run_names_are_safe() -> None:
    assert run_name(Path("a/my prompts (1).jsonl"), 0.0).startswith("my-prompts-1-")
    assert run_name(Path("..jsonl"), 0.0).startswith(("jsonl-", "run-"))
    assert run_name(Path("é" * 300 + ".jsonl"), 0.0).startswith("run-")
