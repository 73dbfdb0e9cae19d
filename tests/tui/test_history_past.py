"""A chat opened again shows what was on the screen: how long things took, what was allowed, how turns ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_engine import events as ev
from hermes_engine.messages import Display, Message, ToolCall, tool_message, user
from hermes_tui.presenter.history import blocks_of
from hermes_tui.presenter.past import Past
from hermes_tui.widgets.blocks import Block
from tests.conftest import Serve
from tests.server.scripted import call, hang, say, status
from tests.tui.drawing import drawn
from tests.tui.live import live, settings
from tests.tui.stage import Script
from tests.work.support import by_prompt


def shown(blocks: list[Block]) -> list[str]:
    return [" ".join(drawn(block, 90).split()) for block in blocks]


def test_cards_have_their_words_times_and_answers() -> None:
    told = Script()
    read = ToolCall("c1", "read_file", '{"path": "a.py"}'), ToolCall("c2", "read_file", '{"path": "b.py"}')
    run = ToolCall("c3", "terminal", '{"command": "make"}')
    events = [
        told(ev.TurnStarted, prompt="go", model="m"),
        told(ev.ThoughtDelta, text="hm"),
        told(ev.ThoughtDelta, 4.0, text=", yes"),
        told(ev.ReplyFinished, reasoning="hm, yes", calls=3),
        *told.tool("c1", Display("Read", "a.py", "3 lines")),
        *told.tool("c2", Display("Read", "b.py", "4 lines")),
        told(ev.ApprovalAsked, request="q", call_id="c3", title="Run make", detail="make"),
        told(ev.RequestSettled, request="q", choice="once"),
        *told.tool("c3", Display("Run", "make", "12 passed", "command", "$ make"), seconds=3.1),
        told(ev.ReplyFinished, text="Done."),
        told(ev.TurnFinished, answer="Done."),
    ]
    messages = [
        user("go"),
        Message("assistant", "", (*read, run), reasoning="hm, yes"),
        *(tool_message(item, "x", "ok") for item in (*read, run)),
        Message("assistant", "Done."),
    ]
    assert shown(blocks_of(messages, Past(events))) == [
        "▌ go", "▸ Thought 4 s", "▸ Read a.py +1 more 0.4 s ✓", "▸ Run make 12 passed 3.1 s ✓",
        "✓ Allowed once Run make", "Done.",
    ]  # fmt: skip


def test_lines_stand_where_their_turns_ended_also_after_a_rewind() -> None:
    told = Script()
    events: list[ev.Event] = []
    for prompt, end, error in (("one", "error", "401: refused"), ("gone", "error", "away"), ("two", "cancelled", "x")):
        events += [
            told(ev.TurnStarted, prompt=prompt, model="m"),
            told(ev.ReplyFinished, text="half"),
            told(ev.Notice, level="warning", text=f"about {prompt}"),
            told(ev.UsageReported, context_tokens=9, context_window=4096),
            told(ev.TurnFinished, status=end, error=error),
        ]
    events += [told(ev.TurnStarted), told(ev.ContextCompacted, before_tokens=9000, after_tokens=80, dropped=4)]
    events += [told(ev.TurnFinished)]
    messages = [user("one"), Message("assistant", "half"), user("two"), Message("assistant", "half"), user("steered")]
    past = Past(events)
    assert shown(blocks_of(messages, past)) == [
        "▌ one", "half", "▲ about one", "✗ 401: refused",
        "▌ two", "half", "▲ about two", "▌ steered", "■ Stopped. What was said so far stays.",
        "· Context shortened from 9k to 80 tokens; 4 messages became a summary",
    ]  # fmt: skip
    assert past.windows == {"m": 4096}


@pytest.mark.slow
async def test_a_chat_opened_again_shows_what_stood_there(serve: Serve, tmp_path: Path) -> None:
    server = serve([call("terminal", {"command": "touch made"}), status(401, "no such key"), hang(1)])
    async with live(settings(server), tmp_path, width=120, height=40) as app:
        await app.ready()
        await app.say("do it")
        await app.shows("1 Yes")

        def allowed() -> bool:
            if request := app.chat.asking.asked():
                app.chat.asking.choose(request, request.options[0])
            return "Allowed once" in app.screen

        await app.until(allowed)
        await app.idle()
        await app.say("again")
        await app.until(lambda: len(server.requests) == 3)
        await app.pilot.press("escape")
        await app.shows("Stopped.")
        await app.idle()
        before, session = blocks(app.screen), app.desk.session
    assert any("401" in line for line in before)
    async with live(settings(server), tmp_path, resume=session, width=120, height=40) as app:
        await app.shows("Stopped.")
        assert blocks(app.screen) == before
        await app.shows("/ 131k")  # known before the first answer
        assert "size unknown" not in app.screen


def blocks(screen: str) -> list[str]:
    """The transcript's lines."""
    lines = [line[:82].rstrip() for line in screen.split("\n")]
    return [line for line in lines[2:-5] if line.strip()]


