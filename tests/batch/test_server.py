"""Runs against a scripted server over real HTTP, with the real agent, tools and commands."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.batch.runner import BatchRun, BatchSummary
from hermes_engine.events import Event, Notice, RowFinished
from hermes_engine.profiles import resolve
from hermes_engine.settings import Overrides
from tests.batch.support import dataset, options, read_rows
from tests.conftest import Serve
from tests.server.scripted import (
    Answer,
    ScriptedServer,
    Seen,
    call,
    calls,
    drop,
    hang,
    message,
    plain_json,
    say,
    status,
)


class Batch:
    """A run that ended, and its files."""

    def __init__(self, summary: BatchSummary, events: list[Event]) -> None:
        self.summary, self.events, self.folder = summary, events, summary.folder

    def rows(self, name: str = "trajectories.jsonl") -> list[dict[str, Any]]:
        return read_rows(self.folder / name)

    @property
    def counts(self) -> dict[str, int]:
        return {name: number for name, number in self.summary.counts.items() if number}

    @property
    def statistics(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads((self.folder / "statistics.json").read_bytes())
        return value


def run(tmp_path: Path, server: ScriptedServer | str, rows: list[Any] | None = None, **values: Any) -> Batch:
    """Runs a batch against a server."""
    if rows is not None:
        dataset(tmp_path / "prompts.jsonl", rows)
    url = server if isinstance(server, str) else server.base_url
    events: list[Event] = []
    given = options(tmp_path, **{"model": "scripted", "base_url": url, **values})
    return Batch(BatchRun(given, resolve(Overrides()), events.append).run(), events)


def prompt_of(seen: Seen) -> str:
    """The prompt a request is about."""
    return next(str(item["content"]) for item in seen.messages if item["role"] == "user")


def results_in(seen: Seen) -> int:
    """Tool results a request carries."""
    return sum(item["role"] == "tool" for item in seen.messages)


def shell(command: str, answer: str = "Done.") -> Any:
    """A script: one command, then an answer."""

    def script(seen: Seen) -> Answer:
        if results_in(seen):
            return say(answer)
        return call("terminal", {"command": command}, reasoning="I run it.")

    return script


def test_a_prompt_a_command_and_an_answer(serve: Serve, tmp_path: Path) -> None:
    server = serve(shell("echo hello > made.txt; cat made.txt; pwd; echo $HOME"))
    done = run(tmp_path, server, ["Say hello"], work_dir=tmp_path / "work")
    assert done.summary.exit_code == 0
    row = done.rows()[0]
    human, first, result, last = row["conversations"]
    assert human == {"from": "human", "value": "Say hello"}
    assert first["value"] == "<think>\nI run it.\n</think>"
    assert first["tool_calls"][0]["name"] == "terminal"
    lines = result["value"].splitlines()
    assert lines[0] == "hello"
    assert lines[1] == lines[2]
    assert lines[1].startswith(str(tmp_path / "work"))
    assert last == {"from": "gpt", "value": "Done.", "tool_calls": []}
    assert row["tool_stats"]["terminal"] == {"count": 1, "success": 1, "failure": 0}
    assert row["usage"] == {
        "prompt_tokens": 20,
        "completion_tokens": 10,
        "reasoning_tokens": 0,
        "tokens_known": True,
        "cost_usd": 0.0,
        "cost_known": False,
    }
    assert (row["api_calls"], row["metadata"]["model"]) == (2, "scripted")
    assert server.requests[0].messages[-1] == {"role": "user", "content": "Say hello"}
    assert server.requests[0].tools == ["terminal", "process", "read_file", "write_file", "patch", "search_files"]
    assert list((tmp_path / "work").iterdir()) == []
    settings = json.loads((done.folder / "run.json").read_text())
    assert settings["system_prompt"] == server.requests[0].messages[0]["content"]
    assert [tool["function"]["name"] for tool in settings["tools"]] == server.requests[0].tools


def test_f1_10_as_many_requests_at_once_as_were_asked_for(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("Yes.", "hm", first_delay=1.5)])
    done = run(tmp_path, server, [f"p{number}" for number in range(120)], num_workers=120)
    assert server.max_in_flight == 120
    assert done.counts == {"total": 120, "kept": 120}


def test_f1_10_a_silent_request_ends_in_the_rows_timeout(serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda seen: hang(60) if prompt_of(seen) == "silent" else say("Yes.", "hm"))
    begun = time.monotonic()
    done = run(tmp_path, server, ["a", "silent", "b"], timeout_seconds=1)
    assert time.monotonic() - begun < 10
    assert done.counts == {"total": 3, "kept": 2, "failed": 1}
    failed = done.rows("failed.jsonl")[0]
    assert (failed["stop_reason"], failed["error_kind"], failed["prompt_index"]) == ("timeout", "timeout", 1)


def test_f1_14_retries_are_counted_and_have_a_ceiling(serve: Serve, tmp_path: Path) -> None:
    def script(seen: Seen) -> Answer:
        prompt = prompt_of(seen)
        tries = sum(prompt_of(other) == prompt for other in server.requests)
        if prompt == "never" or tries < 3:
            return status(500, {"error": {"message": "oh"}})
        return say("Yes.", "hm")

    server = serve(script)
    done = run(tmp_path, server, ["in the end", "never"])
    assert [(row["retries"], row["api_calls"]) for row in done.rows()] == [(2, 3)]
    failed = done.rows("failed.jsonl")[0]
    assert (failed["error_kind"], failed["retries"], failed["api_calls"]) == ("server_error", 2, 3)
    assert len(server.requests) == 6


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


def test_f12_9_nothing_of_one_row_reaches_another(serve: Serve, tmp_path: Path) -> None:
    done = run(tmp_path, serve(shell('echo "[$FOO][$(ls)]"; export FOO=1; touch left')), ["a", "b"], num_workers=1)
    assert {row["conversations"][2]["value"].splitlines()[0] for row in done.rows()} == {"[][]"}


def test_f10_2_what_would_ask_is_denied_at_once(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "project" / "keep").mkdir(parents=True)
    server = serve(shell(f"rm -rf {tmp_path}/project/keep"))
    done = run(tmp_path, server, [{"prompt": "p", "cwd": "project"}])
    assert (tmp_path / "project" / "keep").is_dir()
    assert done.rows()[0]["tool_stats"]["terminal"]["failure"] == 1


def test_f10_3_no_command_sees_the_key(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(shell("env | cut -d= -f1"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-live-0123456789abcdef")
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    names = run(tmp_path, server, ["p"]).rows()[0]["conversations"][2]["value"].split()
    assert "OPENAI_API_KEY" not in names
    assert {"PATH", "HOME"} <= set(names)


def test_a_switched_off_set_is_in_no_request(serve: Serve, tmp_path: Path, isolated_home: Path) -> None:
    isolated_home.mkdir()
    (isolated_home / "config.yaml").write_text("toolsets: [file]\n")
    server = serve([say("Yes.", "hm")])
    done = run(tmp_path, server, ["p", {"prompt": "q", "toolsets": ["terminal"]}], distribution="terminal_file")
    assert server.requests[0].tools == ["read_file", "write_file", "patch", "search_files"]
    assert done.counts == {"total": 2, "kept": 1, "invalid": 1}
    assert done.rows()[0]["toolsets_used"] == ["file"]
    told = [event.text for event in done.events if isinstance(event, Notice)]
    assert any("terminal" in text and "not enabled" in text for text in told)


def test_no_tools_at_all(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("Yes.", "hm")])
    done = run(tmp_path, server, [{"prompt": "p", "toolsets": []}])
    assert "tools" not in server.requests[0].body
    assert done.rows()[0]["toolsets_used"] == []


def test_what_goes_into_a_request(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "pre.json").write_text('[{"role":"user","content":"2+2"},{"role":"assistant","content":"4"}]')
    server = serve([say("Yes.", "hm")])
    done = run(
        tmp_path,
        server,
        ["p"],
        prefill_messages_file=tmp_path / "pre.json",
        ephemeral_system_prompt="Be terse.",
        sampling={"top_p": 0.9, "stop": ["END"]},
        extra_body={"chat_template_kwargs": {"enable_thinking": True}},
        temperature=0.25,
        max_tokens=77,
        seed=3,
        reasoning_effort="low",
    )
    body = server.requests[0].body
    assert [item["content"] for item in body["messages"]] == ["Be terse.", "2+2", "4", "p"]
    assert (body["top_p"], body["stop"], body["temperature"]) == (0.9, ["END"], 0.25)
    assert body["chat_template_kwargs"] == {"enable_thinking": True}
    assert 77 in (body.get("max_tokens"), body.get("max_completion_tokens"))
    assert isinstance(body["seed"], int)
    assert (body["model"], body["stream"]) == ("scripted", True)
    assert "low" in json.dumps(body)
    assert len(done.rows()[0]["conversations"]) == 2


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


def test_a_key_that_every_row_is_refused_for(serve: Serve, tmp_path: Path) -> None:
    server = serve([status(401, {"error": {"message": "Incorrect API key provided"}})])
    done = run(tmp_path, server, [f"p{number}" for number in range(60)])
    assert (done.summary.state, done.summary.exit_code) == ("stopped", 1)
    assert "Incorrect API key" in done.summary.reason
    assert done.counts == {"total": 60, "pending": 60}
    assert len(server.requests) <= 28
    again = run(tmp_path, serve([say("Yes.", "hm")]), resume=True)
    assert again.counts == {"total": 60, "kept": 60}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_a_server_that_comes_late_costs_no_row_an_attempt(tmp_path: Path) -> None:
    port = free_port()
    server = ScriptedServer([say("Yes.", "hm")], port=port)
    timer = threading.Timer(2.0, server.start)
    timer.start()
    try:
        done = run(tmp_path, f"http://127.0.0.1:{port}/v1", [f"p{number}" for number in range(12)])
    finally:
        timer.join()
        server.close()
    assert done.counts == {"total": 12, "kept": 12}
    told = [event for event in done.events if isinstance(event, Notice) and "server" in event.text]
    assert [event.level for event in told] == ["warning", "info"]
    assert "waits for the server" in told[0].text


def test_503_pauses_the_run(serve: Serve, tmp_path: Path) -> None:
    began = time.monotonic()

    def script(seen: Seen) -> Answer:
        if time.monotonic() - began < 2:
            return status(503, {"error": {"message": "loading model"}})
        return say("Yes.", "hm")

    server = serve(script)
    done = run(tmp_path, server, [f"p{number}" for number in range(30)], timeout_seconds=1.5)
    assert done.counts == {"total": 30, "kept": 30}
    assert len(server.requests) < 45


def test_a_server_that_stays_away_ends_the_run(tmp_path: Path) -> None:
    done = run(tmp_path, f"http://127.0.0.1:{free_port()}/v1", ["a", "b"], endpoint_wait=1.5)
    assert (done.summary.state, done.summary.exit_code) == ("stopped", 1)
    assert done.counts == {"total": 2, "pending": 2}


def test_a_row_whose_connection_always_breaks_is_its_own_failure(serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda seen: drop() if prompt_of(seen) == "poison" else say("Yes.", "hm"))
    done = run(tmp_path, server, ["a", "poison", "b"], endpoint_wait=30)
    assert done.counts == {"total": 3, "kept": 2, "failed": 1}


def test_f1_8_an_interrupt_leaves_no_command_running(serve: Serve, tmp_path: Path) -> None:
    mark = f"31{os.getpid()}"
    server = serve(shell(f"sleep {mark}"))
    events: list[Event] = []
    dataset(tmp_path / "prompts.jsonl", ["a", "b", "c"])
    batch = BatchRun(
        options(tmp_path, model="scripted", base_url=server.base_url, num_workers=2),
        resolve(Overrides()),
        events.append,
    )

    def stop() -> None:
        server.wait_until(lambda: len(running(mark)) >= 2)
        batch.stop()

    thread = threading.Thread(target=stop)
    thread.start()
    begun = time.monotonic()
    summary = batch.run()
    thread.join()
    assert time.monotonic() - begun < 12
    assert summary.counts["pending"] == 3
    assert [event.outcome for event in events if isinstance(event, RowFinished)] == ["cancelled"] * 2
    assert running(mark) == []


def running(mark: str) -> list[str]:
    """Command lines of processes that hold the mark."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if line.strip() == f"sleep {mark}":
            found.append(line)
    return found


def test_prices_of_the_command_line_make_the_cost(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("Yes.", "hm", usage={"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500})])
    rows = [f"p{number}" for number in range(20)]
    done = run(tmp_path, server, rows, price_in=10, price_out=20, max_cost_usd=0.05, num_workers=1)
    assert done.rows()[0]["usage"]["cost_usd"] == pytest.approx(0.02)
    assert done.rows()[0]["usage"]["cost_known"]
    assert done.summary.state == "stopped"
    assert 2 <= len(done.rows()) <= 3
