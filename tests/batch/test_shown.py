"""What a run at work shows: few updates, plain lines off a terminal, a time left that knows only this invocation."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator

import pytest

from hermes_engine.events import BatchFinished, BatchStarted, Event, Notice, RowFinished, RowStarted
from hermes_engine.messages import Usage
from hermes_tui.printing_batch import Pace, duration, form_for, shown


def counts(kept: int, total: int, **more: int) -> dict[str, int]:
    told = {"total": total, "kept": kept, "rejected": 0, "failed": 0, "invalid": 0, **more}
    return {**told, "pending": total - sum(told.values()) + total}


def life(rows: int, *, before: int = 0) -> Iterator[Event]:
    total = rows + before
    yield BatchStarted(name="run", folder="data/run", total=total, done=before, workers=4, counts=counts(before, total))
    for number in range(rows):
        yield RowStarted(index=number)
        settled = counts(before + number + 1, total)
        yield RowFinished(index=number, outcome="kept", usage=Usage(cost_usd=0.01), counts=settled)
    yield BatchFinished(name="run", counts=counts(total, total))


class Clock:
    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def test_f1_15_two_thousand_rows_make_few_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    sink = shown("plain", Clock(0.001))
    for event in life(2000):
        sink(event)
    sink.close()
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "\r" not in printed
    lines = printed.splitlines()
    assert lines[0] == "run: 2000 rows, 4 at once → data/run"
    assert lines[-1].startswith("2000/2000 · kept 2000 · ")
    assert len(lines) <= 5


def test_what_is_taken_back_is_done_no_more(capsys: pytest.CaptureFixture[str]) -> None:
    """Twenty refusals of one kind are pending again: the line must not say that they are done."""
    sink = shown("plain", Clock(0.001))
    sink(BatchStarted(name="run", folder="data/run", total=40, done=0, workers=4, counts=counts(0, 40)))
    for number in range(20):
        sink(RowStarted(index=number))
        sink(RowFinished(index=number, outcome="failed", counts=counts(0, 40)))
    sink(BatchFinished(name="run", state="stopped", counts=counts(0, 40)))
    assert capsys.readouterr().out.splitlines()[-1].startswith("0/40 · kept 0 · pending 40")


def test_invalid_lines_are_not_told_as_done_before(capsys: pytest.CaptureFixture[str]) -> None:
    sink = shown("plain", Clock(0.001))
    told = counts(2, 9, rejected=1, invalid=3)
    sink(BatchStarted(name="run", folder="data/run", total=9, done=6, workers=4, counts=told))
    assert capsys.readouterr().out == "run: 9 rows, 3 done before, 3 invalid, 4 at once → data/run\n"


def test_f1_15_plain_lines_come_at_most_every_five_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    sink = shown("plain", Clock(0.5))
    for event in life(100):
        sink(event)
    assert 3 < len(capsys.readouterr().out.splitlines()) < 100


def test_f1_9_progress_and_time_left_begin_where_the_run_was() -> None:
    clock = Clock(0.0)
    pace = Pace(clock)
    told = []
    for event in life(10, before=90):
        if isinstance(event, RowFinished):
            clock.now += 6.0
        pace.take(event)
        told.append((pace.done, pace.seconds_left, pace.line()))
    assert told[0][:2] == (90, None)
    assert told[2][:2] == (91, 54.0)
    assert told[2][2] == "91/100 · kept 91 · pending 9 · 10.0 a minute · 54 s left · $0.0100"
    assert told[-1][:2] == (100, 0.0)


def test_the_cost_is_of_all_invocations_as_its_cap_is() -> None:
    pace = Pace(Clock(0))
    pace.take(BatchStarted(total=2, done=1, counts=counts(1, 2), cost_usd=0.25, max_cost_usd=1))
    pace.take(RowStarted(index=1))
    pace.take(RowFinished(index=1, outcome="kept", counts=counts(2, 2), usage=Usage(1, 1, 0, True, 0.5, True)))
    assert pace.line().endswith("$0.7500 of $1")


def test_a_narrow_line_keeps_what_matters_most() -> None:
    clock = Clock(0.0)
    pace = Pace(clock)
    told = counts(12, 61, rejected=6, failed=9, invalid=1)
    pace.take(BatchStarted(total=61, done=1, counts=counts(0, 61, invalid=1), max_cost_usd=10))
    for number in range(30):
        pace.take(RowStarted(index=number))
    clock.now += 30
    for number in range(27):
        pace.take(RowFinished(index=number, outcome="kept", counts=told, usage=Usage(1, 1, 0, True, 0.001, True)))
    assert pace.line() == (
        "28/61 · kept 12 · rejected 6 · failed 9 · invalid 1 · pending 33 · 3 in flight · 54.0 a minute · 37 s left · "
        "$0.0270 of $10"
    )
    assert pace.line(80) == "28/61 · kept 12 · rejected 6 · failed 9 · 37 s left · $0.0270 of $10"
    assert pace.line(45) == "28/61 · kept 12 · 37 s left · $0.0270 of $10"
    assert pace.line(3) == "28/61"


def test_a_row_that_was_cancelled_is_not_done() -> None:
    pace = Pace(Clock(0))
    pace.take(BatchStarted(total=2, counts=counts(0, 2)))
    pace.take(RowStarted(index=0))
    pace.take(RowFinished(index=0, outcome="cancelled", counts=counts(0, 2)))
    assert (pace.done, pace.in_flight) == (0, 0)


def test_json_is_one_event_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    sink = shown("json")
    for event in (*life(2), Notice(level="warning", text="a\nb")):
        sink(event)
    captured = capsys.readouterr()
    kinds = [json.loads(line)["type"] for line in captured.out.splitlines()]
    rows = ["RowStarted", "RowFinished"]
    assert kinds == ["BatchStarted", *rows, *rows, "BatchFinished", "Notice"]
    assert captured.err == ""


def test_quiet_says_warnings_only(capsys: pytest.CaptureFixture[str]) -> None:
    sink = shown("quiet")
    for event in (*life(2), Notice(level="info", text="nice"), Notice(level="warning", text="mind \x1b[2J this")):
        sink(event)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "mind this\n"


def test_a_live_line_on_a_terminal_is_redrawn_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        encoding = "utf-8"

        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert form_for(plain=False, as_json=False, quiet=False) == "live"
    sink = shown("live")
    events = list(life(2000))
    for event in (*events[:-1], Notice(level="warning", text="above [b]it[/b]"), events[-1]):
        sink(event)
    printed = terminal.getvalue()
    assert "above [b]it[/b]" in printed
    assert "2000/2000" in printed
    assert len(re.findall(r"/2000", printed)) < 60
    assert printed.endswith("\n\x1b[?25h")


def test_which_form(monkeypatch: pytest.MonkeyPatch) -> None:
    assert form_for(plain=False, as_json=False, quiet=False) == "plain"
    assert form_for(plain=False, as_json=True, quiet=True) == "json"
    assert form_for(plain=True, as_json=False, quiet=True) == "quiet"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (59.6, "1 min"), (75, "1 min 15 s"), (3600, "1 h"), (7500, "2 h 5 min")],
)
def test_times_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words
