"""The transcript: follows, stays, measures lazily, copies logical text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, ClassVar

from textual.app import App, ComposeResult
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.selection import Selection

from hermes_tui.widgets.blocks import AnswerBlock, Block, NoticeBlock, Option, RequestBlock, ToolBlock, UserBlock
from hermes_tui.widgets.look import Look
from hermes_tui.widgets.rows import Row
from hermes_tui.widgets.sheet import Sheet
from hermes_tui.widgets.transcript import Transcript
from tests.tui.drawing import LOOK, WIDE


class Reader(App[None]):
    """A transcript and nothing else; hears what it says."""

    CSS = "Transcript { height: 1fr; overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1; }"
    look = LOOK
    heard: ClassVar[list[Any]] = []

    def compose(self) -> ComposeResult:
        self.animation_level = "none"
        yield Transcript()

    def on_transcript_copied(self, message: Transcript.Copied) -> None:
        self.heard.append(message.text)

    def on_transcript_chosen(self, message: Transcript.Chosen) -> None:
        self.heard.append(message.option)

    def on_transcript_typed(self, message: Transcript.Typed) -> None:
        self.heard.append(message.character)


@asynccontextmanager
async def reader(width: int = 60, height: int = 20) -> AsyncIterator[tuple[Transcript, Pilot[None], list[Any]]]:
    app = Reader()
    app.heard.clear()
    async with app.run_test(size=(width, height)) as pilot:
        await pilot.pause()
        yield app.query_one(Transcript), pilot, app.heard


class Counted:
    """Draws a block and notes that it did."""

    def __init__(self, real: Callable[[int, Look], list[Row]], number: int, drawn: list[int]) -> None:
        self.real, self.number, self.drawn = real, number, drawn

    def __call__(self, width: int, look: Look) -> list[Row]:
        self.drawn.append(self.number)
        return self.real(width, look)


def shown(transcript: Transcript) -> list[str]:
    return [transcript.render_line(y).text.rstrip() for y in range(transcript.size.height)]


def paragraphs(count: int, start: int = 0) -> list[Block]:
    return [AnswerBlock(f"Paragraph {number}.\n\nIts second line.") for number in range(start, start + count)]


async def test_it_follows_the_newest_line() -> None:
    async with reader() as (transcript, pilot, _heard):
        for block in paragraphs(20):
            transcript.add(block)
            await pilot.pause()
        assert bool(transcript.follow)
        assert "Its second line." in shown(transcript)[-1]


async def test_f9_5_scrolling_up_stays_until_end() -> None:
    async with reader() as (transcript, pilot, _heard):
        transcript.extend(paragraphs(20))
        await pilot.pause()
        transcript.focus()
        await pilot.press("pageup")
        await pilot.pause()
        assert not bool(transcript.follow)
        before = shown(transcript)
        live = AnswerBlock(live=True)
        transcript.add(live)
        for number in range(100):
            live.feed(f"word{number} ")
            if number % 10 == 0:
                await pilot.pause()
        await pilot.pause()
        assert shown(transcript) == before
        assert transcript.unseen == 1
        await pilot.press("end")
        await pilot.pause()
        assert bool(transcript.follow)
        assert transcript.unseen == 0
        live.feed("and the last")
        await pilot.pause()
        assert "and the last" in " ".join(shown(transcript)[-3:])


async def test_f9_5_whatever_comes_below_the_view_is_counted_until_it_was_seen() -> None:
    async with reader() as (transcript, pilot, _heard):
        live, card = AnswerBlock("It begins.\n\n" * 8, live=True), ToolBlock("c", "Run", "make")
        transcript.extend(paragraphs(20))
        transcript.add(live)
        transcript.add(card)
        await pilot.pause()
        transcript.focus()
        await pilot.press("pageup")
        await pilot.pause()
        before = shown(transcript)
        counts = [transcript.unseen]
        transcript.tick(1)
        await pilot.pause()
        counts.append(transcript.unseen)
        changes: list[Callable[[], object]] = [
            lambda: live.feed("more words"),
            live.finish,
            lambda: card.progress("c", "a line"),
            lambda: transcript.add(NoticeBlock("a notice")),
            transcript.blocks[0].touch,
        ]
        for change in changes:
            change()
            await pilot.pause()
            counts.append(transcript.unseen)
        assert counts == [0, 0, 1, 1, 2, 3, 3], "a spinner that turns and what is above the view are nothing new"
        assert shown(transcript) == before
        for _press in range(4):
            await pilot.press("pagedown")
        await pilot.pause()
        assert transcript.unseen == 0


async def test_f9_5_scrolling_down_to_the_end_follows_again() -> None:
    async with reader() as (transcript, pilot, _heard):
        transcript.extend(paragraphs(20))
        await pilot.pause()
        transcript.focus()
        await pilot.press("pageup", "pageup")
        assert not bool(transcript.follow)
        for _press in range(6):
            await pilot.press("pagedown")
        await pilot.pause()
        assert bool(transcript.follow)


async def test_f9_5_a_burst_ends_with_its_last_line_in_view() -> None:
    async with reader() as (transcript, pilot, _heard):
        live = AnswerBlock(live=True)
        transcript.add(live)
        for number in range(500):
            live.feed(f"chunk{number}\n\n" if number % 5 == 0 else f"chunk{number} ")
        live.finish()
        await pilot.pause()
        assert "chunk499" in shown(transcript)[-1]


async def test_f9_5_it_follows_through_changes_of_its_height() -> None:
    async with reader(60, 20) as (transcript, pilot, _heard):
        transcript.extend(paragraphs(20))
        await pilot.pause()
        for height in (14, 20, 9, 18, 20):
            await pilot.resize_terminal(60, height)
            await pilot.pause()
            transcript.add(NoticeBlock(f"height {height}"))
            await pilot.pause()
            assert f"height {height}" in shown(transcript)[-1]
            assert transcript.unseen == 0


async def test_what_is_read_does_not_move_when_blocks_above_are_measured() -> None:
    async with reader() as (transcript, pilot, _heard):
        transcript.extend([AnswerBlock("- a\n- b\n\n" * number + "end") for number in range(1, 40)])
        await pilot.pause()
        transcript.focus()
        for _step in range(12):
            top = shown(transcript)
            await pilot.press("pageup")
            await pilot.pause()
            page = max(1, transcript.size.height - 2)
            assert shown(transcript)[page:] == top[: len(shown(transcript)) - page]


async def test_f9_9_another_width_shows_the_text_once() -> None:
    async with reader(80, 24) as (transcript, pilot, _heard):
        transcript.extend([UserBlock(WIDE), AnswerBlock(f"{WIDE} and more words so that it has to be folded")])
        await pilot.pause()
        whole = shown(transcript)
        for size in ((40, 24), (80, 24), (20, 5), (1, 1), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
        assert shown(transcript) == whole


async def test_f9_12_five_thousand_messages_cost_what_is_in_view() -> None:
    async with reader() as (transcript, pilot, _heard):
        blocks: list[Block] = [AnswerBlock(f"Message {number} with **some** words.") for number in range(5000)]
        drawn: list[int] = []
        for number, block in enumerate(blocks):
            real = block.rows
            block.rows = Counted(real, number, drawn)  # type: ignore[method-assign]
        transcript.extend(blocks)
        await pilot.pause()
        assert "Message 4999" in shown(transcript)[-1]
        assert len(set(drawn)) < 60
        transcript.focus()
        await pilot.press("home")
        await pilot.pause()
        assert "Message 0" in shown(transcript)[0]
        assert len(set(drawn)) < 200
        for columns in range(50, 80, 3):
            await pilot.resize_terminal(columns, 20)
        await pilot.pause()
        assert len(set(drawn)) < 300


async def test_keys_of_the_transcript() -> None:
    async with reader() as (transcript, pilot, heard):
        tool = ToolBlock("c", "Run", "make")
        tool.finish("c", verb="Run", title="make", summary="", kind="text", body="out", status="ok", seconds=1)
        transcript.extend([UserBlock("first"), tool, UserBlock("second"), AnswerBlock("an **answer**")])
        await pilot.pause()
        transcript.focus()
        await pilot.press("left_square_bracket")
        assert transcript.cursor_block is transcript.blocks[2]
        await pilot.press("left_square_bracket")
        assert transcript.cursor_block is transcript.blocks[0]
        await pilot.press("down", "space")
        assert bool(tool.open)
        await pilot.press("space")
        assert not bool(tool.open)
        await pilot.press("right_square_bracket", "down", "y")
        assert heard == ["an **answer**"]
        await pilot.press("x")
        assert heard[-1] == "x"
        assert transcript.toggle_last()
        assert bool(tool.open)


async def test_the_mouse_opens_cards_and_takes_choices() -> None:
    async with reader() as (transcript, pilot, heard):
        tool = ToolBlock("c", "Run", "make")
        tool.finish("c", verb="Run", title="make", summary="", kind="text", body="out", status="ok", seconds=1)
        yes = Option(1, "once", "Yes", "y")
        transcript.extend([tool, RequestBlock("r", asker="x", title="t", options=[yes])])
        await pilot.pause()
        await pilot.click(Transcript, offset=(4, 0))
        assert bool(tool.open)
        row = next(y for y, line in enumerate(shown(transcript)) if "1 Yes" in line)
        await pilot.click(Transcript, offset=(shown(transcript)[row].index("1 Yes"), row))
        await pilot.pause()
        assert heard == [yes]


async def test_a_request_hears_that_its_end_was_seen() -> None:
    async with reader(60, 12) as (transcript, pilot, _heard):
        detail = "\n".join(f"line {number}" for number in range(60))
        block = RequestBlock("r", asker="x", title="t", detail=detail, options=[Option(1, "once", "Yes")])
        transcript.extend(paragraphs(10))
        await pilot.pause()
        transcript.focus()
        await pilot.press("pageup")
        transcript.add(block)
        await pilot.pause()
        assert not bool(block.shown_at)
        transcript.reveal(block)
        await pilot.pause()
        assert "x" in shown(transcript)[1]
        assert not bool(block.shown_at)
        for _press in range(8):
            await pilot.press("pagedown")
        assert bool(block.shown_at)


async def test_f9_13_marked_text_is_copied_as_it_was_written() -> None:
    async with reader(40, 20) as (transcript, pilot, _heard):
        code = "x = [" + ", ".join(str(number) for number in range(30)) + "]"
        transcript.extend(
            [UserBlock("a question that is long enough to be folded"), AnswerBlock(f"Words.\n\n```\n{code}\n```")]
        )
        await pilot.pause()
        copied = transcript.get_selection(Selection(None, None))
        assert copied is not None
        assert copied[0] == f"a question that is long enough to be folded\n\nWords.\n\n{code}"
        part = transcript.get_selection(Selection(Offset(2, 0), Offset(12, 0)))
        assert part == ("a question", "\n")


async def test_a_block_that_goes_leaves_no_gap() -> None:
    async with reader() as (transcript, pilot, _heard):
        notice = NoticeBlock("trying again")
        transcript.extend([UserBlock("q"), notice, AnswerBlock("a")])
        await pilot.pause()
        transcript.take_out(notice)
        await pilot.pause()
        assert [line for line in shown(transcript) if line] == ["▌ q", "  a"]
        assert transcript.virtual_size.height == 3


def test_the_sheet_keeps_tops_and_heights_together() -> None:
    sheet = Sheet(LOOK)
    sheet.shape(30, LOOK)
    for block in [*paragraphs(3), NoticeBlock("one"), NoticeBlock("two")]:
        sheet.append(block)
    for index in range(5):
        sheet.measure(index)
    assert [sheet.height(index) for index in range(5)] == [3, 4, 4, 2, 1]
    assert [sheet.top(index) for index in range(5)] == [0, 3, 7, 11, 13]
    assert sheet.total == 14
    assert sheet.at(12) == (3, 1)
    sheet.remove(sheet.blocks[3])
    for index in range(4):
        sheet.measure(index)
    assert sheet.total == 13
    assert sheet.place(sheet.blocks[3]) == 3
    sheet.insert(0, UserBlock("new"))
    for index in range(5):
        sheet.measure(index)
    assert sheet.top(1) == 1
    assert sheet.total == 15
