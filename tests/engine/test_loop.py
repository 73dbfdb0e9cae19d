"""The loop: a valid conversation whatever happens, limits, retries, cancelling, steering."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest

from hermes_engine.agent.ask import RetryRules
from hermes_engine.agent.context import Context
from hermes_engine.agent.loop import Agent
from hermes_engine.clients.scripted import ScriptedClient, ScriptedReply, calling
from hermes_engine.errors import ContextTooLong, EmptyReply, EndpointDown, KeyRefused, RateLimited, ServerFault
from hermes_engine.events import (
    ContextCompacted,
    Emitter,
    Event,
    ReplyFinished,
    StepRetried,
    StepStarted,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from hermes_engine.messages import CANCELLED_RESULT, UNKNOWN_USAGE, Message, Reply, ToolCall, Usage, closed, user
from hermes_engine.protocols import AgentSpec, Limits, ModelRequest, TurnResult
from tests.engine.small_toolbox import SmallToolbox

FAST = RetryRules(first_wait=0.001)


class Kept:
    """A journal in memory."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    async def append(self, messages: Sequence[Message]) -> None:
        await asyncio.sleep(0)
        self.messages.extend(messages)

    async def replace(self, messages: Sequence[Message]) -> None:
        self.messages[:] = messages


class Stage:
    """An agent on a scripted model, with what it said and kept."""

    def __init__(self, *replies: ScriptedReply, limits: Limits | None = None, window: int | None = None, **more: Any):
        self.client = ScriptedClient(replies, window=window)
        self.events: list[Event] = []
        self.toolbox = SmallToolbox()
        self.kept = Kept()
        more.setdefault("rules", FAST)
        spec = AgentSpec("main", model="m", limits=limits or Limits())
        context = Context(self.client, "m")
        self.agent = Agent(spec, self.client, self.toolbox, context, model="m", journal=self.kept, **more)

    async def run(self, prompt: str = "go") -> TurnResult:
        emit = Emitter(self.events.append, session="s", run="r", agent="a")
        result = await self.agent.run(prompt, emit)
        self.check()
        return result

    def check(self) -> None:
        """What must hold after every turn, however it ended."""
        messages = self.agent.messages
        assert closed(messages) == messages
        assert self.kept.messages == messages
        kinds = [type(event) for event in self.events]
        assert kinds[0] is TurnStarted
        assert kinds[-1] is TurnFinished
        assert kinds.count(TurnStarted) == kinds.count(TurnFinished)
        assert kinds.count(StepStarted) == kinds.count(ReplyFinished)
        assert kinds.count(ToolStarted) == kinds.count(ToolFinished)

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def roles(self) -> list[str]:
        return [message.role for message in self.agent.messages]


async def test_a_turn_with_calls_ends_with_the_answer() -> None:
    stage = Stage(calling(("echo", '{"a": 1}'), ("echo", '{"b": 2}'), usage=Usage(10, 5)), "done")
    result = await stage.run()
    assert (result.status, result.answer, result.stop_reason) == ("ok", "done", "done")
    assert (result.turns, result.api_calls, result.retries, result.tool_calls) == (2, 2, 0, 2)
    assert stage.roles() == ["user", "assistant", "tool", "tool", "assistant"]
    assert [m.content for m in stage.agent.messages[2:4]] == ['{"a": 1}', '{"b": 2}']
    assert stage.client.requests[1].messages[-1].role == "tool"


async def test_only_calls_that_change_nothing_run_side_by_side() -> None:
    alone = Stage(calling(("echo", "{}"), ("echo", "{}"), ("echo", "{}")), "done")
    await alone.run()
    assert alone.toolbox.most_running == 1
    together = Stage(calling(("read_file", '{"n": 1}'), ("read_file", '{"n": 2}'), ("echo", "{}")), "done")
    await together.run()
    assert together.toolbox.most_running == 2
    assert [m.content for m in together.agent.messages[2:5]] == ['{"n": 1}', '{"n": 2}', "{}"]


