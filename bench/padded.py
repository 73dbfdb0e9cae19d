"""Our batch with fifteen tools in each request: the built ones of `terminal` and `file`, and made-up ones beside them.

`python -m bench.padded …` is `batch_runner.py …`. No model of the bench calls the made-up tools; they are there to
be offered, as those of bigger toolsets are.
"""

from __future__ import annotations

import batch_runner
from hermes_engine import toolsets
from hermes_engine.tools.context import ToolContext
from hermes_engine.tools.registry import ToolFunction, tool

OFFERED = 15


def _made_up(number: int) -> ToolFunction:
    async def look_up(ctx: ToolContext, place: str, pattern: str, depth: int = 3, hidden: bool = False) -> str:
        """Look something up in one of the places this agent may read, and tell where it stands.

        Args:
            place: Folder or file to begin with, absolute or beside the working folder.
            pattern: What to look for; plain text, case does not matter.
            depth: How many folders down to go at most.
            hidden: Whether names that begin with a dot count.
        """
        return f"nothing like {pattern} in {place}"

    look_up.__name__ = f"look_up_{number}"
    return look_up


def main() -> None:
    """Adds the tools and becomes the batch runner."""
    names = []
    for number in range(OFFERED - len(toolsets.tools_of(["terminal", "file"]))):
        function = tool("file", "Look up")(_made_up(number))
        names.append(function.__name__)
    toolsets.TOOLSETS["file"] += tuple(names)
    batch_runner.main()


if __name__ == "__main__":
    main()
