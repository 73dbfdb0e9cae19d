"""What the tools load before they are used: proved in a fresh process, by modules."""

from __future__ import annotations

import subprocess
import sys

LATE = ("aiohttp", "bs4", "markdownify", "tree_sitter", "tree_sitter_bash", "pathspec", "openai", "psutil", "textual")


def test_loading_every_tool_loads_nothing_heavy() -> None:
    code = (
        "import sys; from hermes_engine.tools.registry import registered; import hermes_engine.tools.toolbox;"
        "import hermes_engine.sandbox.local, hermes_engine.sandbox.orphans;"
        "[tool.schema for tool in registered().values()];"
        f"print([name for name in {LATE!r} if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
