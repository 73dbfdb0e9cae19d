"""Events as append-only lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_engine import events
from hermes_engine.messages import Display
from hermes_tui.printing.lines import EventLines, request_lines


class Clock:
    """Seconds that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def feed(lines: EventLines, *fed: events.Event) -> list[str]:
    return [line.text for event in fed for line in lines.feed(event)]


def turn(*inner: events.Event, status: str = "ok", error: str = "") -> list[events.Event]:
    return [
        events.TurnStarted(session="s", run="r", model="m"),
        *inner,
        events.TurnFinished(session="s", run="r", status=status, error=error),
    ]


def test_the_answer_comes_line_by_line_as_lines_complete() -> None:
    lines = EventLines("s")
    assert feed(lines, events.TurnStarted(session="s", run="r", model="m")) == ["· model m"]
    assert feed(lines, events.TextDelta(session="s", run="r", text="one\ntw")) == ["one"]
    assert feed(lines, events.TextDelta(session="s", run="r", text="o")) == []
    assert feed(lines, events.TextDelta(session="s", run="r", text="\n\nthree")) == ["two", ""]
    assert feed(lines, events.ReplyFinished(session="s", run="r", text="one\ntwo\n\nthree")) == ["three"]
    assert feed(lines, events.TurnFinished(session="s", run="r")) == [""], "a blank line between turns"


@given(st.text(alphabet="ab\n", max_size=60), st.integers(1, 7))
def test_the_printed_answer_is_the_answer_however_it_is_cut(text: str, size: int) -> None:
    lines = EventLines("s")
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    fed = [events.TextDelta(session="s", run="r", text=piece) for piece in pieces]
    printed = [
        line.text
        for event in turn(*fed, events.ReplyFinished(session="s", run="r", text=text))
        for line in lines.feed(event)
        if line.answer
    ]
    assert "\n".join(printed).rstrip("\n") == text.rstrip("\n")


def test_an_answer_without_deltas_is_printed_from_the_reply() -> None:
    assert feed(EventLines("s"), *turn(events.ReplyFinished(session="s", run="r", text="a\nb")))[1:] == ["a", "b", ""]


def test_a_retried_step_begins_anew_and_says_so() -> None:
    lines = EventLines("s")
    printed = feed(
        lines,
        *turn(
            events.TextDelta(session="s", run="r", text="half\nmore"),
            events.StepRetried(session="s", run="r", attempt=1, delay=1.0, reason="500"),
            events.TextDelta(session="s", run="r", text="whole"),
            events.ReplyFinished(session="s", run="r", text="whole"),
        ),
    )
    assert printed[1] == "half"
    assert "void" in printed[2]
    assert "500" in printed[2]
    assert printed[3:] == ["whole", ""]


def test_thinking_is_one_short_line() -> None:
    clock = Clock()
    lines = EventLines("s", clock=clock)
    fed = [events.ThoughtDelta(session="s", run="r", text="let me see")]
    assert feed(lines, *fed) == []
    clock.now = 4.2
    assert feed(lines, events.TextDelta(session="s", run="r", text="x")) == ["· thought 4 s"]


def test_a_tool_call_is_one_line() -> None:
    display = Display("Run", "pytest -q\x1b[31m", "12 passed")
    fed = [
        events.ToolStarted(session="s", run="r", call_id="c", name="terminal", display=display),
        events.ToolFinished(session="s", run="r", call_id="c", name="terminal", seconds=3.14, display=display),
    ]
    assert feed(EventLines("s"), *fed) == ["▸ Run pytest -q  12 passed  3.1 s"]
    assert feed(EventLines("s", starts=True), fed[0]) == ["▸ Run pytest -q …"]


def test_one_time_stands_behind_a_command_that_waited_for_a_yes() -> None:
    display = Display("Run", "touch x", "0.0 s", "command")
    done = events.ToolFinished(session="s", run="r", call_id="c", name="terminal", seconds=9.0, display=display)
    assert feed(EventLines("s"), done) == ["▸ Run touch x  0.0 s"]


def test_what_was_denied_says_why() -> None:
    display = Display("Run", "rm -rf x", "not run", "command")
    why = "not run: it deletes folders with all they hold; it needs a yes, and nobody is here to answer"
    done = events.ToolFinished(session="s", run="r", call_id="c", status="denied", display=display, text=why)
    assert feed(EventLines("s"), done) == [f"✗ Run rm -rf x  {why}"]


def test_a_stopped_turn_says_so_once() -> None:
    ended = events.TurnFinished(session="s", run="r", status="cancelled", error="cancelled")
    assert feed(EventLines("s"), ended) == ["✗ cancelled", ""]


def test_other_chats_are_not_printed() -> None:
    lines = EventLines("s")
    assert feed(lines, events.TextDelta(session="other", text="no\n")) == []


def test_a_failed_turn_prints_what_came_and_why() -> None:
    fed = turn(events.TextDelta(session="s", run="r", text="half"), status="error", error="HTTP 500")
    assert feed(EventLines("s"), *fed)[1:] == ["half", "✗ error: HTTP 500", ""]


def test_batch_runs_are_told_with_counts_that_add_up() -> None:
    counts = {"total": 3, "kept": 2, "failed": 1, "pending": 0}
    fed = [
        events.BatchStarted(session="b", name="b", total=3),
        events.BatchFinished(session="b", name="b", state="done", counts=counts),
    ]
    assert feed(EventLines("s"), *fed) == ["▸ batch b: 3 rows", "✓ batch b: done, 3 total, 2 kept, 1 failed"]


def test_a_request_shows_everything_that_will_run() -> None:
    asked = events.ApprovalAsked(
        request="q", title="rm -r x", detail="rm -r x\n\u202eevil\x1b[2K", reason="deletes", rule="rm in this folder"
    )
    text = "\n".join(line.text for line in request_lines(asked))
    assert "\\u202eevil\\x1b[2K" in text
    assert [number for number in "1234" if f"\n  {number} " in text] == ["1", "2", "3", "4"]


def test_a_request_without_a_rule_offers_once_and_no_only() -> None:
    text = "\n".join(line.text for line in request_lines(events.ApprovalAsked(title="rm")))
    assert [number for number in "1234" if f"\n  {number} " in text] == ["1", "3"]


@pytest.mark.parametrize(
    ("choices", "worded", "told"),
    [
        ((), True, "  type the answer"),
        ((), False, "  /attach fix takes your own words"),
        (("a", "b"), True, "  a number, or your own words"),
        (("a", "b"), False, "  a number; /attach fix takes your own words"),
    ],
)
def test_a_question_says_what_answers_it(choices: tuple[str, ...], worded: bool, told: str) -> None:
    asked = events.QuestionAsked(question="Which branch?", choices=choices)
    assert request_lines(asked, "fix", worded=worded)[-1].text == told
