"""The sidebar: what goes on, in sections; empty sections are not drawn, only the section that changed is.

Given facts; the height decides how much is shown, and what needs the person is shown always.
"""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from hermes_tui.cleaning import one_line
from hermes_tui.texts import _
from hermes_tui.widgets.facts import AgentFact, BatchFact, ContextFact, UsageFact, WorkFacts
from hermes_tui.widgets.look import Look, look_of
from hermes_tui.widgets.rows import shorten, spread
from hermes_tui.widgets.times import count_short, money, seconds_short

MAX_AGENTS = 8
"""Agents shown one by one; the others are counted, but those that need the person are always there."""

THREE_LINES = 44
"""From this width on each agent has a third line."""


class Section(Static):
    """One part of the sidebar; drawn again only when its words change."""

    def __init__(self, *, id: str) -> None:
        super().__init__("", id=id, markup=False)
        self._shown: Text | None = None
        self.display = False

    def show(self, lines: list[Text]) -> None:
        """Shows these lines; none hides the section."""
        self.display = bool(lines)
        text = Text("\n").join(lines)
        if self._shown is None or text != self._shown or text.spans != self._shown.spans:
            self._shown = text
            self.update(text)

    @property
    def plain(self) -> str:
        """The words on it now."""
        return self._shown.plain if self._shown is not None else ""


class Sidebar(Vertical):
    """Agents, batch runs, context and usage. Shown at the right, or as a drawer over the chat."""

    can_focus = True

    def compose(self) -> ComposeResult:
        for name in ("agents", "batch", "context", "usage", "nothing"):
            yield Section(id=f"side-{name}")

    def show(self, facts: WorkFacts) -> None:
        """Shows the facts; sections whose words are the same are left alone."""
        look, width = look_of(self), max(16, self.size.width - 3)
        sections = {
            "agents": agent_lines(facts.agents, width, look),
            "batch": [line for batch in facts.batches[:2] for line in batch_lines(batch, width, look)],
            "context": context_lines(facts.context, width, look),
            "usage": usage_lines(facts.usage, width, look),
        }
        self._drop(sections)
        if not any(sections.values()):
            words = _("Nothing runs. Ask something, or /batch FILE runs every prompt of a file.")
            sections["nothing"] = [Text(words, look.faint)]
        else:
            sections["nothing"] = []
        for name, lines in sections.items():
            self.query_one(f"#side-{name}", Section).show(lines)

    def _drop(self, sections: dict[str, list[Text]]) -> None:
        """A short window drops sections from the bottom; agents stay."""
        room = self.size.height or 100
        for name in ("usage", "context", "batch"):
            used = sum(len(lines) + 1 for lines in sections.values() if lines)
            if used <= room + 1:
                return
            sections[name] = []

    @property
    def plain(self) -> str:
        """The words on it now."""
        return "\n".join(section.plain for section in self.query(Section) if section.display)


def _heading(name: str, right: Text, width: int, look: Look) -> Text:
    return spread(Text(name.upper(), look.soft), right, width)


def agent_lines(agents: tuple[AgentFact, ...], width: int, look: Look) -> list[Text]:
    """The agents: those that need the person, then running ones, then the others counted."""
    if not agents:
        return []
    glyphs = look.glyphs
    marks = Text()
    for sign, style, count in (
        (glyphs.needs, look.warning, sum(agent.sign == "needs" for agent in agents)),
        (glyphs.running, look.accent, sum(agent.sign == "running" for agent in agents)),
    ):
        if count:
            marks.append(f" {sign}{count}", style)
    lines = [_heading(_("Agents {count}").format(count=len(agents)), marks, width, look)]
    urgent = [agent for agent in agents if agent.sign == "needs"]
    rest = [agent for agent in agents if agent.sign != "needs"]
    shown = [*urgent, *rest[: max(0, MAX_AGENTS - len(urgent))]]
    for agent in shown:
        lines.extend(_agent(agent, width, look))
    hidden = len(agents) - len(shown)
    if hidden:
        lines.append(Text(_("+{count} more").format(count=hidden), look.faint))
    return lines


