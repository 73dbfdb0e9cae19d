"""The prompt: new lines, pastes, history, clusters, readline's keys, and the loan to a question."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from hermes_tui.driver import PasteSplitter
from hermes_tui.files import rank
from hermes_tui.widgets.menu import Menu, Proposal
from hermes_tui.widgets.prompt import History, Prompt
from hermes_tui.widgets.prompt.history import keep, load
from hermes_tui.widgets.prompt.pastes import Pastes, as_pasted, needs_token
from tests.tui.drawing import LOOK, has_control


class Writer(App[None]):
    """A prompt and its menu; hears what is sent."""

    CSS = """
    Prompt { height: auto; } Prompt #prompt-mark { width: auto; height: 1; }
    Prompt Area { height: auto; max-height: 8; border: none; padding: 0; }
    """
    look = LOOK
    heard: ClassVar[list[Any]] = []

    def compose(self) -> ComposeResult:
        menu = Menu()
        yield menu
        yield Prompt(menu, History())

    def on_prompt_sent(self, message: Prompt.Sent) -> None:
        self.heard.append((message.text, message.purpose))

    def on_prompt_escaped(self) -> None:
        self.heard.append("escaped")

    def on_prompt_edge(self, message: Prompt.Edge) -> None:
        self.heard.append("newest" if message.newest else "oldest")

    def on_prompt_take_back(self) -> None:
        self.heard.append("take back")


@asynccontextmanager
async def writer(width: int = 60) -> AsyncIterator[tuple[Prompt, Pilot[None], list[Any]]]:
    app = Writer()
    app.heard.clear()
    async with app.run_test(size=(width, 20)) as pilot:
        prompt = app.query_one(Prompt)
        prompt.focus_input()
        await pilot.pause()
        yield prompt, pilot, app.heard


async def paste(prompt: Prompt, pilot: Pilot[None], text: str) -> None:
    prompt.area.post_message(events.Paste(text))
    await pilot.pause()


@pytest.mark.parametrize("key", ["ctrl+j", "shift+enter", "alt+enter"])
async def test_f9_8_keys_that_make_a_new_line(key: str) -> None:
    async with writer() as (prompt, pilot, heard):
        await pilot.press("a", key, "b")
        assert prompt.text == "a\nb"
        await pilot.press("enter")
        assert heard == [("a\nb", "")]


async def test_f9_8_a_backslash_before_enter_makes_a_new_line() -> None:
    async with writer() as (prompt, pilot, heard):
        await pilot.press("a", "backslash", "enter", "b")
        assert prompt.text == "a\nb"
        assert heard == []


async def test_f9_7_a_short_paste_is_one_draft_and_waits_for_enter() -> None:
    async with writer() as (prompt, pilot, heard):
        await paste(prompt, pilot, "a\nb\n")
        assert prompt.text == "a\nb\n"
        assert heard == []
        await pilot.press("enter")
        assert heard == [("a\nb\n", "")]


@pytest.mark.parametrize(
    "text",
    [
        "line\n" * 5000,
        "a\r\nb\tc\r\n",
        "tab\there and \x1b[31mred\x1b[0m",
        "x" * 5000,
        "zero\u200bwidth",
        "\x1b[201~ tail",
    ],
)
async def test_f9_7_what_is_pasted_is_sent_exactly(text: str) -> None:
    async with writer() as (prompt, pilot, heard):
        await pilot.press(*"see: ")
        await paste(prompt, pilot, text)
        assert len(prompt.draft) < 100
        assert not has_control(prompt.draft)
        await pilot.press("enter")
        assert heard == [(f"see: {text}", "")]


async def test_f9_7_the_token_says_how_much_and_is_one_thing() -> None:
    async with writer() as (prompt, pilot, _heard):
        text = "".join(f"line {number}\n" for number in range(3000))
        await paste(prompt, pilot, text)
        assert prompt.draft == "[Pasted 3,000 lines · ^O show]"
        await pilot.press("left")
        assert prompt.area.cursor_location == (0, 0)
        await pilot.press("right")
        assert prompt.area.cursor_location == (0, len(prompt.draft))
        prompt.area.move_cursor((0, 5))
        assert prompt.area.cursor_location == (0, 0)
        await pilot.press("end", "backspace")
        assert prompt.draft == ""


async def test_f9_7_two_pastes_of_one_size_stay_apart_and_one_can_be_shown() -> None:
    async with writer() as (prompt, pilot, heard):
        one, two = "a\n" * 20, "b\n" * 20
        await paste(prompt, pilot, one)
        await pilot.press("space")
        await paste(prompt, pilot, two)
        assert "#2" in prompt.draft
        assert prompt.text == f"{one} {two}"
        assert prompt.show_paste()
        assert prompt.draft.endswith(two)
        assert prompt.text == f"{one} {two}"
        await pilot.press("enter")
        assert heard[0][0] == f"{one} {two}"


@pytest.mark.parametrize("text", ["a\r\nb\tc\r\n", "one\r\ntwo", "a\x0bb\u2028c", "old\rmac\r\n"])
async def test_f9_7_what_was_opened_and_left_as_it_is_is_sent_exactly(text: str) -> None:
    async with writer() as (prompt, pilot, heard):
        await pilot.press(*"see: ")
        await paste(prompt, pilot, text)
        assert prompt.show_paste()
        assert prompt.draft == "see: " + "\n".join([*text.splitlines(), *([""] if text.endswith("\n") else [])])
        await pilot.press(*" it")
        await pilot.press("enter")
        assert heard == [(f"see: {text} it", "")]


async def test_the_menu_cuts_the_help_and_never_the_name() -> None:
    async with writer() as (prompt, pilot, _heard):
        for length in (20, 40, 50, 56):
            name = "@" + "n" * length
            prompt.menu.show([Proposal(name, "what it is good for, in many words that do not fit beside it at all")])
            await pilot.pause()
            row = prompt.menu.render_line(0)
            assert name in row.text
            assert row.cell_length == 60
            assert row.text.count("…") == (length < 50)


def test_the_shortest_of_equals_and_what_is_written_as_typed_come_first() -> None:
    files = ["README.es.md", "README.md", "docs/README.md", "readme", "src/reader.py"]
    assert rank(files, "READ") == ["README.md", "README.es.md", "readme", "docs/README.md", "src/reader.py"]
    assert rank(files, "read")[0] == "readme"


def test_f9_7_carriage_returns_of_a_terminal_are_line_feeds() -> None:
    assert as_pasted("a\rb\r") == "a\nb\n"
    assert as_pasted("a\r\nb") == "a\r\nb"
    assert not needs_token("a\nb")
    assert needs_token("a\r\nb")


@given(
    st.lists(st.tuples(st.booleans(), st.text(alphabet="ab\x1b[201~\n", max_size=12)), max_size=6), st.integers(1, 7)
)
def test_f9_7_pastes_are_found_however_the_terminal_cuts_them(parts: list[tuple[bool, str]], size: int) -> None:
    wanted: list[tuple[bool, str]] = []
    stream = ""
    for pasted, text in parts:
        clean = text.replace("\x1b[20", "")
        if pasted:
            stream += f"\x1b[200~{clean}\x1b[201~"
            wanted.append((True, clean))
        elif clean:
            stream += clean
            wanted.append((False, clean))
    splitter = PasteSplitter()
    found: list[tuple[bool, str]] = []
    for start in range(0, len(stream), size):
        found += splitter.feed(stream[start : start + size])
    found += [(False, held)] if (held := splitter.release()) else []
    typed = "".join(text for pasted, text in found if not pasted)
    assert typed == "".join(text for pasted, text in wanted if not pasted)
    assert [text for pasted, text in found if pasted] == [text for pasted, text in wanted if pasted]


def test_f9_7_an_escape_key_is_not_held_back_for_ever() -> None:
    splitter = PasteSplitter()
    assert list(splitter.feed("\x1b")) == []
    assert splitter.release() == "\x1b"
    assert list(splitter.feed("\x1b[A")) == [(False, "\x1b[A")]


async def test_history_keeps_the_draft() -> None:
    async with writer() as (prompt, pilot, _heard):
        for text in ("one", "two", "three"):
            prompt.history.add(text)
        await pilot.press(*"draft", "up")
        assert prompt.text == "three"
        await pilot.press("up", "up", "up")
        assert prompt.text == "one"
        await pilot.press("down", "down", "down")
        assert prompt.text == "draft"


async def test_a_draft_is_one_step_back_when_what_was_recalled_is_edited_or_sent() -> None:
    async with writer() as (prompt, pilot, _heard):
        prompt.history.add("sent")
        await pilot.press(*"draft", "up", "!")
        assert prompt.text == "sent!"
        await pilot.press("up")
        assert prompt.text == "draft"
        await pilot.press("up", "down", "down")
        assert prompt.text == "sent!"
    history = History()
    history.add("sent")
    assert history.move(-1, "draft") == "sent"
    assert history.add("sent")
    assert history.entries == ["sent", "draft", "sent"]


async def test_arrows_move_inside_a_draft_of_several_lines_first() -> None:
    async with writer() as (prompt, pilot, _heard):
        prompt.history.add("old")
        await pilot.press("a", "ctrl+j", "b")
        await pilot.press("up")
        assert prompt.text == "a\nb"
        await pilot.press("up")
        assert prompt.text == "old"


async def test_up_on_nothing_takes_a_queued_message_back_first() -> None:
    async with writer() as (prompt, pilot, heard):
        prompt.history.add("old")
        prompt.queue_waits = lambda: True
        await pilot.press("up")
        assert heard == ["take back"]
        prompt.queue_waits = lambda: False
        await pilot.press("up")
        assert prompt.text == "old"


async def test_f9_9_the_cursor_goes_over_whole_clusters() -> None:
    async with writer() as (prompt, pilot, _heard):
        prompt.set_draft("a👩‍👩‍👧e\u0301中")
        for wanted in (8, 6, 1, 0):
            await pilot.press("left")
            assert prompt.area.cursor_location == (0, wanted)
        for wanted in (1, 6, 8, 9):
            await pilot.press("right")
            assert prompt.area.cursor_location == (0, wanted)
        await pilot.press("backspace", "backspace")
        assert prompt.text == "a👩‍👩‍👧"
        await pilot.press("backspace")
        assert prompt.text == "a"


async def test_readline_keys() -> None:
    async with writer() as (prompt, pilot, _heard):
        await pilot.press(*"one two-three", "ctrl+w")
        assert prompt.text == "one "
        await pilot.press("ctrl+y")
        assert prompt.text == "one two-three"
        await pilot.press("ctrl+a", "ctrl+k")
        assert prompt.text == ""
        await pilot.press("ctrl+y", "alt+b", "ctrl+u")
        assert prompt.text == "three"
        await pilot.press("ctrl+e", "x")
        assert prompt.text == "threex"


async def test_f9_2_control_codes_in_the_prompt_are_pictures() -> None:
    async with writer() as (prompt, pilot, _heard):
        await paste(prompt, pilot, "see \x1b[2J here")
        prompt.show_paste()
        await pilot.pause()
        assert prompt.text == "see \x1b[2J here"
        shown = prompt.area.render_line(0).text
        assert "␛[2J" in shown
        assert not has_control(shown)


async def test_the_prompt_grows_to_eight_lines() -> None:
    async with writer() as (prompt, pilot, _heard):
        heights = []
        for _line in range(12):
            await pilot.press("x", "ctrl+j")
            await pilot.pause()
            heights.append(prompt.area.size.height)
        assert heights[0] == 2
        assert max(heights) == 8


async def test_a_loan_keeps_the_draft() -> None:
    async with writer() as (prompt, pilot, heard):
        await pilot.press(*"half a thou")
        prompt.lend("why not")
        assert prompt.empty
        await pilot.press(*"because", "enter")
        assert heard == [("because", "why not")]
        assert prompt.text == "half a thou"
        prompt.lend("answer")
        await pilot.press("escape")
        assert prompt.text == "half a thou"
        assert prompt.lent == ""


async def test_the_menu_takes_arrows_and_tab_and_closes_first() -> None:
    async with writer() as (prompt, pilot, heard):
        await pilot.press(*"look at @re")
        prompt.menu.show([Proposal("@readme.md", "", 8), Proposal("@red.py", "", 8)])
        await pilot.press("down", "tab")
        assert prompt.text == "look at @red.py"
        prompt.menu.show([Proposal("@x", "", 0)])
        await pilot.press("escape")
        assert not prompt.menu.is_open
        assert heard == []
        await pilot.press("escape")
        assert heard == ["escaped"]


async def test_home_and_end_of_an_empty_prompt_are_for_the_transcript() -> None:
    async with writer() as (prompt, pilot, heard):
        await pilot.press("home", "end", "x", "home", "y")
        assert heard == ["oldest", "newest"]
        assert prompt.text == "yx"


async def test_a_key_can_be_meant_for_a_question() -> None:
    async with writer() as (prompt, pilot, _heard):
        seen: list[str] = []

        def intercept(event: events.Key) -> bool:
            seen.append(event.key)
            return event.key == "1" and prompt.empty

        prompt.intercept = intercept
        await pilot.press("1", "2", "1")
        assert seen == ["1", "2", "1"]
        assert prompt.text == "21"


def test_the_history_file_is_private_and_survives_bad_lines(tmp_path: Path) -> None:
    path = tmp_path / "history"
    for text in ("one", "two\nlines", "中 \ud83d"):
        keep(path, text)
    assert path.stat().st_mode & 0o777 == 0o600
    with path.open("a") as stream:
        stream.write("{bad\n")
    assert load(path) == ["one", "two\nlines", "中 \ud83d"]
    keep(path, "x" * 200_000)
    assert len(load(path)) == 3
    assert load(tmp_path / "none") == []


def test_history_forgets_doubles_and_nothing() -> None:
    history = History()
    assert history.add("a")
    assert not history.add("a")
    assert not history.add("  ")
    history.merge(["older"])
    assert history.entries == ["older", "a"]
    assert history.move(-1, "d") == "a"
    history.leave()
    assert history.move(1, "d") is None


def test_tokens_of_the_same_text_are_the_same() -> None:
    pastes = Pastes()
    assert pastes.add("a\n" * 9) == pastes.add("a\n" * 9)
    assert pastes.expand("[Pasted nothing]") == "[Pasted nothing]"
