"""The peek pane of very wide screens: what an agent does, as it comes; without agents what the newest step says in
full, or the one the cursor is on.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.strip import Strip
from textual.widget import Widget

from hermes_tui.cleaning import one_line
from hermes_tui.texts import _
from hermes_tui.widgets.agent_lines import tail_lines
from hermes_tui.widgets.blocks import Block, ThoughtBlock, ToolBlock
from hermes_tui.widgets.facts import AgentFact, TailFact
from hermes_tui.widgets.look import look_of
from hermes_tui.widgets.rows import BLANK, Row, row_of, shorten


class Peek(Widget):
    """The end of one agent's words, or of one block's details."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._block: ToolBlock | ThoughtBlock | None = None
        self._version = -1
        self._agent: AgentFact | None = None
        self._tail: Sequence[TailFact] = ()
        self._rows: list[Row] = []

    def show_agent(self, agent: AgentFact, version: int, tail: Sequence[TailFact]) -> None:
        """Shows the end of what an agent did and said; drawn again only when its tail has grown."""
        before = self._agent
        if before is None or (before.id, before.name, self._version) != (agent.id, agent.name, version):
            self._agent, self._tail, self._version = agent, tail, version
            self._rows = []
            self.refresh()

    def show(self, block: Block | None) -> bool:
        """Shows the details of a block; whether it has any."""
        usable = block if isinstance(block, (ToolBlock, ThoughtBlock)) and block.openable else None
        if usable is None:
            usable = self._block
        if usable is None:
            return False
        if usable is not self._block or usable.version != self._version or self._agent is not None:
            self._agent, self._tail = None, ()
            self._block, self._version = usable, usable.version
            self._rows = []
            self.refresh()
        return True

    def forget(self) -> None:
        """Another chat: nothing to show."""
        self._block, self._agent, self._tail, self._rows = None, None, (), []

    def render_line(self, y: int) -> Strip:
        width, base = self.size.width, self.rich_style
        if not self._rows and (self._block is not None or self._agent is not None):
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
        room = max(1, self.size.height - 2)
        if self._agent is not None:
            heading = Text().append(f"{one_line(self._agent.name)}  ", look.text)
            heading.append(one_line(self._agent.title), look.soft)
            return [row_of(shorten(heading, width)), BLANK, *map(row_of, tail_lines(self._tail, width, look, room))]
        if isinstance(block, ToolBlock):
            heading = Text().append(f"{one_line(block.verb)}  ", look.text)
            heading.append(one_line(block.calls[-1].title), look.soft)
        else:
            heading = Text(_("Thought"), look.soft)
        if block is None:
            return []
        return [row_of(shorten(heading, width)), BLANK, *block.details(width, look)[-room:]]
