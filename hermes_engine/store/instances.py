"""Who is running: one record for each process of ours, and whether it still lives.

Identity is boot, pid and the process's birth, never a pid or a host name alone: pids are used again. A process
of another boot or another pid namespace (a home shared by machines or containers) cannot be looked up; it
counts as alive as long as its heartbeat is fresh.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hermes_engine.store.database import Database, clean

HEARTBEAT_SECONDS = 20.0
"""How often an instance says that it lives."""

STALE_SECONDS = 90.0
"""Age of a heartbeat after which an instance that cannot be looked up counts as dead."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Which process: no other one, ever, has the same three.

    Attributes:
        boot: boot id of the kernel and pid namespace.
        pid: process id in that namespace.
        birth: start time as the kernel keeps it (clock ticks since boot).
    """

    boot: str
    pid: int
    birth: str


@cache
def this_boot() -> str:
    """Identity of the running kernel and of our pid namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115 - not a path
    except OSError:
        import psutil

        return f"{platform.node()} {int(psutil.boot_time())}"


def birth_of(pid: int) -> str | None:
    """When the process began, exactly; None when there is none (a zombie counts as none)."""
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[0] in "ZX" else fields[19]
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.2f}"
    except psutil.Error:
        return None


def this_process() -> Identity:
    """Our own identity."""
    return Identity(this_boot(), os.getpid(), birth_of(os.getpid()) or "")


def is_alive(identity: Identity, heartbeat: float = 0.0) -> bool:
    """Whether that very process lives.

    Args:
        identity: of the process.
        heartbeat: its last sign of life, seconds since the epoch; used only where it cannot be looked up.
    """
    if identity.boot != this_boot():
        return time.time() - heartbeat < STALE_SECONDS
    return birth_of(identity.pid) == identity.birth


class Instances:
    """The records of running processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def register(self, cwd: Path, flags: Mapping[str, str | int] | None = None) -> str:
        """Records this process, which was started with these flags; returns the instance's id."""
        identity = this_process()
        instance = f"i{secrets.token_hex(6)}"
        now = time.time()
        with self._database.write() as connection:
            connection.execute(
                "INSERT INTO instances (id, boot, pid, birth, host, cwd, started, heartbeat, flags)"
                " VALUES (?,?,?,?,?,?,?,?,?)",
                (
                    instance,
                    identity.boot,
                    identity.pid,
                    identity.birth,
                    platform.node(),
                    clean(str(cwd)),
                    now,
                    now,
                    clean(json.dumps(dict(flags or {}))),
                ),
            )
        return instance

    def beat(self, instance: str) -> None:
        """Says that it lives."""
        with self._database.write() as connection:
            connection.execute("UPDATE instances SET heartbeat = ? WHERE id = ?", (time.time(), instance))

    def end(self, instance: str) -> None:
        """Records that it ended in order."""
        with self._database.write() as connection:
            connection.execute("UPDATE instances SET ended = ? WHERE id = ?", (time.time(), instance))

    def alive(self, instance: str) -> bool:
        """Whether the instance still runs; an unknown id is dead."""
        return instance in self._living(instance)

    def living(self) -> frozenset[str]:
        """Ids of all instances that still run."""
        return self._living(None)

    def _living(self, only: str | None) -> frozenset[str]:
        rows = self._database.read(
            "SELECT id, boot, pid, birth, heartbeat FROM instances WHERE ended IS NULL AND (? IS NULL OR id = ?)",
            (only, only),
        )
        return frozenset(
            row["id"] for row in rows if is_alive(Identity(row["boot"], row["pid"], row["birth"]), row["heartbeat"])
        )

    def programs(self) -> dict[str, tuple[int, str]]:
        """Pid and folder of each instance that was not ended, by its id."""
        rows = self._database.read("SELECT id, pid, cwd FROM instances WHERE ended IS NULL")
        return {row["id"]: (row["pid"], row["cwd"]) for row in rows}

    def flags(self, instance: str) -> dict[str, str | int]:
        """What an instance, living or not, was started with; nothing where nobody knows."""
        rows = self._database.read("SELECT flags FROM instances WHERE id = ?", (instance,))
        return json.loads(rows[0]["flags"]) if rows else {}

    def bury(self) -> tuple[str, ...]:
        """Marks instances that died without a word as ended; returns their ids."""
        living = self.living()
        with self._database.write() as connection:
            rows = connection.execute("SELECT id FROM instances WHERE ended IS NULL").fetchall()
            dead = tuple(row["id"] for row in rows if row["id"] not in living)
            # One that registered since `living` was read is no dead one: look again.
            dead = tuple(item for item in dead if not self.alive(item))
            connection.executemany("UPDATE instances SET ended = ? WHERE id = ?", [(time.time(), i) for i in dead])
        return dead
