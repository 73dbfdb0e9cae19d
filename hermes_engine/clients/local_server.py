"""The process that serves the local model on the loopback; started by `local_process`, run as a script.

It writes the port file once it answers, and ends by itself: at SIGTERM, when nobody asked for a while, and when the
port file is gone or names another process, for then nobody can find it. A fault of the C++ code ends this process
alone. Knows the model's file and nothing of agents.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

import psutil

from hermes_engine.clients.local_port import CONTEXT_TOKENS, Running, read_running
from hermes_engine.paths import write_atomic
from hermes_engine.store.instances import Identity, this_process

THREADS = 1
"""With two on a busy machine of two cores the threads wait for each other: 30 times slower, measured."""
LONGEST_POLL_SECONDS = 5.0


def main(port_file: Path, model: Path, idle_seconds: float) -> None:
    """Serves until it is told to end or is of no use; never returns."""
    ended = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        ended.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    me = this_process()
    server, port = _serve(model)
    write_atomic(port_file, Running(me, port).as_json())
    used, stamp = time.monotonic(), _stamp(port_file)
    while not ended.wait(min(LONGEST_POLL_SECONDS, idle_seconds / 4)):
        if _asked_now(port):
            used = time.monotonic()
        elif not _names(port_file, me):
            break
        elif (asked := _stamp(port_file)) != stamp:
            used, stamp = time.monotonic(), asked
        elif time.monotonic() - used > idle_seconds:
            break
    if _names(port_file, me):
        port_file.unlink(missing_ok=True)
    del server
    os._exit(0)


def _serve(model: Path) -> tuple[object, int]:
    """The running server and its port."""
    xllamacpp: Any = importlib.import_module("xllamacpp")  # untyped, and an optional part
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.model_alias = {"local"}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = THREADS
    params.fit_params = params.warmup = params.ui = False
    params.cache_ram_mib = 0
    params.verbosity = 1
    server = xllamacpp.Server(params)
    return server, urlsplit(server.listening_address).port or 0


def _names(port_file: Path, me: Identity) -> bool:
    """Whether others find this process there."""
    found = read_running(port_file)
    return found is not None and found.identity == me


def _stamp(port_file: Path) -> float:
    """Changes whenever someone is about to ask."""
    try:
        return port_file.stat().st_mtime
    except OSError:
        return 0.0


def _asked_now(port: int) -> bool:
    """Whether a connection to the server is open."""
    try:
        connections = psutil.Process().net_connections(kind="tcp")
    except (psutil.Error, OSError):
        return True
    return any(
        item.status == psutil.CONN_ESTABLISHED and item.laddr and item.laddr.port == port for item in connections
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
