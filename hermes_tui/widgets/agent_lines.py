"""Agents in the lines of the sidebar, and what a click or the cursor on a line means. Pure functions from facts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from hermes_tui.cleaning import one_line
from hermes_tui.texts import _
from hermes_tui.widgets.facts import AgentFact, TailFact
from hermes_tui.widgets.look import Look
from hermes_tui.widgets.rows import cut, fold, shorten, spread
from hermes_tui.widgets.times import count_short, money, ordinal, quiet_short, seconds_short

MAX_AGENTS = 8
"""Agents of a section shown one by one; the others are counted, but those that need the person are always there."""

NAME, LONGEST_NAME = 8, 14
"""Cells a name takes at least and at most."""

DEEPEST = 4
"""Levels that are indented; deeper ones stand where the last of them does."""

PEEKED = 6
"""Lines of an agent's last words under its row."""

OVER, MORE = ":over", ":more"
"""Ends of the items that stand for several agents: `agents:over`."""

Tail = Callable[[str], Sequence[TailFact]]


@dataclass(frozen=True, slots=True)
class Line:
    """A line, and the agent or group it belongs to ("" for none)."""

    text: Text
    item: str = ""


@dataclass(frozen=True, slots=True)
class Manner:
    """How a section is drawn.

    Attributes:
        width: cells of a line.
        tall: each agent has a third line.
        most: agents shown one by one.
        opened: groups whose agents are listed, agents whose last words are shown.
        tail: an agent's last words.
    """

    width: int
    look: Look
    tall: bool = False
    most: int = MAX_AGENTS
    opened: Collection[str] = ()
    tail: Tail = lambda agent: ()


def heading(name: str, right: Text, manner: Manner) -> Text:
    """A section's first line."""
    return spread(Text(name.upper(), manner.look.soft), right, manner.width)


def agent_lines(name: str, agents: Sequence[AgentFact], manner: Manner) -> list[Line]:
    """The section `name`, agents or background: heading, those at work, those that have ended as one line."""
    if not agents:
        return []
    live = [agent for agent in agents if not agent.over]
    over = [agent for agent in agents if agent.over]
    lines = [Line(_heading(name, live, manner))]
    urgent = sum(agent.sign == "needs" for agent in live)
    room = max(0, manner.most - urgent) if f"{name}{MORE}" not in manner.opened else len(live)
    hidden = 0
    for agent in live:
        if agent.sign != "needs":
            if room <= 0:
                hidden += 1
                continue
            room -= 1
        lines.extend(_agent(agent, name, manner))
    if hidden:
        words = _("+{count} more").format(count=hidden)
        lines.append(Line(spread(Text(words, manner.look.soft), Text(_("show"), manner.look.faint), manner.width),
                          f"{name}{MORE}"))  # fmt: skip
    if over:
        lines.extend(_over(name, over, manner))
    return lines


def _heading(name: str, live: Sequence[AgentFact], manner: Manner) -> Text:
    look, glyphs = manner.look, manner.look.glyphs
    working = glyphs.background if name == "background" else glyphs.running
    marks = Text()
    for sign, style, count in (
        (glyphs.needs, look.warning, sum(agent.sign == "needs" for agent in live)),
        (working, look.accent, sum(agent.sign == "running" for agent in live)),
        (glyphs.waiting, look.faint, sum(agent.sign == "waiting" for agent in live)),
    ):
        if count:
            marks.append(f" {sign}{count}", style)
    title = _("Background") if name == "background" else _("Agents")
    return heading(f"{title}  {len(live)}" if live else title, marks, manner)


