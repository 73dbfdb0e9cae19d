"""The chat screen as a whole: where keys go, what is shown at which size, overlays, and that it survives any size."""

from __future__ import annotations

import re

import pytest
from textual import events
from textual.geometry import Size

from hermes_engine import events as ev
from hermes_engine.messages import Display
from hermes_tui.screens.overlays.card import Choice, Choices
from hermes_tui.screens.overlays.picker import Item, Picker
from hermes_tui.widgets.blocks import WelcomeBlock
from tests.tui.drawing import CONTROLS, MARKUP, WIDE, has_control
from tests.tui.stage import Script, StageApp, screen_lines, screen_text, settle, stage

SIZES = [(40, 12), (80, 24), (120, 36), (200, 50)]


async def a_turn(app: StageApp) -> Script:
    say = Script()
    app.feed(say(ev.TurnStarted, prompt="a question"), say(ev.StepStarted, step=1))
    app.feed(*say.tool("c", Display("Run", "make", "exit 0", "command", "$ make\nthe output of it")))
    app.feed(say(ev.StepStarted, step=2), say(ev.TextDelta, text="an answer"), say(ev.ReplyFinished, text="an answer"))
    app.feed(say.usage(1000, 200, 8000))
    return say


@pytest.mark.parametrize(("width", "height"), SIZES)
async def test_every_size_shows_prompt_status_and_answer(width: int, height: int) -> None:
    async with stage(width, height) as (app, pilot):
        await a_turn(app)
        await pilot.press(*"draft")
        await settle(pilot)
        lines = screen_lines(app)
        assert len(lines) == height
        text = "\n".join(lines)
        assert "an answer" in text
        assert "❯ draft" in text
        assert ("Hermes" if width >= 60 else "1 Chat") in lines[0]
        assert "ask first" in lines[-1]
        assert ("CONTEXT" in text) is (width >= 120)
        assert ("the output of it" in text) is (width >= 200), "the peek pane"


@pytest.mark.parametrize(("width", "height"), SIZES)
async def test_f9_5_the_pill_shows_what_came_below_and_goes_at_the_end(width: int, height: int) -> None:
    async with stage(width, height) as (app, pilot):
        say = Script()
        text = "\n\n".join(f"Paragraph {number}." for number in range(60))
        app.feed(say(ev.TurnStarted, prompt="a question"), say(ev.StepStarted, step=1), say(ev.TextDelta, text=text))
        await settle(pilot)
        await pilot.press("pageup")
        await settle(pilot)
        assert "↓" not in screen_lines(app)[-1]
        before = re.findall(r"Paragraph \d+", screen_text(app))
        steps = [
            [say(ev.TextDelta, text=" And more.")],
            [say(ev.ReplyFinished, step=1, text=text + " And more.")],
            say.tool("c", Display("Run", "make", "exit 0", "command", "$ make")),
            [say(ev.TurnFinished, status="error", error="it went wrong")],
        ]
        for events_of_step, count in zip(steps, (1, 1, 2, 3), strict=True):
            app.feed(*events_of_step)
            await settle(pilot)
            assert f"↓ {count} new{' ^End' if width >= 60 else ''}" in screen_lines(app)[-1]
            assert re.findall(r"Paragraph \d+", screen_text(app)) == before
        await pilot.press("end")
        await settle(pilot)
        assert "it went wrong" in screen_text(app)
        assert "↓" not in screen_lines(app)[-1]


