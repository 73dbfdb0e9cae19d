"""How runs and rows are drawn: lines of the lists, the bars over the table. Pure functions."""

from __future__ import annotations

import time

from rich.style import Style
from rich.text import Text

from hermes_tui.cleaning import one_line
from hermes_tui.presenter.batch import RunModel, TableRow
from hermes_tui.presenter.batch_counts import Counters, state_word
from hermes_tui.screens.batch.book import RunItem
from hermes_tui.texts import _, ngettext
from hermes_tui.widgets import chrome
from hermes_tui.widgets.bar import Part
from hermes_tui.widgets.look import Look
from hermes_tui.widgets.rows import cut, shorten, spread
from hermes_tui.widgets.times import count_short, money, seconds_short

COLUMNS = ("all", "prompt", "few")
"""Sets of columns that `c` goes through."""

WIDE_LIST = 100
"""From this width on a run of the list has its state, its model and its counts beside what a resume would do."""

ROOMY = 104
"""From this width on rows have their prompt beside the last step."""

COUNTED = 92
"""From this width on counters have words."""


def sign_of(word: str, look: Look) -> tuple[str, Style]:
    """The sign of a run's state or a row's."""
    glyphs = look.glyphs
    return {
        "needs": (glyphs.needs, look.warning),
        "running": (glyphs.running, look.accent),
        "quiet": (glyphs.running, look.accent),
        "paused": (glyphs.stopped, look.soft),
        "done": (glyphs.good, look.good),
        "kept": (glyphs.good, look.good),
        "rejected": (glyphs.rejected, look.soft),
        "failed": (glyphs.bad, look.bad),
        "stopped": (glyphs.bad, look.bad),
        "killed": (glyphs.bad, look.bad),
        "nothing": (glyphs.bad, look.bad),
        "interrupted": (glyphs.stopped, look.soft),
        "open": (glyphs.stopped, look.soft),
    }.get(word, (glyphs.waiting, look.faint))


def left_words(told: Counters) -> str:
    """What a resume would do: `174 left (5 failed, 169 waiting)`."""
    waiting = told.waiting + told.running + told.needs
    return _("{left} left ({failed} failed, {waiting} waiting)").format(
        left=waiting + told.failed, failed=told.failed, waiting=waiting
    )


