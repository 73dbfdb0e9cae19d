"""Keeps the traceback of an error nobody expected in the home's logs, without values of variables."""

from __future__ import annotations

import os
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_engine.paths import Home, open_private, private_dir

if TYPE_CHECKING:
    from hermes_engine.profiles import Resolved


def write_fault(resolved: Resolved | None, error: BaseException) -> Path | str:
    """Adds the traceback to `logs/app.log`; returns its path, or "" when it cannot be written."""
    home = resolved.home if resolved is not None else Home.from_env()
    try:
        path = private_dir(home.logs) / "app.log"
        descriptor = open_private(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    except Exception:
        return ""
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    lines = "".join(traceback.format_exception(error))
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as stream:
        stream.write(f"{stamp}\n{lines}\n")
    return path
