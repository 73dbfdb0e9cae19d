"""Commands in bubblewrap: what is closed, what is open, and that nothing is left. Real boxes, or skipped."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import pytest_asyncio

from hermes_engine.errors import UsageError
from hermes_engine.protocols import CommandResult, Confined
from hermes_engine.sandbox import bubblewrap
from hermes_engine.sandbox.boxed import BoxedSandbox, boxed_env
from hermes_engine.sandbox.bubblewrap import Bubble, why_not
from hermes_engine.sandbox.choosing import sandbox_for
from hermes_engine.sandbox.processes import everyone, marked, send, this_instance
from tests.tools.shells import descriptors, gone

works = pytest.mark.usefixtures("bubblewrap_here")


class Row:
    """A row's folder, its box, and the commands of its agent."""

    def __init__(self, folder: Path, *others: Path, network: bool = False) -> None:
        self.folder = folder
        self.folder.mkdir(exist_ok=True)
        environ = {**os.environ, "MY_API_KEY": "a-secret", "LC_TIME": "C"}
        self.box = Bubble(Confined("bubblewrap", (folder, *others), network=network), boxed_env(environ))
        self.sandbox: BoxedSandbox = self.box.sandbox("tester", owner=True)

    async def run(self, command: str, *, cwd: Path | None = None, timeout: float | None = 30) -> CommandResult:
        """Runs a command in the row's folder."""
        env = {"HOME": str(self.folder)}
        return await self.sandbox.run(command, cwd=cwd or self.folder, timeout=timeout, env=env)


@pytest_asyncio.fixture
async def row(tmp_path: Path) -> AsyncIterator[Row]:
    made = Row(tmp_path / "row")
    yield made
    await made.sandbox.close()


