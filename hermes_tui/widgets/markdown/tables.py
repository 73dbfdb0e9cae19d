"""Tables: columns by cell width, wrapped inside their cells where the screen is narrow; nothing is cut off."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.text import Text

from hermes_tui.widgets.look import Look
from hermes_tui.widgets.rows import Row, fold, row_of

_GAP = 2
_MIN_COLUMN = 3


@dataclass(slots=True)
class Table:
    """Cells of a table; the first row is its heading; `align` has an entry a cell, the first row's count."""

    rows: list[list[Text]] = field(default_factory=list)
    align: list[str] = field(default_factory=list)


def draw_table(table: Table, width: int, look: Look) -> list[Row]:
    """The rows of a table in `width` cells; as a list of fields where not even narrow columns fit."""
    if not table.rows:
        return []
    count = max(len(row) for row in table.rows)
    for row in table.rows:
        row.extend(Text() for _missing in range(count - len(row)))
    if count * (_MIN_COLUMN + _GAP) > width:
        return _as_fields(table, width, look)
    widths = _column_widths(table, count, width - _GAP * (count - 1))
    rows: list[Row] = []
    for index, cells in enumerate(table.rows):
        if index == 0:
            for cell in cells:
                cell.stylize(look.strong)
        rows.extend(_draw_row(cells, widths, table.align))
        if index == 0:
            rule = Text((" " * _GAP).join(look.glyphs.line * column for column in widths), look.line)
            rows.append(row_of(rule))
    return rows


def _column_widths(table: Table, count: int, room: int) -> list[int]:
    """Natural widths, the widest narrowed alike until all fit."""
    widths = [
        max(_MIN_COLUMN, *(max(line.cell_len for line in row[index].split("\n")) for row in table.rows))
        for index in range(count)
    ]
    excess = sum(widths) - room
    while excess > 0 and (widest := max(widths)) > _MIN_COLUMN:
        places = [place for place, value in enumerate(widths) if value == widest]
        second = max((value for value in widths if value < widest), default=_MIN_COLUMN)
        take = min(excess, (widest - second) * len(places))
        share, rest = divmod(take, len(places))
        for number, place in enumerate(places):
            widths[place] -= share + (number < rest)
        excess -= take
    return widths


def _draw_row(cells: list[Text], widths: list[int], align: list[str]) -> list[Row]:
    folded = [[line for line, _joint in fold(cell, width)] for cell, width in zip(cells, widths, strict=True)]
    rows: list[Row] = []
    for number in range(max(len(lines) for lines in folded)):
        line = Text()
        for column, (lines, width) in enumerate(zip(folded, widths, strict=True)):
            cell = lines[number] if number < len(lines) else Text()
            if column:
                line.append(" " * _GAP)
            _place(line, cell, width, align[column] if column < len(align) else "left", column == len(widths) - 1)
        rows.append(row_of(line))
    return rows


def _place(line: Text, cell: Text, width: int, align: str, last: bool) -> None:
    cell.rstrip()
    free = max(0, width - cell.cell_len)
    before = free if align == "right" else free // 2 if align == "center" else 0
    line.append(" " * before)
    line.append_text(cell)
    if not last:
        line.append(" " * (free - before))


def _as_fields(table: Table, width: int, look: Look) -> list[Row]:
    heading, *body = table.rows
    rows: list[Row] = []
    for number, cells in enumerate(body):
        if number:
            rows.append(row_of(Text()))
        for name, cell in zip(heading, cells, strict=True):
            line = Text(f"{name.plain}: ", look.faint)
            line.append_text(cell)
            rows.extend(row_of(part, 0, joint) for part, joint in fold(line, width))
    return rows
