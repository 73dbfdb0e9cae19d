"""Requests in the app: digits, drafts, the deaf moment, the end of a long one, why not, Ctrl+N."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual import events
from textual.pilot import Pilot

from hermes_engine import events as ev
from hermes_engine.requests import Answer
from hermes_tui.screens.chat import asking as asking_module
from hermes_tui.widgets.blocks import RequestBlock
from tests.tui.stage import Script, StageApp, screen_text, settle, stage


class Clock:
    """A clock the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


class Ears:
    """Stands where the engine's answers go, and settles requests as the broker does."""

    def __init__(self, app: StageApp, say: Script) -> None:
        self.app, self.say = app, say
        self.answers: list[tuple[str, Answer]] = []

    def __call__(self, block: RequestBlock, choice: str, note: str) -> None:
        self.answers.append((block.request, Answer(choice, note)))  # type: ignore[arg-type]
        self.app.feed(self.say(ev.RequestSettled, request=block.request, choice=choice, note=note))


@asynccontextmanager
async def asked(
    monkeypatch: pytest.MonkeyPatch, *requests: dict[str, Any], width: int = 90, height: int = 24
) -> AsyncIterator[tuple[StageApp, Pilot[int], Ears, Clock]]:
    """The app with waiting approvals, seen for long enough."""
    clock = Clock()
    monkeypatch.setattr(asking_module, "time", clock)
    monkeypatch.setattr("hermes_tui.widgets.transcript.view.time", clock)
    async with stage(width, height) as (app, pilot):
        say = Script()
        ears = Ears(app, say)
        monkeypatch.setattr(app.chat.asking, "_send", ears)
        app.feed(say(ev.TurnStarted, prompt="go"), say(ev.StepStarted, step=1))
        for number, values in enumerate(requests or ({},)):
            given = {"request": f"q{number}", "title": "Run a command", "detail": "rm x", "reason": "removes", **values}
            app.feed(say(ev.ApprovalAsked, **given))
        await settle(pilot)
        yield app, pilot, ears, clock


async def decided(app: StageApp, pilot: Pilot[int]) -> None:
    """Waits until it is clear what the digits pressed last were meant for."""
    digits, end = app.chat.asking.digits, time.monotonic() + 10
    while digits.block is not None and not digits.wants_enter and not app.chat.asking.hint:
        assert time.monotonic() < end
        await pilot.pause(0.02)
    await settle(pilot)


async def press(app: StageApp, pilot: Pilot[int], *digits: str, gap: float = 0.08) -> None:
    """Presses digits one by one, as a person does, and waits for what comes of them."""
    for digit in digits:
        await asyncio.sleep(gap)
        await pilot.press(digit)
    await decided(app, pilot)


