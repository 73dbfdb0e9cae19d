"""Header, status line, sidebar: what is said at which width, and that the sidebar's rows fit."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from rich.cells import cell_len
from rich.text import Text
from textual.app import App, ComposeResult

from hermes_tui.widgets import chrome
from hermes_tui.widgets.agent_lines import MAX_AGENTS, Manner, agent_lines
from hermes_tui.widgets.bar import Bar, Part
from hermes_tui.widgets.facts import AgentFact, AskFact, BatchFact, ContextFact, PlaceFacts, UsageFact, WorkFacts
from hermes_tui.widgets.glyphs import UNICODE
from hermes_tui.widgets.section_lines import batch_lines, context_lines, usage_lines
from hermes_tui.widgets.sidebar import Section, Sidebar
from hermes_tui.widgets.times import count_short, money, seconds_short
from tests.tui.drawing import LOOK, MARKUP, WIDE, has_control

BATCH = BatchFact("evals-nov", total=300, kept=121, rejected=3, failed=5, pending=171, seconds_left=1080)
WORK = WorkFacts(
    agents=(
        AgentFact("1", "fixer", "login route", "needs", "asks: change it?", 242),
        AgentFact("2", "scout", sign="good", over=True),
    ),
    batches=(BATCH,),
    context=ContextFact(38_000, 128_000),
    usage=UsageFact(38_200, cost=0.42, agents_cost=0.31),
    ask=AskFact("fixer asks", "Run rm -rf build", 2, "1 yes · 3 no"),
    needs=3,
)
NARROW = Manner(33, LOOK)
PLACE = PlaceFacts("auth refactor", "~/proj", "main", "qwen3-32b", "ask")


class Line(App[None]):
    """One bar."""

    look = LOOK

    def compose(self) -> ComposeResult:
        yield Bar()


async def drawn(sides: chrome.Sides, width: int) -> str:
    app = Line()
    async with app.run_test(size=(width, 3)) as pilot:
        bar = app.query_one(Bar)
        bar.show(*sides)
        await pilot.pause()
        assert len(bar.plain) <= width
        return bar.plain.rstrip()


@pytest.mark.parametrize("width", [1, 10, 20, 40, 59, 60, 80, 119, 120, 160, 200])
async def test_every_bar_fits_every_width(width: int) -> None:
    for sides in (
        chrome.header(PLACE, WORK, width, UNICODE),
        chrome.status(PLACE, WORK, width, UNICODE),
        chrome.ask_line(WORK, width, UNICODE),
        chrome.working(PlaceFacts(state="Run something long " * 9, seconds=70), "⠋"),
    ):
        await drawn(sides, width)


async def test_the_header_keeps_what_needs_the_person_longest() -> None:
    wide = await drawn(chrome.header(PLACE, WORK, 120, UNICODE), 120)
    assert wide.startswith(" Hermes  1 Chat   auth refactor   ")
    assert wide.endswith("   ~/proj  main  ◆ 3 need you")
    narrow = await drawn(chrome.header(PLACE, WORK, 24, UNICODE), 24)
    assert "◆ 3" in narrow
    assert "~/proj" not in narrow


@pytest.mark.parametrize("here", chrome.SCREENS)
async def test_at_40_every_screen_has_its_tab(here: str) -> None:
    place = PlaceFacts(screens=chrome.SCREENS, folder="~/proj", title="auth refactor")
    tabs = await drawn(chrome.header(place, WorkFacts(), 40, UNICODE, here), 40)
    assert tabs.split() == ["1", "Chat", "2", "Agents", "3", "Kanban", "4", "Batch"]
    needs = await drawn(chrome.header(place, WORK, 40, UNICODE, here), 40)
    assert {"chat": "1 Chat", "agents": "2 Agents", "kanban": "3 Kanban", "batch": "4 Batch"}[here] in needs
    assert "◆ 3" in needs


async def test_the_bottom_line_is_work_below_120_and_keys_above() -> None:
    at_80 = await drawn(chrome.status(PLACE, WORK, 80, UNICODE), 80)
    assert at_80.startswith(" ◆1 ✓1 agents  ▤43%  ctx 29%  $0.42")
    assert at_80.endswith("^T work  ? keys")
    at_120 = await drawn(chrome.status(PLACE, WORK, 120, UNICODE), 120)
    assert at_120.startswith(" ask first ▾  qwen3-32b ▾   Enter send · ^J newline")
    assert at_120.endswith("? keys  ^P all")
    at_40 = await drawn(chrome.status(PLACE, WORK, 40, UNICODE), 40)
    assert "◆1" in at_40
    assert "▤43%" in at_40


async def test_the_status_line_says_what_esc_does_and_the_pill_shows() -> None:
    busy = PlaceFacts(model="m", busy=True, escape="stops", unseen=3)
    for width in (50, 80, 120):
        line = await drawn(chrome.status(busy, WorkFacts(), width, UNICODE), width)
        assert "Esc stops" in line
        assert "↓ 3 new" in line
    remark = PlaceFacts(model="m", hint="Ctrl+C again to quit", escape="stops")
    assert "Ctrl+C again to quit" in await drawn(chrome.status(remark, WorkFacts(), 80, UNICODE), 80)


async def test_clicks_on_parts_ask_for_their_action() -> None:
    asked: list[str] = []

    class Clicker(Line):
        def on_bar_clicked(self, message: Bar.Clicked) -> None:
            asked.append(message.action)

    app = Clicker()
    async with app.run_test(size=(40, 3)) as pilot:
        bar = app.query_one(Bar)
        bar.show([Part("one", action="first", gap=1), Part("two")], [Part("three", action="third", gap=0)])
        await pilot.pause()
        for x in (1, 8, 39):
            await pilot.click(Bar, offset=(x, 0))
        assert asked == ["first", "third"]


def test_f9_1_and_f9_2_names_of_others_are_only_words() -> None:
    for text in (*MARKUP, "a\x1b[2Jb\nc", WIDE):
        agent = AgentFact("1", text, text, "running", text, 5)
        batch = BatchFact(text, "stopped", 3, reason=text, pending=3)
        for line in [*agents_of((agent,)), *batch_lines(batch, NARROW)]:
            assert not has_control(line.plain)
            assert line.cell_len <= 33
    assert "[red]x[/red]" in "\n".join(line.plain for line in agents_of((AgentFact("1", "[red]x[/red]"),)))


def test_a_run_is_one_bar_and_counters_that_add_up() -> None:
    name, bar, counts = (line.plain for line in batch_lines(BATCH, NARROW))
    assert name == "BATCH  evals-nov              43%"
    assert bar.count("━") == 14
    assert len(bar) == 33
    assert counts == "129/300 ✓121 ⊘3 ✗5     ~18m00 left"[:33] or counts.startswith("129/300 ✓121 ⊘3 ✗5")


def agents_of(agents: Sequence[AgentFact], manner: Manner = NARROW, section: str = "agents") -> list[Text]:
    return [line.text for line in agent_lines(section, agents, manner)]


def words_of(agents: Sequence[AgentFact], manner: Manner = NARROW, section: str = "agents") -> list[str]:
    return [line.plain for line in agents_of(agents, manner, section)]


def test_an_agent_is_who_it_is_what_it_does_and_how_far_it_is() -> None:
    asks = AgentFact("1", "fixer", "login route", "needs", "asks: change signature?", 242, tools=3, needs="q")
    runs = AgentFact("2", "tester", "write tests", "running", "Run pytest -q", 160, tokens=9000, cost=0.02, tools=7)
    below = AgentFact("3", "scout", "callers", "running", "thinking", 51, tokens=12_000, steps=2, depth=1)
    waits = AgentFact("4", "docs", "a page", "waiting", "waits for a place", 5)
    assert words_of((asks, runs, below, waits)) == [
        "AGENTS  4                ◆1 ●2 ○1",
        "◆ fixer    login route       4m02",
        "   asks: change signature?       ",
        "● tester   write tests       2m40",
        "   Run pytest -q         7th tool",
        "  ● scout    callers         51 s",
        "     thinking             12k tok",
        "○ docs     a page             5 s",
        "   waits for a place             ",
    ]
    tall = words_of((runs, below), Manner(41, LOOK, tall=True))
    assert tall[3] == "   9k tok  $0.02"
    assert tall[6] == "     12k tok  2nd reply"
    task = AgentFact("5", "eval.sh", "full suite", "running", "epoch 3/10", 660, beside=True)
    assert words_of((task,), section="background")[:2] == [
        "BACKGROUND  1                  ⚙1",
        "⚙ eval.sh  full suite       11m00",
    ]


def test_what_has_ended_is_counted_until_it_is_shown() -> None:
    ended = [AgentFact(f"{n}", f"a{n}", "task", "good", seconds=5, over=True) for n in range(2)]
    ended.append(AgentFact("9", "cut", "task", "bad", seconds=5, over=True))
    assert words_of(ended) == ["AGENTS" + " " * 27, "✓ 2 done  ✗ 1 failed         show"]
    opened = words_of(ended, Manner(33, LOOK, opened={"agents:over"}))
    assert opened[2] == "✓ a0       task               5 s"
    assert len(opened) == 5


def test_agents_that_need_you_are_never_left_out() -> None:
    many = tuple(AgentFact(str(n), f"a{n}", sign="needs" if n > 11 else "running") for n in range(14))
    text = "\n".join(words_of(many))
    assert "a12" in text
    assert "a13" in text
    assert f"+{14 - MAX_AGENTS} more" in text
    assert "more" not in "\n".join(words_of(many, Manner(33, LOOK, opened={"agents:more"})))


def test_quiet_is_said_of_what_runs_but_not_of_what_asks() -> None:
    agent = AgentFact("1", "scout", "find", "running", "Grep", 200, quiet=95)
    assert "   quiet 95 s" in words_of((agent,))[2]


def test_names_of_any_width_stand_in_line() -> None:
    rows = [AgentFact("1", name, "title", seconds=9) for name in ("ab", "中文", WIDE, "a-very-long-name-of-one")]
    lines = agents_of(rows)[1::2]
    assert {line.cell_len for line in lines} == {33}
    assert lines[0].plain.index("title") == 11
    assert cell_len(lines[1].plain.split("title")[0]) == 11


def test_f11_14_context_and_its_early_warning() -> None:
    assert context_lines(ContextFact(), NARROW) == []
    assert [line.plain.split() for line in context_lines(ContextFact(900, 0, True), NARROW)] == [
        ["CONTEXT", "~900", "/", "size", "unknown"]
    ]
    full = context_lines(ContextFact(110_000, 128_000), NARROW)
    assert "/compact" in full[-1].plain


def test_f7_14_usage_nobody_told_is_said_to_be_unknown() -> None:
    assert usage_lines(UsageFact(), NARROW) == []
    assert "not reported" in usage_lines(UsageFact(0, tokens_known=False), NARROW)[0].plain
    assert "price unknown" in usage_lines(UsageFact(9, cost_known=False), NARROW)[1].plain
    assert "$0.42 of $1.00 cap" in usage_lines(UsageFact(9, cost=0.42, cap=1.0), NARROW)[1].plain


async def test_only_the_section_that_changed_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Side(App[None]):
        look = LOOK

        def compose(self) -> ComposeResult:
            yield Sidebar()

    app = Side()
    async with app.run_test(size=(36, 30)) as pilot:
        side = app.query_one(Sidebar)
        side.show(WORK)
        await pilot.pause()
        updates: list[str] = []
        monkeypatch.setattr(Section, "update", lambda section, text, layout: updates.append(section.id))
        side.show(WORK)
        assert updates == []
        side.show(WorkFacts(WORK.agents, WORK.batches, ContextFact(39_000, 128_000), WORK.usage))
        assert updates == ["side-context"]
        side.show(WorkFacts())
        await pilot.pause()
        assert side.plain.startswith("Nothing runs.")


async def test_a_short_window_drops_sections_from_the_bottom() -> None:
    class Side(App[None]):
        look = LOOK

        def compose(self) -> ComposeResult:
            yield Sidebar()

    for height, shown in ((30, "USAGE"), (9, "BATCH"), (5, "AGENTS")):
        app = Side()
        async with app.run_test(size=(36, height)) as pilot:
            side = app.query_one(Sidebar)
            await pilot.pause()
            side.show(WORK)
            assert shown in side.plain
            assert "AGENTS" in side.plain
            assert ("USAGE" in side.plain) is (height == 30)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.04, "0 s"), (0.21, "0.2 s"), (3.1, "3.1 s"), (12.4, "12 s"), (160, "2m40"), (3900, "1h05")],
)
def test_spans_of_time(seconds: float, shown: str) -> None:
    assert seconds_short(seconds) == shown


def test_amounts() -> None:
    assert [count_short(n) for n in (7, 950, 1234, 9999, 38_000, 999_499, 2_100_000)] == [
        "7", "950", "1.2k", "10k", "38k", "999k", "2.1M",
    ]  # fmt: skip
    assert [money(amount) for amount in (0, 0.0012, 0.42, 12)] == ["$0.00", "$0.0012", "$0.42", "$12.00"]
