"""Commands that run on this machine: their end, their output, their trees. Real processes."""

from __future__ import annotations

import asyncio
import errno
import os
import time
from pathlib import Path

import pytest

from hermes_engine.redaction import Redactor
from hermes_engine.sandbox.local import LocalSandbox
from hermes_engine.sandbox.output import HEAD, TAIL, Output
from hermes_engine.sandbox.processes import everyone, marked, read_process, this_instance
from tests.tools.shells import gone, ours, run


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("true # c", 0), ("exit 3", 3), ("false", 1), ("exit 255", 255), ("(exit 5)", 5), ("set -e; false; exit 9", 1),
        ("true &", 0), ("nosuchcommand-at-all", 127), ("f() { return 9; }; f", 9), ("! true", 1), ("", 0), ("  \n", 0),
        ("if false; then :; fi", 0), ("exec /bin/false", 1), ("cd / && exit 4", 4), ("set -u; : $nope", 127),
    ],
)  # fmt: skip
@pytest.mark.parametrize("shell", ["/bin/bash"])
async def test_f8_6_true_exit_status(
    sandbox: LocalSandbox, tmp_path: Path, command: str, code: int, shell: str
) -> None:
    result = await run(sandbox, command, tmp_path)
    assert result.exit_code == code


async def test_f8_6_here_document_is_exact(sandbox: LocalSandbox, tmp_path: Path) -> None:
    result = await run(sandbox, "cat > f <<'EOF'\nx\nEOF", tmp_path)
    assert (tmp_path / "f").read_bytes() == b"x\n"
    assert (result.exit_code, result.output) == (0, "")


async def test_f8_6_unmatched_quote_is_the_shells_own_error(sandbox: LocalSandbox, tmp_path: Path) -> None:
    result = await run(sandbox, "echo 'never closed", tmp_path)
    assert result.exit_code == 2
    assert "unexpected EOF" in result.output
    assert "HERMES" not in result.output


async def test_f8_6_alias_and_function_named_cd_do_not_break_the_folder(sandbox: LocalSandbox, tmp_path: Path) -> None:
    result = await run(sandbox, "pwd() { echo fake; }; alias cd=false; cd /usr", tmp_path)
    assert (result.exit_code, result.output, result.cwd) == (0, "", Path("/usr"))


@pytest.mark.parametrize("ending", ["", "; exit 4", "; set -e; false", "; true &", "\n# done", "; exec 9>&-"])
async def test_the_folder_is_told_whatever_the_command_ends_with(
    sandbox: LocalSandbox, tmp_path: Path, ending: str
) -> None:
    (tmp_path / "a folder").mkdir()
    assert (await run(sandbox, "cd 'a folder'" + ending, tmp_path)).cwd == tmp_path / "a folder"


async def test_what_a_command_starts_leads_no_session(sandbox: LocalSandbox, tmp_path: Path) -> None:
    """As behind a script: `setsid` waits for its program, and a program may begin a session of its own."""
    assert (await run(sandbox, "setsid sleep 0.3; python3 -c 'import os; os.setsid()'", tmp_path)).exit_code == 0
    began = time.monotonic()
    await run(sandbox, "setsid sleep 0.3", tmp_path)
    assert time.monotonic() - began >= 0.3


async def test_a_plain_sh_serves_where_bash_is_missing(tmp_path: Path) -> None:
    sandbox = LocalSandbox(agent="tester", outputs=tmp_path / "outputs", shell="/bin/sh")
    result = await run(sandbox, "cd /usr\ncat <<'E'\nit's $x\nE\nexit 3", tmp_path)
    assert (result.exit_code, result.output, result.cwd) == (3, "it's $x\n", Path("/usr"))
    assert (await run(sandbox, "echo 'open", tmp_path)).exit_code == 2


