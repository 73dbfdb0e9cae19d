"""The client over real HTTP against servers that deviate; the names carry the entries of the list of faults."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from hermes_engine.clients.openai_client import OpenAIClient
from hermes_engine.errors import (
    RequestRejected,
    StreamBroken,
    StreamStalled,
)
from hermes_engine.messages import user
from hermes_engine.protocols import ModelRequest
from tests.clients.test_openai_client import HELLO, TOOL, Heard
from tests.server import scripted
from tests.server.scripted import Answer, ScriptedServer, chunk

Talk = Callable[..., tuple[OpenAIClient, ScriptedServer]]
WEIRD = "日本 😀 a\u2028b\u0085c"


@pytest.mark.parametrize(
    "options",
    [{"split": 1}, {"eol": "\r\n"}, {"eol": "\r\n", "split": 1}, {"space": False}, {"together": True}, {"end": False}],
)
async def test_f7_19_text_is_exact_however_it_is_sent(talk: Talk, options: dict[str, Any]) -> None:
    parts: list[Any] = [
        chunk({"content": WEIRD[:4]}),
        b": comment\n\n",
        chunk({"content": WEIRD[4:]}),
        chunk({}, finish="stop"),
    ]
    client, _ = talk([scripted.stream(parts, **options)])
    heard = Heard()
    reply = await client.complete(HELLO, heard)
    assert reply.text == WEIRD
    assert heard.joined("text") == WEIRD


async def test_f7_19_events_without_blank_lines_between(talk: Talk) -> None:
    lines = b"".join(scripted.event(chunk({"content": text}))[:-1] for text in "abc")
    client, _ = talk([scripted.stream([lines + scripted.event(chunk({}, finish="stop"))])])
    assert (await client.complete(HELLO)).text == "abc"


async def test_f7_6_odd_chunks_over_the_wire(talk: Talk) -> None:
    odd: list[Any] = [{"choices": []}, {"choices": [{"delta": None}]}, b"data: \n\n", b"event: ping\ndata: ping\n\n"]
    last = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    client, _ = talk([scripted.stream([*odd, chunk({"content": "hi"}), *odd, chunk({}, finish="stop"), last])])
    reply = await client.complete(HELLO)
    assert (reply.text, reply.usage.prompt_tokens) == ("hi", 3)


async def test_f7_8_and_f7_9_reasoning_over_the_wire(talk: Talk) -> None:
    done = chunk({}, finish="stop")
    client, _ = talk(
        [
            scripted.stream([chunk({"reasoning": "r", "reasoning_content": "r"}), chunk({"content": "hi"}), done]),
            scripted.stream([chunk({"content": part}) for part in ("<thi", "nk>r</th", "ink>hi")] + [done]),
        ]
    )
    for _ in range(2):
        heard = Heard()
        reply = await client.complete(HELLO, heard)
        assert (reply.text, reply.reasoning) == ("hi", "r")
        assert (heard.joined("text"), heard.joined("reasoning")) == ("hi", "r")


@pytest.mark.parametrize("end", [False, "cut", "reset", "eof"])
@pytest.mark.parametrize(
    "parts",
    [
        [chunk({"content": "one "}), chunk({"content": "two"})],
        [
            chunk({"content": "one two"}),
            chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "t", "arguments": '{"a'}}]}),
        ],
        [chunk({"content": "one two"}), b'data: {"choices":[{"delta":{"content":"th'],
    ],
)
async def test_f7_12_a_stream_that_ends_early_is_broken(talk: Talk, parts: list[Any], end: Any) -> None:
    client, server = talk([scripted.stream([*parts, 0.05], end=end)])
    heard = Heard()
    with pytest.raises(StreamBroken) as caught:
        await client.complete(HELLO, heard)
    assert caught.value.retryable
    assert caught.value.partial == heard.joined("text") == "one two"
    assert not isinstance(caught.value, StreamStalled)
    assert len(server.requests) == 1


async def test_f7_12_a_cut_after_the_finish_reason_loses_nothing(talk: Talk) -> None:
    client, _ = talk([scripted.stream([chunk({"content": "all"}), chunk({}, finish="stop"), 0.05], end="cut")])
    assert (await client.complete(HELLO)).text == "all"


async def test_f7_12_no_answer_at_all_can_be_tried_again(talk: Talk) -> None:
    client, _ = talk([scripted.drop(), scripted.stream([], end=False), scripted.say("x")])
    for _ in range(2):
        with pytest.raises(StreamBroken):
            await client.complete(HELLO)
    assert (await client.complete(HELLO)).text == "x"


async def test_f7_13_silence_within_a_reply_is_limited(talk: Talk) -> None:
    client, server = talk([scripted.stream([chunk({"content": "a"}), 60])], idle_timeout_seconds=0.3)
    begun = time.monotonic()
    with pytest.raises(StreamStalled) as caught:
        await client.complete(HELLO)
    assert 0.25 < time.monotonic() - begun < 5
    assert caught.value.partial == "a"
    assert "0.3 s" in str(caught.value)
    assert await asyncio.to_thread(server.wait_until, lambda: server.open_requests == 0)


async def test_f7_13_a_slow_first_piece_has_its_own_limit(talk: Talk) -> None:
    slow = scripted.stream([chunk({"role": "assistant"}), 0.8, chunk({"content": "late"}), chunk({}, finish="stop")])
    limits = {"idle_timeout_seconds": 0.2, "first_byte_timeout_seconds": 30}
    client, _ = talk([scripted.say("late", first_delay=0.8), slow], **limits)
    assert (await client.complete(HELLO)).text == "late"
    assert (await client.complete(HELLO)).text == "late"


async def test_f7_13_a_long_reply_that_keeps_coming_is_not_cut(talk: Talk) -> None:
    client, _ = talk([scripted.say("x" * 40, chunks=40, delay=0.04)], idle_timeout_seconds=0.4)
    assert len((await client.complete(HELLO)).text) == 40


@pytest.mark.parametrize(
    "delta",
    [
        {"content": "x" * 100},
        {"reasoning_content": "x" * 100},
        {"content": "<think>" + "x" * 93},
        {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "t", "arguments": "x" * 100}}]},
        {"tool_calls": [{"id": "", "function": {"name": "t", "arguments": "{}"}}]},
    ],
)
async def test_a_reply_that_never_ends_is_closed_at_its_ceiling(talk: Talk, delta: dict[str, Any]) -> None:
    client, server = talk([scripted.stream([*[chunk(delta)] * 60, 60])], max_reply_characters=5000)
    reply = await client.complete(HELLO)
    assert reply.finish_reason == "length"
    assert reply.notes[0] == "the reply was cut off at 5,000 characters (provider.max_reply_characters)"
    assert len(reply.text) + len(reply.reasoning) + sum(len(call.arguments) for call in reply.tool_calls) <= 6100
    assert await asyncio.to_thread(server.wait_until, lambda: server.open_requests == 0)


async def test_a_reply_that_ends_below_its_ceiling_is_whole(talk: Talk) -> None:
    client, _ = talk([scripted.say("x" * 5000, chunks=9)], max_reply_characters=5000)
    reply = await client.complete(HELLO)
    assert (len(reply.text), reply.finish_reason, reply.notes) == (5000, "stop", ())


@pytest.mark.parametrize("first", [[], [chunk({"content": "a"})]])
async def test_f7_13_comments_keep_nothing_alive(talk: Talk, first: list[Any]) -> None:
    comments = [part for _ in range(100) for part in (b": keep-alive\n\n", 0.05)]
    limits = {"idle_timeout_seconds": 0.3, "first_byte_timeout_seconds": 0.6}
    client, _ = talk([scripted.stream([*first, *comments])], **limits)
    begun = time.monotonic()
    with pytest.raises(StreamStalled) as caught:
        await client.complete(HELLO)
    assert time.monotonic() - begun < 3
    assert ("first_byte" in caught.value.hint) is not bool(first)


async def test_f7_13_no_response_at_all_is_limited(talk: Talk) -> None:
    client, _ = talk([scripted.hang(60)], first_byte_timeout_seconds=0.3)
    with pytest.raises(StreamStalled):
        await client.complete(HELLO)


async def test_f7_13_a_connection_left_open_after_the_end_is_not_waited_for(talk: Talk) -> None:
    whole = scripted.stream([chunk({"content": "all"}), chunk({}, finish="stop"), b"data: [DONE]\n\n", 60])
    client, _ = talk([whole])
    begun = time.monotonic()
    assert (await client.complete(HELLO)).text == "all"
    assert time.monotonic() - begun < 5


async def test_f7_20_json_to_a_stream_request(talk: Talk) -> None:
    calls = [{"id": "c", "type": "function", "function": {"name": "t", "arguments": {"a": 1}}}]
    client, _ = talk(
        [
            scripted.plain_json(scripted.message("hi", reasoning_content="r")),
            scripted.plain_json(scripted.message(None, tool_calls=calls, finish="tool_calls")),
        ]
    )
    heard = Heard()
    reply = await client.complete(HELLO, heard)
    assert (reply.text, reply.reasoning, reply.usage.prompt_tokens) == ("hi", "r", 10)
    assert heard.joined("text") == "hi"
    called = await client.complete(HELLO)
    assert called.tool_calls[0].parsed() == {"a": 1}


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/octet-stream"])
async def test_f7_20_a_stream_under_another_name_is_still_one(talk: Talk, kind: str) -> None:
    body = b"".join(step for step in scripted.say("hi").steps if isinstance(step, bytes))
    client, _ = talk([Answer((body,), headers={"Content-Type": kind})])
    assert (await client.complete(HELLO)).text == "hi"


@pytest.mark.parametrize("code", [400, 422])
async def test_f7_20_refused_stream_options_are_left_out_from_then_on(talk: Talk, code: int) -> None:
    client, server = talk(scripted.refuse_field("stream_options", scripted.say("hi"), code=code))
    for _ in range(2):
        assert (await client.complete(HELLO)).text == "hi"
    assert ["stream_options" in seen.body for seen in server.requests] == [True, False, False]
    assert all(seen.body["stream"] is True for seen in server.requests)


async def test_f7_20_other_refusals_are_not_repeated(talk: Talk) -> None:
    client, server = talk([scripted.status(400, {"error": {"message": "temperature is not allowed"}})])
    with pytest.raises(RequestRejected):
        await client.complete(HELLO)
    assert len(server.requests) == 1


@pytest.mark.parametrize("code", [400, 422])
async def test_a_server_that_cannot_switch_reasoning_off_is_asked_without_it(talk: Talk, code: int) -> None:
    def answer(seen: scripted.Seen) -> Answer:
        refused = {"stream_options": "unknown: stream_options", "reasoning_effort": "Reasoning is mandatory"}
        for name, text in refused.items():
            if name in seen.body:
                return scripted.status(code, {"error": {"message": text}})
        return scripted.say("hi")

    client, server = talk(answer, reasoning_effort="none")
    notes = [(await client.complete(HELLO)).notes for _ in range(2)]
    assert [len(told) for told in notes] == [1, 0]
    assert "does not let reasoning be switched off" in notes[0][0]
    sent = [("stream_options" in seen.body, seen.body.get("reasoning_effort")) for seen in server.requests]
    assert sent == [(True, "none"), (False, "none"), (False, None), (False, None)]


async def test_an_effort_that_was_asked_for_is_not_left_out(talk: Talk) -> None:
    refusal = scripted.status(400, {"error": {"message": "reasoning_effort: unsupported value"}})
    client, server = talk([refusal], reasoning_effort="high")
    with pytest.raises(RequestRejected, match="unsupported value"):
        await client.complete(HELLO)
    named, _ = talk([refusal], reasoning_effort="none", extra_body={"reasoning_effort": "none"})
    with pytest.raises(RequestRejected, match="unsupported value"):
        await named.complete(HELLO)
    assert len(server.requests) == 1


async def test_f7_20_many_rows_at_once_each_meet_the_refusal_once(talk: Talk) -> None:
    client, server = talk(scripted.refuse_field("stream_options", scripted.say("hi", first_delay=0.05)))
    replies = await asyncio.gather(*(client.complete(HELLO) for _ in range(20)))
    assert {reply.text for reply in replies} == {"hi"}
    assert len(server.requests) <= 40


async def test_f7_21_a_prompt_that_was_cut_is_noticed_once(talk: Talk) -> None:
    client, _ = talk([scripted.say("x", usage={"prompt_tokens": 4096, "completion_tokens": 1})])
    request = ModelRequest("m", [user("all the words of a long text " * 3000)])
    first, second = [await client.complete(request) for _ in range(2)]
    assert "4,096" in first.notes[0]
    assert "num_ctx" in first.notes[0]
    assert second.notes == ()


@pytest.mark.parametrize(
    ("text", "usage"),
    [
        ("a b c " * 2000, {"prompt_tokens": 4096, "completion_tokens": 1}),
        ("word " * 20000, {"prompt_tokens": 10, "completion_tokens": 1}),
        (" " * 100000 + "x", {"prompt_tokens": 1500, "completion_tokens": 1}),
        ("word " * 20000, {"prompt_tokens": 1200, "prompt_tokens_details": {"cached_tokens": 18000}}),
        ("word " * 20000, None),
    ],
)
async def test_f7_21_no_false_alarm(talk: Talk, text: str, usage: Any) -> None:
    client, _ = talk([scripted.say("x", usage=usage)])
    assert (await client.complete(ModelRequest("m", [user(text)]))).notes == ()


async def test_f2_5_half_surrogates_come_in_and_go_out_as_valid_text(talk: Talk) -> None:
    client, server = talk([scripted.say("x\ud83d y")])
    reply = await client.complete(ModelRequest("m", [user("a\udc00b")]))
    assert reply.text == "x\ufffd y"
    assert server.requests[0].raw.decode()
    assert server.requests[0].messages[0]["content"] == "a\ufffdb"


MARKUP = '<tool_call>{"name":"t","arguments":{"a":1}}</tool_call>'


async def test_f7_10_calls_in_text_run_only_where_the_settings_say_so(talk: Talk) -> None:
    client, server = talk([scripted.say(f"I look.\n{MARKUP}", chunks=9, delay=0.01)], text_tool_calls=True)
    heard = Heard()
    reply = await client.complete(ModelRequest("m", [user("go")], [TOOL]), heard)
    assert reply.text == "I look."
    assert heard.joined("text").strip() == "I look."
    assert [(call.name, call.parsed()) for call in reply.tool_calls] == [("t", {"a": 1})]
    off = OpenAIClient(client._endpoint, type(client._provider)())
    plain = await off.complete(ModelRequest("m", [user("go")], [TOOL]))
    await off.close()
    assert plain.tool_calls == ()
    assert plain.text.endswith(MARKUP)
    assert len(server.requests) == 2
