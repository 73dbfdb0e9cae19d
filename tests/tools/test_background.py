"""Commands in the background, what is left of an agent at its end, and the environment commands get."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from hermes_engine.errors import UnknownName
from hermes_engine.protocols import Job
from hermes_engine.sandbox.local import LocalSandbox
from hermes_engine.sandbox.processes import marked, read_process, this_instance
from tests.tools.shells import descriptors, ours, pids, run


async def test_f10_3_keys_are_kept_from_commands(tmp_path: Path) -> None:
    environ = {
        "PATH": os.environ["PATH"], "HOME": "/home/x", "LANG": "C.UTF-8", "OPENAI_API_KEY": "k1",
        "OPENROUTER_API_KEY": "k2",
        "OPENAI_BASE_URL": "http://x", "GITHUB_TOKEN": "k3", "AWS_SECRET_ACCESS_KEY": "k4", "DB_PASSWORD": "k5",
        "NPM_TOKEN": "passed-on", "HERMES_HOME": "/x", "SSH_AUTH_SOCK": "/s", "BASH_ENV": "/evil",
    }  # fmt: skip
    sandbox = LocalSandbox(agent="a", outputs=tmp_path / "o", environ=environ, pass_env=["NPM_TOKEN"])
    shown = (await sandbox.run("env", cwd=tmp_path, timeout=5, env={"EXTRA": "1"})).output
    names = {line.partition("=")[0] for line in shown.splitlines()}
    assert {"PATH", "HOME", "LANG", "SSH_AUTH_SOCK", "NPM_TOKEN", "EXTRA", "PAGER"} <= names
    assert not any(value in shown for value in ("k1", "k2", "k3", "k4", "k5", "http://x", "/evil"))
    job = await sandbox.start("env", cwd=tmp_path, env={})
    assert "k1" not in (await sandbox.wait(job.id, 5)).output


async def test_f12_9_the_environment_is_fresh_each_call(sandbox: LocalSandbox, tmp_path: Path) -> None:
    await run(sandbox, "export FOO=1; alias x=y; f() { :; }; export -f f", tmp_path)
    assert (await run(sandbox, 'echo "[$FOO]"; type f 2>/dev/null', tmp_path)).output == "[]\n"


async def test_f4_5_a_launch_that_fails_is_a_failed_job(sandbox: LocalSandbox, tmp_path: Path) -> None:
    ended: list[Job] = []
    sandbox.on_job_end = ended.append
    job = await sandbox.start("nosuchcmd-at-all", cwd=tmp_path, env={})
    assert (job.state, job.exit_code) == ("failed", 127)
    missing = await sandbox.start("true", cwd=tmp_path / "nowhere", env={})
    assert (missing.state, missing.exit_code) == ("failed", 127)
    assert "nowhere" in missing.output
    result = await run(sandbox, "true", tmp_path / "nowhere")
    assert result.exit_code == 127
    assert (await run(sandbox, "echo \0", tmp_path)).exit_code == 127
    await asyncio.sleep(0.05)
    assert [one.id for one in ended] == [job.id, missing.id]


async def test_f4_3_f4_6_states_and_one_notice_for_each_job(sandbox: LocalSandbox, tmp_path: Path) -> None:
    ended: list[Job] = []
    sandbox.on_job_end = ended.append
    killed = await sandbox.start("sleep 100", cwd=tmp_path, env={})
    assert killed.state == "running"
    assert (await sandbox.kill(killed.id)).state == "cancelled"
    assert (await sandbox.kill(killed.id)).state == "cancelled"
    failed = await sandbox.start("exit 3", cwd=tmp_path, env={})
    done = await sandbox.start("echo out; true", cwd=tmp_path, env={})
    await sandbox.wait(failed.id, 5)
    await asyncio.gather(*(sandbox.wait(done.id, 5) for _ in range(5)))
    await asyncio.sleep(0.05)
    assert [(job.id, job.state, job.exit_code) for job in ended] == [
        (killed.id, "cancelled", -15), (failed.id, "failed", 3), (done.id, "done", 0),
    ]  # fmt: skip
    assert [job.id for job in sandbox.jobs()] == ["p1", "p2", "p3"]
    assert sandbox.job("p3").output == "out\n"
    with pytest.raises(UnknownName, match="p1, p2, p3"):
        sandbox.job("p9")


async def test_f4_8_a_command_that_says_nothing_goes_on(sandbox: LocalSandbox, tmp_path: Path) -> None:
    """There is no clean-up of what is merely quiet."""
    job = await sandbox.start("sleep 1.2; echo late", cwd=tmp_path, env={})
    assert (await sandbox.wait(job.id, 0.8)).state == "running"
    ended = await sandbox.wait(job.id, 10)
    assert (ended.state, ended.output) == ("done", "late\n")


async def test_f4_7_f3_2_background_commands_end_with_the_sandbox(sandbox: LocalSandbox, tmp_path: Path) -> None:
    ended: list[Job] = []
    sandbox.on_job_end = ended.append
    await sandbox.start("python3 -m http.server 0 --bind 127.0.0.1", cwd=tmp_path, env={})
    quick = await sandbox.start("setsid sleep 300 & exit 0", cwd=tmp_path, env={})
    await sandbox.wait(quick.id, 20)
    assert len(ours()) >= 2
    await sandbox.close()
    assert ours() == []
    assert [job.state for job in ended] == ["done", "cancelled"]


async def test_f3_15_f5_12_no_descriptor_thread_or_zombie_is_left(tmp_path: Path) -> None:
    async def child(number: int) -> None:
        sandbox = LocalSandbox(agent=f"c{number}", outputs=tmp_path / "o")
        await run(sandbox, "echo x; sleep 300 & setsid sleep 300 & true", tmp_path)
        await sandbox.start("sleep 300", cwd=tmp_path, env={})
        await sandbox.close()

    def zombies() -> list[int]:
        seen = map(read_process, pids())
        return [one.pid for one in seen if one and one.parent == os.getpid() and one.state == "Z"]

    dead = zombies()  # of other tests in this process
    await child(0)
    before = descriptors()
    for number in range(1, 11):
        await child(number)
    assert descriptors() == before
    assert zombies() == dead
    assert marked(this_instance()) == []


async def test_f12_3_two_agents_keep_their_own_folders(tmp_path: Path) -> None:
    one, two = (LocalSandbox(agent=name, outputs=tmp_path / "o") for name in ("one", "two"))
    first, second = await asyncio.gather(run(one, "cd /usr; sleep 0.1", tmp_path), run(two, "cd /etc", tmp_path))
    assert (first.cwd, second.cwd) == (Path("/usr"), Path("/etc"))
