"""What deviant replies become in the records, over real HTTP with the real agent and tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.batch.served import prompt_of, results_in, run, shell
from tests.conftest import Serve
from tests.server.scripted import (
    Answer,
    Seen,
    call,
    calls,
    message,
    plain_json,
    say,
)


@pytest.mark.parametrize(
    "answer",
    [
        say("Yes.", "r"),
        say("Yes.", "r", reasoning_field="reasoning"),
        plain_json(message("Yes.", reasoning_details=[{"type": "reasoning.text", "text": "r"}])),
        say("<think>r</think>Yes."),
        say("<think>\nr\n</think>\n\nYes.", chunks=9),
        say("<REASONING_SCRATCHPAD>r</REASONING_SCRATCHPAD>Yes.", chunks=20),
        say("<think>r</think>Yes.", "r"),
    ],
    ids=["reasoning_content", "reasoning", "details", "tag", "split tag", "scratchpad", "field and tag"],
)
def test_f2_1_reasoning_of_every_kind_stands_once(serve: Serve, tmp_path: Path, answer: Answer) -> None:
    done = run(tmp_path, serve([answer]), ["p"])
    assert done.rows()[0]["conversations"][1]["value"] == "<think>\nr\n</think>\nYes."


def test_f2_4_empty_answers_are_failed_and_nothing_is_invented(serve: Serve, tmp_path: Path) -> None:
    def script(seen: Seen) -> Answer:
        if prompt_of(seen) == "after a result" and not results_in(seen):
            return call("terminal", {"command": "true"}, reasoning="hm")
        return say({"blank": "   "}.get(prompt_of(seen), ""))

    done = run(tmp_path, serve(script), ["nothing", "blank", "after a result"], num_workers=3)
    assert done.counts == {"total": 3, "failed": 3}
    failed = done.rows("failed.jsonl")
    assert {row["error_kind"] for row in failed} == {"empty_answer"}
    assert not any("empty)" in turn["value"] for row in failed for turn in row["conversations"])


def test_f2_5_lone_surrogates_anywhere_stop_nothing(serve: Serve, tmp_path: Path) -> None:
    def script(seen: Seen) -> Answer:
        if results_in(seen):
            return say("x\ud83d y")
        return call("terminal", {"command": r"printf '\xED\xA0\xBD'"}, reasoning="\udc00 hm")

    server = serve(script)
    done = run(tmp_path, server, [b'{"prompt": "\\udc00 row", "note": "\\ud800"}', "fine"])
    assert done.counts == {"total": 2, "kept": 2}
    content = (done.folder / "trajectories.jsonl").read_bytes().decode("utf-8")
    assert "\ufffd" in content
    assert done.rows()[0]["conversations"][0]["value"] == "\ufffd row"
    assert done.rows()[0]["conversations"][-1]["value"] == "x\ufffd y"
    for seen in server.requests:
        seen.raw.decode("utf-8")


def test_f2_6_line_ends_of_other_kinds_stay_in_the_text(serve: Serve, tmp_path: Path) -> None:
    done = run(tmp_path, serve([say("a\u2028b\u2029c\x85d", "hm")]), ["p\u2028q", "r"])
    content = (done.folder / "trajectories.jsonl").read_bytes()
    assert content.count(b"\n") == len(content.decode().splitlines()) == 2
    assert done.rows()[0]["conversations"][1]["value"].endswith("a\u2028b\u2029c\x85d")
    again = run(tmp_path, serve([say("never asked")]), resume=True)
    assert again.counts == {"total": 2, "kept": 2}


def test_f2_9_rows_that_were_cut_are_no_finished_examples(serve: Serve, tmp_path: Path) -> None:
    def script(seen: Seen) -> Answer:
        if prompt_of(seen) == "long":
            return say("half an answ", "hm", finish="length")
        number = results_in(seen)
        return call("terminal", {"command": f"echo {number}"}, reasoning="again")

    done = run(tmp_path, serve(script), ["long", "endless"], max_turns=3)
    length, turns = done.rows()
    assert (length["stop_reason"], length["completed"], length["partial"]) == ("length", False, True)
    assert length["conversations"][-1]["value"] == "<think>\nhm\n</think>\nhalf an answ"
    assert (turns["stop_reason"], turns["completed"], turns["api_calls"]) == ("max_turns", False, 3)
    assert turns["conversations"][-1]["from"] == "tool"
    assert [turn["from"] for turn in turns["conversations"]].count("tool") == 3


def test_f2_10_failing_calls_are_counted_though_the_answer_is_confident(serve: Serve, tmp_path: Path) -> None:
    def script(seen: Seen) -> Answer:
        if results_in(seen) < 2:
            return call("read_file", {"path": f"nowhere{results_in(seen)}"}, reasoning="I look.")
        return say("All done!")

    row = run(tmp_path, serve(script), ["p"]).rows()[0]
    assert row["tool_stats"]["read_file"] == {"count": 2, "success": 0, "failure": 2}
    assert row["tool_error_counts"]["read_file"] == 2


def test_f2_11_a_key_that_a_tool_prints_is_in_no_file(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-live-0123456789abcdef"
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "notes").write_text(f"the key is {key}")
    server = serve(shell("cat notes", answer=f"It is {key}."))
    done = run(tmp_path, server, [{"prompt": "p", "cwd": "project"}], api_key=key)
    assert server.requests[0].headers["authorization"] == f"Bearer {key}"
    assert done.counts == {"total": 1, "kept": 1}
    for path in done.folder.iterdir():
        assert key.encode() not in path.read_bytes(), path.name
    assert "the key is [redacted]" in done.rows()[0]["conversations"][2]["value"]


def test_f2_12_arguments_are_objects_and_what_is_none_is_raw_and_a_failure(serve: Serve, tmp_path: Path) -> None:
    def script(seen: Seen) -> Answer:
        if results_in(seen):
            return say("Done.")
        good = ("write_file", {"path": "q", "content": 'é "x" \n'})
        return calls([good, ("terminal", '{"command": "echo'), ("terminal", "[1]")], reasoning="hm")

    row = run(tmp_path, serve(script), ["p"]).rows()[0]
    good, torn, listed = row["conversations"][1]["tool_calls"]
    assert good["arguments"] == {"path": "q", "content": 'é "x" \n'}
    assert set(torn["arguments"]) == set(listed["arguments"]) == {"_raw"}
    assert [turn["from"] for turn in row["conversations"]] == ["human", "gpt", "tool", "tool", "tool", "gpt"]
    assert row["tool_stats"]["write_file"]["success"] == 1
    assert row["tool_stats"]["terminal"] == {"count": 2, "success": 0, "failure": 2}


def test_invented_tools_are_rejected_and_the_row_goes_on(serve: Serve, tmp_path: Path) -> None:
    def script(seen: Seen) -> Answer:
        if results_in(seen):
            return say("Without it then.")
        return call("make_coffee", {"strength": 3}, reasoning="hm")

    done = run(tmp_path, serve(script), ["p"])
    rejected = done.rows("rejected.jsonl")[0]
    assert (rejected["reject_reason"], rejected["invented_tools"]) == ("invented_tool", {"make_coffee": 1})
    assert rejected["completed"]
    assert "make_coffee" not in rejected["tool_stats"]
    assert "terminal" in rejected["conversations"][2]["value"]


def test_f2_2_a_shortened_conversation_keeps_every_result_beside_its_call(serve: Serve, tmp_path: Path) -> None:
    def script(seen: Seen) -> Answer:
        if "tools" not in seen.body:
            return say("Notes: twelve rounds of output.")
        rounds = sum(item["role"] == "assistant" for item in seen.messages)
        if len(server.requests) > 14 or rounds > 12:
            return say("Done.")
        number = len(server.requests)
        return call("terminal", {"command": f"echo round {number}; seq 2000"}, reasoning="again")

    server = serve(script, models={"scripted": {"context_length": 12000}})
    done = run(tmp_path, server, ["p"], max_turns=30)
    row = done.rows()[0]
    turns = row["conversations"]
    assert turns[0] == {"from": "human", "value": "p"}
    assert turns[-1]["value"] == "Done."
    waiting = 0
    for turn in turns:
        if turn["from"] == "tool":
            waiting -= 1
        else:
            assert waiting == 0
            waiting = len(turn.get("tool_calls", []))
    for seen in server.requests:
        ids = [item["id"] for entry in seen.messages for item in entry.get("tool_calls") or []]
        assert [entry["tool_call_id"] for entry in seen.messages if entry["role"] == "tool"] == ids
