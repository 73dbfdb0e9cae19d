"""The real Atropos API server as a process, with a trainer that takes batches from it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from typing import Any


class Trainer:
    """The Atropos API server as a process, and the trainer's calls to it."""

    def __init__(self, app: str = "atroposlib.api.server:app") -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        command = [
            sys.executable,
            "-m",
            "uvicorn",
            "--port",
            str(port),
            "--log-level",
            "error",
            app,
        ]
        self._process = subprocess.Popen(command)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                self.call("GET", "/")
                return
            except OSError:
                time.sleep(0.1)
        raise AssertionError("the server did not start")

    def call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=20) as answer:
            text = answer.read()
            return json.loads(text) if text.startswith((b"{", b"[")) else text.decode()

    def register(self, batch_size: int, longest: int = 4096) -> None:
        fields = {"wandb_group": "g", "wandb_project": "p", "checkpoint_dir": "", "save_checkpoint_interval": 10}
        numbers = {"batch_size": batch_size, "max_token_len": longest, "starting_step": 0, "num_steps": 10}
        self.call("POST", "/register", fields | numbers)

    def batch(self) -> Any:
        return self.call("GET", "/batch")["batch"]

    def queued(self) -> list[str]:
        """The prompts of all groups that it holds and gives out, in the order in which they come: takes them."""
        found: list[str] = []
        while batch := self.batch():
            found += [group["messages"][0][0]["content"] for group in batch]
        return found

    def kill(self) -> None:
        """Ends the server at once."""
        self._process.kill()
        self._process.wait(10)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(10)
