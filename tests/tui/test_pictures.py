"""Pictures of the app's states: the words must be the same, and so must the colours.

`UPDATE_PICTURES=1` writes them anew; `PICTURES=folder` also leaves the SVGs there, to be looked at.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from hermes_engine import events as ev
from hermes_engine.messages import Display, Usage
from hermes_engine.session import AgentRow
from hermes_tui.screens.overlays.picker import Item, Picker
from hermes_tui.screens.overlays.quitting import QuitDialog
from hermes_tui.widgets.blocks import OutputBlock, WelcomeBlock
from hermes_tui.widgets.facts import AgentFact, StepFact
from hermes_tui.widgets.menu import Proposal
from tests.tui.stage import SESSION, Script, StageApp, normal_svg, screen_lines, settle, stage

GOLDEN = Path(__file__).parents[1] / "golden" / "screens"

ANSWER = """I will split this in three: token store, **login route**, `tests`.

## Plan

1. Read what is there
2. Change the store
   - keep the public API

```python
def login(user: str) -> Token:
    return store.get(user)
```

| file | lines |
|------|------:|
| store.py | 120 |
| login.py | 64 |
"""
DIFF = "41 -    return self._tok[key]\n41 +    tok = self._tok.get(key)\n42 +    if tok is None:"

Show = Callable[[StageApp, Pilot[int]], Awaitable[None]]
STATES: dict[str, Show] = {}


def state(show: Show) -> Show:
    """Registers a state under its name."""
    STATES[show.__name__] = show
    return show


def begin(app: StageApp, *, busy: bool = False) -> Script:
    say = Script()
    app.desk.told_busy = busy
    app.desk.branch, app.desk.title = "main", "auth refactor"
    app.feed(say(ev.TurnStarted, prompt="Split the auth refactor in parts"), say(ev.StepStarted, step=1))
    return say


def cards(app: StageApp, say: Script) -> None:
    app.feed(say(ev.ThoughtDelta, text="The user wants parts."), say(ev.ThoughtDelta, 4.0, text=" So be it."))
    app.feed(say(ev.TextDelta, text="I look first."), say(ev.ReplyFinished, step=1, text="I look first.", calls=3))
    app.feed(*say.tool("c1", Display("Read", "src/auth/store.py", "120 lines", body="a\nb")))
    app.feed(*say.tool("c2", Display("Read", "src/auth/login.py", "64 lines", body="a\nb")))
    app.feed(*say.tool("c3", Display("Edit", "src/auth/store.py", "+14 −6", "diff", DIFF), seconds=0.01))
    app.feed(*say.tool("c4", Display("Run", "pytest -q tests/auth", "12 passed", "command", "$ pytest"), seconds=3.1))


@state
async def welcome(app: StageApp, pilot: Pilot[int]) -> None:
    app.chat.say(WelcomeBlock([("what is in this folder?", "it reads what it needs"), ("/help", "everything else")]))


@state
async def turn(app: StageApp, pilot: Pilot[int]) -> None:
    say = begin(app)
    cards(app, say)
    app.feed(say(ev.StepStarted, step=2), say(ev.TextDelta, text=ANSWER), say(ev.ReplyFinished, step=2, text=ANSWER))
    app.feed(say.usage(37_000, 1_200, 128_000), say(ev.TurnFinished, answer=ANSWER))


@state
async def streaming(app: StageApp, pilot: Pilot[int]) -> None:
    say = begin(app, busy=True)
    app.feed(say(ev.TextDelta, text=ANSWER[:150]))
    app.desk.told_queue = ("and then run the tests", "write a summary of it all")
    await pilot.press(*"a draft")


@state
async def approval(app: StageApp, pilot: Pilot[int]) -> None:
    say = begin(app, busy=True)
    app.feed(say(ev.ToolStarted, call_id="c", name="terminal", display=Display("Run", "rm -rf build && make")))
    app.feed(
        say(
            ev.ApprovalAsked,
            request="q",
            call_id="c",
            name="terminal",
            title="Run a command",
            detail="rm -rf build\u202e && make",
            reason="it removes files",
            rule="rm in this folder",
        )
    )
    await settle(pilot)


@state
async def question(app: StageApp, pilot: Pilot[int]) -> None:
    say = begin(app, busy=True)
    app.feed(say(ev.QuestionAsked, request="q", question="Which branch shall it go to?", choices=("main", "next")))
    await settle(pilot)
    await pilot.press("ctrl+n", "down")


@state
async def faults(app: StageApp, pilot: Pilot[int]) -> None:
    say = begin(app)
    app.feed(*say.tool("c1", Display("Run", "make lint", "exit 2", "command", "$ make lint\nerror"), status="error"))
    app.feed(say(ev.StepRetried, step=2, attempt=1, delay=2.0, reason="HTTP 500: down"))
    app.feed(ev.Notice(level="warning", text="config.yaml: unknown key max_turn; did you mean max_turns?"))
    app.feed(say(ev.TurnFinished, status="error", error="401: the key was refused — mend OPENAI_API_KEY"))
    app.chat.output(OutputBlock("error", "No /shwo. Did you mean /show?"))


@state
async def opened(app: StageApp, pilot: Pilot[int]) -> None:
    say = begin(app)
    cards(app, say)
    await settle(pilot)
    await pilot.press("tab", "up", "space")


@state
async def menu(app: StageApp, pilot: Pilot[int]) -> None:
    begin(app)
    await pilot.press("slash", "m")
    app.chat.menu.show([Proposal("/model", "[name] · Show or change the model"), Proposal("/mode", "What runs")])
    app.chat.refresh_facts()


@state
async def work(app: StageApp, pilot: Pilot[int]) -> None:
    say = begin(app)
    cards(app, say)
    app.feed(say.usage(37_000, 1_200, 128_000))
    app.desk.told_agents = (
        AgentFact("1", "fixer", "login route", "needs", "asks: change the signature?", 242, 0, 21_000, 0.06, tools=9),
        AgentFact("2", "tester", "write [tests]", "running", "Run pytest -q", 160, 0, 9_000, 0.02, tools=7, steps=8),
        AgentFact("3", "scout", "find callers", "running", 'Grep "login("', 51, 95, 12_000, 0.03, depth=1, steps=4),
        AgentFact("4", "文档", "the docs page", "waiting", "waits for a place", 12),
        AgentFact("5", "helper", "docs", "good", "", 40, over=True),
        AgentFact("6", "linter", "ruff", "good", "", 4, over=True),
        AgentFact("7", "eval.sh", "full suite", "running", "epoch 3/10 loss 0.412", 660, beside=True, tokens=3_000),
    )
    kid = Script(session="s2", agent="1", run="r2")
    asked: dict[str, Any] = {"title": "Change the signature?", "detail": "def login(user, *, fresh=False)"}
    app.feed(kid(ev.AgentStarted, name="fixer", kind="child", parent="a1", owner="s1"))
    app.feed(
        kid(ev.TurnStarted, prompt="Make login() use the new token store."), kid(ev.TextDelta, text="I look first.")
    )
    app.feed(
        *kid.tool("k", Display("Grep", "login(", "4 callers")),
        kid(ev.ApprovalAsked, request="q", reason="it edits a file", **asked),
    )
    app.desk.work.plan = (StepFact("token store", "done"), StepFact("login route", "active"), StepFact("tests"))
    run = Script(session="evals-nov", agent="b1")
    counts = {"total": 300, "kept": 121, "failed": 5, "rejected": 3, "pending": 171}
    app.feed(run(ev.BatchStarted, name="evals-nov", total=300, counts={"total": 300, "pending": 300}))
    app.feed(run(ev.RowFinished, 60.0, counts=counts))
    if app.size.width < 120:
        await pilot.press("ctrl+t")


@state
async def keys(app: StageApp, pilot: Pilot[int]) -> None:
    begin(app)
    await pilot.press("f1")


@state
async def picker(app: StageApp, pilot: Pilot[int]) -> None:
    begin(app)
    app.push_screen(Picker("Model", [Item("qwen3-32b", "qwen3-32b"), Item("demo", "demo", "embedded")], chosen="demo"))


@state
async def results(app: StageApp, pilot: Pilot[int]) -> None:
    say = begin(app)
    body = "✓ scout  found 4 callers\n✓ fixer  changed login()"
    app.feed(*say.tool("c1", Display("Spawned", "2 agents — scout, fixer", "2 ok", "list", body), seconds=41.0))
    answer = "**1 of 3** does not answer:\n\n| server | state |\n|---|---|\n| 8001 | up |\n| 8002 | down |"
    common: dict[str, Any] = {"owner": SESSION, "kind": "background", "seconds": 72.0}
    used = Usage(3000, 100, cost_usd=0.021)
    app.feed(
        say(ev.TurnFinished),
        ev.AgentFinished(agent="ag_1", name="check", prompt="check every server", answer=answer, usage=used, **common),
        ev.AgentFinished(
            agent="ag_2", name="slow", state="interrupted", prompt="slow look", error="it ended", **common
        ),
    )


@state
async def leaving(app: StageApp, pilot: Pilot[int]) -> None:
    begin(app)
    rows = (
        AgentRow("ag_1", name="main", title="auth refactor", activity="Run pytest -q", state="running"),
        AgentRow("ag_2", name="evals-nov", activity="43% 129/300", kind="batch", state="running"),
    )
    app.push_screen(QuitDialog(lambda: rows, keeps=True))


SIZES = [(name, 80, 24, "hermes-dark") for name in STATES] + [(name, 120, 36, "hermes-dark") for name in STATES]
SIZES += [(name, 40, 12, "hermes-dark") for name in ("turn", "approval", "work", "keys", "leaving", "results")]
SIZES += [(name, 200, 50, "hermes-dark") for name in ("turn", "work")]
SIZES += [("work", 160, 50, "hermes-dark"), ("work", 80, 24, "terminal")]
SIZES += [("turn", 80, 24, "terminal"), ("work", 120, 36, "hermes-light"), ("approval", 80, 24, "high-contrast")]


async def still(app: StageApp, pilot: Pilot[int]) -> str:
    """The picture when it does not change any more."""
    before = ""
    for _look in range(50):
        await settle(pilot)
        picture = normal_svg(app.export_screenshot())
        if picture == before:
            break
        before = picture
    return before


@pytest.mark.parametrize(("name", "width", "height", "theme"), SIZES)
async def test_picture(name: str, width: int, height: int, theme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.delenv("LC_ALL", raising=False)
    async with stage(width, height, theme=theme) as (app, pilot):
        await STATES[name](app, pilot)
        app.chat.refresh_facts()
        svg = await still(app, pilot)
        lines = screen_lines(app)
    assert len(lines) == height
    suffix = "" if theme == "hermes-dark" else f"-{theme}"
    same_as_kept(f"{name}-{width}x{height}{suffix}", lines, svg)


def same_as_kept(name: str, lines: list[str], svg: str) -> None:
    """The picture is the one that is kept under that name."""
    digest = hashlib.sha256(svg.encode()).hexdigest()
    picture = "\n".join([*lines, f"svg {digest}", ""])
    path = GOLDEN / f"{name}.txt"
    if folder := os.environ.get("PICTURES"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / f"{path.stem}.svg").write_text(svg)
    if os.environ.get("UPDATE_PICTURES"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(picture)
    assert picture == path.read_text(), "the picture changed; UPDATE_PICTURES=1 keeps the new one"
