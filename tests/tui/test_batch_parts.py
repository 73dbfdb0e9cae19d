"""What the batch screen shows of a run, without a screen: order, counters, rate, end, curves, lines."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_engine.batch.watching import Look
from hermes_tui.presenter.batch import BINS, RunModel
from hermes_tui.presenter.batch_counts import counters
from hermes_tui.screens.batch import drawing
from hermes_tui.screens.batch.figures import curve, figures
from hermes_tui.widgets.glyphs import ASCII
from tests.tui.batch_told import COUNTS, NOW, floor, line, model, rows, state
from tests.tui.drawing import LOOK, has_control, look

COUNTED = st.dictionaries(
    st.sampled_from(["total", "kept", "rejected", "failed", "invalid", "pending"]), st.integers(-2, 400)
)


@given(COUNTED, st.integers(-3, 500), st.integers(0, 600))
def test_counters_always_add_up(counts: dict[str, int], running: int, needs: int) -> None:
    told = counters(counts, running, needs)
    parts = (told.kept, told.rejected, told.failed, told.invalid, told.running, told.needs, told.waiting)
    assert sum(parts) == told.total
    assert min(parts) >= 0
    assert 0 <= told.percent <= 100


def test_rows_stand_by_need() -> None:
    told = [(row.name[0], row.state) for row in model().rows(NOW)]
    assert told[:8] == [
        (127, "running"), (128, "running"), (129, "running"), (130, "quiet"), (121, "failed"), (104, "failed"),
        (99, "failed"), (120, "rejected"),
    ]  # fmt: skip
    assert [number for number, _state in told[8:11]] == [119, 118, 117]


def test_filters_texts_and_orders() -> None:
    told = model()
    assert {row.state for row in told.rows(NOW, only="running")} == {"running", "quiet"}
    assert [row.name[0] for row in told.rows(NOW, only="failed", text="TURN limit")] == [104]
    assert [row.name[0] for row in told.rows(NOW, text="[bold] 中文")] == [99]
    assert [row.name[0] for row in told.rows(NOW, sort="row")[:3]] == [0, 1, 2]
    assert told.rows(NOW, sort="tokens")[0].tokens == 40_000
    times = [row.seconds or 0 for row in told.rows(NOW, sort="time")]
    assert times == sorted(times, reverse=True)


def test_a_failed_row_that_runs_again_stands_once_and_its_success_takes_its_place() -> None:
    told = model()
    assert told.floor is not None
    told.floor._rows[121, 0] = told.floor._rows.pop((129, 0))
    told.floor._rows[121, 0].index = 121
    assert [row.state for row in told.rows(NOW) if row.name == (121, 0)] == ["running"]
    seen = state(COUNTS, since=NOW - 782, holder="x")
    told.take(Look(seen, (line(121, "kept", 0),), frozenset(), False), None)
    assert [row.state for row in told.rows(NOW) if row.name == (121, 0)] == ["kept"]
    told.take(Look(seen, (line(121, "failed", 99),), frozenset(), False), None)
    assert [row.state for row in told.rows(NOW) if row.name == (121, 0)] == ["kept"], "an old line is no news"
    told.take(Look(seen, (), frozenset({line(1, "failed", 0).file}), False), None)
    assert not told.rows(NOW, only="failed")


def test_how_long_a_row_took_is_known_after_the_end_of_its_run() -> None:
    """Its last rows are read when nothing goes on any more, and failed ones again, from a file that is written anew."""
    told = model()
    told.take(Look(state(COUNTS), (line(150, "failed", 0),), frozenset({line(1, "failed", 0).file}), False), None)
    assert [row.seconds for row in told.rows(NOW, only="failed")] == [80.0]
    elsewhere = state(COUNTS, since=NOW, holder="process 1 on gpu-9")
    told.take(Look(elsewhere, (line(151, "failed", 0),), frozenset(), False), None)
    assert [row.seconds for row in told.rows(NOW, only="failed") if row.name == (151, 0)] == [None]


def test_f1_9_the_end_is_foretold_from_the_last_minutes_of_this_invocation() -> None:
    told = RunModel("evals-nov")
    before = [line(n, "kept", 4000 - n) for n in range(50)]
    fresh = [line(60 + n, "kept", 100 - 10 * n) for n in range(10)]
    seen = state({"total": 100, "kept": 60, "pending": 40}, since=NOW - 120, holder="x", running=4)
    told.take(Look(seen, (*before, *fresh), frozenset(), False), None)
    assert told.counters().percent == 60
    assert told.rate(NOW) == pytest.approx(5.0)
    assert told.seconds_left(NOW) == pytest.approx(480)
    long_ago = state({"total": 100, "kept": 60, "pending": 40}, since=NOW - 10_000, holder="x", running=4)
    told.take(Look(long_ago, (), frozenset(), False), None)
    assert told.rate(NOW) == pytest.approx(2.0), "of the last five minutes only"
    over = state({"total": 100, "kept": 60, "pending": 40}, word="interrupted")
    told.take(Look(over, (), frozenset(), False), None)
    assert told.seconds_left(NOW) is None
    assert (told.word, told.counters().running) == ("interrupted", 0)


def test_the_rate_of_a_run_that_is_over_is_that_of_all_its_time() -> None:
    told = RunModel("evals-nov")
    seen = state({"total": 60, "kept": 60}, word="done")
    figured = dataclasses.replace(seen, statistics={"throughput": {"rows_per_minute": 450.0}})
    told.take(Look(figured, tuple(line(n, "kept", 40) for n in range(60)), frozenset(), False), None)
    assert told.rate(NOW) == told.rate(NOW + 9000) == 450
    assert "rate      450.0/min" in "\n".join(text.plain for text in figures(told, NOW, 38, LOOK))


def test_rows_of_a_run_that_died_are_counted_from_its_files() -> None:
    told = RunModel("evals-nov")
    stale = state({"total": 20, "kept": 3, "failed": 2, "invalid": 1, "pending": 14}, word="killed")
    lines = (*(line(n, "kept", 9) for n in range(6)), line(7, "failed", 8), line(8, "failed", 8), line(8, "kept", 7))
    told.take(Look(stale, lines, frozenset(), True), None)
    assert told.counters().kept == 3, "not all is read yet"
    told.take(Look(stale, (), frozenset(), False), None)
    counted = told.counters()
    assert (counted.kept, counted.failed, counted.invalid, counted.waiting, counted.total) == (7, 1, 1, 11, 20)
    here = state({"total": 20, "kept": 3, "pending": 17}, holder="process 1", since=NOW, running=2)
    told.take(Look(here, (), frozenset(), False), None)
    assert (told.counters().kept, told.counters().running) == (3, 2)


def test_long_times_take_two_lines() -> None:
    told = model()
    assert told.state is not None
    times = {"rows": {"p50": 0.1, "p90": 3.6, "max": 3.6}}
    told.state = dataclasses.replace(told.state, statistics={**told.state.statistics, "times": times})
    lines = [text.plain for text in figures(told, NOW, 38, LOOK)]
    place = lines.index("time      p50 0.1 s  p90 3.6 s")
    assert lines[place + 1] == "          max 3.6 s"


def test_a_run_that_kept_nothing_did_not_go_well() -> None:
    told = RunModel("evals-nov")
    told.take(Look(state({"total": 6, "rejected": 6}, word="done"), (), frozenset(), False), None)
    assert told.word == "nothing"
    left, _right = drawing.sentence(told, NOW, LOOK)
    assert left[1].text.startswith("✗ done, nothing kept")
    told.take(Look(state({"total": 0}, word="done"), (), frozenset(), False), None)
    assert told.word == "nothing", "its command ends with 1"


def test_curves_have_as_many_points_and_stay_between_nothing_and_all() -> None:
    curves = model().curves(NOW)
    for values in (curves.passed, curves.rate, curves.reasoning):
        assert len(values) == BINS
        assert 0 <= min(values) <= max(values) <= 1
    assert max(curves.rate) == 1
    assert curve((0, 0.5, 1), LOOK).plain == "▁▅█"
    assert curve((0, 0.5, 1), look(glyphs=ASCII)).plain.isascii()
    assert RunModel("x").curves(NOW).rate == ()


def test_the_figures_of_the_mock_up() -> None:
    lines = [text.plain for text in figures(model(), NOW, 38, LOOK)]
    text = "\n".join(lines)
    assert "pass rate 93.7 %" in text
    assert "p50 1m02  p90 2m40  max 6m11" in text
    assert "  412  96 %  1.1 s" in text
    assert "web_fetch" not in text
    assert "ERRORS  5" in text
    assert "REJECTS  3" in text
    assert "1.9M in, 200k out" in text
    assert "$3.14  $0.03 a kept row" in text
    assert "~$7.43 in the end" in text
    assert all(len(one) <= 38 for one in lines)


def server(place: str, rows: int, **values: Any) -> dict[str, Any]:
    return {"base_url": f"http://{place}/v1", "up": True, "rows": rows, "requests": 3 * rows, "downs": 0, **values}


def test_several_servers_stand_with_what_each_got_those_that_are_down_first() -> None:
    told = model()
    assert told.state is not None
    assert not any("SERVERS" in text.plain for text in figures(told, NOW, 38, LOOK))
    several = [server("gpu-1:8000", 60), server("gpu-2:8000", 58, up=False, downs=2)]
    told.state.statistics["replicas"] = several
    lines = [text.plain for text in figures(told, NOW, 38, LOOK)]
    at = next(number for number, line in enumerate(lines) if line.startswith("SERVERS"))
    assert lines[at : at + 4] == [
        "SERVERS             rows  calls  downs",
        "▲ gpu-2:8000          58    174      2",
        "gpu-1:8000            60    180       ",
        "",
    ]
    told.state.statistics["replicas"] = [server(f"a-machine-with-a-long-name-{n}:8000", n) for n in range(9)]
    lines = [text.plain for text in figures(told, NOW, 38, LOOK)]
    assert all(len(one) <= 38 for one in lines)
    assert "+3 more" in "\n".join(lines)


@pytest.mark.parametrize("width", [3, 20, 40, 57, 58, 80, 200])
def test_lines_fit_and_are_clean(width: int) -> None:
    told = model()
    for columns in drawing.COLUMNS:
        for row in (*told.rows(NOW)[:12], *told.rows(NOW, only="failed")):
            text = drawing.row_line(row, columns, width, LOOK)
            assert text.cell_len <= width
            assert not has_control(text.plain)
        assert drawing.head(columns, width, LOOK).cell_len <= width
    assert drawing.progress(told.counters(), max(30, width), LOOK).cell_len <= max(30, width)


def test_a_row_says_how_often_it_was_tried_and_how_long_it_was_quiet() -> None:
    found = {row.name[0]: drawing.row_line(row, "all", 100, LOOK).plain for row in model().rows(NOW)}
    assert "HTTP 429, tried 3×" in found[121]
    assert "quiet 1m35" in found[130]
    assert "▲ no event for 1m35" in found[130]
    assert "prompt number 127" in drawing.row_line(model().rows(NOW)[0], "prompt", 100, LOOK).plain


def test_a_failed_row_shows_its_prompt_where_its_reason_leaves_room() -> None:
    found = {row.name[0]: row for row in model().rows(NOW, only="failed")}
    assert "HTTP 429, tried 3×" in drawing.row_line(found[121], "all", 140, LOOK).plain
    assert "prompt number 121" in drawing.row_line(found[121], "all", 140, LOOK).plain
    found[121] = dataclasses.replace(found[121], words="a reason that is longer than its half of the line, " * 2)
    told = drawing.row_line(found[121], "all", 140, LOOK).plain
    assert "its half of the line, a reason that is longer than" in told
    assert "prompt number" not in told


def test_a_run_that_waits_for_others_tells_no_speed_and_no_workers() -> None:
    told = model()
    assert told.floor is not None
    told.floor.begun, told.floor.workers = False, 0
    left, right = drawing.sentence(told, NOW, LOOK)
    assert [part.text for part in left] == ["evals-nov", "○ waits for another run", *[p.text for p in left[2:]]]
    assert not any("/min" in part.text for part in left)
    assert [part.text for part in right] == ["p pause", "x stop", ""]
    told.floor.begun, told.floor.workers = True, 1
    assert drawing.sentence(told, NOW, LOOK)[1][0].text == "1 worker + -"


def test_a_run_elsewhere_shows_how_many_are_in_flight_but_not_which() -> None:
    told = model(here=False)
    assert (told.counters().running, told.word, told.workers, told.here) == (4, "running", 8, False)
    assert not told.rows(NOW, only="running")
    left, _right = drawing.sentence(told, NOW, LOOK)
    assert any("ends ~" in part.text for part in left)


def test_what_a_resume_would_do() -> None:
    told = counters({"total": 300, "kept": 120, "rejected": 3, "failed": 5, "invalid": 3, "pending": 169}, 0)
    assert drawing.left_words(told) == "174 left (5 failed, 169 waiting)"


def test_ten_thousand_rows_are_sorted_once_and_not_at_each_picture() -> None:
    told = RunModel("evals-nov")
    many = tuple(line(1000 + n, "kept", 10_000 - n) for n in range(10_000))
    told.take(Look(state({"total": 10_000, "kept": 10_000}), many, frozenset(), False), floor({}))
    first = told.rows(NOW)
    assert len(first) == 10_004
    again = told.rows(NOW)
    assert all(one is other for one, other in zip(first[4:], again[4:], strict=True))
    assert len(rows()) == 122
