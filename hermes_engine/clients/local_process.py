"""Finds, starts and ends the one process that serves the local model for all instances of a home.

The port file in the home names it: boot, pid and birth of the process, and its port. A file whose process is dead
means nothing and is written over. Everything here blocks; knows no requests.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import hermes_engine
from hermes_engine.clients.local_port import Running, read_running
from hermes_engine.errors import EndpointDown, StateError
from hermes_engine.paths import Home, open_private, private_dir
from hermes_engine.settings.local_model import LocalModel, installed
from hermes_engine.settings_edit import locked

IDLE_SECONDS = 600.0
"""How long the process stays when nobody asks."""
START_SECONDS = 60.0
END_SECONDS = 5.0
_KEPT_ENV = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "SYSTEMROOT")
_started: list[subprocess.Popen[bytes]] = []
"""Children of this process, kept so that a dead one can be reaped."""


def port_file(home: Home) -> Path:
    """Where the server's address stands; beside the state, never on a network home that was moved off."""
    return home.state_db.with_name("local-model.json")


def log_file(home: Home) -> Path:
    """What the server says of itself."""
    return home.logs / "local-model.log"


def find(home: Home) -> Running | None:
    """The living server of a home."""
    for child in _started:
        child.poll()
    running = read_running(port_file(home))
    return running if running is not None and running.alive else None


def ensure(home: Home, *, idle_seconds: float = IDLE_SECONDS) -> Running:
    """The living server of a home, started when there is none. Blocks up to a minute.

    Raises:
        EndpointDown: it does not start.
    """
    try:
        private_dir(port_file(home).parent)
        with locked(port_file(home)):
            return find(home) or _start(home, idle_seconds)
    except StateError as error:
        raise EndpointDown(f"the local model's server cannot be started: {error}") from None
    except OSError as error:
        raise EndpointDown(f"the local model's server cannot be started: {error.strerror or error}") from None


def stop(home: Home) -> Running | None:
    """Ends the server of a home, if there is one; returns which it was."""
    running = find(home)
    if running is None:
        return None
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(running.identity.pid, number)
        deadline = time.monotonic() + END_SECONDS
        while running.alive and time.monotonic() < deadline:
            time.sleep(0.02)
            find(home)
        if not running.alive:
            break
    return running


def _start(home: Home, idle_seconds: float) -> Running:
    model = installed()
    if model is None:
        raise EndpointDown("the local model is not installed any more", hint="hermes local install")
    child = _spawn(home, model, idle_seconds)
    deadline = time.monotonic() + START_SECONDS
    while child.poll() is None:
        running = read_running(port_file(home))
        if running is not None and running.identity.pid == child.pid and running.alive:
            return running
        if time.monotonic() > deadline:
            child.kill()
            child.wait()
            break
        time.sleep(0.02)
    ended = f"ended as it began ({child.returncode})" if child.returncode != -signal.SIGKILL else "did not begin"
    raise EndpointDown(f"the local model's server {ended}", hint=f"what it said is in {log_file(home)}")


def _spawn(home: Home, model: LocalModel, idle_seconds: float) -> subprocess.Popen[bytes]:
    """The new process: a session of its own, no keys in its environment, no folder of anybody's as its own."""
    private_dir(home.logs)
    environment = {name: os.environ[name] for name in _KEPT_ENV if name in os.environ}
    environment["PYTHONPATH"] = str(Path(hermes_engine.__file__).parents[1])
    script = str(Path(__file__).with_name("local_server.py"))
    words = [sys.executable, "-P", script, str(port_file(home)), str(model.path), str(idle_seconds)]
    log = open_private(log_file(home), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        child = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=home.root,
            env=environment,
            start_new_session=True,
        )
    finally:
        os.close(log)
    _started[:] = [*(other for other in _started if other.poll() is None), child]
    return child
