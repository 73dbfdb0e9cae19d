"""What tries without a usable reply have used is counted, and what a filter cut off is no answer."""

from __future__ import annotations

from hermes_engine.errors import StreamBroken
from hermes_engine.messages import Reply, Usage
from hermes_engine.protocols import DeltaSink, ModelRequest
from tests.engine.test_loop import Stage

TOLD = Usage(10, 5, 0, True, 0.5, True)
EMPTY = Reply("", finish_reason="stop", usage=TOLD)
GOOD = Reply("Yes.", finish_reason="stop", usage=TOLD)


async def test_f7_18_empty_replies_are_paid_for() -> None:
    result = await Stage(EMPTY).run()
    assert (result.status, result.api_calls) == ("error", 3)
    assert result.usage == Usage(30, 15, 0, True, 1.5, True)


async def test_an_empty_reply_before_the_answer_is_paid_for_too() -> None:
    result = await Stage(EMPTY, GOOD).run()
    assert (result.status, result.answer, result.usage) == ("ok", "Yes.", Usage(20, 10, 0, True, 1.0, True))


async def test_only_reasoning_is_paid_for_once() -> None:
    thought = Reply("", "hm", finish_reason="stop", usage=TOLD)
    result = await Stage(thought, thought, GOOD).run()
    assert (result.status, result.usage) == ("ok", Usage(30, 15, 0, True, 1.5, True))


async def test_a_reply_that_broke_off_makes_the_usage_unknown() -> None:
    stage = Stage(GOOD)
    whole = stage.client.complete

    async def complete(request: ModelRequest, on_delta: DeltaSink | None = None) -> Reply:
        reply = await whole(request, on_delta)
        if len(stage.client.requests) == 1:
            raise StreamBroken("cut", partial=reply.text)
        return reply

    stage.client.complete = complete  # type: ignore[method-assign]
    result = await stage.run()
    assert (result.status, result.usage.tokens_known, result.usage.total_tokens) == ("ok", False, 15)


async def test_what_a_filter_cut_off_is_no_finished_answer() -> None:
    stage = Stage(Reply("The first step is", finish_reason="content_filter", usage=TOLD))
    result = await stage.run()
    assert (result.status, result.stop_reason, result.error_kind) == ("error", "error", "content_filter")
    assert (result.answer, result.api_calls, result.usage) == ("The first step is", 1, TOLD)