def run_line(item: RunItem, column: int, width: int, look: Look) -> Text:
    """One run of the list; names have `column` cells."""
    away = item.at_work and not item.here
    sign, style = sign_of(item.word, look)
    name_style, soft = (look.faint, look.faint) if away else (look.text, look.soft)
    column = max(8, min(column, 34, width // 3))
    left = Text(f" {sign} ", look.faint if away else style)
    name = cut(one_line(item.name), column, look.glyphs.ellipsis)
    left.append(name, name_style).append(" " * max(2, column + 2 - Text(name).cell_len))
    told = item.counters
    if item.at_work:
        words = state_word(item.word)
        words += f" {look.glyphs.dot} {item.state.holder}" if away else ""
    elif item.left:
        words = _("resume: {left}").format(left=left_words(told))
        words = words if width < WIDE_LIST else f"{state_word(item.word)}  {words}"
    else:
        words = " ".join(part for part in (state_word(item.word), one_line(item.state.reason, 200)) if part)
    left.append(words, soft)
    if width >= WIDE_LIST and not away and (model := item.state.settings.get("options", {}).get("model")):
        left.append(f"  {one_line(str(model))}", look.faint)
    right = Text()
    share = f"{told.settled}/{told.total} {told.percent:>3}%"
    if item.left and width < WIDE_LIST:
        return spread(left, Text(share, look.text), width - 1)
    for mark, role, count in (
        (look.glyphs.good, look.good, told.kept),
        (look.glyphs.rejected, look.soft, told.rejected),
        (look.glyphs.bad, look.bad, told.failed),
    ):
        if count and width >= 50:
            right.append(f"{mark}{count} ", look.faint if away else role)
    right.append(share, look.faint if away else look.text)
    return spread(left, right, width - 1)


def sentence(model: RunModel, now: float, look: Look) -> chrome.Sides:
    """The run line: state, times, end, rate."""
    sign, _style = sign_of(model.word, look)
    role = {"running": "accent", "done": "good", "failed": "bad", "stopped": "bad", "killed": "bad", "nothing": "bad"}
    queued = model.word == "queued"  # what it took until now is not how long it waits
    spent_time = "" if queued else f" {seconds_short(int(model.elapsed(now)))}"
    left = [
        Part(one_line(model.name), "strong", gap=1, weight=9, shrinks=8),
        Part(f"{sign} {state_word(model.word)}{spent_time}", role.get(model.word, "soft"), weight=9, gap=3),
    ]
    if began := model.began():
        left.append(Part(_("started {time}").format(time=_clock(began)), "soft", weight=3, gap=3))
    seconds = model.seconds_left(now)
    if seconds is not None:
        left.append(Part(_("ends ~{time}").format(time=_clock(now + seconds)), "text", weight=7, gap=3))
    if model.at_work and not queued and (rate := model.rate(now)):
        left.append(Part(_("(last 5 min: {rate:.1f}/min)").format(rate=rate), "faint", weight=2, gap=1))
    reason = model.state.reason if model.state is not None else ""
    if not model.at_work and reason:
        left.append(Part(one_line(reason, 200), "soft", weight=4, gap=2, shrinks=10))
    right = _handles(model)
    return left, [*right, Part("", gap=1, weight=10)]


def _handles(model: RunModel) -> list[Part]:
    """What can be done to the run, as clicks."""
    if model.here:
        count = model.workers
        workers = [ngettext("{count} worker + -", "{count} workers + -", count).format(count=count)] if count else []
        pause = _("p go on") if model.paused else _("p pause")
        return [
            *(Part(words, "soft", weight=4) for words in workers),
            Part(pause, "soft", "pause", weight=6),
            Part(_("x stop"), "soft", "stop", weight=5),
        ]
    if model.at_work:
        holder = model.state.holder if model.state is not None else ""
        return [Part(holder, "faint", weight=3, shrinks=12), Part(_("x stop"), "soft", "stop", weight=5)]
    told = model.counters()
    if told.waiting + told.failed:
        words = _("p resume: {left}").format(left=left_words(told))
        return [Part(words, "accent", "pause", weight=8, shrinks=8)]
    return []


def _clock(when: float) -> str:
    return time.strftime("%H:%M", time.localtime(when))


def progress(told: Counters, width: int, look: Look) -> Text:
    """The bar, how many of how many, the share."""
    right = f"  {told.settled}/{told.total}  {told.percent} %"
    cells = max(4, width - len(right) - 2)
    share = told.settled / told.total if told.total else 0.0
    filled = min(cells, max(1 if share else 0, int(share * cells)))
    line = Text(" " + look.glyphs.bar * filled, look.accent).append(look.glyphs.line * (cells - filled), look.line)
    return line.append(right, look.text)


def counts(model: RunModel, width: int, look: Look) -> chrome.Sides:
    """The counters, which add up, and what was spent of what may be."""
    told, glyphs = model.counters(), look.glyphs
    named = (
        (glyphs.good, told.kept, _("kept"), "good"),
        (glyphs.rejected, told.rejected, _("rejected"), "soft"),
        (glyphs.bad, told.failed, _("failed"), "bad"),
        (glyphs.warning, told.invalid, _("invalid"), "soft"),
        (glyphs.needs, told.needs, _("need you"), "warning"),
        (glyphs.running, told.running, _("running"), "accent"),
        (glyphs.waiting, told.waiting, _("waiting"), "soft"),
    )
    left = []
    for number, (sign, count, word, role) in enumerate(named):
        if count or word in (_("kept"), _("failed")):
            words = f"{sign} {count} {word}" if width >= COUNTED else f"{sign}{count}"
            left.append(Part(words, role if count else "faint", weight=9, gap=2 if number else 1))
    spent = model.spent
    right = []
    if tokens := int(spent.get("total_tokens") or 0):
        right.append(Part(_("{count} tok").format(count=count_short(tokens)), "soft", weight=4))
    right += _money(model)
    return left, [*right, Part("", gap=1, weight=10)]


def _money(model: RunModel) -> list[Part]:
    cost, cap = float(model.spent.get("cost_usd") or 0.0), model.setting("max_cost_usd")
    if cap:
        words = _("{cost} of {cap} cap").format(cost=money(cost), cap=money(float(cap)))
        return [Part(words, "warning" if cost >= 0.9 * float(cap) else "text", weight=6)]
    most = model.setting("max_total_tokens")
    told = [Part(money(cost), "text", weight=6)] if cost else []
    return told + (
        [Part(_("of {cap} tok").format(cap=count_short(int(most))), "soft", weight=4, gap=1)] if most else []
    )


# Rows


def head(columns: str, width: int, look: Look) -> Text:
    """The heading of the table."""
    last = _("prompt") if columns == "prompt" else _("last step")
    names = [f" {'#':>5}", _("state"), _("time"), _("turns"), _("tools"), _("tok"), last, _("prompt")]
    return _cells(names, columns, width, [look.faint] * 8, look)


def row_line(row: TableRow, columns: str, width: int, look: Look) -> Text:
    """One row of the table."""
    sign, style = sign_of(row.state, look)
    word = _("quiet {time}").format(time=seconds_short(int(row.quiet))) if row.quiet else state_word(row.state)
    sample = f".{row.name[1]}" if row.name[1] else ""
    seconds = row.seconds if row.seconds is None or not row.live else int(row.seconds)
    words = one_line(row.prompt if columns == "prompt" else _last(row, look), 300)
    cells = [
        f" {row.name[0]}{sample}".rjust(6),
        f"{sign} {word}",
        seconds_short(seconds) if seconds is not None else "",
        str(row.turns) if row.turns else "",
        str(row.tools) if row.tools or row.turns else "",
        count_short(row.tokens) if row.tokens else "",
        words,
        one_line(row.prompt, 300),
    ]
    last = look.warning if row.quiet else look.bad if row.state == "failed" else look.soft
    styles = [look.faint, style, *[look.text] * 4, last, look.faint]
    return _cells(cells, columns, width, styles, look, whole=row.state in ("failed", "rejected"))


def _last(row: TableRow, look: Look) -> str:
    if row.quiet:
        return f"{look.glyphs.warning} " + _("no event for {time}").format(time=seconds_short(int(row.quiet)))
    tried = _("tried {count}×").format(count=row.retries + 1) if row.retries else ""
    if row.live:
        words = row.words or _("begins")
        return f"{words}, {tried}" if tried and "×" not in words else words
    words = row.words or (_("done") if row.state == "kept" else "")
    return f"{words}, {tried}" if tried and "×" not in words else words


def _cells(cells: list[str], columns: str, width: int, styles: list[Style], look: Look, *, whole: bool = False) -> Text:
    """Cells in their columns; those without room are left out, the last one takes what is left. `whole`: the last step
    is a reason, which says more than the prompt where both do not fit."""
    few = columns == "few" or width < 58
    widths = [6, 12, 5, *([0, 0, 0] if few else [5, 5, 5])]
    line = Text()
    for place, room in enumerate(widths):
        if not room:
            continue
        text = cut(cells[place], room, look.glyphs.ellipsis)
        gap = " " * (room - Text(text).cell_len)
        number = place not in (0, 1)
        line.append(("" if not number else gap) + text, styles[place]).append(gap if not number else "").append("  ")
    room = (width - line.cell_len) // 2
    if columns == "all" and width >= ROOMY and cells[7] and not (whole and Text(cells[6]).cell_len > room - 2):
        words = cut(cells[6], room - 2, look.glyphs.ellipsis)
        line.append(words, styles[6]).append(" " * (room - Text(words).cell_len)).append(cells[7], styles[7])
    else:
        line.append(cells[6], styles[6])
    return shorten(line, width - 1, look.glyphs.ellipsis)
