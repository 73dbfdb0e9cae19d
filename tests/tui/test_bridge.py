"""The bridge: order kept within a run, pieces joined, floods cheap, the app woken once."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from hermes_engine import events as ev
from hermes_tui.bridge import Bridge


def delta(run: str, text: str, kind: type[ev.TextDelta] | type[ev.ThoughtDelta] = ev.TextDelta) -> ev.Event:
    return kind(run=run, text=text)


def test_neighbouring_pieces_of_a_run_are_joined() -> None:
    bridge = Bridge()
    for number in range(1000):
        bridge.put(delta("a", f"{number} "))
        bridge.put(delta("b", "x"))
    found = bridge.take()
    assert [(event.run, event.text) for event in found] == [  # type: ignore[attr-defined]
        ("a", "".join(f"{number} " for number in range(1000))),
        ("b", "x" * 1000),
    ]
    assert bridge.take() == []


def test_pieces_are_not_joined_over_another_event_of_their_run() -> None:
    bridge = Bridge()
    for event in (delta("a", "1"), ev.StepRetried(run="a"), delta("a", "2"), delta("a", "t", ev.ThoughtDelta)):
        bridge.put(event)
    assert [type(event).__name__ for event in bridge.take()] == [
        "TextDelta",
        "StepRetried",
        "TextDelta",
        "ThoughtDelta",
    ]


def test_the_latest_state_is_enough() -> None:
    bridge = Bridge()
    for number in range(50):
        bridge.put(ev.ToolProgress(run="a", call_id="c", text=str(number)))
        bridge.put(ev.RowFinished(session="run", counts={"kept": number}))
        bridge.put(ev.AgentChanged(agent="x", activity=str(number)))
    progress, row, changed = bridge.take()
    assert progress == ev.ToolProgress(run="a", call_id="c", text="49")
    assert row == ev.RowFinished(session="run", counts={"kept": 49})
    assert changed == ev.AgentChanged(agent="x", activity="49")


def test_beginnings_and_ends_are_never_left_out() -> None:
    bridge = Bridge(limit=10)
    for number in range(40):
        bridge.put(ev.RowStarted(session="run", index=number))
        bridge.put(ev.ToolStarted(run="a", call_id=str(number)))
    bridge.put(ev.TurnFinished(run="a"))
    found = bridge.take()
    assert sum(isinstance(event, ev.ToolStarted) for event in found) == 40
    assert isinstance(found[-1], ev.TurnFinished)
    assert bridge.left_out == 40 - sum(isinstance(event, ev.RowStarted) for event in found)


def test_the_app_is_woken_when_it_has_taken_everything_and_not_before() -> None:
    bridge = Bridge()
    calls: list[int] = []
    bridge.put(delta("a", "early"))
    bridge.connect(lambda: calls.append(1))
    assert len(calls) == 1
    bridge.put(ev.Notice(text="x"))
    assert len(calls) == 1
    assert len(bridge.take()) == 2
    bridge.put(ev.Notice(text="y"))
    assert len(calls) == 1, "the app still comes by itself"
    assert len(bridge.take()) == 1
    assert bridge.take() == []
    bridge.put(ev.Notice(text="z"))
    assert len(calls) == 2
    bridge.disconnect()
    assert bridge.take()
    assert bridge.take() == []
    bridge.put(ev.Notice(text="late"))
    assert len(calls) == 2


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["text", "thought", "step"])), max_size=60))
def test_order_within_a_run_is_kept(script: list[tuple[str, str]]) -> None:
    bridge = Bridge()
    wanted: dict[str, str] = {}
    for number, (run, kind) in enumerate(script):
        sign = {"text": f"T{number}.", "thought": f"H{number}.", "step": f"S{number}."}[kind]
        wanted[run] = wanted.get(run, "") + sign
        if kind == "step":
            bridge.put(ev.StepStarted(run=run, step=number))
        else:
            bridge.put(delta(run, sign, ev.TextDelta if kind == "text" else ev.ThoughtDelta))
    told: dict[str, str] = {}
    for event in bridge.take():
        sign = f"S{event.step}." if isinstance(event, ev.StepStarted) else event.text  # type: ignore[attr-defined]
        told[event.run] = told.get(event.run, "") + sign
    assert told == wanted


def test_many_threads_lose_nothing() -> None:
    bridge = Bridge()
    got: list[ev.Event] = []

    def speak(run: str) -> None:
        for number in range(2000):
            bridge.put(delta(run, f"{number},"))

    threads = [threading.Thread(target=speak, args=(f"r{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        got += bridge.take()
    got += bridge.take()
    for number in range(4):
        text = "".join(event.text for event in got if event.run == f"r{number}")  # type: ignore[attr-defined]
        assert text == "".join(f"{count}," for count in range(2000))