async def test_a_digit_answers_at_once_with_nothing_written(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(monkeypatch, {"rule": "rm"}) as (app, pilot, ears, clock):
        assert "1 yes · 2 this session · 3 no · 4 always" in screen_text(app)
        clock.now += 0.5
        await press(app, pilot, "1")
        assert ears.answers == [("q0", Answer("once"))]
        await settle(pilot)
        assert "Allowed once" in screen_text(app)


async def test_for_400_ms_digits_answer_nothing_and_are_no_text_either(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(monkeypatch) as (app, pilot, ears, clock):
        clock.now += 0.39
        await press(app, pilot, "1")
        assert ears.answers == []
        assert app.chat.prompt.text == ""
        assert "press it again" in screen_text(app)
        clock.now += 0.1
        await press(app, pilot, "1")
        assert ears.answers == [("q0", Answer("once"))]
        assert "press it again" not in screen_text(app)


async def test_a_digit_too_soon_is_kept_for_the_message_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(monkeypatch) as (app, pilot, ears, _clock):
        await press(app, pilot, "1")
        await pilot.press(*" more thing")
        assert app.chat.prompt.text == "1 more thing"
        assert ears.answers == []


@pytest.mark.parametrize("text", ["1 more thing", "2 more things: check the docs", "3. third", "4ever", "2024", "12 x"])
@pytest.mark.parametrize("gap", [0.0, 0.1])
async def test_a_message_that_begins_with_a_digit_answers_nothing(
    monkeypatch: pytest.MonkeyPatch, text: str, gap: float
) -> None:
    async with asked(monkeypatch, {"rule": "rm"}) as (app, pilot, ears, clock):
        clock.now += 1
        for character in text:
            await asyncio.sleep(gap if len(app.chat.prompt.text) < 3 else 0)
            await pilot.press(character)
        assert app.chat.prompt.text == text
        assert ears.answers == []


async def test_what_allows_more_than_this_wants_enter(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(monkeypatch, {"rule": "rm"}, {"rule": "rm"}) as (app, pilot, ears, clock):
        clock.now += 1
        await press(app, pilot, "2")
        assert ears.answers == []
        assert "Enter: Yes, this session · Esc goes back" in screen_text(app)
        await pilot.press("escape")
        assert "1 yes · 2 this session" in screen_text(app)
        await press(app, pilot, "4")
        await pilot.press(*" of them")
        assert app.chat.prompt.text == "4 of them"
        assert ears.answers == []
        app.chat.prompt.clear()
        await press(app, pilot, "2")
        await pilot.press("enter")
        assert ears.answers == [("q0", Answer("session"))]


async def test_a_paste_after_a_digit_is_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(monkeypatch) as (app, pilot, ears, clock):
        clock.now += 1
        await asyncio.sleep(0.08)
        await pilot.press("1")
        app.chat.prompt.area.post_message(events.Paste(" pasted"))
        await settle(pilot)
        assert app.chat.prompt.text == "1 pasted"
        assert ears.answers == []


async def test_the_line_above_the_prompt_names_the_marked_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage(90, 36) as (app, pilot):
        clock = Clock()
        monkeypatch.setattr(asking_module, "time", clock)
        ears = Ears(app, Script())
        monkeypatch.setattr(app.chat.asking, "_send", ears)
        for name in ("alpha", "bravo", "carla"):
            script = Script(agent=name, run=name)
            app.feed(script(ev.AgentStarted, name=name, parent="a1", kind="child"))
            app.feed(script(ev.ApprovalAsked, request=f"of {name}", title="Run it", reason="runs"))
        await settle(pilot)
        clock.now = time.monotonic() + 1
        assert "alpha asks:" in screen_text(app)
        await pilot.press("ctrl+n", "ctrl+n")
        await settle(pilot)
        assert "bravo asks:" in screen_text(app)
        assert "alpha asks:" not in screen_text(app)
        await pilot.press("1")
        await settle(pilot)
        assert ears.answers == [("of bravo", Answer("once"))]
        assert "alpha asks:" in screen_text(app)


@pytest.mark.parametrize("gap", [0.06, 0.12])
async def test_a_row_of_the_same_kind_is_answered_as_fast_as_keys_are_pressed(
    monkeypatch: pytest.MonkeyPatch, gap: float
) -> None:
    requests = [{"rule": "rm", "detail": f"rm {number}", "title": f"Run rm {number}"} for number in range(12)]
    async with asked(monkeypatch, *requests) as (app, pilot, ears, clock):
        clock.now += 1
        await press(app, pilot, *"1" * 12, gap=gap)
        end = time.monotonic() + 10
        while len(ears.answers) < 12 and time.monotonic() < end:
            await pilot.pause(0.02)
        assert ears.answers == [(f"q{number}", Answer("once")) for number in range(12)]
        assert app.chat.prompt.text == ""


async def test_another_kind_in_the_row_is_not_answered_blind(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [{"rule": "rm"}, {"rule": "rm"}, {"rule": "curl", "title": "Fetch a page"}]
    async with asked(monkeypatch, *requests, height=40) as (app, pilot, ears, clock):
        clock.now += 1
        await press(app, pilot, *"1111")
        assert [request for request, _answer in ears.answers] == ["q0", "q1"]
        assert app.chat.prompt.text == ""


async def test_with_a_draft_digits_stay_text_until_ctrl_n(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(monkeypatch) as (app, pilot, ears, clock):
        clock.now += 1
        await pilot.press(*"item ", "1")
        assert app.chat.prompt.text == "item 1"
        assert ears.answers == []
        await pilot.press("ctrl+n")
        assert not app.chat.prompt.area.has_focus
        await pilot.press("1")
        assert ears.answers == [("q0", Answer("once"))]
        assert app.chat.prompt.text == "item 1"
        assert app.chat.prompt.area.has_focus


async def test_letters_answer_only_after_ctrl_n(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(monkeypatch, {"rule": "rm"}) as (app, pilot, ears, clock):
        clock.now += 1
        await pilot.press("y")
        assert app.chat.prompt.text == "y"
        await pilot.press("ctrl+n", "a")
        assert ears.answers == [("q0", Answer("session"))]


async def test_arrows_and_enter_choose_but_enter_alone_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(monkeypatch) as (_app, pilot, ears, clock):
        clock.now += 1
        await pilot.press("ctrl+n", "enter")
        assert ears.answers == []
        await pilot.press("right", "enter")
        assert ears.answers == [("q0", Answer("once"))]


async def test_no_asks_why_and_keeps_the_draft(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(monkeypatch) as (app, pilot, ears, clock):
        clock.now += 1
        await pilot.press(*"my draft", "ctrl+n", "3")
        assert app.chat.prompt.lent == "why not"
        await pilot.press(*"use git", "enter")
        assert ears.answers == [("q0", Answer("no", "use git"))]
        assert app.chat.prompt.text == "my draft"


async def test_esc_in_the_reason_goes_back_and_asks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(monkeypatch) as (app, pilot, ears, clock):
        clock.now += 1
        await press(app, pilot, "3")
        await pilot.press(*"because", "escape")
        assert ears.answers == []
        assert app.chat.prompt.text == ""
        await press(app, pilot, "3")
        await pilot.press("enter")
        assert ears.answers == [("q0", Answer("no"))]


async def test_a_long_one_takes_a_yes_only_when_its_end_was_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    detail = "\n".join(f"line {number}" for number in range(80))
    async with asked(monkeypatch, {"detail": detail}) as (app, pilot, ears, clock):
        block = app.chat.asking.asked()
        assert block is not None
        app.chat.transcript.action_top()
        app.feed(Script(run="r")(ev.Notice, text="x"))
        await settle(pilot)
        block.shown_at = None
        clock.now += 1
        await press(app, pilot, "1")
        assert ears.answers == []
        assert "Read it to its end first" in screen_text(app)
        for _page in range(8):
            await pilot.press("pagedown")
        clock.now += 1
        await press(app, pilot, "1")
        assert ears.answers == [("q0", Answer("once"))]
        await settle(pilot)
        assert "Read it to its end first" not in screen_text(app)


@pytest.mark.parametrize(("width", "height"), [(40, 12), (80, 24)])
async def test_a_long_one_opens_with_question_and_choices_in_view(
    monkeypatch: pytest.MonkeyPatch, width: int, height: int
) -> None:
    detail = "\n".join(f"line {number}" for number in range(40))
    values = {"detail": detail, "rule": "terminal(make)", "title": "Run line 0"}
    async with asked(monkeypatch, values, width=width, height=height) as (app, pilot, ears, clock):
        for words in ("Hermes asks", "Run line 0", "1 Yes", "2 Yes, this session", "3 No, tell it why…", "4 Always"):
            assert words in screen_text(app)
        assert screen_text(app).count("terminal(make)") == 1
        assert "line 39" not in screen_text(app)
        assert "↓ 1 new" in screen_text(app)
        app.feed(ears.say(ev.TextDelta, text="words of a turn that goes on"))
        await settle(pilot)
        assert "1 Yes" in screen_text(app)
        clock.now += 1
        await press(app, pilot, "1")
        assert ears.answers == []
        for _page in range(20):
            await pilot.press("pagedown")
        await settle(pilot)
        assert "line 39" in screen_text(app)
        clock.now += 1
        await press(app, pilot, "1")
        assert ears.answers == [("q0", Answer("once"))]
        assert bool(app.chat.transcript.follow)


async def test_an_answered_one_lets_the_view_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"detail": "\n".join(f"line {number}" for number in range(40))}
    async with asked(monkeypatch, values, width=40, height=12) as (app, pilot, ears, _clock):
        await pilot.press("ctrl+n", "3")
        assert app.chat.prompt.lent == "why not"
        await pilot.press("enter")
        assert ears.answers == [("q0", Answer("no"))]
        app.feed(ears.say(ev.TextDelta, text="\n\n".join(f"word {number}" for number in range(40))))
        await settle(pilot)
        assert "word 39" in screen_text(app)


async def test_while_the_reason_is_written_the_line_says_what_enter_and_esc_do(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(monkeypatch, {"rule": "rm"}, width=120) as (app, pilot, _ears, clock):
        clock.now += 1
        app.desk.told_busy = True
        await press(app, pilot, "x", "backspace")
        assert "1 yes · 2 this session · 3 no · 4 always" in screen_text(app)
        assert "Enter queues" in screen_text(app)
        await press(app, pilot, "3")
        assert "Enter refuses it · Esc goes back" in screen_text(app)
        assert "why not ❯ a reason, or Enter alone" in screen_text(app)
        assert "1 yes" not in screen_text(app)
        assert "Enter queues" not in screen_text(app)
        await pilot.press("escape")
        assert "1 yes · 2 this session · 3 no · 4 always" in screen_text(app)


async def test_ctrl_n_goes_round(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(monkeypatch, {}, {}, {}) as (app, pilot, ears, clock):
        clock.now += 1
        seen = []
        for _press in range(4):
            await pilot.press("ctrl+n")
            focused = app.chat.asking.focused
            assert focused is not None
            seen.append(focused.request)
        assert seen == ["q0", "q1", "q2", "q0"]
        assert "◆ 3" in screen_text(app)
        await pilot.press("escape")
        assert app.chat.prompt.area.has_focus
        assert ears.answers == []


async def test_a_question_without_choices_takes_words(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage(90, 24) as (app, pilot):
        say = Script()
        ears = Ears(app, say)
        monkeypatch.setattr(app.chat.asking, "_send", ears)
        app.feed(say(ev.QuestionAsked, request="q", question="Which branch?"))
        await settle(pilot)
        assert app.chat.prompt.lent == "answer"
        assert "answer ❯" in screen_text(app)
        await pilot.press("enter")
        assert ears.answers == []
        await pilot.press(*"main", "enter")
        assert ears.answers == [("q", Answer("answer", "main"))]
        assert app.chat.prompt.lent == ""


async def test_a_question_never_takes_the_prompt_from_a_draft(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage(90, 24) as (app, pilot):
        say = Script()
        ears = Ears(app, say)
        monkeypatch.setattr(app.chat.asking, "_send", ears)
        await pilot.press(*"draft")
        app.feed(say(ev.QuestionAsked, request="q", question="Which branch?"))
        await settle(pilot)
        assert app.chat.prompt.text == "draft"
        await pilot.press("ctrl+n", *"main", "enter")
        assert ears.answers == [("q", Answer("answer", "main"))]
        assert app.chat.prompt.text == "draft"


async def test_a_request_that_is_withdrawn_gives_everything_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(monkeypatch) as (app, pilot, ears, clock):
        clock.now += 1
        await pilot.press(*"my draft", "ctrl+n", "3", *"beca")
        app.feed(ears.say(ev.RequestSettled, request="q0", choice="no", note="the question was withdrawn"))
        await settle(pilot)
        assert app.chat.prompt.text == "my draft"
        assert app.chat.prompt.lent == ""
        assert "Withdrawn" in screen_text(app)


async def test_f3_14_a_childs_question_names_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage(90, 24) as (app, pilot):
        kid = Script(agent="kid", run="rk")
        app.feed(kid(ev.AgentStarted, name="fixer", parent="a1", kind="child"))
        app.feed(kid(ev.ApprovalAsked, request="q", title="Change the signature?", detail="login()", reason="edits"))
        await settle(pilot)
        assert screen_text(app).count("fixer asks") == 2
