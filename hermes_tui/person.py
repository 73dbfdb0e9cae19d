"""Who sits here, as a name for others to read. Knows nothing else."""

from __future__ import annotations

import getpass


def person() -> str:
    """The name of the account, "" where nobody knows it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
