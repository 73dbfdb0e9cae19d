"""Rows of a batch run whose agents start agents."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import psutil

from tests.batch.served import prompt_of, results_in, run
from tests.conftest import Serve
from tests.server.answers import Seen, hang
from tests.server.scripted import call, calls, say
from tests.work.conftest import Configure

SETS = ["delegation", "terminal", "file"]


def row(prompt: str) -> dict[str, Any]:
    return {"prompt": prompt, "toolsets": SETS}


def spawning(*prompts: str) -> Any:
    return call("spawn_parallel", {"agents": list(prompts)}, reasoning="I split it.")


def test_a_rows_children_work_in_its_folder_and_count_for_it(serve: Serve, tmp_path: Path) -> None:
    places: dict[str, str] = {}

    def script(seen: Seen) -> Any:
        prompt = prompt_of(seen)
        if prompt.startswith("row"):
            return say("Done.", "I am done.") if results_in(seen) else spawning(f"low a {prompt}", f"low b {prompt}")
        if not results_in(seen):
            return call("terminal", {"command": 'echo "$PWD|$HOME"; echo x >> file.txt'})
        places[prompt] = seen.last["content"].split("\n")[0]
        return say(f"did {prompt}")

    server = serve(script)
    done = run(tmp_path, server, [row("row 1"), row("row 2")], num_workers=2, distribution="default")
    assert (done.summary.exit_code, done.counts) == (0, {"total": 2, "kept": 2})
    assert set(places) == {f"low {letter} row {number}" for letter in "ab" for number in (1, 2)}
    for number in (1, 2):
        first, second = places[f"low a row {number}"], places[f"low b row {number}"]
        folder, home = first.split("|")
        assert (first, folder) == (second, home)
        assert not Path(folder).exists(), "and it is gone"
    assert places["low a row 1"] != places["low a row 2"]
    for record in done.rows():
        assert record["tool_stats"]["spawn_parallel"] == {"count": 1, "success": 1, "failure": 0}
        assert record["tool_stats"]["terminal"]["count"] == 0, "a child's calls are its own"
        assert record["usage"]["prompt_tokens"] == 10 * (2 + 4)
        assert record["usage"]["completion_tokens"] == 5 * (2 + 4)
        turns = record["conversations"]
        assert [turn["from"] for turn in turns][-4:] == ["human", "gpt", "tool", "gpt"]
        answers = next(turn["value"] for turn in turns if turn["from"] == "tool")
        prompt = next(turn["value"] for turn in turns if turn["from"] == "human")
        other = "row 2" if prompt == "row 1" else "row 1"
        assert f"did low a {prompt}" in answers
        assert other not in answers


def test_places_and_ceilings_are_each_rows_own(serve: Serve, tmp_path: Path, configure: Configure) -> None:
    configure("delegation: {max_concurrent: 1, max_per_turn: 2}\n")

    def script(seen: Seen) -> Any:
        prompt = prompt_of(seen)
        if prompt.startswith("row"):
            return say("Done.", "I am done.") if results_in(seen) else spawning(f"low a {prompt}", f"low b {prompt}")
        return say("did it", first_delay=0.2)

    server = serve(script)
    done = run(tmp_path, server, [row("row 1"), row("row 2"), row("row 3")], num_workers=3)
    assert done.counts == {"total": 3, "kept": 3}
    low = [seen for seen in server.requests if prompt_of(seen).startswith("low")]
    for name in ("row 1", "row 2", "row 3"):
        own = [seen for seen in low if prompt_of(seen).endswith(name)]
        assert all(a is b or (a.ended or 0) <= b.started or (b.ended or 0) <= a.started for a in own for b in own)
    assert max(sum(a.started <= b.started < (a.ended or 0) for a in low) for b in low) > 1
    for record in done.rows():
        answers = next(turn["value"] for turn in record["conversations"] if turn["from"] == "tool")
        assert '"ok": 2' in answers, "no row takes another's places or share"


def test_a_row_whose_time_is_up_takes_its_children_along(serve: Serve, tmp_path: Path) -> None:
    def script(seen: Seen) -> Any:
        prompt = prompt_of(seen)
        if prompt.startswith("row"):
            return spawning("low a", "low b", "low c")
        return hang(60) if prompt == "low c" else call("terminal", {"command": "sleep 350.5"})

    server = serve(script)
    done = run(tmp_path, server, [row("row 1")], timeout_seconds=2.0)
    assert done.counts == {"total": 1, "failed": 1}
    assert done.rows("failed.jsonl")[0]["error_kind"] == "timeout"
    assert server.wait_until(lambda: server.open_requests == 0)
    assert [p for p in psutil.process_iter(["cmdline"]) if "350.5" in (p.info["cmdline"] or [])] == []


def test_many_rows_with_children_leave_nothing_behind(serve: Serve, tmp_path: Path) -> None:
    def script(seen: Seen) -> Any:
        prompt = prompt_of(seen)
        if prompt.startswith("row"):
            return say("Done.", "I am done.") if results_in(seen) else spawning("low a", "low b")
        return say("ok") if results_in(seen) else calls([("write_file", {"path": "x", "content": "y"})])

    me = psutil.Process()
    server = serve(script)
    run(tmp_path, server, [row(f"row {n}") for n in range(2)], run_name="warm")
    before, children = (me.num_fds(), threading.active_count()), me.children()
    done = run(tmp_path, server, [row(f"row {n}") for n in range(20)], run_name="many")
    assert done.counts == {"total": 20, "kept": 20}
    assert me.num_fds() <= before[0] + 10, "one for each of 60 agents would be more than what is opened once"
    assert threading.active_count() <= before[1] + 8
    assert set(me.children()) <= set(children)


def test_without_the_set_a_row_has_no_such_tools(serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda seen: say("Done.", "I am done."))
    run(tmp_path, server, [{"prompt": "row", "toolsets": ["terminal"]}])
    assert "spawn_agent" not in server.requests[0].tools
