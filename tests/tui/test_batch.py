"""The batch screens, driven as a person does: real engine, real runs, a scripted server at the network."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.batch.folder import RunFolder, read_object
from hermes_engine.batch.overview import run_state
from hermes_tui.screens.batch.run import RunScreen
from hermes_tui.screens.batch.runs import RunsScreen
from hermes_tui.screens.batch.table import Table
from hermes_tui.screens.batch.trace import TraceScreen
from tests.batch.served import prompt_of
from tests.batch.support import dataset
from tests.batch.test_steering import AtWork
from tests.conftest import Serve
from tests.server.scripted import Answer, Seen, call, hang, say, status
from tests.tui.live import Live, live, settings

pytestmark = pytest.mark.slow

GOOD = say("Done [/b].", "I think.")


def run_screen(app: Live) -> RunScreen:
    """The run in view."""
    screen = app.app.screen
    assert isinstance(screen, RunScreen), type(screen)
    return screen


def states(app: Live) -> list[str]:
    """States of the rows in view, with their numbers."""
    return [" ".join(line.split()[:3]) for line in run_screen(app).table.plain]


async def begin(app: Live, rows: list[Any], folder: Path, *, flags: str = "") -> None:
    """Starts a run by the command and opens it."""
    dataset(folder / "prompts.jsonl", rows)
    await app.ready()
    await app.say(f"/batch prompts.jsonl {flags}".strip())
    await app.shows("runs beside this chat")
    await app.pilot.press("alt+4")
    await app.until(lambda: isinstance(app.app.screen, RunsScreen))
    await app.shows("prompts-")
    await app.pilot.press("enter")
    await app.until(lambda: isinstance(app.app.screen, RunScreen))


def by_prompt(table: dict[str, Answer | Callable[[Seen], Answer]], otherwise: Answer = GOOD) -> Any:
    """A script by the first word of the prompt."""

    def script(seen: Seen) -> Answer:
        answer = table.get(prompt_of(seen).split()[0], otherwise)
        return answer(seen) if callable(answer) else answer

    return script


async def test_no_run_teaches_and_a_sample_file_starts_one(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "prompts.jsonl").write_text("mine\n")
    server = serve([GOOD])
    async with live(settings(server), tmp_path, width=100) as app:
        await app.ready()
        await app.say("/batch")
        await app.shows("/batch prompts.jsonl — one JSON object per line with `prompt`")
        assert "4 Batch" in app.screen
        await app.pilot.press("x")
        await app.shows("prompts-2.jsonl")
        assert (tmp_path / "prompts.jsonl").read_text() == "mine\n"
        assert all(json.loads(line)["prompt"] for line in (tmp_path / "prompts-2.jsonl").read_text().splitlines())
        await app.shows("Enter starts it")
        await app.pilot.press("tab", *"night", "tab", "tab", "backspace", *"nine", "enter")
        await app.shows("--num_workers")
        await app.pilot.press("down", "down", "down", "ctrl+u", "3", "enter")
        await app.until(lambda: isinstance(app.app.screen, RunScreen))
        await app.shows("✓ 3 kept")
        assert run_screen(app).model.name == "night"
        await app.until(lambda: (tmp_path / "data" / "night" / "trajectories.jsonl").is_file())
        await app.shows("done")
        await app.pilot.press("escape", "n", *"prompts-2.jsonl", "tab", *"night", "enter")
        await app.shows("the run night exists already")
        await app.pilot.press("up", *"--max_turn 3", "enter")
        await app.shows("did you mean --max_turns?")
        await app.pilot.press("escape")
        await app.until(lambda: isinstance(app.app.screen, RunsScreen))
        await app.shows("3/3 100%")


async def test_rows_stand_by_need_and_the_counters_add_up(serve: Serve, tmp_path: Path) -> None:
    server = serve(
        by_prompt(
            {
                "bad": status(400, {"error": {"message": "[no] such thing"}}),
                "dull": say("Done."),
                "slow": hang(60),
            }
        )
    )
    rows = ["good one", "bad one", "dull one", "slow one", b"{broken", "slow two"]
    async with live(settings(server), tmp_path, width=160, height=36) as app:
        await begin(app, rows, tmp_path)
        await app.until(lambda: len(states(app)) == 5)
        assert states(app) == ["3 ● running", "5 ● running", "1 ✗ failed", "2 ⊘ rejected", "0 ✓ kept"]
        assert "✓ 1 kept  ⊘ 1 rejected  ✗ 1 failed  ▲ 1 invalid  ● 2 running" in app.screen
        assert "4/6  66 %" in app.screen
        assert "4 Batch·66%" in app.screen
        await app.shows("[no] such thing")
        await app.shows("1 no reasoning")
        assert "pass rate 33.3 %" in app.screen
        await app.pilot.press("f", "f")
        await app.until(lambda: states(app) == ["1 ✗ failed"])
        await app.pilot.press("escape", "slash", *"xkjfp")
        await app.shows("/xkjfp")
        await app.shows("0 of 6. Esc clears.")
        await app.pilot.press("escape", "slash", *"dull", "enter")
        await app.until(lambda: states(app) == ["2 ⊘ rejected"])
        await app.pilot.press("escape", "s")
        await app.until(lambda: [line.split()[0] for line in states(app)] == ["0", "1", "2", "3", "5"])
        await app.pilot.press("c")
        await app.shows("good one")
        await app.pilot.press("tab")
        await app.until(lambda: "STATISTICS" not in app.screen)


async def test_pausing_workers_and_stopping_from_the_screen(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("Done.", "I think.", first_delay=0.4)])
    async with live(settings(server), tmp_path, width=120) as app:
        await begin(app, [f"row {n}" for n in range(60)], tmp_path)
        await app.shows("● 4 running")
        await app.pilot.press("p")
        await app.shows("Paused")
        await app.shows("■ paused")
        await app.until(lambda: server.open_requests == 0)
        before = len(server.requests)
        await app.pilot.press("plus", "plus", "minus")
        await app.shows("5 workers")
        assert len(server.requests) == before
        await app.pilot.press("p")
        await app.until(lambda: server.open_requests == 5)
        await app.pilot.press("x")
        await app.shows("Stop prompts-")
        await app.pilot.press("1")
        await app.shows("interrupted", 20)
        await app.shows("p resume:")
        counts = run_screen(app).model.counters()
        assert counts.running == 0
        assert counts.kept + counts.waiting == 60
        assert f"{counts.waiting} left (0 failed, {counts.waiting} waiting)" in app.screen
        await app.pilot.press("escape")
        await app.shows("resume: ")
        await app.pilot.press("alt+1", "alt+4")
        await app.shows("resume: ")
        await app.pilot.press("p")
        await app.shows("goes on")
        await app.until(lambda: (engine := app.desk.engine) is not None and bool(engine.runs.names))


async def test_a_run_that_waits_for_others_says_so_and_can_be_stopped_at_once(serve: Serve, tmp_path: Path) -> None:
    async with live(settings(serve([hang(60)])), tmp_path, width=120) as app:
        await app.ready()
        for name in ("one", "two", "three"):
            dataset(tmp_path / f"{name}.jsonl", ["a", "b"])
            await app.say(f"/batch {name}.jsonl")
            await app.shows(f"Batch {name}-")
        await app.shows("2 other runs are at work")
        await app.pilot.press("alt+4")
        await app.shows("waits for another run")
        assert [line.split()[1][:3] for line in app.app.screen.query_one("Table", Table).plain[2:]] == ["thr"]
        await app.pilot.press("end", "enter")
        await app.until(lambda: isinstance(app.app.screen, RunScreen))
        await app.shows("waits for another run")
        await app.pilot.press("x", "1")
        await app.until(lambda: (engine := app.desk.engine) is not None and len(engine.runs.names) == 2)
        await app.pilot.press("alt+1")
        await app.shows("interrupted · /batch show three-")
        assert not list(tmp_path.glob("data/three-*"))


async def test_what_holds_a_run_up_stands_over_its_rows_while_it_does(serve: Serve, tmp_path: Path) -> None:
    up = False

    def script(seen: Seen) -> Answer:
        return GOOD if up else status(503, {"error": {"message": "no [room]"}})

    async with live(settings(serve(script)), tmp_path, width=120) as app:
        await begin(app, ["a", "b", "c"], tmp_path)
        await app.shows("▲ HTTP 503")
        assert "the run waits for the server" in app.screen
        assert "● 3 running" in app.screen
        told = RunFolder(next((tmp_path / "data").iterdir()))
        await app.until(lambda: "waits for the server" in read_object(told.checkpoint)["notice"])
        watched = run_state(told).checkpoint["notice"]
        assert watched.startswith("HTTP 503")
        up = True
        await app.shows("✓ 3 kept", 40)
        assert "waits for the server" not in app.screen
        await app.until(lambda: not read_object(told.checkpoint)["notice"])


async def test_failed_rows_run_again_while_it_runs_and_after(serve: Serve, tmp_path: Path) -> None:
    table: dict[str, Any] = {"bad": status(400, {"error": {"message": "no"}}), "slow": hang(60)}
    server = serve(by_prompt(table))
    async with live(settings(server), tmp_path, width=120) as app:
        await begin(app, ["bad one", "bad two", "slow", "fine"], tmp_path)
        await app.shows("✗ 2 failed")
        table["bad"] = GOOD
        await app.until(lambda: states(app)[1:2] == ["1 ✗ failed"] or states(app)[1:2] == ["0 ✗ failed"])
        await app.pilot.press("down", "r")
        await app.shows("✗ 1 failed")
        await app.shows("✓ 2 kept")
        await app.pilot.press("x", "1")
        await app.shows("interrupted", 20)
        table["slow"] = GOOD
        await app.pilot.press("R")
        await app.shows("✓ 3 kept")
        await app.until(lambda: not run_screen(app).model.at_work)
        assert run_screen(app).model.counters().waiting == 1, "only failed rows were run"
        await app.shows("■ not finished")


async def test_a_row_is_read_live_and_others_as_they_are_recorded(serve: Serve, tmp_path: Path) -> None:
    words = "".join(f"word{n} " for n in range(600))

    def tool(seen: Seen) -> Answer:
        if not any(item["role"] == "tool" for item in seen.messages):
            return call("write_file", {"path": "a.txt", "content": "x"}, reasoning="I write [b].")
        return say(words, "I think.", chunks=600, delay=0.1) if prompt_of(seen) == "tool live" else GOOD

    server = serve(by_prompt({"tool": tool, "bad": status(400, {"error": {"message": "[no] such thing"}})}))
    async with live(settings(server), tmp_path, width=120) as app:
        await begin(app, ["tool live", "bad", "tool two"], tmp_path)
        await app.until(lambda: states(app) == ["0 ● running", "1 ✗ failed", "2 ✓ kept"])
        await app.pilot.press("home", "enter")
        await app.until(lambda: isinstance(app.app.screen, TraceScreen))
        await app.shows("word")
        seen = app.screen.count("word")
        await app.until(lambda: app.screen.count("word") > seen)
        assert "a.txt" in app.screen
        assert "word599" not in app.screen, "it is read as it comes"
        await app.pilot.press("right_square_bracket")
        await app.shows("failed: ")
        assert "[no] such thing" in app.screen
        await app.pilot.press("right_square_bracket")
        await app.shows("Done [/b].")
        assert "a.txt" in app.screen
        assert "✓ kept" in app.screen
        await app.pilot.press("y")
        await app.shows("Copied 1 line")
        engine = app.desk.engine
        assert engine is not None
        at_work = engine.runs.floor(engine.runs.names[0])
        assert at_work is not None
        assert [row._watcher for row in at_work.rows] == [None], "nobody looks at it any more"
        await app.pilot.press("escape")
        await app.until(lambda: isinstance(app.app.screen, RunScreen))
        await app.pilot.press("y")
        await app.shows("Copied 1 line")


async def test_a_row_that_ends_while_it_is_opened_is_read_from_its_line(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("Well done.", "I think.", first_delay=6)])
    async with live(settings(server), tmp_path, width=100) as app:
        await begin(app, ["only one"], tmp_path)
        await app.until(lambda: [row.live for row in run_screen(app).rows] == [True])
        screen, (row,) = run_screen(app), run_screen(app).rows
        await app.until(lambda: bool(server.requests) and server.requests[0].ended is not None, 30)
        screen.follow._due = time.monotonic() + 3600  # its line is read when it is looked for, and not before
        engine = app.desk.engine
        assert engine is not None
        await app.until(lambda: not engine.runs.names)
        app.app.push_screen(TraceScreen(screen, row))
        await app.shows("Well done.")
        assert "Nothing was kept" not in app.screen


async def test_rows_ask_the_person_where_the_run_is_to_ask(serve: Serve, tmp_path: Path) -> None:
    def tool(seen: Seen) -> Answer:
        if any(item["role"] == "tool" for item in seen.messages):
            return GOOD
        return call("write_file", {"path": "a.txt", "content": "x"}, reasoning="I write [b].")

    server = serve(by_prompt({"ask": tool}))
    async with live(settings(server), tmp_path, width=120, height=36) as app:
        await begin(app, ["ask one", "fine", "ask two"], tmp_path, flags="--mode ask --sandbox local")
        await app.shows("◆ 2 need you")
        await app.until(lambda: sorted(states(app)[:2]) == ["0 ◆ question", "2 ◆ question"])
        assert "◆ 2 need you" in app.screen.splitlines()[0], "as everywhere"
        counts = run_screen(app).model.counters()
        assert (counts.needs, counts.running, counts.kept, counts.settled) == (2, 0, 1, 1)
        await app.pilot.press("a")
        await app.shows(" asks")
        await app.pilot.press("1")
        await app.shows("✓ 2 kept")
        await app.pilot.press("home", "enter")
        await app.until(lambda: isinstance(app.app.screen, TraceScreen))
        await app.shows("◆ question")
        await app.pilot.press("a")
        await app.until(lambda: re.search(r"(\d)  No\b", app.screen))
        await app.pilot.press(re.search(r"(\d)  No\b", app.screen).group(1))  # type: ignore[union-attr]
        await app.until(lambda: not app.desk.engine or not app.desk.engine.runs.names)
        told = [json.loads(line) for line in next(tmp_path.glob("data/*/trajectories.jsonl")).read_text().splitlines()]
        tools = sorted(turn["value"][:7] for row in told for turn in row["conversations"] if turn["from"] == "tool")
        assert len(told) == 3
        assert tools[0] == "created"
        assert "created" not in tools[1]
        await app.pilot.press("alt+1")
        await app.shows("Allowed once")


async def test_an_export_is_a_new_file_and_an_answer_is_copied(serve: Serve, tmp_path: Path) -> None:
    async with live(settings(serve([GOOD])), tmp_path, width=100) as app:
        await begin(app, ["one", "two"], tmp_path)
        await app.shows("✓ 2 kept")
        await app.until(lambda: not run_screen(app).model.at_work)
        name = run_screen(app).model.name
        for _time in range(2):
            await app.pilot.press("e")
            await app.shows("Export the completed rows as")
            await app.pilot.press(*"openai", "enter")
            await app.shows("2 rows in ")
            run_screen(app).remark("")
        written = [tmp_path / f"{name}.openai{number}.jsonl" for number in ("", "-2")]
        assert [len(path.read_text().splitlines()) for path in written] == [2, 2]
        await app.pilot.press("y")
        await app.shows("Copied 1 line")


async def test_a_run_of_another_program_is_watched_and_can_be_stopped(serve: Serve, tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", [f"row {n}" for n in range(600)])
    server = serve([say("Done.", "I think.", first_delay=0.3)])
    work = AtWork(tmp_path, server, num_workers=2)
    work.until(lambda: len(server.requests) > 2)
    try:
        async with live(settings(server), tmp_path, width=120) as app:
            await app.ready()
            await app.pilot.press("f5")
            await app.shows("process ")
            await app.pilot.press("enter")
            await app.until(lambda: isinstance(app.app.screen, RunScreen))
            await app.shows("● 2 running")
            kept = run_screen(app).model.counters().kept
            written = len(list((work.folder).glob("batch_*.jsonl")))
            assert written
            await app.until(lambda: run_screen(app).model.counters().kept > kept)
            await app.until(lambda: len(states(app)) >= kept)
            end = time.monotonic() + 1.5
            at_least = sum(path.read_bytes().count(b"\n") for path in work.folder.glob("batch_*.jsonl"))
            await app.until(lambda: len(run_screen(app).rows) >= at_least)
            assert time.monotonic() < end + 3
            await app.pilot.press("p")
            await app.shows("Another program works it")
            await app.pilot.press("R", "enter")
            await app.until(lambda: isinstance(app.app.screen, TraceScreen))
            await app.shows("Done.")
            await app.pilot.press("escape", "x", "1")
            await app.shows("interrupted", 20)
    finally:
        assert work.end().summary.state == "interrupted"


@pytest.mark.parametrize(("width", "height"), [(40, 12), (20, 5), (80, 24), (200, 50)])
async def test_nothing_breaks_at_any_size_and_mark_up_is_text(
    serve: Serve, tmp_path: Path, width: int, height: int
) -> None:
    odd = ["[/] $x [bold", "[@click=app.quit]x[/]", "中文 👩‍👩‍👧 \x1b[2J", "[red]"]
    server = serve(by_prompt({"[red]": status(400, {"error": {"message": "[/b] \x1b]0;t\x07"}})}))
    async with live(settings(server), tmp_path, width=width, height=height) as app:
        await app.ready()
        dataset(tmp_path / "prompts.jsonl", odd)
        await app.say("/batch prompts.jsonl")
        await app.until(lambda: list(tmp_path.glob("data/*/trajectories.jsonl")), 30)
        await app.pilot.press("alt+4", "enter")
        await app.until(lambda: isinstance(app.app.screen, RunsScreen | RunScreen))
        if isinstance(app.app.screen, RunsScreen):
            await app.until(lambda: isinstance(app.app.screen, RunsScreen) and app.app.screen.chosen is not None)
            await app.pilot.press("enter")
        await app.until(lambda: isinstance(app.app.screen, RunScreen) and len(run_screen(app).rows) == 4)
        for key in ("c", "c", "s", "f", "escape", "tab", "tab", "down", "enter"):
            await app.pilot.press(key)
        await app.until(lambda: isinstance(app.app.screen, TraceScreen))
        await app.pilot.press("right_square_bracket", "right_square_bracket", "question_mark", "escape")
        await app.pilot.press("escape", "x", "e", "escape", "escape", "n")
        await app.pilot.pause()
        await app.pilot.press("escape")
        assert app.app.failure is None
        assert "\x1b" not in app.screen
