"""Lists and JSON: aligned for a person at a terminal, one record a line and tab-separated for a program.

Off a terminal nothing is wrapped, cut or coloured, and no heading is printed.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from hermes_tui.cleaning import clean
from hermes_tui.printing.streams import is_terminal, out, width, write_out

_UNSAFE = re.compile(r"[\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_CELL_BREAKS = re.compile(r"[\t\n\r]")
_GAP = 2
_SHORT = 20
"""Characters up to which a column is never wrapped: a time fits."""
_LEAST_WRAPPED = 12
"""Characters of a line below which a wrapped column can hardly be read."""


def json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON on one line (or indented) that is safe on a terminal: controls escaped, lone surrogates U+FFFD."""
    return _UNSAFE.sub(_escape, json.dumps(value, ensure_ascii=False, indent=indent, default=_plain))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else f"\\u{code:04x}"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset, tuple)):
        return sorted(value) if isinstance(value, (set, frozenset)) else list(value)
    return str(value)


def out_json(value: Any) -> None:
    """Prints one JSON value: indented at a terminal, else on one line."""
    text = json_text(value, indent=2 if is_terminal(sys.stdout) else None)
    write_out(text + "\n")


def out_json_line(value: Any) -> None:
    """Prints one JSON value on one line, at once."""
    write_out(json_text(value) + "\n")


def cell(text: str) -> str:
    """The text as one cell: cleaned, its tabs and line ends made blanks, otherwise whole."""
    return _CELL_BREAKS.sub(" ", clean(_CELL_BREAKS.sub(" ", text)))


def out_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints records. Each row must be as long as `columns`."""
    if is_terminal(sys.stdout):
        out(aligned(columns, rows), end="")
        return
    for row in rows:
        out("\t".join(cell(item) for item in row))


def aligned(columns: Sequence[str], rows: Sequence[Sequence[str]], *, columns_wide: int = 0) -> str:
    """The records as aligned text with a heading, wrapped to the width; ends with a line feed, "" without rows.

    Short columns are never wrapped. Where they leave the others no room, each record stands on lines of its own.
    """
    if not rows:
        return ""
    from rich.cells import cell_len

    room = columns_wide or width()
    cells = [[cell(item) for item in row] for row in rows]
    wide = [max(map(cell_len, column)) for column in zip(columns, *cells, strict=True)]
    short = [size <= _SHORT for size in wide]
    left = room - _GAP * (len(wide) - 1) - sum(size for size in wide if size <= _SHORT)
    if left < _LEAST_WRAPPED * short.count(False):
        return _stacked(columns, cells, room)
    return _table(columns, cells, short, room)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], short: Sequence[bool], room: int) -> str:
    from io import StringIO

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold", show_header=any(columns))
    for name, whole in zip(columns, short, strict=True):
        table.add_column(Text(name), overflow="fold", no_wrap=whole)
    for row in rows:
        table.add_row(*map(Text, row))
    page = StringIO()
    console = Console(file=page, width=room, color_system=None, force_terminal=False, markup=False)
    console.print(table)
    return "".join(f"{line.rstrip()}\n" for line in page.getvalue().split("\n")[:-1])


def _stacked(columns: Sequence[str], rows: Sequence[Sequence[str]], room: int) -> str:
    """Each record on lines of its own, a filled cell a line behind its column's name; a blank line between two."""
    if not any(columns):
        return "\n".join("\n".join(item for item in row if item) + "\n" for row in rows)
    records = ([(name, item) for name, item in zip(columns, row, strict=True) if item] for row in rows)
    return "\n".join(_table(("", ""), record, (True, False), room) for record in records)
