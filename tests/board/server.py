"""A PostgreSQL of the tests' own: in a temporary folder, on a socket there, as an ordinary user (root may not)."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.board.support import NoServer

_SETTINGS = "-c listen_addresses='' -c fsync=off -c full_page_writes=off -c max_connections=200 -c shared_buffers=32MB"


def _programs() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    if on_path is None and not found:
        raise NoServer("no PostgreSQL is installed (apt-get install postgresql)")
    return Path(on_path or found[-1]).parent


def _as_user() -> tuple[list[str], pwd.struct_passwd]:
    """What to put before a command so that it runs as an ordinary user, and that user."""
    if os.getuid() != 0:
        return [], pwd.getpwuid(os.getuid())
    if shutil.which("runuser") is None:
        raise NoServer("root cannot become an ordinary user here (no runuser)")
    for name in ("postgres", "nobody"):
        try:
            return ["runuser", "-u", name, "--"], pwd.getpwnam(name)
        except KeyError:
            continue
    raise NoServer("there is no ordinary user to run PostgreSQL as")


@dataclass(frozen=True)
class Server:
    """A server that runs: the URL of its empty database, and how it is stopped and started again."""

    url: str
    stop: Callable[[], None]
    start: Callable[[], None]


@contextmanager
def running() -> Iterator[Server]:
    """Starts a server and stops it at the end. Raises NoServer."""
    programs = _programs()
    prefix, user = _as_user()
    folder = Path(tempfile.mkdtemp(prefix="hermes-pg-", dir="/tmp"))
    os.chown(folder, user.pw_uid, user.pw_gid)

    def run(program: str, *args: str) -> None:
        done = subprocess.run(
            [*prefix, str(programs / program), *args],
            cwd=folder,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        if done.returncode != 0:
            raise NoServer(f"{program} failed: {done.stdout[-500:]}")

    data, log = str(folder / "data"), str(folder / "log")
    settings = f"{_SETTINGS} -c unix_socket_directories='{folder}'"

    def start() -> None:
        run("pg_ctl", "-D", data, "-l", log, "-w", "-o", settings, "start")

    def stop() -> None:
        run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")

    try:
        run("initdb", "-D", data, "-A", "trust", "-U", "hermes", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8")
        start()
        try:
            yield Server(f"postgresql://hermes@/postgres?host={folder}", stop, start)
        finally:
            stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
