"""`--engine ray` without a cluster: a Ray of this machine that is started for the run, and what cannot be joined.

The real program as a process. Whatever ends it, nothing of it or of Ray is left.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from hermes_engine.batch import fleet
from hermes_engine.errors import StateError
from tests.batch.ray_cluster import one_at_a_time, wait_until
from tests.batch.served import prompt_of, run
from tests.batch.support import dataset, read_rows
from tests.batch.test_server import free_port, running
from tests.conftest import Serve
from tests.e2e.program import Done, environment, hermes
from tests.server.scripted import Answer, ScriptedServer, Seen, call, say

pytestmark = [pytest.mark.slow, pytest.mark.cluster, pytest.mark.timeout(400)]


@pytest.fixture(autouse=True)
def ray_here() -> Iterator[None]:
    pytest.importorskip("ray", reason="Ray is not installed: make test does it where the package index has it")
    with one_at_a_time():
        yield
    for process in of_this_test():  # none, unless the test failed
        process.kill()


def of_this_test() -> list[psutil.Process]:
    """Processes that were started for this test, by the home they have."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get("HERMES_HOME") == os.environ["HERMES_HOME"]:
                found.append(process)
        except psutil.Error:
            continue
    return found


def flags(server: ScriptedServer | str, *more: str) -> list[str]:
    url = server if isinstance(server, str) else server.base_url
    given = ["--dataset_file", "d.jsonl", "--batch_size", "5", "--run_name", "r", "--model", "m", "--base_url", url]
    return ["batch", "run", *given, "--engine", "ray", "--sandbox", "local", "--plain", *more]


def start(args: list[str], cwd: Path) -> subprocess.Popen[bytes]:
    """The program at work, with folders for what is temporary that nobody else has."""
    (cwd / "tmp").mkdir()
    return subprocess.Popen(
        [sys.executable, "-m", "hermes_tui.cli", *args],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd,
        env=environment(TMPDIR=str(cwd / "tmp"), RAY_gcs_rpc_server_reconnect_timeout_s="5"), start_new_session=True,
    )  # fmt: skip


def sleeps_or_says(mark: str) -> object:
    """A script: rows that run a long command, and one that answers at once."""

    def script(seen: Seen) -> Answer:
        if prompt_of(seen).startswith("quick"):
            return say("Yes.", "hm")
        return call("terminal", {"command": f"sleep {mark}"}, reasoning="hm")

    return script


def folders_of_ray() -> set[Path]:
    """Where runs of this machine have their Ray, when a path of their own would be too long for its sockets."""
    return set(Path("/tmp").glob("hermes-ray-*"))


def kept(cwd: Path) -> list[bytes]:
    """Lines of kept rows."""
    files = (cwd / "data" / "r").glob("batch_*.jsonl")
    return [line for file in files for line in file.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


def nothing_left(cwd: Path) -> None:
    """No process, no command and no folder of rows or of Ray."""
    wait_until(lambda: not of_this_test(), 30)
    assert list((cwd / "tmp").glob("hermes-*")) == []
    assert not (Path(os.environ["HOME"]) / ".ray").exists()


def test_an_interrupt_ends_a_run_with_its_ray_and_its_commands(serve: Serve, tmp_path: Path) -> None:
    mark, before = f"34{os.getpid()}", folders_of_ray()
    server = serve(sleeps_or_says(mark))
    dataset(tmp_path / "d.jsonl", [*(f"quick {number}" for number in range(20)), "a", "b"])
    process = start([*flags(server), "--requests_per_minute", "6000"], tmp_path)
    wait_until(lambda: len(running(mark)) == 2 and len(kept(tmp_path)) == 20, 200)
    began = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)  # a terminal's Ctrl+C goes to all that it started
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - began < 20
    assert process.returncode == 130
    told = err.decode().splitlines()
    assert told[:2] == [
        "no sandbox: commands of the rows run on each row's machine, as whoever started Ray there",
        "starting Ray on this machine",
    ]
    assert told[2].startswith("Ray: 1 machine; up to ")
    assert told[-1] == "go on with: hermes batch run --resume --run_name r"
    assert b"kept 20 " in out
    assert b"raylet" not in out + err
    assert not running(mark)
    assert folders_of_ray() <= before
    nothing_left(tmp_path)


