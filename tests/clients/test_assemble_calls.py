"""Chunks to tool calls: every oddity of servers, as pure values."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_engine.clients import call_parts
from hermes_engine.clients.assemble import CUT_CALLS_NOTE, unique_ids
from hermes_engine.messages import ToolCall
from tests.clients.chunks import named, piece, reply, told
from tests.server.scripted import message


@pytest.mark.parametrize("index", [{}, {"index": None}])
def test_f7_1_calls_without_index(index: dict[str, None]) -> None:
    answer = told(
        piece(id="c1", name="t", arguments="{}", **index),
        piece(id="c2", name="u", arguments='{"a"', **index),
        piece(arguments=":1}", **index),
    )
    assert named(answer) == [("t", "{}"), ("u", '{"a":1}')]
    assert [call.id for call in answer.tool_calls] == ["c1", "c2"]


def test_f7_1_two_calls_without_index_in_one_chunk() -> None:
    calls = [{"id": key, "function": {"name": "t", "arguments": "{}"}} for key in ("c1", "c2")]
    assert [call.id for call in told({"tool_calls": calls}).tool_calls] == ["c1", "c2"]
    bare = [{"function": {"name": "t", "arguments": {"a": number}}} for number in (1, 2)]
    assert named(told({"tool_calls": bare})) == [("t", '{"a": 1}'), ("t", '{"a": 2}')]
    assert named(told(*({"tool_calls": [call]} for call in bare))) == [("t", '{"a": 1}'), ("t", '{"a": 2}')]


def test_f7_1_a_stray_piece_without_any_call_is_no_call() -> None:
    assert told({"content": "x"}, piece(arguments="{}")).tool_calls == ()


def test_f7_2_interleaved_pieces_go_by_index() -> None:
    answer = told(
        piece(index=0, name="f", arguments='{"a"'),
        piece(index=1, name="g", arguments='{"b"'),
        piece(index=0, arguments=":1}"),
        piece(index=1, arguments=":2}"),
    )
    assert named(answer) == [("f", '{"a":1}'), ("g", '{"b":2}')]


def test_f7_2_indices_that_begin_with_one_give_no_phantom() -> None:
    answer = told(piece(index=1, name="f", arguments="{}"), piece(index="2", name="g", arguments="{}"))
    assert named(answer) == [("f", "{}"), ("g", "{}")]


def test_f7_2_one_index_for_all_calls_parts_them_by_id() -> None:
    answer = told(
        piece(index=0, id="c1", name="f", arguments='{"a":1}'),
        piece(index=0, id="c2", name="f", arguments='{"a":2}'),
    )
    assert named(answer) == [("f", '{"a":1}'), ("f", '{"a":2}')]


@pytest.mark.parametrize("key", [{}, {"id": ""}, {"id": None}])
def test_f7_1_one_index_and_no_id_for_all_calls(key: dict[str, Any]) -> None:
    answer = told(
        piece(index=0, name="f", arguments='{"a":1}', **key), piece(index=0, name="f", arguments='{"a":2}', **key)
    )
    assert named(answer) == [("f", '{"a":1}'), ("f", '{"a":2}')]
    copied = told(
        piece(index=0, name="f", arguments="{}", **key),
        piece(index=0, name="f", arguments='{"a":1}', **key),
        piece(index=0, name="f", arguments='{"a":1}', **key),
        piece(index=0, name="f", arguments='{"a":1,"b":2}', **key),
    )
    assert [json.loads(text) for _, text in named(copied)] == [{"a": 1, "b": 2}]


def test_f7_2_a_fresh_id_in_each_piece_of_one_call_is_one_call() -> None:
    answer = told(
        piece(index=0, id="r1", name="f", arguments='{"a"'),
        piece(index=0, id="r2", name="f", arguments=":1}"),
    )
    assert named(answer) == [("f", '{"a":1}')]


@pytest.mark.parametrize("extra", [{"index": 0}, {"index": 0, "id": "c1"}, {"id": "c1"}, {}])
def test_f7_3_name_repeated_in_every_chunk(extra: dict[str, Any]) -> None:
    parts = ['{"path"', ':"x', '"}']
    answer = told(*(piece(name="read_file", arguments=part, **extra) for part in parts))
    assert named(answer) == [("read_file", '{"path":"x"}')]


def test_f7_3_name_in_two_parts() -> None:
    answer = told(piece(index=0, id="c", name="read_"), piece(index=0, name="file", arguments="{}"))
    assert named(answer) == [("read_file", "{}")]
    cumulative = told(piece(index=0, id="c", name="read_"), piece(index=0, name="read_file", arguments="{}"))
    assert named(cumulative) == [("read_file", "{}")]


def test_f7_4_arguments_as_an_object() -> None:
    assert named(told(piece(index=0, name="t", arguments={"path": "x"}))) == [("t", '{"path": "x"}')]
    whole = message(None, tool_calls=[{"id": "c", "function": {"name": "t", "arguments": {"path": "x"}}}])
    assert named(reply([whole])) == [("t", '{"path": "x"}')]


def test_f7_4_arguments_encoded_twice_are_decoded_once() -> None:
    assert named(told(piece(index=0, name="t", arguments=json.dumps('{"path":"x"}')))) == [("t", '{"path":"x"}')]


@pytest.mark.parametrize("arguments", [{"arguments": ""}, {"arguments": None}, {}, {"arguments": "  \n"}])
def test_f7_5_no_arguments_mean_an_empty_object(arguments: dict[str, Any]) -> None:
    call = told(piece(index=0, id="c", name="t", **arguments)).tool_calls[0]
    assert call.parsed() == {}
    assert call.arguments == "{}"


def test_f7_5_an_empty_object_twice_is_one() -> None:
    answer = told(piece(index=0, id="c", name="t", arguments="{}"), piece(index=0, arguments="{}"))
    assert named(answer) == [("t", "{}")]
    assert named(told(piece(index=0, name="t", arguments="null"))) == [("t", "{}")]


@pytest.mark.parametrize("arguments", ["[]", '"x"', "5", [], 5, '{"a":', '{"a":1} and more'])
def test_f7_5_what_is_no_object_stays_and_is_no_arguments(arguments: Any) -> None:
    call = told(piece(index=0, name="t", arguments=arguments)).tool_calls[0]
    assert call.parsed() is None
    assert call.recorded() == {"_raw": arguments if isinstance(arguments, str) else json.dumps(arguments)}


@pytest.mark.parametrize("depth", [99, 100, 5000, 200_000])
def test_f7_5_arguments_of_any_depth_break_nothing(depth: int) -> None:
    text = '{"a":' + "[" * (depth - 1) + "]" * (depth - 1) + "}"
    (call,) = told(piece(index=0, id="c", name="f", arguments=text)).tool_calls
    recorded = call.recorded()
    assert recorded == ({"_raw": text} if depth > 100 else json.loads(text))
    code = json.dumps({"content": "[{" * 300})
    assert named(told(piece(index=0, name="f", arguments=code))) == [("f", code)]


def test_blanks_around_a_name_are_none_of_it() -> None:
    assert named(told(piece(index=0, name=" f\n", arguments="{}"), piece(index=1, name=" "))) == [("f", "{}")]


@pytest.mark.parametrize("finish", ["stop", None, "", "tool_calls", "function_call"])
def test_f7_11_calls_count_whatever_the_finish_reason(finish: str | None) -> None:
    answer = told(piece(index=0, id="c", name="t", arguments="{}"), finish=finish)
    assert named(answer) == [("t", "{}")]
    assert answer.finish_reason == "tool_calls"


@pytest.mark.parametrize("arguments", ['{"command":"rm -rf', "", "   "])
def test_f7_12_a_call_cut_by_the_token_limit_is_not_run(arguments: str) -> None:
    answer = told(
        {"content": "so"},
        piece(index=0, id="a", name="t", arguments='{"x":1}'),
        piece(index=1, id="b", name="terminal", arguments=arguments),
        finish="length",
    )
    assert named(answer) == [("t", '{"x":1}')]
    assert answer.finish_reason == "length"
    assert answer.notes == (CUT_CALLS_NOTE,)


@pytest.mark.parametrize("ids", [("", ""), ("call_0", "call_0"), (None, None), (" ", "x")])
def test_f7_15_ids_are_unique_within_a_reply(ids: tuple[str | None, str | None]) -> None:
    pieces = [piece(index=place, id=key, name="t", arguments="{}") for place, key in enumerate(ids)]
    calls = told(*pieces).tool_calls
    assert len({call.id for call in calls}) == 2
    assert all(call.id.strip() for call in calls)
    whole = [{"id": key, "function": {"name": "t", "arguments": "{}"}} for key in ids]
    assert len({call.id for call in reply([message(None, tool_calls=whole)]).tool_calls}) == 2


def test_f7_15_an_id_of_an_earlier_turn_is_replaced_and_a_fresh_one_kept() -> None:
    used = {"call_0", "call00002"}
    calls = unique_ids([ToolCall("call_0", "t"), ToolCall("mine", "t"), ToolCall("", "t")], used)
    assert calls[1].id == "mine"
    assert len({call.id for call in calls} | {"call_0", "call00002"}) == 5
    assert {call.id for call in calls} <= used
    made = calls[0].id
    assert len(made) == 9
    assert made.isalnum()


@pytest.mark.parametrize(
    "parts",
    [
        ["{}", '{"a":1}'],
        ['{"a":1}', '{"a":1}'],
        ['{"a":', "1}"],
        ["", '{"a":1}', ""],
        ['{"a"', '{"a":', '{"a":1}'],
        ["{}", "{}", '{"a":1}'],
        ["null", '{"a":1}'],
    ],
)
def test_f7_24_arguments_are_judged_at_the_end(parts: list[str]) -> None:
    answer = told(*(piece(index=0, id="c", name="t", arguments=part) for part in parts))
    assert len(answer.tool_calls) == 1
    assert answer.tool_calls[0].parsed() == {"a": 1}


def test_f7_24_growing_objects_are_one_call() -> None:
    parts = [{"a": 1}, {"a": 1, "b": 2}]
    answer = told(*(piece(index=0, id="c", name="t", arguments=part) for part in parts))
    assert [call.parsed() for call in answer.tool_calls] == [{"a": 1, "b": 2}]


def test_arguments_with_raw_line_ends_or_nan_become_json() -> None:
    call = told(piece(index=0, name="t", arguments='{"text":"a\nb","n":NaN}')).tool_calls[0]
    assert json.loads(call.arguments) == {"text": "a\nb", "n": None}


def test_the_older_function_call_is_a_call() -> None:
    answer = told({"function_call": {"name": "t", "arguments": '{"a"'}}, {"function_call": {"arguments": ":1}"}})
    assert named(answer) == [("t", '{"a":1}')]


@given(
    st.lists(
        st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=8), max_size=3), min_size=1, max_size=3
    ),
    st.data(),
)
def test_any_split_of_arguments_gives_the_same_calls(wanted: list[dict[str, Any]], data: st.DataObject) -> None:
    texts = [json.dumps(value) for value in wanted]
    queues: list[list[dict[str, Any]]] = []
    for place, text in enumerate(texts):
        cuts = sorted({0, len(text), *data.draw(st.lists(st.integers(0, len(text)), max_size=4))})
        parts = [text[start:stop] for start, stop in itertools.pairwise(cuts)]
        head = piece(index=place, id=f"c{place}", name="t", arguments="")
        queues.append([head, *(piece(index=place, arguments=part) for part in parts)])
    deltas: list[dict[str, Any]] = [queue.pop(0) for queue in queues]
    while live := [queue for queue in queues if queue]:
        deltas.append(data.draw(st.sampled_from(live)).pop(0))
    answer = told(*deltas)
    assert [call.parsed() for call in answer.tool_calls] == [json.loads(text) for text in texts]


JSON: st.SearchStrategy[object] = st.recursive(
    st.sampled_from(["x", "]}", 'q"\\', "\\", "é", 1, None, True]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", 'b"', "c\\"]), inner, max_size=2),
)


@given(JSON, st.integers(1, 5), st.booleans())
def test_whole_arguments_are_known_however_they_are_cut(value: object, size: int, ascii_only: bool) -> None:
    text, slot = json.dumps({"a": value}, ensure_ascii=ascii_only), call_parts._Slot()
    for place in range(0, len(text), size):
        slot.parts.append(text[place : place + size])
        assert slot.whole == (place + size >= len(text))
