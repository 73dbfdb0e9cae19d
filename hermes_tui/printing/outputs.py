"""What slash commands say, as lines. A pure function but for the terminal's width. Loads rich for tables only."""

from __future__ import annotations

import sys

from hermes_tui.cleaning import clean
from hermes_tui.commands.host import Output
from hermes_tui.printing.lines import Line
from hermes_tui.printing.records import aligned, cell
from hermes_tui.printing.streams import is_terminal


def output_lines(output: Output, *, columns_wide: int = 0) -> list[Line]:
    """The lines of a command's words. Markdown and code stand as they are, so that they can be copied.

    Off a terminal a table is its records only, a line each, tab-separated; `columns_wide` asks for an aligned one.
    """
    if output.kind == "table" and not columns_wide and not is_terminal(sys.stdout):
        return [Line("\t".join(cell(item) for item in row)) for row in output.rows]
    lines = [Line(clean(output.title), "bold")] if output.title else []
    if output.kind == "error":
        return [*lines, *(Line(text, "red") for text in _split(output.text))]
    if output.kind == "table":
        table = aligned(output.columns, output.rows, columns_wide=columns_wide)
        lines += [Line(text) for text in _split(table)]
        return [*lines, *(Line(text, "dim") for text in _split(output.text))]
    return [*lines, *(Line(text) for text in _split(output.text))]


def _split(text: str) -> list[str]:
    return clean(text).rstrip("\n").split("\n") if text.strip() else []
