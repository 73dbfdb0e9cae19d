"""The border of the program: what escapes a command becomes one line on standard error and an exit code.

Loads little: `--version` passes through here.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable

from hermes_engine.errors import HermesError
from hermes_tui.printing.streams import OutputLost, close_quietly, error, prepare, write_out

INTERRUPTED = 130


def guarded(work: Callable[[], int]) -> int:
    """Runs a command. Foreseeable faults: their line and exit code; others: one line that names the log, 1."""
    prepare()
    try:
        code = work()
        write_out("")
        return code
    except HermesError as fault:
        error(fault.line)
        return fault.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        close_quietly()
        return 1
    except OutputLost as fault:
        error(str(fault))
        return 1
    except Exception as fault:
        error(_fault_line(fault))
        return 1


def leave(code: int) -> None:
    """Ends the process now, whatever threads still do."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


def _fault_line(fault: Exception) -> str:
    detail = " ".join(f"{type(fault).__name__}: {fault}".split())
    if isinstance(fault, OSError) and fault.strerror:
        where = f": {fault.filename}" if fault.filename else ""
        detail = f"{fault.strerror}{where}"
    from hermes_tui.printing.faults import log_fault

    path = log_fault(fault)
    return f"{detail} — the details are in {path}" if path else detail
