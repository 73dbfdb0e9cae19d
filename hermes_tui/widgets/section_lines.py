"""What the sidebar says below the agents: batch runs, plan, context, usage. Pure functions from facts to lines."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from hermes_tui.cleaning import one_line
from hermes_tui.texts import _
from hermes_tui.widgets.agent_lines import Manner, heading
from hermes_tui.widgets.facts import BatchFact, BoardFact, ContextFact, StepFact, UsageFact
from hermes_tui.widgets.look import Look
from hermes_tui.widgets.rows import shorten, spread
from hermes_tui.widgets.times import count_short, money, seconds_short


def nothing_words() -> tuple[str, ...]:
    """What an empty sidebar teaches."""
    return (
        _("Nothing runs. /spawn TASK starts a helper you can watch."),
        "",
        _("/background TASK keeps this chat free."),
        "",
        _("/batch FILE runs every prompt of a file."),
    )


def bar(share: float, width: int, look: Look) -> Text:
    """A bar of `width` cells, filled to `share` (0 to 1)."""
    filled = max(0, min(width, round(share * width)))
    if share > 0 and not filled:
        filled = 1
    text = Text(look.glyphs.bar * filled, look.accent)
    return text.append(look.glyphs.line * (width - filled), look.line)


def batch_lines(batch: BatchFact, manner: Manner) -> list[Text]:
    """A run: name and share, bar, counters that add up."""
    look, width = manner.look, manner.width
    glyphs = look.glyphs
    right = Text(f"{batch.percent}%" if batch.at_work else batch.state, look.text if batch.at_work else look.soft)
    if batch.state == "paused":
        right = Text(_("paused") + "  ", look.soft).append_text(right)
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
    if batch.reason and not batch.at_work:
        lines.append(shorten(Text(one_line(batch.reason), look.faint), width, glyphs.ellipsis))
    return lines


def board_lines(board: BoardFact, manner: Manner) -> list[Text]:
    """A board with open cards: how many run, need the person and wait for a review, and the names of the first."""
    look, glyphs = manner.look, manner.look.glyphs
    if not board.open:
        return []
    marks = Text()
    for sign, style, count in (
        (glyphs.needs, look.warning, board.needs),
        (glyphs.running, look.accent, board.running),
        (glyphs.ticked, look.soft, board.review),
        (glyphs.waiting, look.faint, board.open - board.needs - board.running - board.review),
    ):
        if count:
            marks.append(f" {sign}{count}", style)
    name = Text(_("Board").upper() + "  ", look.soft).append(one_line(board.slug), look.text)
    lines = [spread(name, marks, manner.width)]
    for card, sign, title in board.cards:
        mark = (glyphs.needs, look.warning) if sign == "needs" else (glyphs.running, look.accent)
        line = Text().append(f"{mark[0]} ", mark[1]).append(f"{card} ", look.soft).append(title, look.text)
        lines.append(shorten(line, manner.width, glyphs.ellipsis))
    return lines


def plan_lines(plan: Sequence[StepFact], manner: Manner) -> list[Text]:
    """The chat's plan, until all of it is done."""
    look, glyphs = manner.look, manner.look.glyphs
    done = sum(step.state == "done" for step in plan)
    if done == len(plan):
        return []
    lines = [heading(f"{_('Plan')}  {done}/{len(plan)}", Text(), manner)]
    for step in plan:
        sign, style, words = {
            "done": (glyphs.good, look.good, look.faint),
            "active": (glyphs.folded, look.accent, look.text),
        }.get(step.state, (glyphs.waiting, look.faint, look.soft))
        line = Text().append(f"{sign} ", style).append(one_line(step.text), words)
        lines.append(shorten(line, manner.width, glyphs.ellipsis))
    return lines


def context_lines(context: ContextFact, manner: Manner) -> list[Text]:
    """How full the context is; a window nobody knows is said to be unknown."""
    look = manner.look
    if not context.tokens:
        return []
    about = "~" if context.estimated else ""
    window = count_short(context.window) if context.window else _("size unknown")
    figures = Text(f"{about}{count_short(context.tokens)} / {window}", look.soft)
    lines = [heading(_("Context"), figures, manner)]
    if context.window:
        lines.append(bar(context.tokens / context.window, manner.width, look))
    if context.percent is not None and context.percent >= 80:
        lines.append(Text(_("nearly full; /compact shortens it"), look.soft))
    return lines


def usage_lines(usage: UsageFact, manner: Manner) -> list[Text]:
    """Tokens and money of this chat; what nobody told is said to be unknown."""
    look = manner.look
    if not usage.tokens and usage.tokens_known:
        return []
    if not usage.tokens_known and not usage.tokens:
        return [heading(_("Usage"), Text(_("not reported"), look.faint), manner)]
    tokens = Text(f"{count_short(usage.tokens)} tok", look.soft)
    lines = [heading(_("Usage"), tokens, manner)]
    cost = money(usage.cost) if usage.cost_known else _("price unknown")
    if usage.cap:
        cost += " " + _("of {cap} cap").format(cap=money(usage.cap))
    agents = Text(_("agents {cost}").format(cost=money(usage.agents_cost)), look.faint) if usage.agents_cost else Text()
    lines.append(spread(Text(cost, look.soft if usage.cost_known else look.faint), agents, manner.width))
    return lines
