"""A batch run as tests tell it: its rows, its files' figures, what goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hermes_engine.batch.floor import Floor
from hermes_engine.batch.job import Row
from hermes_engine.batch.overview import RunState
from hermes_engine.batch.watching import Look, Outcome, RowLine
from hermes_tui.presenter.batch import RunModel

NOW = 1_800_000_000.0
FOLDER = Path("/work/project/data/evals-nov")


def line(
    index: int,
    outcome: Outcome,
    ago: float,
    *,
    reason: str = "",
    kind: str = "",
    prompt: str = "",
    turns: int = 3,
    tools: int = 4,
    tokens: int | None = 9000,
    retries: int = 0,
    sample: int = 0,
    reasoned: int = 2,
) -> RowLine:
    """A row that ended so many seconds ago."""
    file = FOLDER / {"kept": "batch_0.jsonl", "rejected": "rejected.jsonl", "failed": "failed.jsonl"}[outcome]
    return RowLine(
        f"k{index}/{sample}", index, sample, outcome, reason or ("done" if outcome == "kept" else ""), kind, turns,
        reasoned, tools, tokens, 0.02, retries, 1, NOW - ago, prompt or f"prompt number {index}", file, index, 100,
    )  # fmt: skip


def state(rows: dict[str, int], *, since: float = 0.0, holder: str = "", word: str = "done", **point: Any) -> RunState:
    """A run's files."""
    statistics = {
        "times": {
            "rows": {"p50": 62.0, "p90": 160.0, "max": 371.0},
            "tools": {"terminal": 1.1, "read_file": 0.01, "patch": 0.1},
        },
        "tools": {
            "terminal": {"count": 412, "success": 396, "failure": 16},
            "read_file": {"count": 388, "success": 388, "failure": 0},
            "patch": {"count": 140, "success": 127, "failure": 13},
            "web_fetch": {"count": 0, "success": 0, "failure": 0},
        },
        "reasoning": {"coverage": 0.87},
        "failures": {"rate_limit": 3, "max_turns": 1, "tool_[b]": 1},
        "rejects": {"no_reasoning": 2, "invented_tool": 1},
    }
    spent = {"total_tokens": 2_100_000, "prompt_tokens": 1_900_000, "completion_tokens": 200_000, "cost_usd": 3.14,
             "cost_known": True, "tokens_known": True}  # fmt: skip
    settings = {"options": {"max_cost_usd": 10.0, "dataset_file": "/work/project/evals-nov.jsonl", "model": "qwen3"}}
    return RunState(
        "evals-nov", FOLDER, "running" if holder else word, "", rows, holder, since,
        {"rows": rows, "spent": spent, "seconds": 782.0, **point}, statistics, settings,
    )  # fmt: skip


def floor(counts: dict[str, int], workers: int = 8) -> Floor:
    """What goes on: four rows at work, one of them quiet."""
    told = Floor()
    told.begun, told.counts, told.workers = True, counts, workers
    for index, ago, heard, turns, tools, tokens, words in (
        (128, 62, 3, 3, 5, 8000, "Read src/a.py"),
        (127, 91, 1, 4, 7, 11_000, "Run pytest -q [x]"),
        (129, 44, 2, 2, 2, 6000, "thinking"),
        (130, 100, 95, 3, 4, 7000, "Run make"),
    ):
        row = told.begin(Row(index, f"k{index}", "p"), f"prompt number {index}", lambda event: None)
        row.began, row.heard = NOW - ago, NOW - heard
        row.turns, row.tools, row.tokens, row.words = turns, tools, tokens, words
    for index in range(200):
        told.seconds[index, 0] = 20.0 + index % 90
    return told


COUNTS = {"total": 300, "kept": 118, "rejected": 3, "failed": 5, "invalid": 2, "pending": 172}


def rows() -> tuple[RowLine, ...]:
    """What has ended."""
    kept = [
        line(index, "kept", 780 - 6 * index, turns=index % 7 + 1, reasoned=index % 3)
        for index in range(120)
        if index not in (99, 104)
    ]
    return (
        *kept,
        line(120, "rejected", 30, reason="no turn has reasoning", kind="no_reasoning", reasoned=0),
        line(121, "failed", 50, reason="HTTP 429", kind="rate_limit", turns=1, tools=0, tokens=2000, retries=2),
        line(104, "failed", 200, reason="turn limit 10", kind="max_turns", turns=10, tools=21, tokens=40_000),
        line(99, "failed", 220, reason="[/b] odd \x1b[31m", kind="tool_[b]", prompt="[bold] 中文 prompt"),
    )


def model(*, here: bool = True) -> RunModel:
    """The run of the mock-up."""
    told = RunModel("evals-nov")
    holder = "" if here else "process 4711 on gpu-3 since 14:05"
    seen = state(COUNTS, since=NOW - 782, holder=holder or "here", running=4, workers=8)
    told.take(Look(seen, rows(), frozenset(), False), floor(COUNTS) if here else None)
    return told