def test_f1_3_a_kill_ends_its_ray_and_its_commands_too(serve: Serve, tmp_path: Path) -> None:
    mark, before = f"34{os.getpid()}", folders_of_ray()
    server = serve(sleeps_or_says(mark))
    dataset(tmp_path / "d.jsonl", ["quick", "a", "b", "c"])
    process = start(flags(server), tmp_path)
    wait_until(lambda: len(running(mark)) == 3 and len(kept(tmp_path)) == 1, 200)
    process.kill()
    process.communicate()
    wait_until(lambda: not running(mark), 20)
    wait_until(lambda: not of_this_test(), 30)
    assert folders_of_ray() <= before
    resume = flags(serve([say("Yes.", "hm")]), "--resume", "--engine", "threads")
    again = hermes(*resume, cwd=tmp_path, TMPDIR=str(tmp_path / "tmp"))
    assert "kept 4" in again.out
    nothing_left(tmp_path)


def test_a_run_whose_ray_is_gone_ends_in_order_and_goes_on_elsewhere(serve: Serve, tmp_path: Path) -> None:
    server = serve([say("Yes.", "hm", first_delay=0.3)])
    dataset(tmp_path / "d.jsonl", [f"p{number}" for number in range(60)])
    process = start(flags(server), tmp_path)
    wait_until(lambda: len(server.requests) >= 10, 200)
    for one in of_this_test():
        if one.pid != process.pid and "hermes_engine.batch.ray_bridge" not in one.cmdline():
            one.kill()
    out, err = process.communicate(timeout=100)
    told = err.decode()
    assert process.returncode == 1, told
    assert "Ray is gone" in out.decode() + told
    assert "Traceback" not in told
    rows = read_rows(tmp_path / "data" / "r" / "trajectories.jsonl")
    assert 1 <= len(rows) < 60
    assert told.splitlines()[-1] == "go on with: hermes batch run --resume --run_name r"
    nothing_left(tmp_path)
    again = hermes(
        *flags(server, "--resume", "--engine", "threads"), cwd=tmp_path, timeout=100, TMPDIR=str(tmp_path / "tmp")
    )
    assert "kept 60" in again.out
    rows = read_rows(tmp_path / "data" / "r" / "trajectories.jsonl")
    assert [row["prompt_index"] for row in rows] == list(range(60))
    assert len(server.requests) <= 60 + 4


def refused(tmp_path: Path, *more: str, **env: str) -> Done:
    """A run that cannot begin: within bounds, with one line."""
    dataset(tmp_path / "d.jsonl", ["a"])
    done = hermes(*flags("http://127.0.0.1:9/v1", *more), cwd=tmp_path, timeout=100, **env)
    assert "Traceback" not in done.out + done.err
    assert done.err.splitlines()[-1].startswith("hermes: ")
    assert not (tmp_path / "data" / "r" / "run.json").exists()
    assert of_this_test() == []
    return done


def test_clusters_that_cannot_be_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    done = refused(tmp_path, "--ray_address", nobody)
    assert done.code == 1
    assert f"the Ray cluster at {nobody} cannot be joined: [Errno 111] Connection refused" in done.err
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        done = refused(tmp_path, "--ray_address", address)
        assert f"the Ray cluster at {address} cannot be joined: Token authentication is enabled" in done.err
        assert ". — see docs/batch.md, Ray" in done.err, "whole sentences"
        monkeypatch.setattr(fleet, "JOIN_SECONDS", 6.0)
        monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
        with pytest.raises(StateError, match=f"^the Ray cluster at {address} does not answer") as told:
            run(tmp_path, "http://127.0.0.1:9/v1", ["a"], engine="ray", ray_address=address)
        assert "\n" not in told.value.line
    assert not (tmp_path / "data" / "r" / "run.json").exists()
    assert of_this_test() == []
    done = refused(tmp_path, "--ray_address", "ray://127.0.0.1:10001")
    assert (done.code, "is no host:port" in done.err) == (2, True)
    done = refused(tmp_path, "--engine", "threads", "--ray_address", nobody)
    assert (done.code, "--ray_address is for --engine ray" in done.err) == (2, True)