async def test_a_command_longer_than_an_argument_may_be(sandbox: LocalSandbox, tmp_path: Path) -> None:
    body = "0123456789abcdef\n" * 20_000
    result = await run(sandbox, f"cat > big <<'EOF'\n{body}EOF\ncd /usr; exit 6", tmp_path)
    assert (tmp_path / "big").read_text() == body
    assert (result.exit_code, result.cwd) == (6, Path("/usr"))


async def test_f8_1_a_background_child_does_not_hold_the_call(sandbox: LocalSandbox, tmp_path: Path) -> None:
    began = time.monotonic()
    result = await run(sandbox, "sleep 30 & echo done", tmp_path)
    second = await run(sandbox, "(setsid sleep 300 >/dev/null 2>&1 &); echo done", tmp_path)
    assert time.monotonic() - began < 2
    assert result.output == second.output == "done\n"
    pids = [int(label.split()[0]) for label in (*result.still_running, *second.still_running)]
    assert len(pids) == 2
    assert not any(map(gone, pids))
    await sandbox.close()
    assert all(map(gone, pids))


async def test_what_is_left_behind_may_go_on_writing(sandbox: LocalSandbox, tmp_path: Path) -> None:
    result = await run(
        sandbox, "(for i in 1 2 3 4 5; do echo tick; sleep 0.05; done; echo end > f) & echo done", tmp_path
    )
    assert result.output.splitlines()[-1] in ("done", "tick")
    for _ in range(100):
        if (tmp_path / "f").exists():
            break
        await asyncio.sleep(0.05)
    assert (tmp_path / "f").read_text() == "end\n"


