"""Recorded runs, and their rows run again without the model."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest

from hermes_engine.batch.folder import RunFolder
from hermes_engine.batch.options import checked
from hermes_engine.batch.recording import Recording, Tape, placeless, unpacked
from hermes_engine.batch.replay import Replayed, replay, tapes
from hermes_engine.errors import UsageError
from hermes_engine.profiles import resolve
from hermes_engine.redaction import Redactor
from hermes_engine.settings import Overrides
from tests.batch.served import Batch, prompt_of, results_in, run, shell
from tests.batch.support import dataset, play, read_rows, thinks
from tests.conftest import Serve
from tests.server.scripted import Answer, Seen, call, chunk, say, status, stream


def again(tmp_path: Path, index: int | None = None, *, no_tools: bool = False) -> list[Replayed]:
    async def all_rows() -> list[Replayed]:
        options = checked({"run_name": "run", "output_dir": tmp_path / "data", "resume": True})
        return [one async for one in replay(options, resolve(Overrides()), index=index, no_tools=no_tools)]

    return asyncio.run(all_rows())


def tape_of(done: Batch, row: int) -> Tape:
    return unpacked(read_rows(done.folder / "exchanges.jsonl")[row])


def test_a_row_runs_again_without_its_model(serve: Serve, tmp_path: Path) -> None:
    server = serve(shell("echo hello > made.txt; pwd; cat made.txt; echo $HOME"))
    done = run(tmp_path, server, ["one", "two"], record=True, work_dir=tmp_path / "work")
    before = {path: path.read_bytes() for path in done.folder.iterdir()}
    asked = len(server.requests)
    assert again(tmp_path) == [Replayed(0, 0, "kept", 2, []), Replayed(1, 0, "kept", 2, [])]
    assert again(tmp_path, 1, no_tools=True) == [Replayed(1, 0, "kept", 2, [])]
    assert len(server.requests) == asked
    assert {path: path.read_bytes() for path in done.folder.iterdir()} == before
    assert list(tmp_path.glob("hermes-rows-*")) == []
    with pytest.raises(UsageError, match=r"^row 7 is not among the 2 recorded ones$"):
        again(tmp_path, 7)


def test_a_difference_is_told_with_its_step(serve: Serve, tmp_path: Path) -> None:
    state = tmp_path / "state.txt"
    state.write_text("same\nold\n")

    def script(seen: Seen) -> Answer:
        if results_in(seen) == 0:
            return call("terminal", {"command": "echo first"}, reasoning="hm")
        return call("terminal", {"command": f"cat {state}"}) if results_in(seen) == 1 else say("Done.")

    run(tmp_path, serve(script), ["p"], record=True)
    assert again(tmp_path)[0].differences == []
    state.write_text("same\nnew\n")
    [told] = again(tmp_path)
    assert told.differences == ["step 2: the result of terminal was “old”, is “new”"]
    assert again(tmp_path, no_tools=True)[0].differences == [], "remembered results need no tool"
    settings = tmp_path / "data" / "run" / "run.json"
    settings.write_text(settings.read_text().replace('"max_tokens": null', '"max_tokens": 77'))
    [told] = again(tmp_path, no_tools=True)
    assert told.differences == [
        f"step {step}: the request differs in model, tools, sampling or instructions" for step in (1, 2, 3)
    ]


def test_failed_and_rejected_rows_run_again_as_well(serve: Serve, tmp_path: Path) -> None:
    tries: dict[str, int] = {}

    def script(seen: Seen) -> Answer:
        prompt = prompt_of(seen)
        tries[prompt] = tries.get(prompt, 0) + 1
        if prompt == "refused":
            return status(400, "no such thing")
        if prompt == "flaky" and tries[prompt] == 1:
            return status(500)
        return say("Done.", reasoning="hm" if prompt != "dull" else "")

    done = run(tmp_path, serve(script), ["flaky", "dull", "refused"], record=True)
    assert done.counts == {"total": 3, "kept": 1, "rejected": 1, "failed": 1}
    told = again(tmp_path)
    assert [(one.index, one.outcome, one.steps, one.differences) for one in told] == [
        (0, "kept", 1, []),
        (1, "rejected", 1, []),
        (2, "failed", 0, []),
    ]


def test_what_was_said_is_kept_without_secrets_and_private(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-secret-0123456789abcdef"
    monkeypatch.setenv("HERMES_API_KEY", key)
    half = stream([chunk({"content": "The key is sk-secret-01"}), chunk({"content": key[12:]})], end="cut")
    answers = iter([half, say(f"The key is {key}.", reasoning="hm")])
    done = run(tmp_path, serve(lambda seen: next(answers)), ["p"], record=True)
    assert stat.S_IMODE((done.folder / "exchanges.jsonl").stat().st_mode) == 0o600
    broken, whole = tape_of(done, 0).exchanges
    assert (broken["messages"], broken["form"]) == (whole["messages"], whole["form"])
    assert broken["error"]["kind"] == "stream_broken"
    assert broken["error"]["partial"]["text"].startswith("The key is ")
    assert whole["reply"]["text"].startswith("The key is ")
    assert whole["reply"]["reasoning"] == "hm"
    assert key not in str([broken, whole])


def test_a_resume_keeps_recording_and_the_last_time_counts(serve: Serve, tmp_path: Path) -> None:
    answers = iter([status(400, "no"), say("Better.", reasoning="hm")])
    server = serve(lambda seen: next(answers))
    run(tmp_path, server, ["p"], record=True)
    with (tmp_path / "data" / "run" / "exchanges.jsonl").open("ab") as stream:
        stream.write(b'{"row": "torn')
    assert again(tmp_path)[0].outcome == "failed", "a torn end is passed over"
    done = run(tmp_path, server, resume=True)
    assert [line["row"] for line in read_rows(done.folder / "exchanges.jsonl")] == [
        f"{done.rows()[0]['metadata']['row_id']}/0"
    ] * 2
    assert again(tmp_path) == [Replayed(0, 0, "kept", 1, [])]


def test_a_row_that_was_cut_short_is_the_same_up_to_there(serve: Serve, tmp_path: Path) -> None:
    def script(seen: Seen) -> Answer:
        return call("terminal", {"command": f"echo {results_in(seen)}"}, reasoning="hm")

    run(tmp_path, serve(script), ["p"], record=True, max_turns=3)
    assert again(tmp_path) == [Replayed(0, 0, "kept", 3, [])]


def test_a_run_that_was_not_recorded_says_so(tmp_path: Path, serve: Serve) -> None:
    run(tmp_path, serve(lambda seen: say("Done.", reasoning="hm")), ["p"])
    with pytest.raises(UsageError, match="was not recorded"):
        again(tmp_path)


def test_what_differs_each_time_is_no_difference() -> None:
    for text in (
        "in /tmp/hermes-rows-ab_1/row-3-17/x: Date: 2026-11-30",
        "in /w/hermes-rows-c/row-3-2/x: Date: 2027-01-01",
    ):
        assert placeless(text) == "in <row>/x: Date: "
    assert placeless("2026-11-30 /tmp/rows/row-3") == "2026-11-30 /tmp/rows/row-3"


def test_the_row_of_a_line_is_read_without_the_rest(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    recording = Recording(folder, Redactor([]))
    for number in range(3):
        recording.keep(f"k{number % 2}-0/{number % 2}", Tape([{"messages": "", "form": "", "reply": {"n": number}}]))
    recording.close()
    found = tapes(folder)
    assert list(found) == ["k0-0/0", "k1-0/1"]
    lines = read_rows(folder.exchanges)
    assert found["k0-0/0"][0] > found["k1-0/1"][0], "the last line of a row counts"
    assert unpacked(lines[2]).exchanges[0]["reply"] == {"n": 2}
    with pytest.raises(ValueError, match="not a line of exchanges"):
        unpacked({"row": "x", "packed": "AAAA"})


def test_a_played_run_records_nothing_it_was_not_asked_to(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["p"])
    assert not (play(tmp_path, lambda prompt, spec: thinks()).folder / "exchanges.jsonl").exists()
