"""The table of commands is whole for everybody who asks, also while another thread is loading it."""

from __future__ import annotations

import subprocess
import sys

ASKED = """
import threading, time
from hermes_tui.commands import registry
threading.Thread(target=registry.commands).start()
time.sleep(0.005)
print(type(registry.parse("/batch x")).__name__)
"""


def test_a_command_typed_while_the_table_loads_is_known() -> None:
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True, check=True, timeout=60)
        assert done.stdout.strip() == "Invocation"
