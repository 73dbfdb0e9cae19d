"""The bench's recount from a run's files agrees with the run, and sees what does not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench import recount
from tests.batch.support import Played, dataset, fails, play, thinks, uses


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """The folder of a run with kept, rejected, failed and invalid rows."""
    ways: dict[str, Played] = {
        "uses": uses(),
        "fails to use": uses(status="error"),
        "invents": uses("summon"),
        "says": thinks(),
        "fails": fails("server_error"),
    }
    dataset(tmp_path / "prompts.jsonl", [*ways, "says", {"no": "prompt"}])
    return play(tmp_path, lambda prompt, spec: ways[prompt]).summary.folder


def counted(folder: Path) -> tuple[int, dict[str, Any]]:
    """Runs the script as it is run."""
    command = [sys.executable, "-I", str(Path(recount.__file__)), str(folder), str(folder.parents[1] / "prompts.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout)


def test_it_counts_what_the_run_says(ran: Path) -> None:
    code, told = counted(ran)
    assert told["differences"] == []
    assert code == 0
    rows = {"total": 7, "kept": 4, "rejected": 1, "failed": 1, "invalid": 1, "pending": 0}
    assert told["counted"]["rows"] == rows
    assert told["counted"]["tools"]["terminal"]["failure"] == 1


def without_a_line(text: str) -> str:
    """The text without its first line."""
    return text.partition("\n")[2]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("trajectories.jsonl", without_a_line),
        ("trajectories.jsonl", lambda text: text.replace("Done.", "Gone.", 1)),
        ("batch_0.jsonl", lambda text: text + text.partition("\n")[0] + "\n"),
        ("rejected.jsonl", without_a_line),
        ("failed.jsonl", lambda text: text + "{"),
        ("statistics.json", lambda text: text.replace('"failure": 1', '"failure": 0', 1)),
        ("checkpoint.json", lambda text: text.replace('"kept": 4', '"kept": 3', 1)),
    ],
)
def test_it_sees_what_is_not_so(ran: Path, name: str, change: Callable[[str], str]) -> None:
    file = ran / name
    before = file.read_text("utf-8")
    file.write_text(change(before), "utf-8")
    assert file.read_text("utf-8") != before
    code, told = counted(ran)
    assert told["differences"]
    assert code == 1