def test_a_turn_whose_end_nobody_told_was_cut_off_unless_it_runs() -> None:
    told = Script()
    events = [told(ev.TurnStarted, prompt="one"), told(ev.ReplyFinished, text="half", partial=True)]
    messages = [user("one"), Message("assistant", "half", partial=True)]
    words = "■ Cut off: the program ended. What was said so far stays."
    assert shown(blocks_of(messages, Past(events)))[-1] == words
    assert words not in shown(blocks_of(messages, Past(events, over=False)))
    events += [told(ev.TurnStarted, prompt="two"), told(ev.ReplyFinished, text="ok"), told(ev.TurnFinished)]
    messages += [user("two"), Message("assistant", "ok")]
    assert [line for line in shown(blocks_of(messages, Past(events))) if line.startswith(("▌", "■"))] == [
        "▌ one", words, "▌ two",
    ]  # fmt: skip


@pytest.mark.parametrize("left", [True, False], ids=["left working", "killed"])
def test_what_broke_a_turn_stands_where_it_was_gone_on_with(left: bool) -> None:
    told = Script()
    run = ToolCall("c1", "terminal", '{"command": "make"}')
    events = [
        told(ev.TurnStarted, prompt="go", model="m"),
        told(ev.ReplyFinished, calls=1),
        *told.tool("c1", Display("Run", "make", "12 passed", "command", "$ make"), seconds=3.1),
        *([told(ev.TurnFinished, status="cancelled", error="handed over")] if left else []),
        told(ev.TurnStarted, prompt="", model="m"),
        told(ev.Notice, text="the server was slow"),
        told(ev.ReplyFinished, text="Done."),
        told(ev.TurnFinished, answer="Done."),
    ]
    messages = [
        user("go"),
        Message("assistant", "", (run,)),
        tool_message(run, "x", "ok"),
        Message("assistant", "Done."),
    ]
    broke = (
        "Left working when the program was left." if left else "Cut off: the program ended. What was said so far stays."
    )
    assert shown(blocks_of(messages, Past(events))) == [
        "▌ go", "▸ Run make 12 passed 3.1 s ✓", f"■ {broke}", "· the server was slow", "Done.",
    ]  # fmt: skip


def test_what_shortening_says_stands_behind_the_turn_before_it() -> None:
    told = Script()
    events = [
        told(ev.TurnStarted, prompt="go", model="m"),
        told(ev.ReplyFinished, text="Done."),
        told(ev.TurnFinished, answer="Done."),
        told(ev.TurnStarted, prompt="", model="m"),
        told(ev.Notice, text="nothing to shorten"),
        told(ev.TurnFinished),
    ]
    messages = [user("go"), Message("assistant", "Done.")]
    assert shown(blocks_of(messages, Past(events))) == ["▌ go", "Done.", "· nothing to shorten"]


async def test_a_task_opened_as_a_chat_shows_what_its_screen_showed(serve: Serve, tmp_path: Path) -> None:
    server = serve(
        by_prompt({"write it": [call("write_file", {"path": "a.txt", "content": "1\n2\n"}), say("written")]})
    )
    async with live(settings(server, mode="auto"), tmp_path) as app:
        await app.ready()
        await app.say("/background write it")
        await app.shows("written")
        await app.say("/open write")
        await app.shows("▌ write it")
        assert "new, +2 −0" in app.screen
