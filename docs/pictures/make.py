"""Makes the README's picture: the real app on the demo model, with a batch run beside the chat.

`python docs/pictures/make.py` from the checkout's top; writes `docs/pictures/chat.svg`.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROMPT = "what is in this folder?"


async def picture(folder: Path) -> str:
    """The app's screen after one prompt and while a run goes on, as SVG without outside references."""
    from hermes_engine.profiles import resolve
    from hermes_engine.settings import Overrides
    from hermes_tui.app import HermesApp
    from hermes_tui.desk import Desk, Start

    desk = Desk(Start(lambda: resolve(Overrides(model="demo")), folder))
    app = HermesApp(desk, theme="hermes-dark")
    async with app.run_test(size=(120, 34)) as pilot:
        await until(pilot, lambda: desk.engine is not None and bool(desk.session))
        assert desk.engine is not None
        await pilot.press(*PROMPT)
        await pilot.press("enter")
        await until(pilot, lambda: bool(desk.session) and len(desk.engine.view(desk.session).messages) >= 4)
        await pilot.press(*"/batch prompts.jsonl")
        await pilot.press("enter")
        await until(pilot, lambda: any(row.kind == "batch" and row.activity for row in desk.engine.agents()))
        await pilot.press(*"write a file with what you found")
        await pilot.press("enter")
        await until(pilot, lambda: bool(desk.engine.broker.pending()))
        await pilot.pause(1.0)
        svg = app.export_screenshot(title="hermes")
        desk.engine.close()
        app.exit(0)
    return re.sub(r"@font-face\s*\{.*?\}", "", svg, flags=re.DOTALL)


async def until(pilot: object, ready: object, seconds: float = 20.0) -> None:
    """Waits until a condition holds."""
    for _ in range(int(seconds / 0.05)):
        if ready():  # type: ignore[operator]
            return
        await pilot.pause(0.05)  # type: ignore[attr-defined]
    raise SystemExit("the picture's moment did not come")


def main() -> None:
    """Makes the picture in a throw-away home and project."""
    with tempfile.TemporaryDirectory() as place:
        os.environ["HOME"], os.environ["HERMES_HOME"] = place, f"{place}/.hermes"
        folder = Path(place) / "project"
        (folder / "src").mkdir(parents=True)
        for name in ("README.md", "pyproject.toml", "src/store.py"):
            (folder / name).write_text("hello\n")
        lines = (HERE.parent.parent / "examples/prompts.jsonl").read_text("utf-8")
        (folder / "prompts.jsonl").write_text(lines * 60, "utf-8")
        os.chdir(folder)
        svg = asyncio.run(picture(folder))
    (HERE / "chat.svg").write_text(svg, "utf-8")


if __name__ == "__main__":
    main()
