"""The table of a run: what has not changed is not drawn again."""

from __future__ import annotations

from rich.text import Text
from textual.app import App, ComposeResult
from textual.strip import Strip

from hermes_tui.screens.batch.table import Table
from tests.tui.drawing import LOOK


class Counting(Table):
    """Remembers which of its lines were drawn."""

    drawn: list[int]

    def render_line(self, y: int) -> Strip:
        self.drawn.append(y)
        return super().render_line(y)


class TableApp(App[None]):
    """Nothing but a table."""

    look = LOOK

    def compose(self) -> ComposeResult:
        self.table = Counting(id="rows")
        self.table.drawn = []
        yield self.table


async def test_only_lines_that_changed_are_drawn_again() -> None:
    app = TableApp()
    async with app.run_test(size=(60, 20)) as pilot:
        table, words = app.table, [f"row {place}" for place in range(100)]

        def show() -> None:
            table.show(range(100), lambda place: Text(words[place]), head=Text("rows"), empty=Text())

        show()
        await pilot.pause()
        table.drawn.clear()
        show()
        await pilot.pause()
        assert table.drawn == []
        words[3] = "row 3, a second later"
        words[50] = "out of view"
        show()
        await pilot.pause()
        assert table.drawn == [4], "under the heading"
        assert "row 3, a second later" in table.plain
        table.drawn.clear()
        table.action_move(1)
        await pilot.pause()
        assert sorted(table.drawn) == [1, 2], "the row that was chosen and the one that is"
        table.drawn.clear()
        table.action_edge(-1)
        await pilot.pause()
        assert sorted(table.drawn) == list(range(1, table.size.height)), "other rows, under the same heading"
        assert table.plain[-1] == "row 99"
