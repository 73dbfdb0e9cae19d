"""The sidebar: what goes on, in sections; empty sections are not drawn, only the section that changed is.

Given facts; the height decides how much is shown, and what needs the person is shown always. With the focus it has a
cursor over agents; what is asked for by key or mouse is told, not done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.geometry import Region
from textual.message import Message
from textual.widgets import Static

from hermes_tui.texts import _
from hermes_tui.widgets.agent_lines import MAX_AGENTS, Line, Manner, Tail, agent_lines
from hermes_tui.widgets.facts import AgentFact, WorkFacts
from hermes_tui.widgets.look import look_of
from hermes_tui.widgets.section_lines import (
    batch_lines,
    board_lines,
    context_lines,
    nothing_words,
    plan_lines,
    usage_lines,
)

SECTIONS = ("agents", "background", "board", "batch", "plan", "context", "usage", "nothing")
DROPPED = ("plan", "usage", "context", "board", "batch")
"""What a short window leaves out, in this order."""

BOARD = "screen:kanban"
"""The item of lines that open the board."""


class Section(Static):
    """One part of the sidebar; drawn again only when its words change."""

    class Clicked(Message):
        """A line with a meaning was clicked."""

        def __init__(self, item: str) -> None:
            super().__init__()
            self.item = item

    def __init__(self, *, id: str) -> None:
        super().__init__("", id=id, markup=False)
        self._shown: Text | None = None
        self.lines: Sequence[Line] = ()
        self.display = False

    def show(self, lines: Sequence[Line], chosen: str = "") -> None:
        """Shows these lines, those of the chosen item marked; none hides the section."""
        wraps = self.id == "side-nothing"
        grown = len(lines) != len(self.lines)
        self.lines, self.display = lines, bool(lines)
        if not wraps:  # each line is cut to the width: a height found out from the words would be that of the old width
            self.styles.height = len(lines)
        text = Text("\n").join(self._marked(line) if chosen and line.item == chosen else line.text for line in lines)
        if self._shown is None or text != self._shown or text.spans != self._shown.spans:
            self._shown = text
            self.update(text, layout=wraps and grown)

    def _marked(self, line: Line) -> Text:
        look, width = look_of(self), self.size.width
        blanks = " " * max(0, width - line.text.cell_len)
        if look.palette.native:
            return Text(line.text.plain + blanks, look.picked)
        marked = Text(line.text.plain + blanks, look.text)  # soft words are hard to read on a raised ground
        signs = (look.accent, look.warning, look.good, look.bad)
        marked.spans = [span for span in line.text.spans if span.style in signs]
        marked.stylize(look.picked)
        return marked

    def on_click(self, event: events.Click) -> None:
        """Tells whose line it is."""
        if 0 <= event.y < len(self.lines) and self.lines[event.y].item:
            event.stop()
            self.post_message(self.Clicked(self.lines[event.y].item))

    @property
    def plain(self) -> str:
        """The words on it now."""
        return self._shown.plain if self._shown is not None else ""


class Sidebar(VerticalScroll):
    """Agents, background tasks, batch runs, plan, context and usage. At the right, or as a drawer over the chat."""

    FOCUS_ON_CLICK = False  # whoever clicks goes on typing, and letters mean something here
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", _("Agent above"), show=False, id="work.up"),
        Binding("down,j", "move(1)", _("Agent below"), show=False, id="work.down"),
        Binding("home", "move(-999)", _("First agent"), show=False, id="work.first"),
        Binding("end", "move(999)", _("Last agent"), show=False, id="work.last"),
        Binding("enter", "ask('open')", _("Open it"), show=False, id="work.open"),
        Binding("space", "ask('peek')", _("Its last words"), show=False, id="work.peek"),
        Binding("a", "ask('answer')", _("Answer it"), show=False, id="work.answer"),
        Binding("m", "ask('message')", _("Tell it something"), show=False, id="work.message"),
        Binding("x", "ask('stop')", _("Stop it"), show=False, id="work.stop"),
        Binding("X", "ask('stop_all')", _("Stop it and all below"), show=False, id="work.stop_all"),
        Binding("r", "ask('retry')", _("Run it again"), show=False, id="work.retry"),
    ]

    class Asked(Message):
        """Something is wanted of agents, of several where a group is meant.

        `verb` is one of open | answer | message | stop | stop_all | retry | see (they are shown no more).
        """

        def __init__(self, verb: str, agents: Sequence[AgentFact]) -> None:
            super().__init__()
            self.verb, self.agents = verb, agents

    class Moved(Message):
        """The cursor stands on another agent, or on none."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._facts = WorkFacts()
        self._items: list[str] = []
        self._chosen = ""
        self._opened: set[str] = set()
        self.tail: Tail = lambda agent: ()
        """An agent's last words."""
        self.tall = False
        """Whether there is room for a third line of each agent."""

    def compose(self) -> ComposeResult:
        for name in SECTIONS:
            yield Section(id=f"side-{name}")

    @property
    def chosen(self) -> AgentFact | None:
        """The agent under the cursor."""
        return next((agent for agent in self._facts.agents if agent.id == self._chosen), None)

    def show(self, facts: WorkFacts) -> None:
        """Shows the facts; sections whose words are the same are left alone."""
        self._facts = facts
        look, width = look_of(self), max(16, self.size.width)
        agents = [agent for agent in facts.agents if not agent.beside]
        beside = [agent for agent in facts.agents if agent.beside]

        def lively(most: int) -> dict[str, list[Line]]:
            manner = Manner(width, look, self.tall, most, self._opened, self.tail)
            return {
                "agents": agent_lines("agents", agents, manner),
                "background": agent_lines("background", beside, manner),
            }

        manner = Manner(width, look)
        batches = [line for batch in facts.batches[:2] for line in batch_lines(batch, manner)]
        sections = {
            **lively(MAX_AGENTS),
            "board": [Line(line, BOARD) for line in board_lines(facts.board, manner)] if facts.board else [],
            "batch": [Line(line) for line in batches],
            "plan": [Line(line) for line in plan_lines(facts.plan, manner)],
            "context": [Line(line) for line in context_lines(facts.context, manner)],
            "usage": [Line(line) for line in usage_lines(facts.usage, manner)],
        }
        for name in DROPPED:
            if self._fits(sections):
                break
            sections[name] = []
        most = MAX_AGENTS
        while most and not self._opened and not self._fits(sections):
            most -= 1
            sections |= lively(most)
        if not any(sections.values()):
            sections["nothing"] = [Line(Text(words, look.faint)) for words in nothing_words()]
        self._items = list(dict.fromkeys(line.item for name in ("agents", "background") for line in sections[name]
                                         if line.item))  # fmt: skip
        self._keep_cursor()
        for name in SECTIONS:
            chosen = self._chosen if self.has_focus else ""
            self.query_one(f"#side-{name}", Section).show(sections.get(name, []), chosen)

    def on_resize(self) -> None:
        """Another size: more or fewer lines have room."""
        self.show(self._facts)

    def _fits(self, sections: dict[str, list[Line]]) -> bool:
        used = sum(len(lines) + 1 for lines in sections.values() if lines) - 1
        return used <= (self.size.height or 100)

    def _keep_cursor(self) -> None:
        """The cursor stays on its agent; where that is gone it has none."""
        if self._chosen and self._chosen not in self._items:
            self._chosen = ""

    @property
    def plain(self) -> str:
        """The words on it now."""
        return "\n".join(section.plain for section in self.query(Section) if section.display)

    # Keys and mouse

    def on_focus(self) -> None:
        """The first agent is chosen."""
        self._choose(self._chosen or next(iter(self._items), ""))

    def on_blur(self) -> None:
        """Nothing is chosen without the focus."""
        self._choose("")

    def action_move(self, step: int) -> None:
        """Another agent."""
        if self._items:
            place = self._items.index(self._chosen) + step if self._chosen else 0
            self._choose(self._items[max(0, min(len(self._items) - 1, place))])

    def _choose(self, item: str) -> None:
        self._chosen = item
        self.show(self._facts)
        self.post_message(self.Moved())
        if item:
            self._reveal(item)

    def _reveal(self, item: str) -> None:
        for section in self.query(Section):
            places = [place for place, line in enumerate(section.lines) if line.item == item]
            if places and section.display:
                top = section.virtual_region.y + places[0]
                self.scroll_to_region(Region(0, top, 1, len(places)), animate=False, force=True)

    def action_ask(self, verb: str) -> None:
        """A key: opens groups and last words here, tells everything else."""
        item = self._chosen
        if ":" in item:
            if verb in ("open", "peek"):
                self._toggle(item)
            elif verb == "stop":
                self.post_message(self.Asked("see", self._grouped(item)))
        elif (agent := self.chosen) is not None:
            if verb == "peek":
                self._toggle(agent.id)
            else:
                self.post_message(self.Asked("see" if verb == "stop" and agent.over else verb, (agent,)))

    def peek(self, agent: str) -> None:
        """Shows an agent's last words under its row, or hides them."""
        self._toggle(agent)

    def _toggle(self, item: str) -> None:
        self._opened ^= {item}
        self._choose(self._chosen)

    def _grouped(self, item: str) -> list[AgentFact]:
        beside = item.startswith("background")
        return [agent for agent in self._facts.agents if agent.over and agent.beside is beside]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Without agents the keys are text for the prompt."""
        return bool(self._items) if action in ("move", "ask") else True

    def uses(self, key: str) -> bool:
        """Whether the key means something here now."""
        return bool(self._items) and key in self._bindings.key_to_bindings

    def on_section_clicked(self, message: Section.Clicked) -> None:
        """A click opens."""
        message.stop()
        if message.item == BOARD:
            self.run_worker(self.app.run_action("screen('kanban')"), exit_on_error=False)
        elif ":" in message.item:
            self._toggle(message.item)
        elif agent := next((agent for agent in self._facts.agents if agent.id == message.item), None):
            self.post_message(self.Asked("open", (agent,)))
