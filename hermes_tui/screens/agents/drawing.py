"""How agents are drawn: their lines in the list, what stands beside a transcript. Pure functions to styled text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from hermes_tui.cleaning import one_line
from hermes_tui.screens.agents.items import AgentItem, Line
from hermes_tui.texts import _
from hermes_tui.widgets.look import Look
from hermes_tui.widgets.rows import cut, shorten, spread
from hermes_tui.widgets.times import count_short, money, seconds_short

NAME, LONG_NAME = 12, 24
"""Least and greatest width of the names."""

ROOMY = 64
"""From this width on a line has its tokens, and names as long as they are."""

DOING = 24
"""From so many cells for it on a line has what the agent does beside its task."""

BESIDES = 19
"""Cells of a roomy line that are neither its name nor what it does."""


def sign_of(item: AgentItem, look: Look) -> tuple[str, Style]:
    """The sign of its state."""
    glyphs = look.glyphs
    return {
        "needs": (glyphs.needs, look.warning),
        "running": (glyphs.running, look.accent),
        "good": (glyphs.good, look.good),
        "bad": (glyphs.bad, look.bad),
        "stopped": (glyphs.stopped, look.faint),
    }.get(item.sign, (glyphs.waiting, look.faint))


def amounts(item: AgentItem) -> list[str]:
    """Tokens and money, as far as anybody knows."""
    told = [_("{count} tok").format(count=count_short(item.tokens))] if item.tokens else []
    return told + ([money(item.cost)] if item.cost else [])


def clock(item: AgentItem, now: float) -> str:
    """How long it has worked, in whole seconds while it does."""
    seconds = item.seconds(now)
    return seconds_short(int(seconds) if item.live else seconds) if seconds else ""


def name_width(lines: Iterable[Line], width: int, look: Look) -> int:
    """Cells for the names of the list: whole names, as far as room stays for what each does."""
    longest = max((cell_len(_name(line.item, look)) for line in lines if line.item), default=0)
    return max(NAME, min(longest, LONG_NAME, width - BESIDES - DOING)) if width >= ROOMY else NAME


def _name(item: AgentItem, look: Look) -> str:
    kind = {"background": look.glyphs.background, "batch": look.glyphs.batch}.get(item.kind, "")
    return f"{kind} {one_line(item.name)}".strip()


def list_line(line: Line, width: int, now: float, look: Look, names: int = NAME) -> Text:
    """One line of the list in about `width` cells, `names` of them for the name."""
    item = line.item
    if item is None:
        return Text(f" {line.note}", look.faint) if line.note else Text(f" {line.heading.upper()}", look.soft)
    glyphs, away = look.glyphs, item.place == "elsewhere"
    sign, style = sign_of(item, look)
    strong, soft = (look.faint, look.faint) if away else (look.text, look.soft)
    left = Text(" " + "  " * min(line.level, 6)).append(f"{sign} ", look.faint if away and not item.needs else style)
    name = cut(_name(item, look), names, glyphs.ellipsis)
    left.append(name, strong).append(" " * max(1, names + 1 - cell_len(name)))
    right = Text(clock(item, now), look.faint)
    if width >= ROOMY:
        right = Text(f"{count_short(item.tokens) if item.tokens else '':>6} {right.plain:>6}", look.faint)
    room = width - left.cell_len - right.cell_len - 2
    quiet = item.quiet(now)
    doing = _("quiet {time}").format(time=seconds_short(quiet)) if quiet else item.doing()
    if item.where:
        both = (item.where, doing) if away else (doing, item.where)
        doing = f" {glyphs.dot} ".join(both)
    title = one_line(item.title)
    plain = item.sign in ("running", "good") and not quiet
    if room >= DOING:
        column = room * 2 // 5
        first = shorten(Text(title, soft), column, glyphs.ellipsis)
        left.append_text(first).append(" " * (column - first.cell_len + 2))
        left.append(doing, look.text if item.needs else look.faint)
    else:
        left.append(title if title and plain else doing, soft)
    return spread(left, right, width - 1)


@dataclass(frozen=True, slots=True)
class Talked:
    """What a conversation itself tells of its agent: permissions, fullness, files that its tools changed."""

    mode: str = ""
    context: int = 0
    window: int = 0
    changed: tuple[tuple[str, str], ...] = ()
    """(file, summary) of each."""


def facts(item: AgentItem, talked: Talked, width: int, now: float, look: Look) -> list[Text]:
    """What there is to know of an agent, beside its transcript."""
    record = item.record
    pairs = [
        (_("kind"), item.kind),
        (_("where"), item.where),
        (_("model"), item.model.rpartition("/")[2]),
        (_("profile"), item.profile),
        (_("mode"), talked.mode),
        (_("steps"), f"{item.steps}, {item.tools} {_('tools')}" if item.steps else ""),
        (_("depth"), str(item.depth) if item.depth else ""),
        (_("work"), record.note if record else ""),
    ]
    lines = [_pair(name, words, width, look) for name, words in pairs if words]
    if talked.context:
        whole = f" {_('of')} {count_short(talked.window)}" if talked.window else ""
        lines.append(_pair(_("context"), f"{count_short(talked.context)}{whole} {_('tokens')}", width, look))
        if talked.window:
            lines.append(Text(" " * 9).append_text(_bar(talked.context / talked.window, max(4, width - 9), look)))
    files = talked.changed or tuple((name, "") for name in (record.files if record else ()))
    for number, (name, summary) in enumerate(files[:6]):
        lines.append(_pair(_("files") if not number else "", f"{one_line(name)}  {summary}".strip(), width, look))
    if len(files) > 6:
        lines.append(_pair("", _("+{count} more").format(count=len(files) - 6), width, look))
    return lines


def family(
    title: str, members: Sequence[AgentItem], here: str, width: int, look: Look, *, doing: dict[str, str] | None = None
) -> list[Text]:
    """Agents that belong together under a heading; none draws nothing. `doing` has newer words for some."""
    if not members:
        return []
    lines = [Text(title.upper(), look.soft)]
    for item in members[:10]:
        sign, style = sign_of(item, look)
        left = Text("  ").append(f"{sign} ", style).append(one_line(item.name).ljust(9), look.text)
        words = (doing or {}).get(item.id) or one_line(item.title)
        left.append(f" {words}", look.soft)
        lines.append(spread(left, Text(_("here") if item.id == here else "", look.faint), width))
    if len(members) > 10:
        lines.append(Text("  " + _("+{count} more").format(count=len(members) - 10), look.faint))
    return lines


def _pair(name: str, words: str, width: int, look: Look) -> Text:
    return shorten(
        Text(name.ljust(8) + " ", look.faint).append(one_line(words), look.soft), width, look.glyphs.ellipsis
    )


def _bar(share: float, width: int, look: Look) -> Text:
    filled = max(1, min(width, round(share * width)))
    return Text(look.glyphs.bar * filled, look.accent).append(look.glyphs.line * (width - filled), look.line)
