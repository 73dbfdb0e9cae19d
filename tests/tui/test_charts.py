"""Bars of text."""

from __future__ import annotations

from hermes_tui.printing.charts import CELLS, bar, pairs


def test_a_bar_fills_its_share_of_cells() -> None:
    assert [bar(share, cells=8) for share in (0, 0.5, 1, 7, -1)] == ["", "████", "████████", "████████", ""]
    assert bar(1 / 64, cells=8) == "▏"
    assert bar(0.5, cells=8, plain=True) == "####"


def test_two_shares_stand_one_below_the_other() -> None:
    lines = pairs([("web", 1, 0.955), ("terminal", 0.3, 0)], ("stated", "drawn"), plain=True)
    assert lines == [
        f"  web       stated  {'#' * CELLS}  100.0%",
        f"            drawn   {'#' * 29 + ' '}   95.5%",
        f"  terminal  stated  {'#' * 9:<{CELLS}}   30.0%",
        f"            drawn   {'':<{CELLS}}    0.0%",
    ]
    assert pairs([], ("stated", "drawn")) == []
