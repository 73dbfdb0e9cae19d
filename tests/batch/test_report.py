"""The page of a run: its figures and rows, and that no text of a row is ever more than text."""

from __future__ import annotations

import html
import shutil
import subprocess
from pathlib import Path

import pytest
from bs4 import BeautifulSoup, Tag

from hermes_engine.batch import report, report_page
from hermes_engine.batch.floor import spread
from hermes_engine.batch.folder import RunFolder
from hermes_engine.batch.report import write_report
from hermes_engine.batch.report_page import page
from hermes_engine.batch.report_plots import WIDTH, Bar, bars
from hermes_engine.batch.statistics import stated_and_drawn
from hermes_engine.messages import Message, ToolCall, tool_message
from hermes_engine.protocols import AgentSpec
from tests.batch.support import Played, Ran, dataset, fails, play, thinks, uses

EVIL = "</pre></details><script>document.title='owned'</script><img src=http://evil.example/x onerror=alert(1)>"
LONG = "x" * 30_000
CALL = ToolCall("c", "terminal", '{"command": "<script>document.title=1</script>"}')
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture
def ran(tmp_path: Path) -> Ran:
    dataset(tmp_path / "prompts.jsonl", [EVIL, "short", "dull", "broken", b"{bad"])

    def player(prompt: str, spec: AgentSpec) -> Played:
        if prompt == EVIL:
            turns = [Message("assistant", EVIL, (CALL,), reasoning=EVIL), tool_message(CALL, f"\x1b[31m{EVIL}\u202e")]
            return Played([*turns, Message("assistant", EVIL)])
        return {"dull": thinks(thought=""), "broken": fails("rate_limit", f"429 {EVIL}")}.get(prompt) or uses()

    return play(tmp_path, player, distribution="terminal_file")


def written(ran: Ran, tmp_path: Path) -> tuple[str, BeautifulSoup]:
    target = tmp_path / "report.html"
    write_report(RunFolder(ran.folder), target)
    text = target.read_text("utf-8")
    return text, BeautifulSoup(text, "html.parser")


def test_every_text_is_escaped_and_nothing_is_fetched(ran: Ran, tmp_path: Path) -> None:
    text, soup = written(ran, tmp_path)
    assert len(soup.find_all("script")) == 1
    assert not soup.find_all(["img", "iframe", "link", "object", "embed", "base", "form", "a"])
    attributes = {name for tag in soup.find_all(True) for name in tag.attrs}
    assert not {name for name in attributes if name.startswith("on")} | ({"src", "href", "style"} & attributes)
    assert "\x1b" not in text
    assert "\u202e" not in text
    turns = [turn.pre.get_text() for turn in soup.find_all("div", class_="turn") if isinstance(turn.pre, Tag)]
    assert turns[:4] == [EVIL, f"<think>\n{EVIL}\n</think>\n{EVIL}", EVIL, EVIL]
    assert "<script>document.title=1" in soup.find_all("div", class_="gpt")[0].get_text()


def test_rows_stand_in_order_with_their_outcome_and_reason(ran: Ran, tmp_path: Path) -> None:
    _, soup = written(ran, tmp_path)
    rows = soup.find_all("details", class_="row")
    assert [row["data-outcome"] for row in rows] == ["kept", "kept", "rejected", "failed"]
    assert "rate_limit: 429" in rows[3].get_text()
    assert "no_reasoning" in rows[2].get_text()
    tiles = [tuple(tile.stripped_strings) for tile in soup.find_all("div", class_="tile")]
    assert tiles[:3] == [("rows", "5"), ("kept", "2 (50.0%)"), ("completed", "2 (100.0%)")]
    plots = {}
    for plot in soup.find_all("div", class_="plot"):
        title, *rest = plot.stripped_strings
        plots[title] = " ".join(rest)
    assert "kept 2 (40.0%)" in plots["Outcomes"]
    assert "terminal 2 (100.0%)" in plots["Tool calls: succeeded and failed"]
    assert "terminal 100% stated 100.0% drawn" in " ".join(plots["Toolsets: stated and drawn"].split())
    assert "no_reasoning 1 (100.0%)" in plots["Rejected, by reason"]
    assert "Seconds a row took (last invocation)" in plots
    assert "terminal_file" in soup.find_all("table")[0].get_text()


