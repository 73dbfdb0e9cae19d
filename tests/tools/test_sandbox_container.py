"""Commands in containers: what is closed, limits, ends, and that nothing is left. Real ones by podman, or skipped."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from hermes_engine.errors import SandboxFault
from hermes_engine.protocols import CommandResult, Confined
from hermes_engine.sandbox.boxed import boxed_env
from hermes_engine.sandbox.container import Container, ContainerLimits, Dock
from hermes_engine.sandbox.processes import everyone
from tests.containers import there
from tests.tools.shells import descriptors, gone

LIMITS = ContainerLimits("64m", 64)


class Row:
    """A row's folder, its container, and the commands of its agent."""

    def __init__(self, tmp_path: Path, image: str, *others: Path, dock: Dock | None = None) -> None:
        self.folder = tmp_path / "row"
        self.folder.mkdir(exist_ok=True)
        self.dock = dock or Dock(None, LIMITS, tmp_path / "note")
        confined = Confined("container", (self.folder, *others), image=image)
        env = boxed_env({**os.environ, "MY_API_KEY": "a-secret", "HANDED_ON": "by name"}, ["HANDED_ON"])
        self.box: Container = self.dock.box(confined, env)
        self.sandbox = self.box.sandbox("tester", owner=True)

    async def run(self, command: str, *, cwd: Path | None = None, timeout: float | None = 60) -> CommandResult:
        """Runs a command in the row's folder."""
        env = {"HOME": str(self.folder)}
        return await self.sandbox.run(command, cwd=cwd or self.folder, timeout=timeout, env=env)


@pytest_asyncio.fixture
async def row(tmp_path: Path, image: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Row]:
    monkeypatch.setenv("HANDED_ON", "by name")
    made = Row(tmp_path, image)
    yield made
    await made.sandbox.close()
    assert there() == []


async def test_what_is_closed_is_closed(row: Row, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "answer").write_text("42")
    (row.folder / "link").symlink_to(other / "answer")
    for closed in (other / "answer", Path("/etc/shadow"), row.folder / "link", Path("/root/.ssh"), Path.home()):
        assert "No such file" in (await row.run(f"ls -L '{closed}'")).output, closed
    for command in ("touch /mine", "touch /bin/x", ": >> /proc/sys/kernel/core_pattern", f"kill -0 {os.getpid()}"):
        assert (await row.run(command)).exit_code not in (0, 127), command
    told = (await row.run("env; grep CapEff /proc/self/status; ls /sys/class/net")).output
    assert "a-secret" not in told
    assert "HANDED_ON=by name" in told
    assert "CapEff:\t0000000000000000" in told
    assert told.endswith("\nlo\n")


async def test_what_is_open_and_what_a_row_keeps(row: Row) -> None:
    first = await row.run("pwd; echo out > made; echo kept > /tmp/note; echo err >&2; cd /tmp; sleep 4323 & exit 3")
    assert (first.exit_code, first.output, first.cwd) == (3, f"{row.folder}\nerr\n", Path("/tmp"))
    assert (row.folder / "made").read_text() == "out\n"
    second = await row.run("cat note; ps | grep -c '[s]leep 4323'; echo $HOME", cwd=Path("/tmp"))
    assert second.output == f"kept\n1\n{row.folder}\n"
    lost = await row.run("pwd", cwd=Path("/nosuch"))
    assert lost.output == f"[there is no folder /nosuch; in {row.folder}]\n{row.folder}\n"
    long = await row.run(f": '{'x' * 200_000}'; echo long; cat <<'E'\nit's $x\nE\nexit 5")
    assert (long.exit_code, long.output, long.cwd) == (5, "long\nit's $x\n", row.folder)


async def test_limits_bite(row: Row) -> None:
    memory = await row.run("dd if=/dev/zero of=/dev/null bs=200M count=1")
    assert memory.exit_code == 137
    forks = await row.run("for i in $(seq 100); do sleep 5 & done")
    assert "can't fork" in forks.output


async def test_a_command_that_must_end_ends_inside(row: Row) -> None:
    stays = await row.sandbox.start("sleep 4324", cwd=row.folder, env={})
    assert stays.state == "running"
    late = await row.run("echo half; (setsid sleep 4323 &); trap '' TERM; sleep 4323; sleep 4323", timeout=1.5)
    assert (late.timed_out, late.output) == (True, "half\n")
    task = asyncio.create_task(row.run("sleep 4323; sleep 4323"))
    while not _sleeping(b"4323"):
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert _sleeping(b"4323") == []
    assert (await row.run("ps | grep -c '[s]leep 432'")).output == "2\n"  # the one that stays and its shell
    assert (await row.sandbox.kill("p1")).state == "cancelled"
    assert (await row.run("ps | grep -c '[s]leep 432'")).output == "0\n"


def _sleeping(what: bytes) -> list[int]:
    found = []
    for one in everyone():
        try:
            words = Path(f"/proc/{one.pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", what]:
            found.append(one.pid)
    return found


