"""The real consumer: `datasets.load_dataset` gives every row back equal, from the file and from the folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.messages import Message, ToolCall, Usage, tool_message
from hermes_engine.protocols import AgentSpec
from tests.batch.support import Played, Ran, dataset, play, thinks, uses

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:datasets"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:dill"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:multiprocess"),
]

Load = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Loads like a trainer does, offline, with caches of the test's own."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "hf" / "datasets"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    import datasets

    datasets.disable_progress_bars()

    def loaded(*args: Any, **values: Any) -> list[dict[str, Any]]:
        return list(datasets.load_dataset(*args, split="train", cache_dir=str(tmp_path / "cache"), **values))

    return loaded


def both_ways(load: Load, ran: Ran) -> None:
    rows = ran.rows()
    assert rows
    assert load("json", data_files=str(ran.folder / "trajectories.jsonl")) == rows
    assert load(str(ran.folder)) == rows


def test_mixed_rows_come_back_equal(tmp_path: Path, load: Load) -> None:
    prompts: list[Any] = ["plain", "calls", "parallel", "odd", "unpriced", {"prompt": "bare", "toolsets": []}]
    dataset(tmp_path / "prompts.jsonl", [*prompts, {"prompt": "noted", "id": 7, "source": {"deep": [1, None]}}])
    two = (ToolCall("1", "terminal", '{"command": "ls", "timeout": 5}'), ToolCall("2", "read_file", '{"path": ["x"]}'))
    table = {
        "calls": uses(),
        "parallel": Played(
            [
                Message("assistant", "", two, reasoning="both"),
                *(tool_message(call, "") for call in two),
                Message("assistant", "Both. a\u2028b \U0001f600 \ud83d é"),
            ]
        ),
        "odd": uses("terminal", '{"command": 5, "cwd": null, "x": 0.5'),
        "unpriced": Played(thinks().messages, usage=Usage(0, 0, 0, False, 0.0, False)),
    }

    def player(prompt: str, spec: AgentSpec) -> Played:
        return table.get(prompt) or thinks()

    ran = play(tmp_path, player)
    assert len(ran.rows()) == 7
    both_ways(load, ran)


def test_a_folder_that_changed_is_read_again(tmp_path: Path, load: Load) -> None:
    """`datasets` knows a folder by its name and the head of its card, and looks at no file: after a resume it gave the
    rows of before, and for a run in another folder those of its namesake.
    """
    rows: list[Any] = ["a", "b"]
    for place in (tmp_path / "one", tmp_path / "two"):
        place.mkdir()
        dataset(place / "prompts.jsonl", rows)
        both_ways(load, play(place, lambda prompt, spec: thinks()))
        rows = [*rows, "c"]
        dataset(place / "prompts.jsonl", rows)
        both_ways(load, play(place, lambda prompt, spec: thinks(), resume=True))


def test_a_run_without_any_call_comes_back_equal(tmp_path: Path, load: Load) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "b"])
    both_ways(load, play(tmp_path, lambda prompt, spec: thinks()))


def test_a_first_call_after_ten_megabytes_comes_back_equal(tmp_path: Path, load: Load) -> None:
    dataset(tmp_path / "prompts.jsonl", [f"p{number}" for number in range(700)] + ["call", "other", "priced"])
    text = "All work and no play. " * 800

    def player(prompt: str, spec: AgentSpec) -> Played:
        match prompt:
            case "call":
                return uses("terminal", '{"command": "ls", "timeout": 5}')
            case "other":
                return uses("read_file", '{"path": "x", "timeout": "five", "deep": {"list": [1, "a"]}}')
            case "priced":
                return Played(thinks().messages, usage=Usage(1, 1, 1, True, 0.25, True))
        return thinks(text)

    ran = play(tmp_path, player, num_workers=64)
    assert (ran.folder / "trajectories.jsonl").stat().st_size > 12_000_000
    calls = [index for index, row in enumerate(ran.rows()) if '"name"' in json.dumps(row["conversations"])]
    assert calls == [700, 701]
    both_ways(load, ran)


def test_a_resume_with_more_tools_comes_back_equal(tmp_path: Path, load: Load) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a"])
    play(tmp_path, lambda prompt, spec: uses(), distribution="terminal_only")
    dataset(tmp_path / "prompts.jsonl", ["b", "a"])
    ran = play(tmp_path, lambda prompt, spec: uses("todo", "{}"), distribution="balanced", seed=4, resume=True)
    both_ways(load, ran)
