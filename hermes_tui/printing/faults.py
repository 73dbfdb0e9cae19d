"""The home's log of faults nobody foresaw: a traceback for whoever mends it, private. Prints nothing."""

from __future__ import annotations

import os
import traceback
from datetime import UTC, datetime
from pathlib import Path

from hermes_engine.errors import HermesError
from hermes_engine.paths import Home, open_private, private_dir


def log_fault(fault: BaseException) -> Path | None:
    """Appends the traceback to `logs/hermes.log`; None when that cannot be written."""
    text = "".join(traceback.format_exception(fault))
    stamp = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        path = private_dir(Home.from_env().logs) / "hermes.log"
        with os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "w", errors="replace") as log:
            log.write(f"{stamp} {text}\n")
    except (OSError, HermesError):
        return None
    return path
