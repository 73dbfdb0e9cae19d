"""A run followed from its folder: rows as their files grow, files written anew, conversations read again."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from hermes_engine.batch import watching
from hermes_engine.batch.folder import RunFolder, held
from hermes_engine.batch.watching import RunWatch, messages_of, recorded
from hermes_engine.errors import StateError
from tests.batch.served import prompt_of, run
from tests.batch.support import dataset
from tests.batch.test_steering import AtWork
from tests.conftest import Serve
from tests.server.scripted import Answer, Seen, call, say, status


def mixed(seen: Seen) -> Answer:
    """Kept, rejected and failed rows, one of them with a call."""
    prompt = prompt_of(seen)
    if prompt.startswith("bad"):
        return status(400, {"error": {"message": "[no] such thing"}})
    if prompt == "tool" and not any(item["role"] == "tool" for item in seen.messages):
        return call("terminal", {"command": "echo [hi]"}, reasoning="I look.")
    return say("Done.", None if prompt == "dull" else "I think.")


def test_every_line_is_seen_once_and_its_conversation_can_be_read(serve: Serve, tmp_path: Path) -> None:
    ran = run(tmp_path, serve(mixed), ["a", "dull", "bad", "tool"], distribution="terminal_only")
    watch = RunWatch(RunFolder(ran.folder))
    look = watch.look()
    rows = {row.prompt: row for row in look.rows}
    assert {name: row.outcome for name, row in rows.items()} == {
        "a": "kept", "dull": "rejected", "bad": "failed", "tool": "kept",
    }  # fmt: skip
    assert (look.more, look.void, look.state.state, look.state.holder) == (False, frozenset(), "done", "")
    assert (rows["dull"].kind, rows["bad"].attempts, rows["tool"].tools, rows["tool"].turns) == (
        "no_reasoning",
        1,
        1,
        2,
    )
    assert "[no] such thing" in rows["bad"].reason
    assert rows["a"].tokens == 15
    assert rows["a"].when > 1.7e9
    assert watch.look().rows == ()
    said = recorded(rows["tool"])
    assert [(message.role, message.content) for message in said][0::3] == [("user", "tool"), ("assistant", "Done.")]
    assert [one.name for one in said[1].tool_calls] == ["terminal"]
    assert said[1].tool_calls[0].parsed() == {"command": "echo [hi]"}
    assert said[2].tool_call_id == said[1].tool_calls[0].id
    assert (said[1].reasoning, "[hi]" in said[2].content) == ("I look.", True)


def test_rows_come_as_they_are_written_and_a_failed_file_written_anew_is_void(serve: Serve, tmp_path: Path) -> None:
    ran = run(tmp_path, serve(mixed), ["a", "bad 1", "bad 2"])
    watch = RunWatch(RunFolder(ran.folder))
    assert len(watch.look().rows) == 3
    dataset(tmp_path / "prompts.jsonl", ["a", "bad 1", "bad 2", "b", "c"])
    with (ran.folder / "batch_0.jsonl").open("ab") as stream:
        stream.write(b'{"prompt_index": 7, "half')
        stream.flush()
        assert watch.look().rows == ()
        stream.write(b'": 1}\n')
    assert [row.index for row in watch.look().rows] == [7]
    good = serve([say("Done.", "I think.")])
    run(tmp_path, good, resume=True)
    look = watch.look()
    assert ran.folder / "failed.jsonl" in look.void
    assert sorted(row.prompt for row in look.rows) == ["b", "bad 1", "bad 2", "c"]
    assert {row.outcome for row in look.rows} == {"kept"}


def test_a_long_run_is_read_in_pieces(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = run(tmp_path, serve(mixed), [f"row {n}" for n in range(9)], batch_size=2)
    monkeypatch.setattr(watching, "PIECE", 2000)
    watch, found, looks = RunWatch(RunFolder(ran.folder)), [], 0
    while True:
        look = watch.look()
        found += [row.index for row in look.rows]
        looks += 1
        if not look.more:
            break
    assert sorted(found) == list(range(9))
    assert looks > 2


def test_a_run_at_work_elsewhere_is_seen_with_what_is_in_flight(serve: Serve, tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "b", "c"])
    server = serve([say("Done.", "I think.", first_delay=1.5)])
    work = AtWork(tmp_path, server, num_workers=2)
    watch = RunWatch(RunFolder(work.folder))
    work.until(lambda: server.open_requests == 2)
    work.until(lambda: watch.look().state.checkpoint.get("running") == 2)
    state = watch.look().state
    assert (state.state, state.rows["pending"], bool(state.holder)) == ("running", 3, True)
    assert state.since > 1.7e9
    work.end()
    assert watch.look().state.state == "done"


def test_who_looks_whether_a_run_is_held_keeps_nobody_from_it(tmp_path: Path) -> None:
    watch, over = RunWatch(RunFolder(tmp_path / "run")), threading.Event()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "lock").touch()

    def look() -> None:
        while not over.is_set():
            watch.look()

    lookers = [threading.Thread(target=look) for _ in range(3)]
    for one in lookers:
        one.start()
    try:
        for _ in range(50):
            with held(RunFolder(tmp_path / "run"), None):
                pass
    finally:
        over.set()
        for one in lookers:
            one.join()


def test_odd_records_break_nothing(tmp_path: Path) -> None:
    lines = [b"[]\n", b"{}\n", b'{"conversations": [1, {"from": "gpt"}], "usage": 3, "metadata": []}\n', b"{broken\n"]
    (tmp_path / "failed.jsonl").write_bytes(b"".join(lines))
    rows = RunWatch(RunFolder(tmp_path)).look().rows
    assert [(row.ident, row.index, row.prompt) for row in rows] == [("", 0, ""), ("", 0, "")]
    assert messages_of([1, {"from": "gpt", "value": 7}, {"from": "tool", "value": "x"}])[0].content == "7"
    assert messages_of(None) == ()
    (tmp_path / "failed.jsonl").write_text(json.dumps({"metadata": {"row_id": "k"}}) + "\n")
    with pytest.raises(StateError, match="cannot be read again"):
        recorded(rows[1])
