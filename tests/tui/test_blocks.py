"""Blocks: what they say, how they open, what they copy, and that nothing of a model acts on the terminal."""

from __future__ import annotations

import pytest

from hermes_tui.widgets.blocks import (
    AnswerBlock,
    Block,
    NoticeBlock,
    Option,
    OutputBlock,
    RequestBlock,
    ResultBlock,
    ThoughtBlock,
    ToolBlock,
    UserBlock,
    WelcomeBlock,
)
from hermes_tui.widgets.blocks.request import QUIET_SECONDS
from hermes_tui.widgets.blocks.result import MAX_ROWS
from hermes_tui.widgets.blocks.tool import MAX_BODY
from hermes_tui.widgets.markdown import drawing
from tests.tui.drawing import CONTROLS, LOOK, MARKUP, drawn, drawn_whole, has_control, lines, logical


def finished(block: ToolBlock, call: str = "c", **values: object) -> ToolBlock:
    told = {"verb": "", "title": "", "summary": "", "kind": "text", "body": "", "status": "ok", "seconds": 0.2}
    block.finish(call, **{**told, **values})  # type: ignore[arg-type]
    return block


def every_block(text: str) -> list[Block]:
    """One block of each kind that shows the text everywhere it can."""
    tool = finished(ToolBlock("c", text, text), title=text, summary=text, body=text)
    thought = ThoughtBlock(text, seconds=1)
    request = RequestBlock("r", asker=text, title=text, detail=text, reason=text, options=[Option(1, "once", text)])
    settled = RequestBlock("r", asker=text, title=text)
    settled.settle(text, well=True)
    tool.open = thought.open = True
    table = OutputBlock("table", text, title=text, columns=(text, text), rows=((text, text),))
    plain: list[Block] = [UserBlock(text, text), AnswerBlock(text), NoticeBlock(text), NoticeBlock(text, "error")]
    return [*plain, tool, thought, request, settled, table, OutputBlock("code", text), OutputBlock("markdown", text)]


@pytest.mark.parametrize("text", MARKUP)
def test_f9_1_brackets_stand_as_they_are(text: str) -> None:
    for block in every_block(text):
        shown = drawn(block, 90)
        wanted = text.replace("\\[", "[") if isinstance(block, (AnswerBlock, OutputBlock)) else text
        assert wanted in shown or text in shown, type(block).__name__


@pytest.mark.parametrize("control", CONTROLS)
def test_f9_2_nothing_a_terminal_obeys_is_drawn(control: str) -> None:
    for block in every_block(f"before{control}after\n```\nin code{control}here\n```"):
        for width in (20, 90):
            assert not has_control(drawn(block, width)), type(block).__name__
            assert "after" in drawn(block, 200)


def test_f9_2_a_sequence_cut_by_streaming_is_not_drawn() -> None:
    block = AnswerBlock(live=True)
    for piece in ("text \x1b", "]52;c;aGk", "=\x07 more\n\n", "next \x1b[3", "1mred\x1b[0m"):
        block.feed(piece)
        assert not has_control(drawn(block))
    block.finish()
    assert not has_control(drawn(block))


def test_f10_1_an_approval_shows_what_cannot_be_seen() -> None:
    block = RequestBlock("r", asker="x", title="Run", detail="rm -rf \u202esafe\u200b\x1b[8m")
    assert "\\u202e" in drawn(block)
    assert "\\u200b" in drawn(block)
    assert "\\x1b" in drawn(block)


def test_a_long_approval_is_shown_to_its_end() -> None:
    detail = "\n".join(f"line {number}" for number in range(500))
    shown = drawn(RequestBlock("r", asker="x", title="Write", detail=detail))
    assert "line 0 " in shown
    assert "line 499" in shown


def test_a_command_of_several_lines_is_shown_once_and_its_choices_first_where_it_is_long() -> None:
    command = "\n".join(f"echo number {number}" for number in range(5))
    options = [Option(1, "once", "Yes"), Option(3, "no", "No")]
    block = RequestBlock("r", asker="x", title=" ".join(command.split()), detail=command, options=options)
    shown = drawn(block)
    assert [shown.count(f"echo number {number}") for number in range(5)] == [1] * 5
    block.fit(8)
    shown = drawn(block)
    assert "1 Yes" in shown.split("\n")[2]
    assert shown.count("echo number 4") == 1
    assert len(shown.split("\n")) == 9, "frame, one line of the command, choices, all of the command"