async def test_f7_15_ids_that_come_again_in_a_later_turn_are_made_unique() -> None:
    same = Reply(tool_calls=(ToolCall("call_0", "echo"),), finish_reason="tool_calls")
    stage = Stage(same, same, "done")
    await stage.run()
    ids = [call.id for message in stage.agent.messages for call in message.tool_calls]
    assert len(set(ids)) == 2
    assert [m.tool_call_id for m in stage.agent.messages if m.role == "tool"] == ids


async def test_the_turn_limit_ends_a_turn_with_a_valid_conversation() -> None:
    number = iter(range(100))
    stage = Stage(lambda request: calling(("echo", f'{{"n": {next(number)}}}')), limits=Limits(max_turns=3))
    result = await stage.run()
    assert (result.status, result.stop_reason, result.turns) == ("max_turns", "max_turns", 3)
    assert stage.roles()[-1] == "tool"


async def test_a_cost_cap_stops_the_next_request() -> None:
    stage = Stage(calling(("echo", "{}"), usage=Usage(1, 1, cost_usd=0.6)), limits=Limits(max_cost_usd=0.5))
    result = await stage.run()
    assert (result.status, result.stop_reason, result.api_calls) == ("error", "budget", 1)


async def test_f2_9_an_answer_cut_at_the_token_limit_is_no_success() -> None:
    result = await Stage(Reply("half an ans", finish_reason="length")).run()
    assert (result.status, result.stop_reason, result.answer) == ("error", "length", "half an ans")


async def test_f1_14_retries_are_counted_and_have_a_ceiling() -> None:
    fault = ServerFault("500 from the server", status=500)
    stage = Stage(fault, fault, "done")
    result = await stage.run()
    assert (result.status, result.retries, result.api_calls) == ("ok", 2, 3)
    assert [event.attempt for event in stage.of(StepRetried)] == [1, 2]
    never = Stage(fault)
    result = await never.run()
    assert (result.status, result.api_calls, result.error_kind) == ("error", 3, "server_error")
    assert "tried 3×" in result.error


async def test_a_named_wait_is_kept_and_one_over_the_cap_is_reported_instead() -> None:
    stage = Stage(RateLimited("429", status=429, retry_after=0.15), "done")
    begun = time.monotonic()
    assert (await stage.run()).status == "ok"
    assert time.monotonic() - begun >= 0.15
    assert stage.of(StepRetried)[0].delay == 0.15
    long = Stage(RateLimited("429", status=429, retry_after=120))
    result = await asyncio.wait_for(long.run(), 5)
    assert result.api_calls == 1
    assert "120 s" in result.error


async def test_a_refused_key_is_not_tried_again() -> None:
    result = await Stage(KeyRefused("401: the key was refused", status=401)).run()
    assert (result.api_calls, result.error_kind) == (1, "key_refused")


@pytest.mark.parametrize("reply", [Reply(""), Reply("  \n"), Reply(reasoning="hm, hm")])
async def test_f7_18_empty_or_reasoning_only_replies_end_after_three_tries(reply: Reply) -> None:
    stage = Stage(reply)
    result = await stage.run()
    assert (result.status, result.api_calls, result.error_kind) == ("error", 3, EmptyReply.kind)
    assert stage.roles() == ["user"]


async def test_a_paused_endpoint_costs_no_try() -> None:
    waited: list[EndpointDown] = []

    async def wait_out(error: EndpointDown) -> None:
        waited.append(error)

    down = EndpointDown("connection refused")
    stage = Stage(down, down, down, down, "done", rules=RetryRules(first_wait=0.001, wait_out=wait_out))
    result = await stage.run()
    assert result.status == "ok"
    assert len(waited) == 4


async def test_f7_23_the_same_call_again_and_again_is_noted_then_stopped() -> None:
    stage = Stage(calling(("echo", '{"x": 1}')), limits=Limits(max_turns=50))
    result = await stage.run()
    assert (result.status, result.error_kind, result.turns) == ("error", "repetition", 6)
    notes = ["[note:" in m.content for m in stage.agent.messages if m.role == "tool"]
    assert notes == [False, False, True, True, True, True]