def _agent(agent: AgentFact, width: int, look: Look) -> list[Text]:
    glyphs = look.glyphs
    sign, style = {
        "needs": (glyphs.needs, look.warning),
        "running": (glyphs.running, look.accent),
        "good": (glyphs.good, look.good),
        "bad": (glyphs.bad, look.bad),
        "stopped": (glyphs.stopped, look.faint),
    }.get(agent.sign, (glyphs.waiting, look.faint))
    left = Text().append(f"{sign} ", style).append(one_line(agent.name).ljust(8), look.text)
    left.append(f" {one_line(agent.title)}", look.soft)
    lines = [spread(left, Text(seconds_short(int(agent.seconds)) if agent.seconds else "", look.faint), width)]
    words = _("quiet {time}").format(time=seconds_short(agent.quiet)) if agent.quiet else one_line(agent.activity)
    if words and agent.sign in ("needs", "running", "bad"):
        lines.append(shorten(Text(f"   {words}", look.soft), width, glyphs.ellipsis))
    if width + 3 >= THREE_LINES and (agent.tokens or agent.cost):
        facts = [count_short(agent.tokens) + " tok"] if agent.tokens else []
        facts += [money(agent.cost)] if agent.cost else []
        lines.append(Text("   " + "  ".join(facts), look.faint))
    return lines


def bar(share: float, width: int, look: Look) -> Text:
    """A bar of `width` cells, filled to `share` (0 to 1)."""
    filled = max(0, min(width, round(share * width)))
    if share > 0 and not filled:
        filled = 1
    text = Text(look.glyphs.bar * filled, look.accent)
    return text.append(look.glyphs.line * (width - filled), look.line)


def batch_lines(batch: BatchFact, width: int, look: Look) -> list[Text]:
    """A run: name and share, bar, counters that add up."""
    glyphs = look.glyphs
    running = batch.state == "running"
    right = Text(f"{batch.percent}%" if running else batch.state, look.text if running else look.soft)
    name = Text(_("Batch").upper() + "  ", look.soft).append(one_line(batch.name), look.text)
    lines = [spread(name, right, width), bar(batch.settled / batch.total if batch.total else 0, width, look)]
    counts = Text(f"{batch.settled}/{batch.total}", look.text)
    for sign, style, count in (
        (glyphs.good, look.good, batch.kept),
        (glyphs.rejected, look.soft, batch.rejected),
        (glyphs.bad, look.bad, batch.failed),
        (glyphs.warning, look.soft, batch.invalid),
    ):
        if count:
            counts.append(f" {sign}{count}", style)
    left = Text(f"~{seconds_short(batch.seconds_left)} {_('left')}", look.faint) if batch.seconds_left else Text()
    lines.append(spread(counts, left, width))
    if batch.reason and not running:
        lines.append(shorten(Text(one_line(batch.reason), look.faint), width, glyphs.ellipsis))
    return lines


def context_lines(context: ContextFact, width: int, look: Look) -> list[Text]:
    """How full the context is; a window nobody knows is said to be unknown."""
    if not context.tokens:
        return []
    about = "~" if context.estimated else ""
    window = count_short(context.window) if context.window else _("size unknown")
    figures = Text(f"{about}{count_short(context.tokens)} / {window}", look.soft)
    lines = [_heading(_("Context"), figures, width, look)]
    if context.window:
        lines.append(bar(context.tokens / context.window, width, look))
    if context.percent is not None and context.percent >= 80:
        lines.append(Text(_("nearly full; /compact shortens it"), look.soft))
    return lines


def usage_lines(usage: UsageFact, width: int, look: Look) -> list[Text]:
    """Tokens and money of this chat; what nobody told is said to be unknown."""
    if not usage.tokens and usage.tokens_known:
        return []
    if not usage.tokens_known and not usage.tokens:
        return [_heading(_("Usage"), Text(_("not reported"), look.faint), width, look)]
    tokens = Text(f"{count_short(usage.tokens)} tok", look.soft)
    lines = [_heading(_("Usage"), tokens, width, look)]
    cost = money(usage.cost) if usage.cost_known else _("price unknown")
    if usage.cap:
        cost += " " + _("of {cap} cap").format(cap=money(usage.cap))
    agents = Text(_("agents {cost}").format(cost=money(usage.agents_cost)), look.faint) if usage.agents_cost else Text()
    lines.append(spread(Text(cost, look.soft if usage.cost_known else look.faint), agents, width))
    return lines