async def test_a_command_that_leaves_nothing_is_not_looked_for(
    sandbox: LocalSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    monkeypatch.setattr("hermes_engine.sandbox.running.family", lambda *given: looked.extend("x"))
    for _ in range(5):
        await run(sandbox, "echo a | cat; (echo b); true & wait", tmp_path)
    assert not looked


@pytest.mark.parametrize(
    "command",
    [
        "sleep 300",
        "sleep 300 & sleep 301 | cat",
        "setsid sleep 300 & sleep 300",
        "trap '' TERM INT HUP; sleep 300; sleep 300",
        "(setsid bash -c 'trap \"\" TERM; sleep 300; sleep 300' >/dev/null 2>&1 &) ; sleep 300",
        "env -i /usr/bin/setsid sleep 300 & sleep 300",
        "kill -STOP $$",
        "while :; do (sleep 300 &) ; sleep 0.01; done",
    ],
)
async def test_f8_2_f5_11_cancelling_ends_the_whole_tree(sandbox: LocalSandbox, tmp_path: Path, command: str) -> None:
    task = asyncio.create_task(run(sandbox, command, tmp_path))
    await asyncio.sleep(0.3)
    before = [process for process in map(read_process, _descendants()) if process]
    assert before
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - began < 1
    assert ours() == []
    assert all(gone(process.pid) for process in before)


def _descendants() -> list[int]:
    marked_pids = {process.pid for process in marked(f"{this_instance()}:tester:")}
    found = set(marked_pids)
    found.update(process.pid for process in everyone() if process.parent in marked_pids)
    return sorted(found)


async def test_cancelling_a_quiet_command_shows_within_a_fifth_of_a_second(
    sandbox: LocalSandbox, tmp_path: Path
) -> None:
    took: list[float] = []
    for _ in range(3):  # the best of three, for a busy machine
        task = asyncio.create_task(run(sandbox, "sleep 300", tmp_path))
        await asyncio.sleep(0.2)
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        took.append(time.monotonic() - began)
    assert min(took) < 0.2


async def test_cancelled_while_forking_nothing_is_left(sandbox: LocalSandbox, tmp_path: Path) -> None:
    for _ in range(20):
        task = asyncio.create_task(run(sandbox, "sleep 300", tmp_path))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert ours() == []


async def test_a_timeout_keeps_the_output_so_far(sandbox: LocalSandbox, tmp_path: Path) -> None:
    result = await run(sandbox, "echo half; sleep 300 & sleep 300", tmp_path, timeout=0.3)
    assert result.timed_out
    assert result.output == "half\n"
    assert result.exit_code in (-15, -9)
    assert result.seconds < 2
    assert ours() == []


@pytest.mark.parametrize("command", ["cat", 'read x; echo "[$x]"', "python3 -c 'input()'", "sort", "ssh-keygen -y"])
async def test_f8_3_nothing_waits_for_a_keyboard(sandbox: LocalSandbox, tmp_path: Path, command: str) -> None:
    result = await run(sandbox, command, tmp_path, timeout=10)
    assert not result.timed_out
    assert result.seconds < 5


async def test_f8_3_no_pager_and_no_password_question(sandbox: LocalSandbox, tmp_path: Path) -> None:
    script = (
        "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one && git log && "
        "git -c user.name=a -c user.email=a@b commit --allow-empty; git clone -q https://127.0.0.1:1/x"
    )
    result = await run(sandbox, script, tmp_path, timeout=20)
    assert not result.timed_out
    assert "one" in result.output
    assert "\x1b" not in result.output
    assert "empty commit message" in result.output


async def test_a_repository_starts_no_watcher_of_its_own_at_a_mere_look(tmp_path: Path) -> None:
    environ = {**os.environ, "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "Me"}
    sandbox = LocalSandbox(agent="tester", outputs=tmp_path / "o", environ=environ)
    script = (
        "git init -q . && echo a > f && git add f && git -c user.email=a@b commit -q -m one && echo b > f &&"
        f"printf '#!/bin/sh\\ntouch {tmp_path}/ran\\n' > evil && chmod +x evil &&"
        'git config core.fsmonitor "$PWD/evil" && git status --short && git diff && git config user.name'
    )
    result = await run(sandbox, script, tmp_path)
    assert result.exit_code == 0, result.output
    assert "-a\n+b" in result.output
    assert result.output.endswith("Me\n")
    assert not (tmp_path / "ran").exists()


async def test_f8_4_binary_output_is_text(sandbox: LocalSandbox, tmp_path: Path) -> None:
    result = await run(sandbox, r"printf '\xff\xfe\x00\x1b[31mred\n'; head -c 1000 /dev/urandom", tmp_path)
    assert result.output.startswith("\ufffd\ufffdred\n")
    assert "\0" not in result.output
    result.output.encode()


async def test_f2_5_surrogate_bytes_are_replaced(sandbox: LocalSandbox, tmp_path: Path) -> None:
    result = await run(sandbox, r"printf 'a\xed\xa0\xbdb'", tmp_path)
    assert result.output == "a\ufffd\ufffd\ufffdb"
    assert (await run(sandbox, "echo '\udc00'", tmp_path)).output == "?\n"


async def test_f8_10_signals_and_high_codes_are_kept(sandbox: LocalSandbox, tmp_path: Path) -> None:
    assert (await run(sandbox, "kill -SEGV $$", tmp_path)).exit_code == -11
    assert (await run(sandbox, "bash -c 'kill -SEGV $$'; exit $?", tmp_path)).exit_code == 139
    assert (await run(sandbox, "exit 255", tmp_path)).exit_code == 255


async def test_f12_8_a_progress_bar_is_its_last_state(sandbox: LocalSandbox, tmp_path: Path) -> None:
    result = await run(sandbox, r'for i in $(seq 5000); do printf "\r%d" $i; done; echo', tmp_path)
    assert result.output == "5000\n"


async def test_long_output_keeps_head_and_tail_and_goes_whole_into_a_private_file(
    sandbox: LocalSandbox, tmp_path: Path
) -> None:
    result = await run(sandbox, "seq 1 200000", tmp_path)
    assert result.output.startswith("1\n2\n")
    assert result.output.endswith("199999\n200000\n")
    assert len(result.output) < 100_000
    assert result.full_output is not None
    assert str(result.full_output) in result.output
    assert result.full_output.read_text() == "".join(f"{n}\n" for n in range(1, 200_001))
    assert result.full_output.stat().st_mode & 0o777 == 0o600
    assert result.full_output.parent.stat().st_mode & 0o777 == 0o700


def test_the_head_is_kept_however_the_output_comes_in_pieces(tmp_path: Path) -> None:
    whole = "".join(f"{number}\n" for number in range(60_000)).encode()
    for pieces in (1, 6, 16 * 1024, 65_536, 70_000):
        output = Output(lambda: tmp_path / "f")
        output.feed(whole[:pieces])
        for start in range(pieces, len(whole), 65_536):
            output.feed(whole[start : start + 65_536])
        output.close()
        head, note, tail = output.text().partition("\n[… ")
        assert head.encode() == whole[:HEAD], pieces
        assert whole.endswith(tail.partition(" …]\n")[2].encode())
        assert f"{len(whole) - HEAD - TAIL:,} bytes" in note + tail
        assert (tmp_path / "f").read_bytes() == whole


async def test_f2_11_the_full_output_holds_no_secret(tmp_path: Path) -> None:
    sandbox = LocalSandbox(agent="tester", outputs=tmp_path / "o", redactor=Redactor(["sk-very-secret-key"]))
    result = await run(sandbox, "for i in $(seq 9000); do echo key=sk-very-secret-key; done", tmp_path)
    assert result.full_output is not None
    text = result.full_output.read_text()
    assert "sk-very" not in text
    assert text.count("key=[redacted]\n") == 9000


async def test_a_system_without_pidfds_serves_too(
    sandbox: LocalSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(pid: int, flags: int = 0) -> int:
        raise OSError(errno.ENOSYS, "not here")

    monkeypatch.setattr(os, "pidfd_open", missing)
    result = await run(sandbox, "cd /usr; sleep 0.1; (setsid sleep 300 &); echo done; exit 3", tmp_path)
    assert (result.exit_code, result.output, result.cwd) == (3, "done\n", Path("/usr"))
    stuck = await run(sandbox, "sleep 300 & sleep 300", tmp_path, timeout=0.3)
    assert stuck.timed_out
    await sandbox.close()
    assert ours() == []


async def test_a_command_that_cannot_be_watched_does_not_run(
    sandbox: LocalSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(pid: int, flags: int = 0) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(os, "pidfd_open", full)
    result = await run(sandbox, "sleep 300", tmp_path)
    assert result.exit_code == 127
    assert "too many open files" in result.output
    for _ in range(100):  # killed, and on its way out
        if not ours():
            break
        await asyncio.sleep(0.01)
    assert ours() == []


async def test_a_flood_ends_with_its_timeout_and_leaves_the_loop_alive(sandbox: LocalSandbox, tmp_path: Path) -> None:
    gaps: list[float] = []

    async def pulse() -> None:
        last = time.monotonic()
        while True:
            await asyncio.sleep(0.01)
            gaps.append(time.monotonic() - last)
            last = time.monotonic()

    beating = asyncio.create_task(pulse())
    result = await run(sandbox, "yes 0123456789", tmp_path, timeout=1.0)
    beating.cancel()
    assert result.timed_out
    assert result.seconds < 2
    assert len(gaps) > 20
    assert sorted(gaps)[len(gaps) // 2] < 0.1


async def test_progress_comes_at_most_four_times_a_second(sandbox: LocalSandbox, tmp_path: Path) -> None:
    heard: list[str] = []
    command = "for i in $(seq 100); do echo line $i; sleep 0.01; done"
    await sandbox.run(command, cwd=tmp_path, timeout=20, env={}, on_output=heard.append)
    assert 1 <= len(heard) <= 10
    assert heard[0].startswith("line 1")
    await sandbox.run("echo quick", cwd=tmp_path, timeout=20, env={}, on_output=heard.append)
    assert "quick\n" not in heard
