"""Who holds a claim, and whether that very process still lives. Knows no board.

A pid alone says nothing, it is used again; a host name alone says nothing, it is copied. A process on another machine
or in another pid namespace cannot be looked up at all: there only its heartbeat speaks.
"""

from __future__ import annotations

import hashlib
import platform
import secrets
from functools import cache
from pathlib import Path

from hermes_engine.board.values import Owner
from hermes_engine.store.instances import STALE_SECONDS, birth_of, this_boot, this_process


@cache
def this_machine() -> str:
    """Stands for this machine: a hash of its id and name."""
    try:
        identity = Path("/etc/machine-id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        identity = ""
    return hashlib.sha256(f"{identity} {platform.node()}".encode()).hexdigest()[:16]


def this_owner(token: str = "") -> Owner:
    """This process as an owner of claims.

    Args:
        token: of the running instance; "" makes a new one.
    """
    me = this_process()
    return Owner(this_machine(), me.boot, me.pid, me.birth, token or secrets.token_hex(8), platform.node())


def lives(owner: Owner, silent: float) -> bool | None:
    """Whether the process lives: True, False, or None where nobody here can tell.

    Args:
        owner: of the claim.
        silent: seconds since its last heartbeat; tells a reboot of this machine from a double of its id.
    """
    here = this_boot()
    if owner.boot == here:
        return birth_of(owner.pid) == owner.birth
    rebooted = owner.boot.split(" ")[0] != here.split(" ")[0]
    if owner.machine == this_machine() and rebooted and silent > STALE_SECONDS:
        return False
    return None
