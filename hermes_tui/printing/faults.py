"""The home's log: faults nobody foresaw and the engine's own warnings, private, without secrets. Prints nothing."""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from hermes_engine.errors import HermesError
from hermes_engine.paths import Home, open_private, private_dir

LARGEST_BYTES = 2_000_000
"""A log that has grown larger begins anew; the old one stays beside it as `hermes.log.1`."""

_secrets: set[str] = set()


def keep_out(secrets: Iterable[str]) -> None:
    """Values that are never to stand in the log."""
    _secrets.update(secrets)


def log_fault(fault: BaseException) -> Path | None:
    """Appends the traceback to the log; its path, or None when it cannot be written."""
    return _append("".join(traceback.format_exception(fault)))


def log_to_home() -> None:
    """Sends what the program's modules log (from warnings on) to the home's log instead of standard error."""
    root = logging.getLogger()
    if not any(isinstance(handler, _HomeHandler) for handler in root.handlers):
        root.addHandler(_HomeHandler(logging.WARNING))


class _HomeHandler(logging.Handler):
    """Opens the log for each record: there are few, and no file is made where there are none."""

    def emit(self, record: logging.LogRecord) -> None:
        _append(f"{record.levelname} {record.name}: {self.format(record)}\n")


def _append(text: str) -> Path | None:
    from hermes_engine.redaction import Redactor

    stamp = datetime.now(UTC).isoformat(timespec="seconds")
    line = Redactor(_secrets).text(f"{stamp} {text}")
    try:
        path = private_dir(Home.from_env().logs) / "hermes.log"
        if path.exists() and path.stat().st_size > LARGEST_BYTES:
            path.replace(path.with_name("hermes.log.1"))
        with os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "w", errors="replace") as log:
            log.write(line)
    except (OSError, HermesError):
        return None
    return path
