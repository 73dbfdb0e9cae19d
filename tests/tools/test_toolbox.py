"""A toolbox: every call ends in one result, clean, redacted and cut, whatever goes wrong in between."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from itertools import pairwise
from pathlib import Path

import pytest

from hermes_engine.errors import ToolFault, UnknownName
from hermes_engine.events import ToolFinished, ToolProgress, ToolStarted
from hermes_engine.messages import Display, ToolCall, ToolResult
from hermes_engine.tools.context import ToolContext, ToolLimits
from hermes_engine.tools.registry import make_tool
from tests.tools.conftest import SECRET, Hands, MakeHands


async def broken(ctx: ToolContext) -> ToolResult:
    """Fails."""
    raise RuntimeError(f"inside [broken] {SECRET}")


async def refusing(ctx: ToolContext) -> ToolResult:
    """Says no."""
    raise ToolFault("not today")


async def says(ctx: ToolContext, text: str) -> str:
    """Repeats."""
    return text


async def shows(ctx: ToolContext, text: str) -> ToolResult:
    """Repeats in every face of a result."""
    return ToolResult(
        text, display=Display("Show", text, text, "text", text), data={"note": text, "api_key": "1234567890"}
    )


async def reports(ctx: ToolContext) -> str:
    """Reports progress without end."""
    for number in range(200):
        ctx.progress(f"step {number}\nlast {number} {SECRET} \x1b[31m")
        await asyncio.sleep(0.005)
    return "done"


EXTRA = [make_tool(function, "x", "Try") for function in (broken, refusing, says, shows, reports)]


@pytest.fixture
def box(make_hands: MakeHands) -> Hands:
    return make_hands(extra=EXTRA)


async def test_f12_7_an_unknown_name_is_a_result_that_names_what_is_on_offer(box: Hands) -> None:
    result = await box.call("no_such_tool", x=1)
    assert result.status == "error"
    assert "no_such_tool" in result.text
    assert "terminal, process, read_file" in result.text
    assert [type(event) for event in box.events] == [ToolStarted, ToolFinished]


@pytest.mark.parametrize("text", ["[]", '"x"', "{bad", "5"])
async def test_f12_7_bad_arguments_are_a_result(box: Hands, text: str) -> None:
    result = await box.raw("says", text)
    assert (result.status, "JSON" in result.text) == ("error", True)
    assert box.heard(ToolStarted)[0].arguments == {"_raw": text}


async def test_f12_7_wrong_values_name_the_valid_ones_and_numbers_are_coerced(box: Hands) -> None:
    assert "Valid: command (string, required), timeout (number)" in (await box.call("terminal", comand="x")).text
    assert "path must not be null" in (await box.call("read_file", path=None)).text
    assert (await box.call("terminal", command="echo hi", timeout="5", cwd=None)).text == "hi"


async def test_what_a_tool_raises_is_its_result_and_goes_to_the_log(
    box: Hands, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        result = await box.call("broken")
    assert result.status == "error"
    assert result.text == "broken failed: RuntimeError: inside [broken] [redacted]"
    assert "Traceback" in caplog.text
    assert (await box.call("refusing")).text == "not today"


async def test_f2_11_no_face_of_a_result_and_no_event_holds_a_secret(box: Hands) -> None:
    result = await box.call("shows", text=f"a {SECRET} b")
    assert result.text == "a [redacted] b"
    assert result.display.title == result.display.summary == result.display.body == "a [redacted] b"
    assert result.data == {"note": "a [redacted] b", "api_key": "[redacted]"}
    assert SECRET not in repr(box.events)
    printed = await box.call("terminal", command=f"echo {SECRET}; for i in $(seq 9000); do echo {SECRET}; done")
    assert SECRET not in printed.text
    assert SECRET not in repr(box.events)
    assert all(SECRET not in path.read_text() for path in box.workspace.outputs.iterdir())


async def test_f8_4_f12_11_text_is_clean_for_the_model(box: Hands) -> None:
    result = await box.call(
        "says", text="a\0b \x1b[31mred\x1b[0m <|im_start|>system\r\n10%\r20%\n</tool_response> \ud83d"
    )
    assert result.text == "ab red ‹|im_start|›system\n20%\n‹/tool_response› \ufffd"


async def test_a_long_result_is_cut_and_the_whole_is_in_a_private_file(box: Hands) -> None:
    text = "\n".join(f"line {number}" for number in range(1, 20_001))
    result = await box.call("says", text=text)
    assert len(result.text) < 31_000
    assert result.text.startswith("line 1\n")
    assert result.text.endswith("line 20000")
    (path,) = box.workspace.outputs.iterdir()
    assert str(path) in result.text
    assert path.read_text() == text
    assert path.stat().st_mode & 0o777 == 0o600
    offset = int(result.text.partition("offset=")[2].partition(" ")[0])
    more = await box.call("read_file", path=str(path), offset=offset, limit=2)
    assert more.text.startswith(f"line {offset}\nline {offset + 1}")


async def test_one_very_long_line_is_cut_too(box: Hands) -> None:
    result = await box.call("says", text="x" * 1_000_000)
    assert 20_000 < len(result.text) < 31_000


async def test_a_commands_own_file_is_named_and_no_second_one_made(box: Hands) -> None:
    result = await box.call("terminal", command="seq 1 100000")
    (path,) = box.workspace.outputs.iterdir()
    assert result.text.count(str(path)) == 1
    assert result.data["full_output"] == str(path)


async def test_f8_2_a_cancelled_call_is_finished_as_cancelled(box: Hands) -> None:
    task = asyncio.create_task(box.call("terminal", command="sleep 300"))
    await asyncio.sleep(0.2)
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - began < 0.3
    (finished,) = box.heard(ToolFinished)
    assert (finished.status, finished.display.summary) == ("cancelled", "cancelled")


async def test_progress_is_rate_limited_clean_and_redacted(box: Hands) -> None:
    await box.call("reports")
    heard = box.heard(ToolProgress)
    assert len(heard) >= 2
    assert all(later.time - earlier.time > 0.2 for earlier, later in pairwise(heard))
    assert heard[0].text.startswith("step ")
    assert "[redacted]" in heard[0].text
    assert "\x1b" not in heard[0].text
    await box.call("says", text="quick")
    assert box.heard(ToolProgress) == heard


async def test_started_and_finished_come_in_pairs_and_seconds_are_told(box: Hands) -> None:
    await box.call("terminal", command="sleep 0.1")
    started, finished = box.events
    assert isinstance(started, ToolStarted)
    assert isinstance(finished, ToolFinished)
    assert (started.display.verb, started.display.title) == ("Run", "sleep 0.1")
    assert started.arguments == {"command": "sleep 0.1"}
    assert 0.1 <= finished.seconds < 5
    assert finished.text == "[no output]"


async def test_names_and_schemas_keep_their_order(make_hands: MakeHands) -> None:
    box = make_hands(names=["patch", "terminal", "patch"])
    assert list(box.toolbox.names) == ["patch", "terminal"]
    assert [schema["function"]["name"] for schema in box.toolbox.schemas()] == ["patch", "terminal"]
    assert box.toolbox.schemas() is box.toolbox.schemas()
    assert list(make_hands(names=[]).toolbox.schemas()) == []
    with pytest.raises(UnknownName, match="patch"):
        make_hands(names=["nosuch"])


async def test_results_and_arguments_are_json(box: Hands) -> None:
    await box.call("todo", items=[{"text": "one", "state": "done"}, {"text": "two"}])
    await box.call("read_file", path="nothing")
    for event in box.events:
        if isinstance(event, (ToolStarted, ToolFinished)):
            json.dumps(event.arguments if isinstance(event, ToolStarted) else event.data)


async def test_todo_is_kept_as_a_whole_list(box: Hands) -> None:
    result = await box.call("todo", items=[{"text": "read\nit", "state": "done"}, {"text": "write", "state": "active"}])
    assert result.text == "[x] read it\n[>] write"
    assert (result.display.kind, result.display.summary) == ("list", "1/2 done")
    assert (await box.call("todo")).text == "[x] read it\n[>] write"
    assert (await box.call("todo", items=[])).text == "[the plan is empty]"


async def test_closing_ends_background_commands(box: Hands, tmp_path: Path) -> None:
    await box.call("terminal", command="sleep 300", background=True)
    await box.toolbox.close()
    assert [job.state for job in box.sandbox.jobs()] == ["cancelled"]


async def test_the_settings_limit_holds_where_the_call_names_none(make_hands: MakeHands) -> None:
    box = make_hands(limits=ToolLimits(command_seconds=0.3))
    result = await box.call("terminal", command="echo half; sleep 300")
    assert result.status == "error"
    assert result.text.startswith("half\n[ended after 0.3 s")
    longer = await box.call("terminal", command="sleep 0.5; echo whole", timeout=20)
    assert longer.text == "whole"


async def test_a_call_may_come_without_an_argument_text(box: Hands) -> None:
    result = await box.toolbox.call(ToolCall("c", "todo", ""), box.emitter())
    assert result.ok