@pytest.mark.parametrize(("width", "height"), SIZES)
async def test_f9_10_any_size_and_back(width: int, height: int) -> None:
    async with stage(width, height) as (app, pilot):
        await a_turn(app)
        await settle(pilot)
        before = screen_text(app)
        for size in ((20, 5), (1, 1), (300, 3), (3, 80), (width, height)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
        assert screen_text(app) == before


@pytest.mark.parametrize("key", ["f1", "ctrl+p", "ctrl+t"])
async def test_f9_10_overlays_survive_any_size(key: str) -> None:
    async with stage(80, 24) as (app, pilot):
        await a_turn(app)
        await pilot.press(key)
        for size in ((20, 5), (1, 1), (80, 24)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
        await pilot.press("escape")
        await settle(pilot)
        assert len(app.screen_stack) == 1


async def test_f9_12_sizes_that_cross_each_other_come_to_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage(80, 24) as (app, pilot):
        layouts: list[Size] = []
        real = type(app.chat)._refresh_layout

        def counted(screen: object, size: Size | None = None) -> None:
            layouts.append(size or Size(0, 0))
            real(app.chat, size)

        monkeypatch.setattr(type(app.chat), "_refresh_layout", counted)
        for height in (24, 25, 24, 25):
            app.chat.post_message(events.Resize(Size(80, height), Size(80, height)))
        for _turn in range(10):
            await settle(pilot)
        settled = len(layouts)
        for _turn in range(10):
            await settle(pilot)
        assert len(layouts) == settled
        assert settled < 20


async def test_the_sidebar_is_a_drawer_where_there_is_no_room() -> None:
    async with stage(80, 24) as (app, pilot):
        await a_turn(app)
        await pilot.press("ctrl+t")
        await settle(pilot)
        assert app.chat.sidebar.has_focus
        assert "CONTEXT" in screen_text(app)
        assert "Esc goes back to the prompt" in screen_text(app)
        await pilot.press("x")
        assert app.chat.prompt.text == "x"
        await pilot.press("backspace", "ctrl+t")
        await settle(pilot)
        assert "CONTEXT" not in screen_text(app)
        assert app.chat.prompt.area.has_focus
        await pilot.press("ctrl+t", "escape")
        await settle(pilot)
        assert "CONTEXT" not in screen_text(app)


async def test_a_paste_finds_the_prompt_wherever_the_keys_are() -> None:
    async with stage(80, 24) as (app, pilot):
        await a_turn(app)
        await pilot.press("tab")
        assert app.chat.transcript.has_focus
        app.chat.transcript.post_message(events.Paste("pasted words"))
        await settle(pilot)
        assert app.chat.prompt.text == "pasted words"
        assert app.chat.prompt.area.has_focus


async def test_clearing_the_view_in_mid_stream_keeps_what_comes_and_what_waits() -> None:
    async with stage(80, 24) as (app, pilot):
        say = Script()
        app.feed(say(ev.TurnStarted, prompt="go"), say(ev.StepStarted, step=1), say(ev.TextDelta, text="first part "))
        app.feed(say(ev.ApprovalAsked, request="q", title="Run a command", detail="rm x", reason="removes"))
        app.chat.clear_view()
        app.feed(say(ev.TextDelta, text="second part"))
        await settle(pilot)
        assert "first part" not in screen_text(app)
        assert "second part" in screen_text(app)
        assert "Run a command" in screen_text(app)
        app.feed(say(ev.ReplyFinished, step=1, text="first part second part"), say(ev.TurnFinished))
        await settle(pilot)
        assert "first part second part" in screen_text(app)


async def test_the_suggestions_of_an_empty_chat_can_be_clicked_and_go() -> None:
    async with stage(80, 24) as (app, pilot):
        app.chat.welcome = WelcomeBlock([("what is here?", "it looks")])
        app.chat.say(app.chat.welcome)
        await settle(pilot)
        row = next(y for y, line in enumerate(screen_lines(app)) if "what is here?" in line)
        await pilot.click(offset=(5, row))
        await settle(pilot)
        assert app.chat.prompt.text == "what is here?"
        await a_turn(app)
        await settle(pilot)
        assert "it looks" not in screen_text(app)


async def test_f9_1_and_f9_2_nothing_foreign_is_obeyed_anywhere_on_the_screen() -> None:
    async with stage(120, 40) as (app, pilot):
        say = Script()
        for text in (*MARKUP, *CONTROLS, WIDE):
            app.desk.title = app.desk.model = text
            app.feed(say(ev.TurnStarted, prompt=f"[{text}]"), say(ev.StepStarted, step=1))
            app.feed(say(ev.ThoughtDelta, text=text), say(ev.TextDelta, text=text))
            app.feed(*say.tool(text, Display(text, text, text, "text", text)))
            app.feed(say(ev.ApprovalAsked, request=text, title=text, detail=text, reason=text, rule=text))
            app.feed(
                ev.BatchStarted(name=text, total=3),
                ev.Notice(text=text),
                say(ev.TurnFinished, error=text, status="error"),
            )
            await settle(pilot)
            assert not any(has_control(line) for line in screen_lines(app))
            app.feed(say(ev.RequestSettled, request=text, choice="no", note=text))
        await pilot.press("ctrl+t", "escape", "tab", "space")
        await settle(pilot)
        assert app.return_code is None


async def test_a_list_narrows_and_returns_what_was_chosen() -> None:
    items = [
        Item(str(n), f"entry {n}", "even" if n % 2 == 0 else "odd", group="A" if n < 5 else "B") for n in range(12)
    ]
    async with stage(80, 24) as (app, pilot):
        got: list[str | None] = []
        for keys in (["enter"], [*"even 8", "enter"], ["down", "down", "enter"], ["escape"], ["up", "enter"]):
            app.push_screen(Picker("Pick", items), got.append)
            await settle(pilot)
            await pilot.press(*keys)
            await settle(pilot)
        assert got == ["0", "8", "2", None, "11"]


async def test_a_list_says_when_nothing_fits_and_may_take_what_was_typed() -> None:
    async with stage(80, 24) as (app, pilot):
        got: list[str | None] = []
        app.push_screen(Picker("Pick", [Item("a", "alpha")]), got.append)
        await settle(pilot)
        await pilot.press(*"zzz")
        await settle(pilot)
        assert "0 of 1. Esc closes." in screen_text(app)
        await pilot.press("enter", "escape")
        app.push_screen(Picker("Pick", [Item("a", "alpha")], typed=True), got.append)
        await settle(pilot)
        await pilot.press(*"zzz", "enter")
        await settle(pilot)
        assert got == [None, "zzz"]
        app.push_screen(Picker("Pick", [Item("alpha", "alpha")], typed=True), got.append)
        await settle(pilot)
        await pilot.press(*"alp")
        await settle(pilot)
        assert "as you typed it" in screen_text(app)
        await pilot.press("down", "enter")
        await settle(pilot)
        assert got == [None, "zzz", "alp"], "what begins like a row can be taken too"


async def test_a_list_is_clicked() -> None:
    async with stage(80, 24) as (app, pilot):
        got: list[str | None] = []
        app.push_screen(Picker("Pick", [Item("a", "alpha"), Item("b", "beta")]), got.append)
        await settle(pilot)
        row = next(y for y, line in enumerate(screen_lines(app)) if "beta" in line)
        await pilot.click(offset=(20, row))
        await settle(pilot)
        assert got == ["b"]


async def test_choices_keep_what_is_chosen_when_more_come() -> None:
    async with stage(80, 24) as (app, pilot):
        choices = Choices([Choice("a", "first"), Choice("b", "second")])
        await app.chat.mount(choices)
        choices.focus()
        await pilot.press("down")
        choices.show([Choice("x", "new"), Choice("a", "first"), Choice("b", "second")])
        assert choices.choices[choices._chosen].id == "b"


async def test_f9_5_end_on_an_empty_prompt_goes_to_the_newest_and_else_to_the_end_of_the_line() -> None:
    async with stage(80, 24) as (app, pilot):
        script = Script()
        app.feed(script(ev.TurnStarted, prompt="go"), script(ev.StepStarted, step=1))
        app.feed(script(ev.TextDelta, text="\n\n".join(f"line {number}" for number in range(80))))
        await settle(pilot)
        await pilot.press("pageup")
        await settle(pilot)
        assert "line 79" not in screen_text(app)
        await pilot.press("x", "home", "end")
        await settle(pilot)
        assert "line 79" not in screen_text(app)
        await pilot.press("backspace", "end")
        await settle(pilot)
        assert "line 79" in screen_text(app)


async def test_a_draft_is_an_arrow_away_when_another_text_was_found_with_ctrl_r() -> None:
    async with stage(80, 24) as (app, pilot):
        app.chat.history.add("sent before")
        await pilot.press(*"my draft", "ctrl+r")
        await settle(pilot)
        assert "What you sent" in screen_text(app)
        await pilot.press("enter")
        await settle(pilot)
        assert app.chat.prompt.text == "sent before"
        await pilot.press("up")
        assert app.chat.prompt.text == "my draft"
