"""What stands beside the table of a run: pass rate, times, turns, curves, tools, errors, rejects, spending."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from hermes_tui.cleaning import one_line
from hermes_tui.presenter.batch import RunModel
from hermes_tui.texts import _
from hermes_tui.widgets.glyphs import UNICODE
from hermes_tui.widgets.look import Look
from hermes_tui.widgets.rows import cut, shorten, spread
from hermes_tui.widgets.times import count_short, money, seconds_short

STEPS, PLAIN_STEPS = "▁▂▃▄▅▆▇█", "_.,-=+*#"
NAME = 10
"""Cells of a figure's name."""

MOST = 6
"""Lines of a section."""


def figures(model: RunModel, now: float, width: int, look: Look) -> list[Text]:
    """All sections."""
    told, curves = model.counters(), model.curves(now)
    judged = told.kept + told.rejected + told.failed
    lines = [Text(_("Statistics").upper(), look.soft)]
    if judged:
        share = f"{100 * told.kept / judged:.1f} %"
        lines.append(_line(_("pass rate"), share, curve(curves.passed, look), width, look))
    times = model.figure("times", "rows") or {}
    if times:
        names = ("p50", "p90", "max")
        told_times = [f"{name} {seconds_short(float(times[name]))}" for name in names if name in times]
        words = "  ".join(told_times)
        if len(words) + NAME > width:
            words = "  ".join(told_times[:2])
        lines.append(_line(_("time"), words, Text(), width, look))
        if words != "  ".join(told_times):
            lines.append(_line("", told_times[-1], Text(), width, look))
    if turns := model.spread(lambda row: row.turns):
        lines.append(_line(_("turns"), f"p50 {turns[0]:g}  p90 {turns[1]:g}", Text(), width, look))
    if rate := model.rate(now):
        lines.append(_line(_("rate"), f"{rate:.1f}/min", curve(curves.rate, look), width, look))
    elif curves.rate:
        lines.append(_line(_("rate"), "", curve(curves.rate, look), width, look))
    coverage = model.figure("reasoning", "coverage")
    if isinstance(coverage, float):
        lines.append(_line(_("reasoning"), f"{100 * coverage:.0f} %", curve(curves.reasoning, look), width, look))
    if len(lines) == 1:
        lines.append(Text(_("no row has ended yet"), look.faint))
    lines += _tools(model, width, look)
    lines += _servers(model, width, look)
    lines += _counted(_("Errors"), model.figure("failures"), width, look)
    lines += _counted(_("Rejects"), model.figure("rejects"), width, look)
    return lines + _spending(model, width, look)


def curve(values: Sequence[float], look: Look) -> Text:
    """Values from 0 to 1 as small bars."""
    steps = STEPS if look.glyphs is UNICODE else PLAIN_STEPS
    return Text("".join(steps[min(7, max(0, round(value * 7)))] for value in values), look.accent)


def _line(name: str, words: str, right: Text, width: int, look: Look) -> Text:
    left = Text(name.ljust(NAME), look.faint).append(words, look.text)
    return spread(left, right, width) if right.plain else shorten(left, width, look.glyphs.ellipsis)


def _tools(model: RunModel, width: int, look: Look) -> list[Text]:
    told = model.figure("tools")
    found = [(name, item) for name, item in (told if isinstance(told, dict) else {}).items() if item.get("count")]
    if not found:
        return []
    found.sort(key=lambda one: -one[1]["count"])
    times = model.figure("times", "tools") or {}
    right = Text(f"{_('calls'):>6} {_('ok'):>5} {'p50':>6}", look.faint)
    lines = [Text(), spread(Text(_("Tools").upper(), look.soft), right, width)]
    for name, item in found[:MOST]:
        share = f"{100 * item['success'] / item['count']:.0f} %"
        p50 = seconds_short(float(times[name])) if name in times else ""
        figures_ = Text(f"{item['count']:>6} {share:>5} {p50:>6}", look.text)
        lines.append(spread(Text(one_line(name), look.text), figures_, width))
    return lines + _more(len(found), look)


def _servers(model: RunModel, width: int, look: Look) -> list[Text]:
    """Where the model is asked, when there are several places: those that are down first."""
    told = model.figure("replicas")
    found = [item for item in told if item.get("base_url")] if isinstance(told, list) else []
    if len(found) < 2:
        return []
    found.sort(key=lambda item: bool(item.get("up")) or not model.at_work)
    right = Text(f"{_('rows'):>6} {_('calls'):>6} {_('downs'):>6}", look.faint)
    lines = [Text(), spread(Text(_("Servers").upper(), look.soft), right, width)]
    for item in found[:MOST]:
        numbers = "".join(f" {item.get(name) or '':>6}" for name in ("rows", "requests", "downs"))
        down = model.at_work and not item.get("up")
        left = Text(f"{look.glyphs.warning} " if down else "", look.warning)
        left.append(one_line(str(item["base_url"]).partition("://")[2].removesuffix("/v1")), look.text)
        lines.append(spread(left, Text(numbers[1:], look.text), width))
    return lines + _more(len(found), look)


def _counted(title: str, told: Any, width: int, look: Look) -> list[Text]:
    if not isinstance(told, Mapping) or not told:
        return []
    found = sorted(told.items(), key=lambda one: -one[1])
    lines = [Text(), Text(f"{title.upper()}  {sum(told.values())}", look.soft)]
    for name, count in found[:MOST]:
        words = cut(one_line(name.replace("_", " ")), max(4, width - 7), look.glyphs.ellipsis)
        lines.append(Text(f"{count:>5} ", look.text).append(words, look.soft))
    return lines + _more(len(found), look)


def _more(count: int, look: Look) -> list[Text]:
    return [Text("      " + _("+{count} more").format(count=count - MOST), look.faint)] if count > MOST else []


def _spending(model: RunModel, width: int, look: Look) -> list[Text]:
    spent = model.spent
    tokens = int(spent.get("total_tokens") or 0)
    if not tokens and not spent.get("cost_usd"):
        return []
    asked, said = (count_short(int(spent.get(name) or 0)) for name in ("prompt_tokens", "completion_tokens"))
    least = "" if spent.get("tokens_known", True) else "≥ "
    words = _("{least}{asked} in, {said} out").format(least=least, asked=asked, said=said)
    lines = [Text(), Text(_("Spent").upper(), look.soft), _line(_("tokens"), words, Text(), width, look)]
    cost = float(spent.get("cost_usd") or 0.0)
    if cost:
        kept = model.counters().kept
        each = _("{cost} a kept row").format(cost=money(cost / kept)) if kept else ""
        known = "" if spent.get("cost_known", True) else "≥ "
        lines.append(_line(_("cost"), f"{known}{money(cost)}  {each}".rstrip(), Text(), width, look))
        told = model.counters()
        judged = told.kept + told.rejected + told.failed
        if model.at_work and judged and told.settled < told.total:
            words = _("~{cost} in the end").format(cost=money(cost / judged * (told.total - told.invalid)))
            lines.append(_line("", words, Text(), width, look))
    return lines
