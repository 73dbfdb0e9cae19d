"""Chunks to replies: every oddity of servers, as pure values."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_engine.clients.assemble import CUT_CALLS_NOTE, ReplyAssembler, unique_ids
from hermes_engine.errors import ContextTooLong, EndpointDown, ProviderError, RateLimited, ServerFault, StreamBroken
from hermes_engine.messages import Reply, ToolCall
from tests.server.scripted import chunk, message

Chunks = Iterable[Mapping[str, Any]]


def reply(chunks: Chunks, *, finish: str | None = "stop", ended: bool = True) -> Reply:
    """The reply of these chunks, a finishing one added."""
    assembler = ReplyAssembler()
    for part in [*chunks, chunk({}, finish=finish)]:
        assembler.feed(part)
    return assembler.finish(ended)


def told(*deltas: Mapping[str, Any], **options: Any) -> Reply:
    """The reply of chunks with these deltas."""
    return reply([chunk(delta) for delta in deltas], **options)


def shown(chunks: Chunks) -> dict[str, str]:
    """What a screen hears, by kind."""
    assembler = ReplyAssembler()
    out = {"text": "", "reasoning": ""}
    for part in chunks:
        for kind, text in assembler.feed(part):
            out[kind] += text
    for kind, text in assembler.drain():
        out[kind] += text
    return out


def piece(**fields: Any) -> dict[str, Any]:
    """A delta with one piece of a call: index, id, name, arguments as given; the rest is left out."""
    function = {name: fields.pop(name) for name in ("name", "arguments") if name in fields}
    return {"tool_calls": [{**fields, "function": function}]}


def named(answer: Reply) -> list[tuple[str, str]]:
    """(name, arguments) of each call."""
    return [(call.name, call.arguments) for call in answer.tool_calls]


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


def test_f7_6_chunks_without_choices_or_delta_are_passed_over() -> None:
    odd: list[dict[str, Any]] = [
        {"choices": []},
        {},
        {"choices": None},
        {"choices": [None]},
        {"choices": [{"index": 0}]},
        {"choices": [{"delta": None}]},
        {"choices": [{"delta": []}]},
    ]
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    answer = reply([*odd, chunk({"content": "a"}), *odd, chunk({"content": "b"}), usage])
    assert answer.text == "ab"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (3, 2)


def test_f7_7_null_content_is_nothing() -> None:
    assert told({"role": "assistant", "content": None}, {"content": "hi"}).text == "hi"


def test_f7_7_content_as_a_list_of_parts() -> None:
    parts = [{"type": "text", "text": "h"}, "i", {"type": "image_url"}, None]
    assert told({"content": parts}).text == "hi"
    thinking = [{"type": "thinking", "thinking": [{"type": "text", "text": "r"}]}, {"type": "text", "text": "hi"}]
    answer = told({"content": thinking})
    assert (answer.text, answer.reasoning) == ("hi", "r")
    assert told({"content": None, "refusal": "no"}).text == "no"


DETAILS = [{"type": "reasoning.text", "text": "r"}, {"type": "reasoning.encrypted", "data": "xx"}]


@pytest.mark.parametrize(
    "fields",
    [
        {"reasoning_content": "r"},
        {"reasoning": "r"},
        {"thinking": "r"},
        {"reasoning_details": DETAILS},
        {"reasoning_content": "r", "reasoning": "r"},
        {"reasoning": "r", "reasoning_details": DETAILS, "thinking": "r"},
        {"reasoning_content": "", "reasoning": "r"},
        {"reasoning": {"content": "r"}},
    ],
)
def test_f7_8_reasoning_of_any_field_comes_once(fields: dict[str, Any]) -> None:
    answer = told({"content": None, **fields}, {"content": "hi"})
    assert (answer.text, answer.reasoning) == ("hi", "r")
    assert shown([chunk({"content": "", **fields}), chunk({"content": "hi"})]) == {"text": "hi", "reasoning": "r"}
    whole = reply([message("hi", **fields)])
    assert (whole.text, whole.reasoning) == ("hi", "r")


def test_f7_8_details_after_the_words_do_not_repeat_them() -> None:
    answer = told({"reasoning": "r"}, {"reasoning_details": DETAILS}, {"content": "hi"})
    assert answer.reasoning == "r"


def test_f2_1_reasoning_in_a_field_and_in_tags_is_one() -> None:
    chunks = [chunk({"reasoning_content": "why"}), chunk({"content": "<think>why</think>hi"})]
    assert shown(chunks) == {"text": "hi", "reasoning": "why"}
    answer = reply(chunks)
    assert (answer.text, answer.reasoning) == ("hi", "why")


def test_f2_1_other_reasoning_in_tags_is_added() -> None:
    chunks = [chunk({"reasoning_content": "why"}), chunk({"content": "<think>how</think>hi"})]
    assert shown(chunks) == {"text": "hi", "reasoning": "whyhow"}
    assert reply(chunks).reasoning == "why\nhow"


def test_f7_9_tags_in_content_become_reasoning() -> None:
    answer = told({"content": "<thi"}, {"content": "nk>r</th"}, {"content": "ink>answer"})
    assert (answer.text, answer.reasoning) == ("answer", "r")
    unclosed = told({"content": "<think>r"})
    assert (unclosed.text, unclosed.reasoning) == ("", "r")
    assert unclosed.empty
    assert told({"content": "a <"}).text == "a <"


@pytest.mark.parametrize("finish", ["stop", None, "", "tool_calls", "function_call"])
def test_f7_11_calls_count_whatever_the_finish_reason(finish: str | None) -> None:
    answer = told(piece(index=0, id="c", name="t", arguments="{}"), finish=finish)
    assert named(answer) == [("t", "{}")]
    assert answer.finish_reason == "tool_calls"


def test_f7_12_no_finish_and_no_done_is_a_broken_stream() -> None:
    with pytest.raises(StreamBroken) as caught:
        told({"content": "one "}, {"content": "two"}, finish=None, ended=False)
    assert caught.value.partial == "one two"
    with pytest.raises(StreamBroken):
        told(piece(index=0, id="c", name="t", arguments='{"a"'), finish="", ended=False)


def test_f7_12_a_finish_reason_without_done_is_whole() -> None:
    assert told({"content": "one"}, ended=False).text == "one"


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


def test_f7_14_usage_told_three_times_is_the_last() -> None:
    counts = [{"prompt_tokens": 4, "completion_tokens": count} for count in (5, 8, 10)]
    answer = reply([chunk({"content": "x"}), *({"choices": [], "usage": usage} for usage in counts)])
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (4, 10)
    assert answer.usage.tokens_known


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        [],
        "x",
        {"prompt_tokens": None, "completion_tokens": None},
        {"prompt_tokens": 0, "completion_tokens": 0},
        {"prompt_tokens": "12", "completion_tokens": True, "completion_tokens_details": None},
        {"prompt_tokens": -1, "completion_tokens": float("nan")},
    ],
)
def test_f7_14_usage_that_says_nothing_is_unknown(usage: Any) -> None:
    answer = reply([chunk({"content": "x"}, usage=usage)])
    assert not answer.usage.tokens_known
    assert not answer.usage.cost_known
    assert answer.usage.total_tokens == 0


def test_f7_14_details_and_cost_are_read() -> None:
    usage = {
        "prompt_tokens": 7,
        "completion_tokens": 5,
        "completion_tokens_details": {"reasoning_tokens": 2},
        "prompt_tokens_details": {"cached_tokens": 3},
        "cost": 0.25,
    }
    answer = reply([chunk({"content": "x"}, usage={"prompt_tokens_details": None}), chunk({}, usage=usage)])
    assert answer.usage.reasoning_tokens == 2
    assert (answer.usage.cost_usd, answer.usage.cost_known) == (0.25, True)
    groq = {"choices": [], "x_groq": {"usage": {"prompt_tokens": 9, "completion_tokens": 1}}}
    assert reply([chunk({"content": "x"}), groq]).usage.prompt_tokens == 9
    inside = chunk({"content": "x"})
    inside["choices"][0]["usage"] = {"prompt_tokens": 6, "completion_tokens": 1}
    assert reply([inside]).usage.prompt_tokens == 6


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


def test_f2_5_half_surrogates_become_marks_and_pairs_are_joined() -> None:
    assert told({"content": "x\ud83d y"}).text == "x\ufffd y"
    assert told({"content": "a\ud83d"}, {"content": "\ude00b"}).text == "a😀b"
    assert told({"content": "a\ud83d"}).text == "a\ufffd"
    answer = told({"reasoning": "\udc00r"}, piece(index=0, name="t\ud800", arguments='{"a":"\ud83d"}'))
    assert answer.reasoning == "\ufffdr"
    assert named(answer) == [("t\ufffd", '{"a":"\ufffd"}')]


def test_f2_6_unicode_line_ends_within_text_stay() -> None:
    assert told({"content": "a\u2028b\u0085c"}).text == "a\u2028b\u0085c"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "boom"}, ServerFault),
        ("boom", ServerFault),
        ({"code": 429, "message": "slow down"}, RateLimited),
        ({"code": "502", "message": "upstream"}, EndpointDown),
        ({"code": "context_length_exceeded", "message": "too much"}, ContextTooLong),
        ({"code": 400, "type": "exceed_context_size_error", "message": "the request"}, ContextTooLong),
    ],
)
def test_an_error_object_within_a_stream_ends_it(error: Any, kind: type[ProviderError]) -> None:
    with pytest.raises(ProviderError) as caught:
        reply([chunk({"content": "x"}), {"error": error}])
    assert type(caught.value) is kind
    with pytest.raises(ServerFault):
        told({"content": "x"}, finish="error")


def test_the_older_function_call_is_a_call() -> None:
    answer = told({"function_call": {"name": "t", "arguments": '{"a"'}}, {"function_call": {"arguments": ":1}"}})
    assert named(answer) == [("t", '{"a":1}')]


def test_a_whole_message_after_its_pieces_is_not_added() -> None:
    last = chunk({}, finish="stop")
    last["choices"][0]["message"] = {"role": "assistant", "content": "hi"}
    assert reply([chunk({"content": "hi"}), last]).text == "hi"


def test_white_space_before_calls_is_no_text_and_the_model_is_named() -> None:
    answer = told({"content": "\n\n"}, piece(index=0, name="t"))
    assert answer.text == ""
    assert answer.model == "scripted"


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


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "index",
                    "id",
                    "function",
                    "name",
                    "arguments",
                    "content",
                    "tool_calls",
                    "reasoning",
                    "delta",
                    "choices",
                    "usage",
                    "finish_reason",
                    "message",
                    "type",
                    "text",
                    "reasoning_details",
                    "function_call",
                    "error",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(st.lists(st.dictionaries(st.sampled_from(["choices", "usage", "error", "model"]), JSON, max_size=4), max_size=5))
def test_no_chunk_whatever_raises_anything_but_provider_errors(chunks: list[dict[str, Any]]) -> None:
    assembler = ReplyAssembler()
    try:
        for part in chunks:
            assembler.feed(part)
        answer = assembler.finish(True)
    except ProviderError:
        return
    assert all(isinstance(text, str) for text in (answer.text, answer.reasoning))
    json.dumps([call.recorded() for call in answer.tool_calls]).encode()
