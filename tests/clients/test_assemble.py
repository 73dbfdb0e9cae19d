"""Chunks to replies: text, reasoning, usage, ends and errors, as pure values."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_engine.clients.assemble import ReplyAssembler
from hermes_engine.errors import ContextTooLong, EndpointDown, ProviderError, RateLimited, ServerFault, StreamBroken
from tests.clients.chunks import named, piece, reply, shown, told
from tests.server.scripted import chunk, message


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


def test_f7_12_no_finish_and_no_done_is_a_broken_stream() -> None:
    with pytest.raises(StreamBroken) as caught:
        told({"content": "one "}, {"content": "two"}, finish=None, ended=False)
    assert caught.value.partial == "one two"
    with pytest.raises(StreamBroken):
        told(piece(index=0, id="c", name="t", arguments='{"a"'), finish="", ended=False)


def test_f7_12_a_finish_reason_without_done_is_whole() -> None:
    assert told({"content": "one"}, ended=False).text == "one"


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


def test_an_error_within_a_choice_is_told_in_its_own_words() -> None:
    last = chunk({"content": "half"}, finish="error")
    last["choices"][0]["error"] = {"code": 502, "message": "upstream died"}
    with pytest.raises(EndpointDown, match="upstream died"):
        reply([chunk({"content": "x"}), last])


def _choices(*said: tuple[int | None, str]) -> dict[str, Any]:
    return {"choices": [{"index": index, "delta": {"content": text}} for index, text in said]}


def test_of_several_choices_one_is_followed() -> None:
    together = [_choices((1, "no"), (0, "a")), _choices((1, "no")), _choices((0, "b"), (1, "no"))]
    assert reply(together).text == "ab"
    in_turn = [_choices((0, "a")), _choices((1, "no")), _choices((0, "b")), _choices((1, "no"))]
    assert reply(in_turn).text == "ab"
    assert reply([_choices((None, "a")), _choices((None, "b"))]).text == "ab"
    alone = [
        _choices((1, "a")),
        _choices((1, "b")),
        {"choices": [{"index": 1, "delta": {}, "finish_reason": "length"}]},
    ]
    assert reply(alone, finish=None).finish_reason == "length"


def test_a_whole_message_after_its_pieces_is_not_added() -> None:
    last = chunk({}, finish="stop")
    last["choices"][0]["message"] = {"role": "assistant", "content": "hi"}
    assert reply([chunk({"content": "hi"}), last]).text == "hi"


def test_white_space_before_calls_is_no_text_and_the_model_is_named() -> None:
    answer = told({"content": "\n\n"}, piece(index=0, name="t"))
    assert answer.text == ""
    assert answer.model == "scripted"


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
