"""Odds as stated are odds as drawn."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from hermes_engine.batch.distributions import SHIPPED, available, chosen, draws, refusal
from hermes_engine.batch.job import Draws, Job, Row
from hermes_engine.errors import ConfigError, HermesError, UnknownName, UsageError
from hermes_engine.paths import Home
from hermes_engine.protocols import AgentSpec
from hermes_engine.settings import Settings

UNWRITTEN = Settings()


def job(odds: Draws, seed: int = 0) -> Job:
    return Job("run", AgentSpec("row"), odds, seed, Path())


def rows(number: int) -> list[Row]:
    return [Row(index, f"{index:016x}-0", "p") for index in range(number)]


def home_with(path: Path, text: str) -> Home:
    path.mkdir(exist_ok=True)
    (path / "distributions.yaml").write_text(text)
    return Home(path)


def test_f1_13_certain_always_zero_never(tmp_path: Path) -> None:
    home = home_with(tmp_path / "h", "sure: {web: 100, file: 0}\nnever: {web: 0}\n")
    odds, _ = draws(chosen(home, "sure"), UNWRITTEN)
    assert {job(odds).toolsets_of(row) for row in rows(200)} == {("web",)}
    with pytest.raises(UsageError, match="no toolset that can be drawn"):
        draws(chosen(home, "never"), UNWRITTEN)


def test_f1_13_unknown_names_are_errors_before_any_call(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"bad: .*unknown toolset 'nosuch'"):
        available(home_with(tmp_path / "h", "bad: {nosuch: 50}\n"))
    with pytest.raises(UnknownName, match="balanced") as caught:
        chosen(Home(tmp_path / "h2"), "balancd")
    assert caught.value.exit_code == 2
    assert "did you mean balanced" in caught.value.hint


def test_a_profile_without_toolsets_has_rows_without_tools(tmp_path: Path) -> None:
    """`toolsets: []` means no tools; a distribution named on its own still needs its sets."""
    none = Settings(toolsets=[])
    home = Home(tmp_path / "h")
    assert draws(chosen(home, "default"), none) == ((), ())
    assert {job(()).toolsets_of(row) for row in rows(20)} == {()}
    with pytest.raises(UsageError, match="terminal is not enabled"):
        draws(chosen(home, "terminal_only"), none)


@pytest.mark.parametrize("text", ["bad: {web: 101}", "bad: {web: -1}", "bad: {web: yes}", "bad: 5", "bad: {}", "[1]"])
def test_a_wrong_file_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(HermesError, match=r"distributions\.yaml"):
        available(home_with(tmp_path / "h", text))


def test_f1_13_at_least_one_set_and_the_stated_odds() -> None:
    odds: Draws = (("terminal", 0.5), ("file", 0.1), ("web", 0.0))
    drawn = [job(odds).toolsets_of(row) for row in rows(4000)]
    assert all(drawn)
    counts = Counter(name for sets in drawn for name in sets)
    assert counts["web"] == 0
    assert 350 < counts["file"] < 450
    # half of the rows, and all those for which nothing was drawn (45 %)
    assert 3700 < counts["terminal"] < 3900


def test_f1_13_draws_repeat_with_the_seed_whatever_the_place() -> None:
    odds: Draws = (("terminal", 0.5), ("file", 0.5), ("web", 0.5))
    first = {row.key: job(odds, 7).toolsets_of(row) for row in rows(100)}
    moved = [Row(99 - row.index, row.key, "p") for row in rows(100)]
    assert {row.key: job(odds, 7).toolsets_of(row) for row in moved} == first
    assert {row.key: job(odds, 8).toolsets_of(row) for row in moved} != first
    assert all(list(sets) == sorted(sets) for sets in first.values())


def test_a_row_that_names_its_sets_has_those() -> None:
    row = Row(0, "k-0", "p", toolsets=("terminal", "file"))
    assert job((("web", 1.0),)).toolsets_of(row) == ("file", "terminal")
    assert job((("web", 1.0),)).toolsets_of(Row(0, "k-0", "p", toolsets=())) == ()


def test_default_is_what_the_profile_has_enabled() -> None:
    assert [name for name, _ in draws(SHIPPED["default"], UNWRITTEN)[0]] == ["terminal", "file"]
    more = Settings(toolsets=("web", "file", "todo"))
    assert [name for name, _ in draws(SHIPPED["default"], more)[0]] == ["file", "web", "todo"]


def test_a_set_a_person_switched_off_is_never_drawn() -> None:
    written = Settings(toolsets=("terminal",))
    assert draws(SHIPPED["research"], written) == ((("terminal", 0.3),), ("web", "file", "todo"))
    with pytest.raises(UsageError) as caught:
        draws(SHIPPED["web_only"], written)
    assert "hermes tools enable web" in caught.value.line
    assert draws(SHIPPED["web_only"], UNWRITTEN)[0] == (("web", 1.0),)
    assert refusal("web", Settings(toolsets=("all",))) == ""
    assert "of a board" in refusal("kanban", Settings(toolsets=("kanban",)))


def test_own_distributions_win(tmp_path: Path) -> None:
    home = home_with(tmp_path / "h", "balanced: {description: mine, toolsets: {file: 25}}\n")
    found = chosen(home, "balanced")
    assert (found.odds, found.description) == ({"file": 25.0}, "mine")
    assert set(available(home)) == set(SHIPPED)
