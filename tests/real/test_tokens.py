"""What a real server tells of its tokens: llama.cpp, those of each reply, and nothing of the request."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from hermes_engine.batch.tokens import HALF_TOLD
from tests.batch.support import dataset, read_rows
from tests.e2e.program import hermes

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]


def test_the_tokens_of_replies_are_kept_with_their_log_probabilities_and_make_no_whole_row(tmp_path: Path) -> None:
    dataset(tmp_path / "d.jsonl", ["Say hello.", "Name a colour."])
    flags = ["--dataset_file=d.jsonl", "--run_name=r", "--batch_size=2", "--model=local", "--num_workers=1"]
    more = ["--record_tokens", "--keep_without_reasoning", "--max_tokens=300", "-t", "", "--plain"]
    done = hermes("batch", "run", *flags, *more, cwd=tmp_path, timeout=200)
    assert done.err.count(HALF_TOLD) == 1
    kept = {f"{row['metadata']['row_id']}/0": row for row in read_rows(tmp_path / "data" / "r" / "trajectories.jsonl")}
    lines = {line["row"]: line for line in read_rows(tmp_path / "data" / "r" / "tokens.jsonl")}
    assert kept
    assert lines.keys() == kept.keys()
    for row, line in lines.items():
        assert line["whole"] is False
        (turn,) = line["turns"]
        assert (turn["shared"], turn["prompt"]) == (0, [])
        assert len(turn["tokens"]) == len(turn["logprobs"]) == kept[row]["usage"]["completion_tokens"]
        assert all(-math.inf < value <= 0 for value in turn["logprobs"])
    figures = json.loads((tmp_path / "data" / "r" / "statistics.json").read_bytes())
    assert figures["tokens"] == {"rows": 0, "without": len(kept)}
