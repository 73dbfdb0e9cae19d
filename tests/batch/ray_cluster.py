"""A Ray cluster of two nodes on the loopback: real processes with a token of their own.

One for all tests of a session, however many processes run them, since its start takes longer than most tests; a test
has it alone. Run as a module, this ends it when the session is over, whatever ended that.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]

START_SECONDS = 90
"""A node takes 4 s where nothing else runs, and 20 s where much does."""

_WORKERS_PORTS = range(10002, 20000)


class Cluster:
    """The cluster. `nodes` holds the process id of each node's raylet, the head's first."""

    def __init__(self, folder: str, token: str, port: int, nodes: list[int]) -> None:
        self.folder, self.token, self.port, self.nodes = Path(folder), token, port, nodes

    @classmethod
    def new(cls) -> Cluster:
        """One that is not started yet."""
        from tests.batch.test_server import free_port

        folder = tempfile.mkdtemp(prefix="hr-", dir="/tmp")  # sockets lie below it: their paths are short
        (Path(folder) / "home").mkdir()
        port = next(port for port in iter(free_port, 0) if port not in _WORKERS_PORTS)
        return cls(folder, secrets.token_hex(32), port, [])

    def state(self) -> str:
        """What another process needs to use it."""
        return json.dumps([str(self.folder), self.token, self.port, self.nodes])

    @property
    def address(self) -> str:
        """What `--ray_address` is given."""
        return f"127.0.0.1:{self.port}"

    @property
    def env(self) -> dict[str, str]:
        """Variables of its own processes."""
        return {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": self.token,
            "RAY_USAGE_STATS_ENABLED": "0",
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.folder / "home"),
            "HERMES_HOME": str(self.folder / "home" / ".hermes"),
        }

    def whole(self) -> None:
        """Starts what is missing of two nodes."""
        if self.nodes and not _lives(self.nodes[0]):
            self.end()
        self.nodes = [node for node in self.nodes if _lives(node)]
        while len(self.nodes) < 2:
            self.add_node()

    def add_node(self) -> int:
        """Starts a node with one processor; the process id of its raylet."""
        first = not self.nodes
        place = ["--head", f"--port={self.port}"] if first else [f"--address={self.address}"]
        ip = f"--node-ip-address=127.0.0.{len(self.nodes) + 1}"
        command = [str(Path(sys.executable).with_name("ray")), "start", *place, ip, "--num-cpus=1"]
        command += ["--include-dashboard=false", f"--temp-dir={self.folder}"] if first else []
        command += ["--object-store-memory=80000000", "--disable-usage-stats", "--no-monitor"]
        command += ["--include-log-monitor=false"]
        before = {raylet.pid for raylet in self._raylets()}
        done = subprocess.run(
            command, env={**os.environ, **self.env}, capture_output=True, text=True, timeout=START_SECONDS, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        self.nodes.append(next(raylet.pid for raylet in self._raylets() if raylet.pid not in before))
        return self.nodes[-1]

    def processes(self) -> list[psutil.Process]:
        """Everything that knows the cluster's token, but for this process."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("RAY_AUTH_TOKEN") == self.token and process.pid != os.getpid():
                    found.append(process)
        return found

    def _raylets(self) -> list[psutil.Process]:
        return [process for process in self.processes() if process.name() == "raylet"]

    def working(self, node: int) -> list[psutil.Process]:
        """The processes of a node that work rows."""
        try:
            below = psutil.Process(node).children()
        except psutil.Error:
            return []
        found = []
        for process in below:
            with contextlib.suppress(psutil.Error):
                if "ray::Site" in " ".join(process.cmdline()):
                    found.append(process)
        return found

    def lose(self, node: int) -> None:
        """Ends a node and all it works, at once, as when a machine is lost."""
        there = psutil.Process(node)
        for process in (there, *there.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                process.kill()

    def end(self) -> None:
        """Ends every process."""
        self.nodes.clear()
        left = self.processes()
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(left, timeout=20)

    def close(self) -> None:
        """Ends it and removes its files."""
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """Held while a test has a Ray: several at once would need more memory and time than there may be."""
    with (Path(tempfile.gettempdir()) / "hermes-tests-ray.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def whole_cluster(session: Path) -> Iterator[Cluster]:
    """The cluster of a session of tests, whose processes share a folder; started, or mended, where it has to be."""
    with one_at_a_time():
        told = session / "ray-cluster.json"
        cluster = Cluster(*json.loads(told.read_text())) if told.exists() else _guarded(Cluster.new())
        try:
            cluster.whole()
            yield cluster
        finally:
            told.write_text(cluster.state())


def _guarded(cluster: Cluster) -> Cluster:
    """Has the cluster ended when the process that all of this session's tests belong to has ended."""
    session = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    command = [sys.executable, "-m", "tests.batch.ray_cluster", str(session), cluster.state()]
    own = {name: cluster.env[name] for name in ("HOME", "HERMES_HOME")}  # it is of no test
    nothing = subprocess.DEVNULL
    subprocess.run(
        command, cwd=ROOT, env={**os.environ, **own}, stdin=nothing, stdout=nothing, stderr=nothing,
        start_new_session=True, check=True,
    )  # fmt: skip
    return cluster


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).name() == "raylet"
    except psutil.Error:
        return False


def wait_until(there: Callable[[], object], seconds: float = 60.0) -> None:
    """Waits for something. Fails when it takes too long."""
    deadline = time.monotonic() + seconds
    while not there():
        if time.monotonic() > deadline:
            pytest.fail(f"not there after {seconds:g} s")
        time.sleep(0.05)


def main() -> None:
    """Ends a cluster when a process has ended, and is no child of whoever starts it."""
    if os.fork():
        return
    session, state = sys.argv[1:]
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(int(session)).wait()
    Cluster(*json.loads(state)).close()


if __name__ == "__main__":
    main()
