"""Tools `terminal` and `process`, as a model meets them. Real shells."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from hermes_engine.tools.terminal import exit_text
from hermes_engine.tools.workspace import Workspace
from tests.tools.conftest import Hands, MakeHands


async def test_f8_6_exit_codes_and_no_wrapper_marks(hands: Hands) -> None:
    for command, code, text in [
        ("cat > f <<'EOF'\nx\nEOF", 0, "[no output]"),
        ("true # c", 0, "[no output]"),
        ("exit 3", 3, "[exit 3]"),
        ("false", 1, "[exit 1]"),
        ("set -e; echo a; false; echo b", 1, "a\n[exit 1]"),
        ("echo hi &", 0, "hi"),
    ]:
        result = await hands.call("terminal", command=command)
        assert (result.data["exit_code"], result.text) == (code, text)
        assert result.ok is (code == 0)
    assert (hands.workspace.start / "f").read_bytes() == b"x\n"
    quote = await hands.call("terminal", command="echo 'open")
    assert quote.data["exit_code"] == 2
    assert "unexpected EOF" in quote.text


async def test_f8_10_signals_are_named(hands: Hands) -> None:
    assert (await hands.call("terminal", command="kill -SEGV $$")).text == "[killed by SIGSEGV (−11)]"
    assert (await hands.call("terminal", command="bash -c 'kill -SEGV $$'; exit $?")).text.endswith(
        "[exit 139 (SIGSEGV)]"
    )
    assert (await hands.call("terminal", command="exit 255")).text == "[exit 255]"
    assert exit_text(-99) == "killed by signal 99 (−99)"
    assert exit_text(None) == "still running"


async def test_the_folder_is_carried_and_cwd_is_for_one_call(hands: Hands) -> None:
    (hands.workspace.start / "sub").mkdir()
    await hands.call("terminal", command="cd sub")
    assert (await hands.call("terminal", command="pwd")).text == str(hands.workspace.start / "sub")
    assert (await hands.call("terminal", command="pwd; cd /usr", cwd="/etc")).text == "/etc"
    assert (await hands.call("terminal", command="pwd")).text == str(hands.workspace.start / "sub")
    missing = await hands.call("terminal", command="pwd", cwd="nowhere")
    assert (missing.ok, missing.text) == (False, "cwd nowhere is not a folder")


async def test_f8_5_a_vanished_folder_falls_back_with_a_note(hands: Hands) -> None:
    await hands.call("terminal", command="mkdir d && cd d && rm -rf ../d")
    result = await hands.call("terminal", command="pwd")
    assert result.ok
    assert result.text.startswith(f"{hands.workspace.start}\n[the folder {hands.workspace.start}/d no longer exists")
    assert (await hands.call("terminal", command="echo ok")).text == "ok"


async def test_f5_17_where_the_first_folder_itself_vanished_it_is_not_said_to_be_gone_back_to(hands: Hands) -> None:
    hands.workspace.start.rmdir()
    result = await hands.call("terminal", command="pwd")
    assert not result.ok
    assert result.text == f"cannot start: the folder {hands.workspace.start} does not exist\n[exit 127]"


async def test_f8_1_what_goes_on_in_the_background_is_said(hands: Hands) -> None:
    began = time.monotonic()
    result = await hands.call("terminal", command="sleep 30 & echo done")
    assert time.monotonic() - began < 2
    assert result.text.startswith("done\n[still running: ")
    assert "ended when this agent closes" in result.text


async def test_f12_3_two_agents_in_one_folder_keep_their_own(make_hands: MakeHands, workspace: Workspace) -> None:
    other = Workspace(workspace.start, workspace.home, outputs=workspace.outputs)
    one, two = make_hands(agent="one"), make_hands(agent="two", place=other)
    await asyncio.gather(one.call("terminal", command="cd /usr"), two.call("terminal", command="cd /etc"))
    first, second = await asyncio.gather(one.call("terminal", command="pwd"), two.call("terminal", command="pwd"))
    assert (first.text, second.text) == ("/usr", "/etc")


async def test_f12_9_variables_end_with_their_call(hands: Hands, make_hands: MakeHands) -> None:
    await hands.call("terminal", command="export FOO=1; BAR=2")
    assert (await hands.call("terminal", command='echo "[$FOO$BAR]"')).text == "[]"
    assert "FOO" not in os.environ
    assert (await make_hands(agent="child").call("terminal", command='echo "[$FOO]"')).text == "[]"


async def test_a_rows_own_home_is_its_commands_home(
    make_hands: MakeHands, workspace: Workspace, tmp_path: Path
) -> None:
    place = Workspace(workspace.start, workspace.home, outputs=workspace.outputs, env={"HOME": str(tmp_path)})
    assert (await make_hands(place=place).call("terminal", command="echo ~ $HOME")).text == f"{tmp_path} {tmp_path}"


async def test_f4_5_a_background_command_that_cannot_start_has_failed(hands: Hands) -> None:
    result = await hands.call("terminal", command="nosuchcmd-at-all", background=True)
    assert not result.ok
    assert "failed (127)" in result.text
    listed = await hands.call("process", action="list")
    assert "failed (127)" in listed.text


async def test_f4_6_background_states_and_all_actions(hands: Hands) -> None:
    started = await hands.call("terminal", command="echo first; sleep 0.4; echo second; exit 3", background=True)
    assert "in the background as p1" in started.text
    await hands.call("terminal", command="sleep 300", background=True)
    polled = await hands.call("process", action="poll", id="p1")
    assert polled.text.startswith("p1  running")
    waited = await hands.call("process", action="wait", id="p1", timeout="10")
    assert waited.text.splitlines()[0].startswith("p1  failed (3)")
    assert waited.text.splitlines()[1:] == ["first", "second"]
    assert "first\nsecond" in (await hands.call("process", action="log", id="p1")).text
    quick = await hands.call("process", action="wait", id="p2", timeout=0.05)
    assert quick.text.startswith("p2  running")
    killed = await hands.call("process", action="kill", id="p2")
    assert killed.text.startswith("p2  cancelled")
    listed = await hands.call("process", action="list")
    assert [line.split()[1] for line in listed.text.splitlines()] == ["failed", "cancelled"]


async def test_process_names_what_is_wrong(hands: Hands) -> None:
    assert (await hands.call("process", action="list")).text == "[no background commands]"
    assert (await hands.call("process", action="poll")).text == "action poll needs an id: known are none"
    await hands.call("terminal", command="true", background=True)
    assert (
        await hands.call("process", action="kill", id="p7")
    ).text == "there is no background command 'p7': known are p1"


@pytest.mark.parametrize("timeout", [0, -1, 1e9])
async def test_f3_3_a_senseless_timeout_is_refused(hands: Hands, timeout: float) -> None:
    result = await hands.call("terminal", command="echo x", timeout=timeout)
    assert (result.ok, "above 0 and at most 10000000" in result.text) == (False, True)


async def test_f10_3_a_command_sees_no_key(make_hands: MakeHands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-something-else")
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-something-third")
    shown = (await make_hands().call("terminal", command="env")).text
    assert "sk-something" not in shown
    assert "PATH=" in shown
    assert "HOME=" in shown
