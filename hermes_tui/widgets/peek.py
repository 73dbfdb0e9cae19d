"""The peek pane of very wide screens: what the newest step says in full, or the one the cursor is on, as it comes."""

from __future__ import annotations

from rich.text import Text
from textual.strip import Strip
from textual.widget import Widget

from hermes_tui.cleaning import one_line
from hermes_tui.texts import _
from hermes_tui.widgets.blocks import Block, ThoughtBlock, ToolBlock
from hermes_tui.widgets.look import look_of
from hermes_tui.widgets.rows import BLANK, Row, row_of, shorten


class Peek(Widget):
    """The end of one block's details."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._block: ToolBlock | ThoughtBlock | None = None
        self._version = -1
        self._rows: list[Row] = []

    def show(self, block: Block | None) -> bool:
        """Shows the details of a block; whether it has any."""
        usable = block if isinstance(block, (ToolBlock, ThoughtBlock)) and block.openable else None
        if usable is None:
            usable = self._block
        if usable is None:
            return False
        if usable is not self._block or usable.version != self._version:
            self._block, self._version = usable, usable.version
            self._rows = []
            self.refresh()
        return True

    def forget(self) -> None:
        """Another chat: nothing to show."""
        self._block, self._rows = None, []

    def render_line(self, y: int) -> Strip:
        width, base = self.size.width, self.rich_style
        if not self._rows and self._block is not None:
            self._rows = self._draw(width)
        if y >= len(self._rows):
            return Strip.blank(width, base)
        return self._rows[y].strip.apply_style(base).adjust_cell_length(width, base)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._rows = []

    def on_resize(self) -> None:
        """Another width."""
        self._rows = []
        self.refresh()

    def _draw(self, width: int) -> list[Row]:
        block, look = self._block, look_of(self)
        if isinstance(block, ToolBlock):
            heading = Text().append(f"{one_line(block.verb)}  ", look.text)
            heading.append(one_line(block.calls[-1].title), look.soft)
        else:
            heading = Text(_("Thought"), look.soft)
        if block is None:
            return []
        room = max(1, self.size.height - 2)
        return [row_of(shorten(heading, width)), BLANK, *block.details(width, look)[-room:]]