def test_a_request_is_deaf_for_a_moment_and_until_its_end_was_seen() -> None:
    block = RequestBlock("r", asker="x", title="t", options=[Option(1, "once", "Yes", "y"), Option(3, "no", "No", "n")])
    assert not block.takes_keys(100.0)
    block.end_shown(100.0)
    assert not block.takes_keys(100.0 + QUIET_SECONDS - 0.01)
    assert block.takes_keys(100.0 + QUIET_SECONDS)
    block.end_shown(200.0)
    assert block.takes_keys(101.0), "the first time counts"
    block.settle("Allowed", well=True)
    assert not block.takes_keys(300.0)


def test_choices_by_digit_letter_arrow_and_place() -> None:
    options = [Option(1, "once", "Yes", "y"), Option(3, "no", "No, tell it why…", "n", asks_text=True)]
    block = RequestBlock("r", asker="x", title="t", options=options)
    assert block.option_for("1") is options[0]
    assert block.option_for("2") is None
    assert block.option_for("3") is block.option_for("n") is options[1]
    assert block.option_for("") is None
    assert not bool(block.selected_option)
    block.move(1)
    assert block.selected_option is options[0]
    block.move(-1)
    assert block.selected_option is options[1]
    rows = block.rows(60, LOOK)
    row = next(place for place, line in enumerate(rows) if "1 Yes" in line.text)
    x = rows[row].text.index("3 No")
    assert block.option_at(row, x) is options[1]
    assert block.option_at(row, 0) is None
    narrow = block.rows(24, LOOK)
    assert any("1 Yes" in line.text and "3 No" not in line.text for line in narrow)


def test_a_card_is_one_line_and_opens() -> None:
    block = ToolBlock("c", "Run", "pytest -q")
    assert block.running
    assert not block.openable
    block.progress("c", "collecting\n3 passed")
    assert "3 passed" in drawn(block)
    block.tick(1, 5.0)
    block.tick(2, 9.0)
    assert "4 s" in drawn(block)
    finished(block, summary="3 passed", kind="command", body="$ pytest -q\n...\n3 passed", seconds=3.14)
    assert lines(block.rows(70, LOOK)) == ["  ▸ Run       pytest -q                            3 passed  3.1 s  ✓"]
    assert block.toggle()
    assert drawn(block, 70).count("\n") == 3
    assert block.copy_text() == "pytest -q\n$ pytest -q\n...\n3 passed"


def test_a_time_as_the_only_outcome_is_shown_once() -> None:
    block = finished(ToolBlock("c", "Run", "make"), summary="3.1 s", seconds=9.0)
    assert drawn(block).split() == ["▸", "Run", "make", "3.1", "s", "✓"]


def test_changes_are_numbered_and_hunks_stand_apart() -> None:
    body = "@@ -1,3 +1,3 @@\n def get(key):\n-    return 1\n+    return 2\n@@ -40 +40,2 @@\n same\n+new [/]"
    block = finished(ToolBlock("c", "Edit", "a.py"), kind="diff", body=body)
    block.open = True
    assert lines(block.rows(60, LOOK))[1:] == [
        "       1   def get(key):",
        "       2 −     return 1",
        "       2 +     return 2",
        "         …",
        "      40   same",
        "      41 + new [/]",
    ]
    request = RequestBlock("r", asker="x", title="Edit a.py", detail=body, diff=True)
    assert "41 + new [/]" in drawn(request)


def test_calls_of_one_kind_share_a_card_until_one_fails() -> None:
    block = ToolBlock("a", "Read", "one.py")
    assert block.may_join("Read")
    assert not block.may_join("Run")
    block.join("b", "two.py")
    finished(block, "a", body="1")
    assert block.running
    finished(block, "b", body="2")
    assert "one.py  +1 more" in drawn(block)
    block.toggle()
    assert "two.py" in drawn(block)
    finished(block, "b", status="error")
    assert not block.may_join("Read")
    assert "✗" in drawn(block)


def test_a_huge_body_is_clipped_and_says_so() -> None:
    block = finished(ToolBlock("c", "Run", "x"), body="\n".join(str(number) for number in range(5000)))
    block.open = True
    rows = block.rows(40, LOOK)
    assert len(rows) == MAX_BODY + 2
    assert rows[-1].text.strip() == f"… {5000 - MAX_BODY:,} more lines"


