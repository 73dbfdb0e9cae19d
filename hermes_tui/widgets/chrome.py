"""What the bars of the app say, by width: header, status line, the line of work and the line of a waiting request.

Pure functions from facts to parts; knows no widget but the bar's parts.
"""

from __future__ import annotations

from hermes_tui.texts import _
from hermes_tui.widgets.bar import Part
from hermes_tui.widgets.facts import PlaceFacts, WorkFacts
from hermes_tui.widgets.glyphs import Glyphs
from hermes_tui.widgets.times import count_short, money, seconds_short

NARROW = 60
"""Below: only what cannot be missed."""

WIDE = 120
"""From here on the sidebar shows the work, and the bottom line has room for the keys."""

VERY_WIDE = 160
"""From here on the sidebar is wider and says more of each agent."""

PEEK = 200
"""From here on there is room for the details of the newest step beside the chat."""

SHORT, TINY = 18, 9
"""Rows below which lines round the prompt go, and below which all but transcript, prompt and status go."""

Sides = tuple[list[Part], list[Part]]


def layout(width: int, height: int, sidebar: str, *, drawer: bool) -> dict[str, bool]:
    """Classes of the screen by its size; `sidebar` ∈ auto | on | off, `drawer` is whether it was asked for."""
    side = width >= WIDE if sidebar == "auto" else sidebar == "on" and width >= NARROW
    return {
        "-side": side,
        "-drawer": drawer and not side,
        "-very-wide": width >= VERY_WIDE,
        "-narrow": width < NARROW,
        "-short": height < SHORT,
        "-tiny": height < TINY,
    }


def suggestions(prompts: str) -> list[tuple[str, str]]:
    """What an empty chat proposes, one a capability. `prompts`: a file of prompts to try, "" where there is none."""
    return [
        (_("what is in this folder?"), _("it reads and runs what it needs")),
        (_("/spawn say what is unfinished here"), _("an agent that can be watched and answered")),
        (f"/batch {prompts}".strip(), _("every prompt of a file, in the background")),
        ("/help", _("everything else")),
    ]


def header(place: PlaceFacts, work: WorkFacts, width: int, glyphs: Glyphs, here: str = "chat") -> Sides:
    """Name and screens at the left, that of `here` marked; folder, branch and the one loud thing at the right."""
    left = [Part("Hermes", "strong", gap=1, weight=9 if width >= NARROW else 4)]
    for name in place.screens:
        role, action = ("text", "") if name == here else ("soft", f"app.screen('{name}')")
        left.append(Part(_screen_words(name, work, width), role, action, 9 if name == here else 6, 2))
    if place.title and width >= NARROW:
        left.append(Part(place.title, "faint", "sessions", weight=2, gap=3, shrinks=12))
    right = [Part(place.folder, "soft", weight=3, shrinks=8)] if place.folder else []
    if place.branch:
        right.append(Part(place.branch, "faint", weight=1))
    if work.needs:
        words = _("{sign} {count} need you").format(sign=glyphs.needs, count=work.needs)
        if width < WIDE:
            words = f"{glyphs.needs} {work.needs}"
        right.append(Part(words, "warning", "next_request", weight=10))
    right.append(Part("", gap=1, weight=11))
    return left, right


SCREENS = ("chat", "agents", "kanban", "batch")
"""Every screen, in the order of the numbers that open them."""


def _screen_words(name: str, work: WorkFacts, width: int) -> str:
    """`2 Agents·3`: number, name, how much goes on there."""
    words = {"chat": _("Chat"), "agents": _("Agents"), "kanban": _("Kanban"), "batch": _("Batch")}
    count = ""
    if name == "agents" and work.at_work:
        count = f"·{work.at_work}"
    elif name == "kanban" and work.board is not None and (lively := work.board.running + work.board.needs):
        count = f"·{lively}"
    elif name == "batch" and work.batch_percent is not None:
        count = f"·{work.batch_percent}%"
    return f"{SCREENS.index(name) + 1} {words[name]}{count if width >= NARROW else ''}"


def status(place: PlaceFacts, work: WorkFacts, width: int, glyphs: Glyphs) -> Sides:
    """The bottom line: what goes on (narrow) or how to talk to it (wide), mode and model, what Esc does now."""
    if width < NARROW:
        return _narrow_status(place, work, glyphs)
    left = [] if width >= WIDE else work_parts(work, glyphs)
    mode = Part(f"{_mode_name(place.mode)} {glyphs.more}", "soft", "mode", weight=6, gap=1 if width >= WIDE else 2)
    model = Part(f"{place.model or _('no model')} {glyphs.more}", "soft", "model", weight=4, shrinks=8)
    right = _right_keys(place, width, glyphs)
    if width >= WIDE:
        left = [mode, model, Part("", gap=1, weight=0), *_middle(place, width)]
    else:
        right = [*_middle(place, width), mode, model, *right]
    return left, right


def _narrow_status(place: PlaceFacts, work: WorkFacts, glyphs: Glyphs) -> Sides:
    left = work_parts(work, glyphs)
    middle = [Part(place.hint, "text", weight=8, shrinks=6)] if place.hint else []
    if not middle and place.escape:
        middle = [Part(_("Esc {what}").format(what=place.escape), "text", weight=8)]
    mode = Part(_mode_name(place.mode), "soft", "mode", weight=3)
    return left, [*middle, mode, *_pill(place, glyphs), Part("", gap=1, weight=9)]