async def test_f7_23_two_calls_in_turn_are_stopped_but_new_arguments_never() -> None:
    ab = [calling(("echo", '{"x": 1}')), calling(("echo", '{"x": 2}'))] * 20
    result = await Stage(*ab, limits=Limits(max_turns=40)).run()
    assert result.error_kind == "repetition"
    assert result.turns < 10
    number = iter(range(100))
    varied = Stage(lambda request: calling(("echo", f'{{"n": {next(number)}}}')), limits=Limits(max_turns=20))
    assert (await varied.run()).turns == 20


async def test_f8_2_cancelling_within_a_tool_closes_the_conversation_at_once() -> None:
    stage = Stage(calling(("echo", "{}"), ("slow", "{}"), ("echo", "{}")))
    task = asyncio.create_task(stage.run())
    while stage.toolbox.running == 0 or not any(e.name == "slow" for e in stage.of(ToolStarted)):
        await asyncio.sleep(0.005)
    begun = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - begun < 0.2
    stage.check()
    assert [m.content for m in stage.agent.messages[2:]] == ["{}", CANCELLED_RESULT, CANCELLED_RESULT]
    assert stage.events[-1].status == "cancelled"  # type: ignore[attr-defined]


async def test_f4_10_cancelling_within_a_wait_or_a_stream_leaves_the_agent_usable() -> None:
    stage = Stage(ServerFault("500"), "hello", rules=RetryRules(first_wait=60))
    task = asyncio.create_task(stage.run())
    while not stage.of(StepRetried):
        await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    stage.check()
    assert (await stage.run("again")).answer == "hello"
    assert stage.roles() == ["user", "user", "assistant"]


async def test_a_timeout_ends_the_turn_and_keeps_what_was_said() -> None:
    stage = Stage(Reply("I begin.", tool_calls=(ToolCall("1", "slow"),)), limits=Limits(timeout_seconds=0.1))
    result = await stage.run()
    assert (result.status, result.stop_reason, result.answer) == ("timeout", "timeout", "I begin.")


async def test_f9_17_text_steered_in_is_part_of_the_turn_or_given_back() -> None:
    stage = Stage(calling(("echo", "{}")), "done")
    stage.agent.steer("and mind the tests")
    await stage.run()
    assert [m.content for m in stage.agent.messages if m.role == "user"] == ["go", "and mind the tests"]

    def first(request: ModelRequest) -> Reply:
        late.agent.steer("late")
        return Reply("first")

    late = Stage(first, "second")
    result = await late.run()
    assert result.answer == "second"
    late.agent.steer("too late")
    assert late.agent.inbox.take() == ["too late"]
    assert late.agent.inbox.take() == []


async def test_f7_17_a_refused_conversation_is_shortened_with_pairs_whole_and_bounded_tries() -> None:
    history = [user("build it")]
    for number in range(10):
        call = ToolCall(f"c{number}", "echo")
        history += [Message("assistant", "", (call,)), Message("tool", "y" * 2000, tool_call_id=call.id)]
    history.append(Message("assistant", "built"))
    refusal = ContextTooLong("400: the context is 2048 tokens", status=400)
    stage = Stage(refusal, refusal, Reply("summary: half built"), "fine", messages=list(history))
    stage.kept.messages = list(history)
    result = await stage.run("go on, please")
    assert result.answer == "fine"
    cut = stage.client.requests[1].messages
    assert [m.role for m in cut] == [m.role for m in stage.client.requests[0].messages]
    sent = stage.client.requests[3].messages
    assert closed(sent) == list(sent)
    assert sent[-1].content == "go on, please"
    assert "half built" in sent[0].content
    compacted = stage.of(ContextCompacted)[0]
    assert compacted.after_tokens < compacted.before_tokens

    always = Stage(refusal, messages=list(history))
    always.kept.messages = list(history)
    result = await always.run("go on, please")
    assert (result.status, result.error_kind) == ("error", "context_too_long")
    assert len(always.client.requests) <= 6
    assert always.agent.messages[-1].content == "go on, please"


