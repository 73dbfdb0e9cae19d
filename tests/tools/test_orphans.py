"""What a dead Hermes left running is ended; what belongs to a live one, or to nobody, is not. Real processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

from hermes_engine.sandbox.local import LocalSandbox
from hermes_engine.sandbox.orphans import end_instance, end_orphans
from hermes_engine.sandbox.processes import MARK, instance_alive, instance_of, read_process, this_instance

CHILD = """\
import asyncio, os, sys
from pathlib import Path
from hermes_engine.sandbox.local import LocalSandbox
async def main():
    sandbox = LocalSandbox(agent="a", outputs=Path(sys.argv[1]))
    command = "setsid bash -c 'trap : TERM; echo $$; sleep 300; sleep 300; sleep 300' & wait"
    job = await sandbox.start(command, cwd=Path("/tmp"), env={})
    while not (await sandbox.wait(job.id, 0.05)).output: pass
    print(sandbox.job(job.id).output.strip(), flush=True)
    os.kill(os.getpid(), 9)
asyncio.run(main())
"""


def gone(pid: int) -> bool:
    process = read_process(pid)
    return process is None or process.state in "ZX"


def test_f4_7_f5_13_orphans_of_a_killed_instance_are_ended_and_nothing_else(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path)], capture_output=True, text=True, cwd=Path.cwd())
    orphan = int(ran.stdout)
    assert not gone(orphan)
    foreign = subprocess.Popen(["sleep", "300"])
    alive = subprocess.Popen(["sleep", "300"], env={**os.environ, MARK: f"dead-1-2:a:1 {this_instance()}:a:1"})
    try:
        ended = end_orphans()
        assert f"{orphan} bash" in ended
        for _ in range(100):
            if gone(orphan):
                break
            time.sleep(0.02)
        assert gone(orphan)
        assert foreign.poll() is None
        assert alive.poll() is None
        assert f"{orphan} bash" not in end_orphans()
        assert any(label.startswith(f"{alive.pid} ") for label in end_instance())
        assert alive.wait(5) == -15
    finally:
        for process in (foreign, alive):
            process.kill()
            process.wait()


def test_f5_13_an_instance_is_more_than_its_pid() -> None:
    own = this_instance()
    assert instance_alive(own)
    assert instance_of(os.getpid()) == own
    boot, pid, started = own.split("-")
    assert not instance_alive(f"{boot}-{pid}-{int(started) + 1}")
    assert not instance_alive(f"otherboot-{pid}-{started}")
    assert not instance_alive("nonsense")


async def test_f4_7_a_daemon_that_closed_everything_ends_with_the_instance(tmp_path: Path) -> None:
    sandbox = LocalSandbox(agent="d", outputs=tmp_path)
    daemon = (
        "import os, time\nif os.fork() == 0:\n os.setsid()\n os.closerange(0, 4096)\n"
        " open('pid', 'w').write(str(os.getpid()))\n time.sleep(300)"
    )
    await sandbox.run(f'python3 -c "{daemon}"', cwd=tmp_path, timeout=10, env={})
    for _ in range(100):
        if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
            break
        await asyncio.sleep(0.02)
    pid = int((tmp_path / "pid").read_text())
    await sandbox.close()
    await asyncio.to_thread(end_instance)
    assert gone(pid)