def _middle(place: PlaceFacts, width: int) -> list[Part]:
    """The passing remark, or what Esc does, or the keys."""
    if place.hint:
        return [Part(place.hint, "text", weight=8, shrinks=10)]
    if place.escape:
        parts = [Part(_("Esc {what}").format(what=place.escape), "text", weight=8)]
        if width >= WIDE and place.busy and place.writing:
            parts += [Part(_("Enter queues"), "faint", weight=3), Part(_("^S sends now"), "faint", weight=3)]
        return parts
    if width < WIDE:
        return []
    keys = (_("Enter send"), _("^J newline"), _("@ file"), _("/ command"))
    return [
        Part(f"· {text}" if number else text, "faint", weight=2, gap=1 if number else 2)
        for number, text in enumerate(keys)
    ]


def _right_keys(place: PlaceFacts, width: int, glyphs: Glyphs) -> list[Part]:
    parts = _pill(place, glyphs)
    if parts:
        parts.append(Part(_("^End"), "faint", "newest", weight=3, gap=1))
    if width < WIDE:
        parts.append(Part(_("^T work"), "faint", "work", weight=3))
    parts.append(Part(_("? keys"), "faint", "keys", weight=5))
    if width >= WIDE:
        parts.append(Part(_("^P all"), "faint", "palette", weight=3))
    parts.append(Part("", gap=1, weight=9))
    return parts


def _pill(place: PlaceFacts, glyphs: Glyphs) -> list[Part]:
    """How much new text stands below the view."""
    if not place.unseen:
        return []
    words = _("{sign} {count} new").format(sign=glyphs.down, count=place.unseen)
    return [Part(words, "accent", "newest", weight=9)]


def _mode_name(mode: str) -> str:
    names = {
        "ask": _("ask first"),
        "edits": _("edits allowed"),
        "plan": _("plan only"),
        "auto": _("auto"),
        "yolo": _("yolo"),
    }
    return names.get(mode, mode)


def work_parts(work: WorkFacts, glyphs: Glyphs) -> list[Part]:
    """`●2 ◆1 ✓2 agents  ⚙1  ▤42%  ctx 29%  $0.42`: what goes on, in a few cells; nothing where nothing goes on."""
    parts: list[Part] = []
    for sign, role, count, weight in (
        (glyphs.running, "accent", work.count("running", beside=False), 8),
        (glyphs.needs, "warning", work.count("needs"), 9),
        (glyphs.waiting, "faint", work.count("waiting", beside=False), 4),
        (glyphs.good, "good", work.count("good"), 3),
        (glyphs.bad, "bad", work.count("bad"), 3),
    ):
        if count:
            parts.append(Part(f"{sign}{count}", role, "work", weight=weight, gap=1))
    if parts:
        parts.append(Part(_("agents"), "soft", "work", weight=2, gap=1))
    if beside := work.count("running", beside=True):
        parts.append(Part(f"{glyphs.background}{beside}", "accent", "work", weight=7, gap=2 if parts else 1))
    gap = 2 if parts else 1
    if work.batch_percent is not None:
        words = f"{glyphs.batch}{work.batch_percent}%"
        parts.append(Part(words, "accent", "app.screen('batch')", weight=7, gap=gap))
    elif work.batches:
        words = f"{glyphs.batch}{work.batches[0].kept}/{work.batches[0].total}"
        parts.append(Part(words, "soft", "work", weight=4, gap=gap))
    if work.context.tokens:
        percent = work.context.percent
        tokens = count_short(work.context.tokens)
        words = _("ctx {percent}%").format(percent=percent) if percent is not None else _("ctx {n}").format(n=tokens)
        parts.append(Part(words, "soft", "work", weight=4, gap=2 if parts else 1))
    if work.usage.cost:
        parts.append(Part(money(work.usage.cost), "soft", "work", weight=3))
    return parts


def ask_line(work: WorkFacts, width: int, glyphs: Glyphs) -> Sides:
    """The line above the prompt while something waits for an answer."""
    ask = work.ask
    if ask is None:
        return [], []
    left = [
        Part(glyphs.needs, "warning", "next_request", gap=1, weight=10),
        Part(f"{ask.asker}:", "text", "next_request", gap=1, weight=8, shrinks=6),
        Part(ask.title, "soft", "next_request", gap=1, weight=4, shrinks=8),
    ]
    right = [Part(ask.digits, "text", "next_request", weight=7)] if ask.digits and width >= NARROW else []
    if ask.more:
        right.append(Part(_("+{count} more").format(count=ask.more), "faint", weight=3))
    if width >= NARROW:
        right.append(Part(_("^N look"), "faint", "next_request", weight=6))
    right.append(Part("", gap=1, weight=9))
    return left, right


def working(place: PlaceFacts, sign: str) -> Sides:
    """The line above the prompt while a turn runs."""
    left = [Part(sign, "accent", gap=2, weight=9), Part(place.state, "soft", gap=1, weight=5, shrinks=8)]
    if place.seconds >= 1:
        left.append(Part(seconds_short(int(place.seconds)), "faint", weight=6))
    return left, []