async def test_a_nearly_full_window_is_made_room_in_before_the_request() -> None:
    history = [user("build it")]
    for number in range(20):
        call = ToolCall(f"c{number}", "echo")
        history += [Message("assistant", "", (call,)), Message("tool", "y" * 4000, tool_call_id=call.id)]
    history.append(Message("assistant", "built"))
    stage = Stage("fine", messages=list(history), window=16_000)
    stage.kept.messages = list(history)
    assert (await stage.run("next")).answer == "fine"
    assert stage.of(ContextCompacted)
    assert len(stage.client.requests) == 1
    unknown = Stage("fine", messages=list(history), window=None)
    unknown.kept.messages = list(history)
    await unknown.run("next")
    assert not unknown.of(ContextCompacted)


async def test_one_long_prompt_goes_out_as_it_is_while_it_seems_to_fit() -> None:
    """Nothing of it can be left out, and how long it is we only guess: the server may well take it."""
    long = Stage("read", window=16_000)
    assert (await long.run("y" * 4 * 15_000)).answer == "read"
    assert not long.of(ContextCompacted)

    longer = Stage("never asked", window=16_000)
    result = await longer.run("y" * 4 * 17_000)
    assert (result.error_kind, longer.client.requests) == ("context_too_long", [])
    assert result.error.startswith("the conversation takes about 17,")
    assert "the model has room for 16,000, and it cannot be made shorter — begin with less" in result.error


async def test_an_unforeseen_fault_is_an_error_and_leaves_a_valid_conversation() -> None:
    def broken(request: ModelRequest) -> Reply:
        raise ZeroDivisionError("a fault of ours")

    stage = Stage(broken)
    with pytest.raises(ZeroDivisionError):
        await stage.run()
    stage.check()
    assert stage.of(TurnFinished)[0].status == "error"


async def test_a_cost_cap_without_a_price_stops_after_the_first_reply() -> None:
    stage = Stage(calling(("echo", "{}"), usage=UNKNOWN_USAGE), limits=Limits(max_cost_usd=5))
    result = await stage.run()
    assert (result.stop_reason, result.api_calls) == ("budget", 1)
    assert "price" in result.error


async def test_finished_calls_are_kept_before_the_next_one_runs() -> None:
    stage = Stage(calling(("echo", '{"paid": 1}'), ("slow", "{}")))
    task = asyncio.create_task(stage.run())
    while not any(e.name == "slow" for e in stage.of(ToolStarted)):
        await asyncio.sleep(0.005)
    assert stage.kept.messages[-1].content == '{"paid": 1}'
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    stage.check()


class SlowlyKept(Kept):
    """A journal that is slow with messages of a role; one thing after the other, as the store's thread is."""

    def __init__(self, role: str) -> None:
        super().__init__()
        self.role, self.writing, self.one_at_a_time = role, asyncio.Event(), asyncio.Lock()

    async def append(self, messages: Sequence[Message]) -> None:
        async with self.one_at_a_time:
            if any(message.role == self.role for message in messages):
                self.writing.set()
                await asyncio.sleep(0.02)
            await super().append(messages)


@pytest.mark.parametrize("role", ["user", "assistant", "tool"])
@pytest.mark.parametrize("stops", [1, 2, 3])
async def test_f3_6_stops_while_messages_are_kept_keep_none_twice_and_tell_the_end(role: str, stops: int) -> None:
    stage = Stage(Reply(tool_calls=(ToolCall("c1", "echo", '{"text": "x"}'),)), Reply("done"))
    stage.kept = slow = SlowlyKept(role)
    stage.agent._journal = slow
    task = asyncio.create_task(stage.run())
    await slow.writing.wait()
    for _ in range(stops):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0.1)
    assert isinstance(stage.events[-1], TurnFinished)
    assert stage.events[-1].status == "cancelled"
    stage.check()
