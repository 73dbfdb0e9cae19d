"""The port file of the local model's server: which process, at which port. Loads little: the server reads it too."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from hermes_engine.store.instances import Identity, birth_of, this_boot

CONTEXT_TOKENS = 8192
"""What the model was trained for."""


@dataclass(frozen=True, slots=True)
class Running:
    """A server as its port file names it."""

    identity: Identity
    port: int

    @property
    def base_url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def alive(self) -> bool:
        """Whether that very process lives, on this machine."""
        here = self.identity.boot == this_boot()
        return here and bool(self.identity.birth) and birth_of(self.identity.pid) == self.identity.birth

    def as_json(self) -> str:
        """The port file's text."""
        return json.dumps({**asdict(self.identity), "port": self.port}) + "\n"


def read_running(path: Path) -> Running | None:
    """The server a port file names, dead or alive; None when there is no such file or it says nothing."""
    try:
        value = json.loads(path.read_text("utf-8"))
        return Running(Identity(str(value["boot"]), int(value["pid"]), str(value["birth"])), int(value["port"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