def _over(name: str, over: Sequence[AgentFact], manner: Manner) -> list[Line]:
    """What has ended: counted, and listed where the person opened it."""
    look, glyphs, item = manner.look, manner.look.glyphs, f"{name}{OVER}"
    counts = Text()
    for sign, style, kind, words in (
        (glyphs.good, look.good, "good", _("{count} done")),
        (glyphs.bad, look.bad, "bad", _("{count} failed")),
        (glyphs.stopped, look.faint, "stopped", _("{count} stopped")),
    ):
        count = sum(agent.sign == kind for agent in over)
        if count:
            counts.append("  " if counts.plain else "").append(f"{sign} ", style)
            counts.append(words.format(count=count), look.soft)
    opened = item in manner.opened
    word = Text(_("hide") if opened else _("show"), look.faint)
    lines = [Line(spread(counts, word, manner.width), item)]
    for agent in over if opened else ():
        lines.extend(_agent(agent, name, manner))
    return lines


def _agent(agent: AgentFact, section: str, manner: Manner) -> list[Line]:
    look, glyphs = manner.look, manner.look.glyphs
    working = glyphs.background if section == "background" and not agent.depth else glyphs.running
    sign, style = {
        "needs": (glyphs.needs, look.warning),
        "running": (working, look.accent),
        "good": (glyphs.good, look.good),
        "bad": (glyphs.bad, look.bad),
        "stopped": (glyphs.stopped, look.faint),
    }.get(agent.sign, (glyphs.waiting, look.faint))
    indent = "  " * min(agent.depth, DEEPEST)
    name = cut(one_line(agent.name), LONGEST_NAME, glyphs.ellipsis)
    left = Text(indent).append(f"{sign} ", style).append(name, look.text)
    left.append(" " * max(1, NAME + 1 - cell_len(name))).append(one_line(agent.title), look.soft)
    time = Text(seconds_short(int(agent.seconds)) if agent.seconds else "", look.faint)
    lines = [spread(left, time, manner.width)]
    if agent.sign in ("needs", "running", "waiting"):
        words = _("quiet {time}").format(time=quiet_short(agent.quiet)) if agent.quiet else one_line(agent.activity)
        told = Text(f"{indent}   {words}", look.text if agent.sign == "needs" else look.soft)
        lines.append(spread(told, Text(_figures(agent, manner.tall), look.faint), manner.width))
    if manner.tall and not agent.over and (agent.tokens or agent.cost):
        lines.append(shorten(Text(f"{indent}   {_cost(agent)}", look.faint), manner.width, glyphs.ellipsis))
    if agent.id in manner.opened:
        lines.extend(tail_lines(manner.tail(agent.id), manner.width - 3, look, PEEKED, indent=3))
    return [Line(line, agent.id) for line in lines]


def _figures(agent: AgentFact, tall: bool) -> str:
    """How far it is: its calls of tools, else its tokens."""
    if agent.sign == "needs" or agent.quiet:
        return ""
    if agent.tools:
        return _("{nth} tool").format(nth=ordinal(agent.tools))
    return _("{count} tok").format(count=count_short(agent.tokens)) if agent.tokens and not tall else ""


def _cost(agent: AgentFact) -> str:
    facts = [_("{count} tok").format(count=count_short(agent.tokens))] if agent.tokens else []
    facts += [money(agent.cost)] if agent.cost else []
    facts += [_("{nth} reply").format(nth=ordinal(agent.steps))] if agent.steps else []
    return "  ".join(facts)


def tail_lines(tail: Sequence[TailFact], width: int, look: Look, most: int, *, indent: int = 0) -> list[Text]:
    """The last `most` lines of what an agent did and said."""
    lines: list[Text] = []
    glyphs = look.glyphs
    for piece in reversed(tail):
        if piece.kind in ("tool", "fault"):
            style = look.bad if piece.kind == "fault" else look.soft
            made = [shorten(Text(f"{glyphs.folded} {one_line(piece.text)}", style), width, glyphs.ellipsis)]
        else:
            mark = f"{glyphs.user} " if piece.kind == "prompt" else ""
            text = Text(mark + "\n".join(map(one_line, piece.text.strip().splitlines())), look.text)
            made = [line for line, _joint in fold(text, max(1, width))] if text.plain else []
        lines = made + lines
        if len(lines) >= most:
            break
    if not lines:
        lines = [Text(_("nothing said yet"), look.faint)]
    return [Text(" " * indent).append_text(line) for line in lines[-most:]]