def test_a_thought_is_one_line_that_opens() -> None:
    block = ThoughtBlock(live=True)
    block.feed("first\n", 0.0)
    block.feed("second", 3.4)
    assert lines(block.rows(60, LOOK)) == ["  ▸ Thinking  3.4 s  second"]
    block.finish()
    assert lines(block.rows(60, LOOK)) == ["  ▸ Thought  3.4 s"]
    block.toggle()
    assert lines(block.rows(60, LOOK))[1:] == ["    first", "    second"]
    assert block.copy_text() == "first\nsecond"


def test_an_answer_copies_its_source_whatever_the_width() -> None:
    source = "# T\n\n```py\n" + "x" * 300 + "\n```\n\nend"
    block = AnswerBlock(source)
    block.rows(30, LOOK)
    assert block.copy_text() == source


def test_what_the_model_said_in_the_end_replaces_what_was_heard() -> None:
    block = AnswerBlock(live=True)
    block.feed("secret sk-1")
    block.finish("secret [redacted]")
    assert "sk-1" not in drawn(block)
    assert block.copy_text() == "secret [redacted]"


def test_link_definitions_at_the_end_are_found() -> None:
    block = AnswerBlock(live=True)
    block.feed("See [the page][1].\n\nMore.\n\n[1]: http://a.b/c\n")
    block.finish()
    assert "the page (http://a.b/c)" in drawn(block)


def test_f9_6_streaming_draws_each_part_once(monkeypatch: pytest.MonkeyPatch) -> None:
    work = {"characters": 0}
    real = drawing.draw

    def counting(source: str, width: int, look: object) -> object:
        work["characters"] += len(source)
        return real(source, width, look)  # type: ignore[arg-type]

    monkeypatch.setattr("hermes_tui.widgets.blocks.answer.draw", counting)

    def cost(size: int) -> int:
        work["characters"] = 0
        source = ("A paragraph of some words that goes on.\n\n" * (size // 41))[:size]
        block = AnswerBlock(live=True)
        for number, start in enumerate(range(0, len(source), 4)):
            block.feed(source[start : start + 4])
            if number % 25 == 0:
                block.rows(80, LOOK)
        block.finish(source)
        rows = block.rows(80, LOOK)
        assert logical(rows).count("paragraph") == source.count("paragraph")
        return work["characters"]

    assert cost(200_000) <= 4.5 * cost(50_000)


def test_a_long_message_is_folded_to_its_first_lines() -> None:
    block = UserBlock("\n".join(f"line {number}" for number in range(100)))
    assert "60 more lines" in drawn(block)
    block.toggle()
    assert "line 99" in drawn(block)


def test_a_suggestion_knows_its_row() -> None:
    block = WelcomeBlock([("do this", "why"), ("/help", "all")])
    rows = lines(block.rows(60, LOOK))
    assert rows[1].strip().startswith("do this")
    assert block.suggestion_at(1) == "do this"
    assert block.suggestion_at(2) == "/help"
    assert block.suggestion_at(0) == block.suggestion_at(9) == ""


def test_a_long_answer_is_drawn_in_parts_and_ends_as_it_would_in_one() -> None:
    paragraphs = [f"paragraph {number} " + "word " * 90 for number in range(60)]
    block = AnswerBlock("\n\n".join(paragraphs))
    parts = drawn_whole(block)
    assert len(parts) > 2
    assert not any("paragraph 59" in line for line in parts[0])
    heights = [len(part) for part in parts]
    assert max(heights) - min(heights) < heights[-1] / 5  # the view does not jump
    shown = drawn(block)
    assert block.unfinished
    assert "paragraph 59" in shown  # what stood there stands until it is drawn again
    single = "\n\n".join(drawn(AnswerBlock(paragraph)) for paragraph in paragraphs)
    assert shown == single


def test_of_a_result_only_what_is_shown_is_drawn() -> None:
    answer = "\n\n".join(f"paragraph {number} " + "word " * 90 for number in range(500))
    block = ResultBlock("a", name="kid", state="done", heading="done", task="look", answer=answer)
    rows, left = block.drawn(60, LOOK, MAX_ROWS)
    assert len(rows) < 2 * MAX_ROWS
    assert 4000 < left < 6000
    shown = drawn(block).split("\n")
    assert len(shown) < MAX_ROWS + 10
    assert any(line.strip().startswith("… about 4") and line.endswith("more rows: Space") for line in shown)
    assert not block.unfinished
    block.toggle()
    assert "paragraph 10 " in drawn(block)
    assert block.unfinished
