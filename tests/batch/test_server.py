"""Runs against a scripted server over real HTTP, with the real agent, tools and commands."""

from __future__ import annotations

import gc
import json
import os
import socket
import threading
import time
from pathlib import Path

import pytest

from hermes_engine.agent.loop import Agent
from hermes_engine.batch.runner import BatchRun
from hermes_engine.events import Event, Notice, RowFinished
from hermes_engine.profiles import resolve
from hermes_engine.settings import Overrides
from tests.batch.served import prompt_of, run, shell
from tests.batch.support import dataset, options
from tests.conftest import Serve
from tests.server.scripted import (
    Answer,
    ScriptedServer,
    Seen,
    drop,
    hang,
    say,
    status,
)


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


def test_a_row_that_ended_leaves_nothing_to_the_collector(serve: Serve, tmp_path: Path) -> None:
    """Its conversation is freed at once: what leads back to itself waits, 100 kB a row, for a collection."""
    server = serve(shell("echo hello"))
    before = sum(isinstance(one, Agent) for one in gc.get_objects())
    gc.disable()
    try:
        done = run(tmp_path, server, [f"row {number}" for number in range(8)], num_workers=2)
        after = sum(isinstance(one, Agent) for one in gc.get_objects())
    finally:
        gc.enable()
    assert done.counts["kept"] == 8
    assert after == before