@pytest.fixture
def answering() -> Iterator[int]:
    """A port of this machine's loopback that greets."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def greet() -> None:
            while True:
                try:
                    with closing(server.accept()[0]) as peer:
                        peer.sendall(b"hello")
                except OSError:
                    return

        threading.Thread(target=greet, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


@works
async def test_what_is_closed_is_closed(row: Row, tmp_path: Path, answering: int) -> None:
    home = Path.home()
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_test").write_text("a key")
    other = tmp_path / "other row"
    other.mkdir()
    (other / "answer").write_text("42")
    (row.folder / "link").symlink_to(other / "answer")
    for closed in (home / ".ssh" / "id_test", other / "answer", Path("/etc/shadow"), row.folder / "link", home, other):
        result = await row.run(f"cat '{closed}'")
        assert result.exit_code != 0, closed
        assert "No such file" in result.output, closed
    for command in (  # opened for writing at most: a hole must not change the machine that finds it
        "touch /usr/mine", "touch /etc/mine", "touch /mine", ": >> /proc/sys/kernel/core_pattern",
        ": >> /proc/sysrq-trigger", "head -c 1 /proc/kcore | grep .", "cat /proc/keys | grep .",
        "mount -o remount,rw /usr", f"kill -0 {os.getpid()}", f"exec 9<>/dev/tcp/127.0.0.1/{answering}",
        f"cat /proc/1/root{other}/answer", "ls /root/.. | grep root", "ls /sys/kernel", "unshare -m true",
    ):  # fmt: skip
        assert (await row.run(command)).exit_code not in (0, 127), command
    env = (await row.run("env; grep CapEff /proc/self/status; ls /proc/self/fd")).output
    assert "a-secret" not in env
    assert "LC_TIME=C" in env
    assert "CapEff:\t0000000000000000" in env
    assert str(Path.home()) not in env


@works
async def test_what_is_open_is_at_its_own_path(tmp_path: Path) -> None:
    project = tmp_path / "a 'project'"
    project.mkdir()
    (project / "given").write_text("here")
    (tmp_path / "by link").symlink_to(project)
    row = Row(tmp_path / "row", tmp_path / "by link")
    try:
        result = await row.run('cat given; echo out > made; pwd -P; cd ~; pwd; echo "$HOME" > home', cwd=project)
        assert result.output == f"here{project}\n{row.folder}\n"
        assert result.cwd == row.folder
        assert (project / "made").read_text() == "out\n"
        assert (row.folder / "home").read_text() == f"{row.folder}\n"
        linked = await row.run("cat given", cwd=tmp_path / "by link")
        assert (linked.exit_code, linked.output) == (0, "here")
        assert (project / "made").stat().st_uid == os.getuid()
    finally:
        await row.sandbox.close()


@works
async def test_commands_of_a_row_share_files_servers_and_processes(row: Row) -> None:
    serve = "import socket; s = socket.create_server(('127.0.0.1', 8123)); s.accept()[0].sendall(b'up')"
    first = await row.run(f'echo kept > /tmp/note; mkdir /tmp/in; cd /tmp/in; (python3 -c "{serve}") & sleep 0.1')
    assert (first.exit_code, first.cwd) == (0, Path("/tmp/in"))
    number, name = first.still_running[0].split()
    assert name.startswith(("bash", "python"))
    ask = f"kill -0 {number} && cat /tmp/note && until cat < /dev/tcp/127.0.0.1/8123; do sleep 0.1; done"
    second = await row.run(f"({ask}) 2>/dev/null", cwd=Path("/tmp/in"))
    assert second.output == "kept\nup"
    child = row.box.sandbox("child")
    assert (await child.run("cat /tmp/note", cwd=row.folder, timeout=30, env={})).output == "kept\n"
    await child.close()
    assert (await row.run("cat /tmp/note")).output == "kept\n"
    assert not Path("/tmp/note").exists()


@works
@pytest.mark.parametrize(
    ("command", "code", "output"),
    [
        ("exit 7", 7, ""),
        ("kill -SEGV $$", -11, ""),
        ("cat <<'E'\nit's $x\nE\n", 0, "it's $x\n"),
        ("echo 'never closed", 2, None),
        ("echo out; echo err >&2", 0, "out\nerr\n"),
        ("nosuchcommand-at-all", 127, None),
        ("cat", 0, ""),
        ("python3 -c 'import pty; pty.openpty(); print(1)'", 0, "1\n"),
        (f": '{'x' * 200_000}'; echo long", 0, "long\n"),
        ("echo $HERMES_CWD$HERMES_TELL$BASH_ENV$OLDPWD", 0, "\n"),
    ],
)
async def test_commands_mean_what_they_mean_anywhere(row: Row, command: str, code: int, output: str | None) -> None:
    result = await row.run(command)
    assert result.exit_code == code
    assert result.cwd == row.folder
    if output is not None:
        assert result.output == output


@works
async def test_a_folder_that_is_gone_is_said_and_the_row_goes_on(row: Row) -> None:
    result = await row.run("pwd", cwd=Path("/tmp/nosuch"))
    assert result.output == f"[there is no folder /tmp/nosuch; in {row.folder}]\n{row.folder}\n"
    assert result.cwd == row.folder


@works
async def test_long_output_is_cut_and_its_file_can_be_read_inside(row: Row) -> None:
    result = await row.run("seq 1 200000")
    assert result.output.endswith("200000\n")
    assert result.full_output is not None
    inside = await row.run(f"wc -l < '{result.full_output}'; echo x >> '{result.full_output}'")
    assert inside.output.splitlines()[0] == "200000"
    assert "Read-only" in inside.output


@works
@pytest.mark.parametrize("ending", ["timeout", "cancel", "close"])
async def test_whatever_ends_a_command_ends_its_whole_tree(tmp_path: Path, ending: str) -> None:
    before = descriptors()
    row = Row(tmp_path / "row")
    stubborn = "trap '' TERM; (setsid sleep 4321 >/dev/null 2>&1 &); env -i /usr/bin/sleep 4321 & echo half; sleep 4321"
    task = asyncio.create_task(row.run(stubborn, timeout=0.5 if ending == "timeout" else None))
    deadline = time.monotonic() + 10
    while len(_sleeping()) < 3 and time.monotonic() < deadline and not task.done():
        await asyncio.sleep(0.01)
    if ending == "timeout":
        result = await task
        assert result.timed_out
        assert result.output == "half\n"
    elif ending == "cancel":
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    if ending != "close":
        assert _sleeping() == []
        assert (await row.run("echo on")).output == "on\n"
        job = await row.sandbox.start("sleep 4321", cwd=row.folder, env={})
        assert job.state == "running"
    await row.sandbox.close()
    if ending == "close":
        await task
    assert _sleeping() == []
    assert marked(f"{this_instance()}:tester:") == []
    assert marked(f"{this_instance()}:box:") == []
    assert not row.box.aside.exists()
    assert descriptors() == before
    assert [job.state for job in row.sandbox.jobs()] == ([] if ending == "close" else ["cancelled"])


def _sleeping() -> list[int]:
    return [one.pid for one in everyone() if b"4321" in _words(one.pid)]


def _words(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


@works
async def test_cancelled_while_the_box_opens_nothing_is_left(tmp_path: Path) -> None:
    for number in range(5):
        row = Row(tmp_path / f"row{number}")
        task = asyncio.create_task(row.run("sleep 4321"))
        await asyncio.sleep(0.004 * number)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await row.sandbox.close()
    assert marked(f"{this_instance()}:box:") == []
    assert _sleeping() == []


_KILLED = """
import asyncio, os, sys
from pathlib import Path
from hermes_engine.protocols import Confined
from hermes_engine.sandbox.bubblewrap import Bubble
async def main():
    folder = Path(sys.argv[1])
    sandbox = Bubble(Confined("bubblewrap", (folder,)), {}).sandbox("killed", owner=True)
    await sandbox.start("(setsid env -i /usr/bin/sleep 4322 >/dev/null 2>&1 &); sleep 4322", cwd=folder, env={})
    await sandbox.run("while [ $(pgrep -cx sleep) -lt 2 ]; do sleep 0.01; done", cwd=folder, timeout=30, env={})
    print("up", flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


@works
def test_the_kernel_ends_the_box_of_a_killed_program(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", _KILLED, str(tmp_path)], stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"up\n"
        inside = [one.pid for one in everyone() if b"4322" in _words(one.pid)]
        assert len(inside) == 2
        program.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while not all(map(gone, inside)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert all(map(gone, inside))


@works
async def test_when_the_box_has_died_a_command_runs_nowhere(row: Row) -> None:
    await row.run("true")
    for one in marked(f"{this_instance()}:box:"):
        send(one, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        result = await row.run(f"touch '{row.folder}/ran'")
        assert result.exit_code != 0
        assert not (row.folder / "ran").exists()
        if (result.exit_code, result.output) == (127, "cannot start: the sandbox has ended"):
            return
        await asyncio.sleep(0.01)
    pytest.fail(f"it never said so: {result}")


@works
async def test_the_network_is_there_when_it_is_opened(tmp_path: Path, answering: int) -> None:
    row = Row(tmp_path / "row", network=True)
    try:
        result = await row.run(f"cat < /dev/tcp/127.0.0.1/{answering}")
        assert (result.exit_code, result.output) == (0, "hello")
        assert (await row.run("cat /etc/resolv.conf")).exit_code == 0
    finally:
        await row.sandbox.close()


_AS_NOBODY = """
import asyncio, os, sys
from pathlib import Path
from hermes_engine.protocols import Confined
from hermes_engine.sandbox.bubblewrap import Bubble, why_not
async def main():
    folder = Path(sys.argv[1])
    sandbox = Bubble(Confined("bubblewrap", (folder,)), {}).sandbox("nobody", owner=True)
    command = "id -u; touch made; grep CapEff /proc/self/status; touch /usr/x; cat /etc/shadow; cd /usr"
    ran = await sandbox.run(command, cwd=folder, timeout=30, env={"HOME": str(folder)})
    print(why_not(), ran.output, ran.cwd)
    await sandbox.close()
asyncio.run(main())
"""


@works
def test_an_ordinary_user_has_it_too(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    python = shutil.which("python3", path="/usr/bin")
    import pydantic

    packages = f"{Path(__file__).parents[2]}:{Path(pydantic.__file__).parents[1]}"
    env = {"PATH": bubblewrap.PATH, "PYTHONPATH": packages, "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": "/tmp"}
    if (
        python is None
        or subprocess.run(
            [python, "-c", "import hermes_engine.sandbox.bubblewrap"],
            env=env,
            user=65534,
            group=65534,
            capture_output=True,
        ).returncode
    ):
        pytest.skip("another user has no Python that can load the program")
    folder = Path("/tmp") / f"hermes-nobody-{os.getpid()}"
    folder.mkdir()
    try:
        os.chown(folder, 65534, 65534)
        (folder / "row").mkdir()
        os.chown(folder / "row", 65534, 65534)
        done = subprocess.run(
            [python, "-c", _AS_NOBODY, str(folder / "row")],
            env=env, user=65534, group=65534, extra_groups=[], capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.stderr == ""
        lines = done.stdout.splitlines()
        assert lines[:2] == [" 65534", "CapEff:\t0000000000000000"]
        assert "Read-only" in lines[2]
        assert "No such file" in lines[3]
        assert lines[-1].strip() == "/usr"
        assert (folder / "row" / "made").stat().st_uid == 65534
    finally:
        shutil.rmtree(folder)


def test_what_a_run_gets_where_there_is_no_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "PATH", "/nowhere")
    why_not.cache_clear()
    try:
        kind, reason = sandbox_for("auto")
        assert kind == "local"
        assert "there is no bwrap" in reason
        assert sandbox_for("local") == ("local", "")
        with pytest.raises(UsageError, match=r"^--sandbox bubblewrap: there is no bwrap"):
            sandbox_for("bubblewrap")
    finally:
        why_not.cache_clear()


@works
def test_auto_takes_it_where_it_works() -> None:
    assert sandbox_for("auto") == ("bubblewrap", "")
