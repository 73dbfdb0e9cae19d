"""`hermes batch watch`: a run that another process works, followed to its end."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.batch.support import dataset
from tests.conftest import Serve
from tests.e2e.program import hermes, start
from tests.server.scripted import say

pytestmark = pytest.mark.e2e


def test_a_run_is_followed_to_its_end_and_its_code_is_the_runs(serve: Serve, tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", [f"row {n}" for n in range(6)])
    server = serve([say("Done.", "I think.", first_delay=0.7)])
    flags = ("--run_name", "night", "--model", "scripted", "--base_url", server.base_url, "--num_workers", "2")
    process = start("batch", "run", "--dataset_file", "prompts.jsonl", *flags, "--quiet", cwd=tmp_path)
    try:
        assert server.wait_until(lambda: server.open_requests == 2)
        watched = hermes("batch", "watch", "night", cwd=tmp_path)
    finally:
        process.communicate(timeout=30)
    assert watched.code == 0, watched.err
    lines = watched.out.splitlines()
    assert re.match(r"night: running · ([024])/6 · kept \1 · pending \d", lines[0])
    assert lines[-1].startswith("night: done · 6/6 · kept 6")
    assert 2 <= len(lines) <= 4, "a line every two seconds at most"
    assert "\x1b" not in watched.out
    again = hermes("batch", "watch", "night", "--json", cwd=tmp_path)
    told = [json.loads(line) for line in again.out.splitlines()]
    assert (again.code, len(told), told[0]["state"], told[0]["rows"]["kept"]) == (0, 1, "done", 6)
    nothing = hermes("batch", "watch", "nosuch", cwd=tmp_path)
    assert (nothing.code, "night" in nothing.err) == (2, True)