def test_a_page_holds_a_bounded_number_of_rows_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset(tmp_path / "prompts.jsonl", [f"{kind} {n}" for n in range(10) for kind in ("good", "dull", "broken")])

    def player(prompt: str, spec: AgentSpec) -> Played:
        kind = prompt.split()[0]
        return {"dull": thinks(thought=""), "broken": fails("rate_limit", prompt)}.get(kind) or thinks(
            f"{LONG}The end."
        )

    ran = play(tmp_path, player)
    for limit, others, wanted in [(6, 2, (2, 2, 2)), (15, 2, (10, 3, 2)), (30, 2, (10, 10, 10))]:
        monkeypatch.setattr(report, "EMBEDDED", limit)
        monkeypatch.setattr(report, "OTHERS", others)
        told = report.gather(RunFolder(ran.folder))
        outcomes = [outcome for outcome, _ in told.rows]
        assert tuple(map(outcomes.count, ("kept", "rejected", "failed"))) == wanted
    text, _ = written(ran, tmp_path)
    assert "All 30 rows that ended are here." in text
    assert "xx\n… 10,043 more characters …\nxx" in text, "what is cut off is told"
    assert "xThe end.</pre>" in text
    monkeypatch.setattr(report_page, "PAGE_CHARACTERS", 50_000)
    assert "of the 30 rows that ended are here, the first of each outcome." in written(ran, tmp_path)[0]


def test_a_run_that_has_just_begun_or_lost_its_index_has_a_page(ran: Ran, tmp_path: Path) -> None:
    for name in ("statistics.json", "checkpoint.json", "trajectories.jsonl"):
        (ran.folder / name).unlink()
    _, soup = written(ran, tmp_path)
    assert len(soup.find_all("details", class_="row")) == 4
    for path in ran.folder.glob("*.jsonl"):
        path.unlink()
    assert "All 0 rows" in written(ran, tmp_path)[0]


def test_a_browser_runs_the_pages_script_and_no_other(ran: Ran, tmp_path: Path) -> None:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    written(ran, tmp_path)
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'chromium'}"]
    flags = ["--enable-logging=stderr", "--dump-dom", (tmp_path / "report.html").as_uri()]
    done = subprocess.run([*command, *flags], capture_output=True, timeout=100, check=True)
    assert b":CONSOLE:" not in done.stderr
    dom = BeautifulSoup(done.stdout, "html.parser")
    assert dom.title is not None
    assert dom.title.get_text() == "run – batch run"
    assert not dom.find_all("img")
    shown = dom.find(id="shown")
    assert shown is not None
    assert shown.get_text() == "4 shown"


def test_bars_never_leave_their_drawing() -> None:
    drawn = BeautifulSoup(bars([Bar("<b>" * 20, [("good", 7), ("bad", 3)], "10"), Bar("none", [], "0")]), "html.parser")
    ends = [float(str(part["x"])) + float(str(part["width"])) for part in drawn.find_all("rect")]
    assert max(ends) <= WIDTH
    assert html.escape("<b>") in str(drawn)


def test_times_are_spread_over_columns() -> None:
    assert spread([]) == []
    assert spread([0.1, 0.2, 0.3, 2.0, 5000.0])[:3] == [(0.1, 1), (0.3, 2), (1, 0)]
    assert spread([2000.0, 5000.0]) == [(None, 2)]
    assert sum(number for _, number in spread([0.01 * n for n in range(900)])) == 900


def test_stated_odds_beside_drawn() -> None:
    figures = {"rows": {"kept": 3, "rejected": 1, "pending": 6}, "toolset_draws": {"web": 1, "file": 4}}
    assert stated_and_drawn({"web": 0.5, "todo": 0.1}, figures) == [
        ("web", 0.5, 0.25),
        ("todo", 0.1, 0.0),
        ("file", 0.0, 1.0),
    ]
    assert stated_and_drawn({"web": 0.5}, {}) == []


def test_the_policy_of_the_page_names_its_own_script_only(ran: Ran) -> None:
    soup = BeautifulSoup(page(report.gather(RunFolder(ran.folder))), "html.parser")
    policy = soup.find("meta", attrs={"http-equiv": "Content-Security-Policy"})
    assert isinstance(policy, Tag)
    assert str(policy["content"]).startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
