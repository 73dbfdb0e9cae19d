"""Events survive JSON, and a run's common fields are filled in the same way for all."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_engine.events import EVENT_TYPES, Emitter, Event, TextDelta, TurnFinished, from_json, to_json
from hermes_engine.messages import Display, Usage

TEXT = st.text(max_size=20)
BY_NAME: dict[str, st.SearchStrategy[Any]] = {
    "usage": st.builds(Usage, st.integers(0, 9), st.integers(0, 9), cost_usd=st.floats(0, 5)),
    "display": st.builds(Display, TEXT, TEXT, TEXT, st.sampled_from(["text", "diff", "command", "list"]), TEXT),
    "arguments": st.dictionaries(TEXT, st.one_of(TEXT, st.integers(), st.none(), st.booleans())),
    "data": st.dictionaries(TEXT, st.integers()),
    "counts": st.dictionaries(TEXT, st.integers(0, 100)),
    "choices": st.lists(TEXT).map(tuple),
}
BY_TYPE: dict[str, st.SearchStrategy[Any]] = {
    "str": TEXT,
    "int": st.integers(0, 10**9),
    "float": st.floats(0, 1e9),
    "float | None": st.none() | st.floats(0, 1e9),
    "bool": st.booleans(),
    "tuple[str, ...]": st.lists(TEXT, max_size=3).map(tuple),
}


@st.composite
def events(draw: st.DrawFn) -> Event:
    kind = draw(st.sampled_from(sorted(EVENT_TYPES)))
    cls = EVENT_TYPES[kind]
    values = {
        field.name: draw(BY_NAME[field.name] if field.name in BY_NAME else BY_TYPE[str(field.type)])
        for field in dataclasses.fields(cls)
    }
    return cls(**values)


@given(events())
def test_an_event_comes_back_from_json_equal(event: Event) -> None:
    assert from_json(json.loads(json.dumps(to_json(event)))) == event


@pytest.mark.parametrize("data", [{}, {"type": "Nope"}, {"type": "TextDelta", "colour": "red"}])
def test_what_is_no_event_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        from_json(data)


def test_seq_grows_and_a_sink_that_raises_does_not_stop_a_run() -> None:
    faults: list[Exception] = []

    def sink(event: Event) -> None:
        raise OSError("full")

    emit = Emitter(sink, session="s", run="r", agent="a", parent_run="p", on_fault=faults.append)
    first = emit(TextDelta, text="x")
    second = emit(TurnFinished, status="ok")
    assert (first.seq, second.seq) == (1, 2)
    assert (second.session, second.run, second.agent, second.parent_run) == ("s", "r", "a", "p")
    assert len(faults) == 2
