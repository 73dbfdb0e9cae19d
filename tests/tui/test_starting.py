"""What is loaded when the first picture is out, proved in a fresh process by modules."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = """
import json, sys
from pathlib import Path
from hermes_tui.app import HermesApp
from hermes_tui.desk import Desk, Start

class Painted(HermesApp):
    def on_ready(self):
        sys.stderr.write("\\n" + json.dumps(sorted(sys.modules)))
        self.exit()

def never():
    raise SystemExit("settings were read before the first picture")

Painted(Desk(Start(never, Path.cwd()))).run(headless=True, size=(80, 24))
"""
LATE = (
    "openai",
    "pydantic",
    "yaml",
    "prompt_toolkit",
    "aiohttp",
    "pygments",
    "markdown_it",
    "ruamel",
    "psutil",
    "sqlite3",
    "hermes_engine.events",
    "hermes_engine.session",
    "hermes_tui.presenter.chat",
    "hermes_tui.commands.work",
    "hermes_tui.screens.overlays.picker",
)


def test_the_first_picture_loads_nothing_it_does_not_show(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    modules = set(json.loads(done.stderr.rsplit("\n", 1)[1]))
    assert "textual.app" in modules
    assert not modules & set(LATE)