async def test_the_end_of_what_the_host_cannot_signal(row: Row) -> None:
    """As with a daemon of another user: only what is said to it inside ends it."""
    await row.run("sleep 4323 & (setsid sleep 4323 &)")
    await row.sandbox.start("sleep 4324", cwd=row.folder, env={})
    instance = (await row.run("echo $HERMES_MARK")).output.strip().rpartition(":")[0]
    await row.box.end(f"{instance}:1")
    assert _sleeping(b"4323") == []
    assert len(_sleeping(b"4324")) == 1


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "localhost/nosuch:1",
            "no container of localhost/nosuch:1: .* — fetch it with `podman pull ",
        ),
        ("--privileged", "'--privileged' is no name of an image"),
    ],
)
async def test_an_image_that_is_not_here(tmp_path: Path, image: str, name: str, says: str) -> None:
    row = Row(tmp_path, name)
    with pytest.raises(SandboxFault) as caught:
        await row.box.open()
    assert re.match(says, caught.value.line)
    await row.sandbox.close()
    assert there() == []
    assert not row.box.aside.exists()


async def test_an_image_that_cannot_be_fetched(tmp_path: Path, image: str) -> None:
    dock = Dock(None, LIMITS, tmp_path / "note")
    await dock.program()
    with pytest.raises(SandboxFault, match=r"^the image localhost:1/nosuch:1 cannot be fetched: "):
        await dock.pull("localhost:1/nosuch:1")
    await dock.pull(image)


async def test_cancelled_while_it_starts_nothing_is_left(tmp_path: Path, image: str) -> None:
    before = descriptors()
    for number in range(4):
        row = Row(tmp_path, image)
        task = asyncio.create_task(row.run("sleep 4323"))
        await asyncio.sleep(0.1 * number)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await row.sandbox.close()
        assert there() == []
    assert descriptors() == before


async def test_a_stranger_cannot_lead_the_last_folder_astray(row: Row, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("/secret\n")
    await row.run("true")
    for trick in (f"ln -sf {tmp_path}/secret", "mkfifo", "mkdir"):
        told = await row.run(f'trap "" EXIT; for i in $(seq 200); do {trick} /run/hermes/$i.at; done 2>/dev/null')
        assert told.cwd is None, trick
    assert (await row.run("echo on")).output == "on\n"


_KILLED = """
import asyncio, sys
from pathlib import Path
from hermes_engine.protocols import Confined
from hermes_engine.sandbox.container import ContainerLimits, Dock
async def main():
    folder = Path(sys.argv[1])
    dock = Dock(None, ContainerLimits("64m", 64), folder / "note")
    (folder / "row").mkdir()
    sandbox = dock.box(Confined("container", (folder / "row",), image=sys.argv[2]), {}).sandbox("killed", owner=True)
    await sandbox.start("sleep 4325", cwd=folder / "row", env={})
    print("up", flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


async def test_the_container_of_a_killed_program_ends_and_goes_by_itself(tmp_path: Path, image: str) -> None:
    (tmp_path / "theirs").mkdir()
    words = [sys.executable, "-c", _KILLED, str(tmp_path / "theirs"), image]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"up\n"
        deadline = time.monotonic() + 20
        while not (left := _sleeping(b"4325")) and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        before = there()
        program.send_signal(signal.SIGKILL)
    assert (len(before), len(left)) == (1, 1)
    deadline = time.monotonic() + 20
    while (there() or not all(map(gone, left))) and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
    assert there() == []
    assert all(map(gone, left))


async def test_what_a_killed_program_left_all_the_same_is_removed_by_the_next(tmp_path: Path, image: str) -> None:
    mine = Row(tmp_path, image)
    await mine.run("true")
    (tmp_path / "theirs").mkdir()
    words = [sys.executable, "-c", _KILLED, str(tmp_path / "theirs"), image]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"up\n"
        living = Dock(None, LIMITS, tmp_path / "theirs" / "note")
        await living.sweep()
        assert len(there()) == 2, "both belong to programs that live"
        life = os.open(tmp_path / "theirs" / "row.aside" / "post" / "life", os.O_RDWR)
        program.send_signal(signal.SIGKILL)
    assert len(there()) == 2
    left = _sleeping(b"4325")
    await Dock(None, LIMITS, tmp_path / "theirs" / "note").sweep()
    os.close(life)
    assert there() == [mine.box.name]
    deadline = time.monotonic() + 10
    while not all(map(gone, left)) and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    assert all(map(gone, left))
    await mine.dock.close()
    assert there() == []
    await mine.sandbox.close()


async def test_no_program_no_container(tmp_path: Path) -> None:
    with pytest.raises(SandboxFault) as caught:
        await Row(tmp_path, "any", dock=Dock("/no/such/podman", LIMITS, tmp_path / "note")).box.open()
    assert caught.value.line.startswith("there is no /no/such/podman here — ")
    assert not (tmp_path / "note").exists()
