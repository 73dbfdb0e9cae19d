"""Who wrote which file last, over all agents of this process, and how a file looked when an agent saw it.

So that an agent's edit never destroys what another (or the person) changed meanwhile.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_KEPT = 20_000


@dataclass(frozen=True, slots=True)
class Look:
    """How a file looked: `digest` is None when it was too large to be read whole."""

    changed: int
    size: int
    inode: int
    digest: bytes | None

    @classmethod
    def at(cls, path: Path, content: bytes | None) -> Look:
        """The file as it is now. Raises OSError."""
        state = path.stat()
        return cls(state.st_mtime_ns, state.st_size, state.st_ino, None if content is None else digest_of(content))

    def still(self, path: Path, content: bytes) -> bool:
        """Whether the file, with this content now, is unchanged."""
        if self.digest is not None:
            return self.digest == digest_of(content)
        now = Look.at(path, None)
        return (now.changed, now.size, now.inode) == (self.changed, self.size, self.inode)


def digest_of(content: bytes) -> bytes:
    """A short fingerprint of a file's content."""
    return hashlib.blake2b(content, digest_size=16).digest()


class Ledger:
    """The last writer of each file, and one lock a file. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._writers: OrderedDict[Path, tuple[str, bytes]] = OrderedDict()
        self._busy: dict[Path, tuple[threading.Lock, int]] = {}

    def wrote(self, path: Path, agent: str, content: bytes) -> None:
        """Notes that an agent has written this content."""
        with self._lock:
            self._writers[path] = (agent, digest_of(content))
            self._writers.move_to_end(path)
            while len(self._writers) > _KEPT:
                self._writers.popitem(last=False)

    def writer_of(self, path: Path, content: bytes) -> str | None:
        """The agent that wrote exactly this content there, or None."""
        with self._lock:
            agent, digest = self._writers.get(path, ("", b""))
        return agent if agent and digest == digest_of(content) else None

    @contextlib.contextmanager
    def alone(self, path: Path) -> Iterator[None]:
        """Nobody else edits this file meanwhile."""
        with self._lock:
            lock, users = self._busy.get(path, (threading.Lock(), 0))
            self._busy[path] = (lock, users + 1)
        try:
            with lock:
                yield
        finally:
            with self._lock:
                lock, users = self._busy[path]
                if users == 1:
                    del self._busy[path]
                else:
                    self._busy[path] = (lock, users - 1)


LEDGER = Ledger()
"""The one of this process."""
