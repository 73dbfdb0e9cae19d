"""What stands round an agent's transcript: the line above it, the column beside it, the keys below. Pure functions."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from rich.text import Text

from hermes_tui.cleaning import one_line
from hermes_tui.screens.agents.drawing import Talked, amounts, clock, facts, family, sign_of
from hermes_tui.texts import _
from hermes_tui.widgets.bar import Part
from hermes_tui.widgets.chrome import NARROW, Sides
from hermes_tui.widgets.look import Look
from hermes_tui.widgets.times import seconds_short

if TYPE_CHECKING:
    from hermes_tui.screens.agents.book import AgentsBook
    from hermes_tui.screens.agents.items import AgentItem
    from hermes_tui.screens.agents.replay import Replay
    from hermes_tui.screens.agents.replaying import Replaying

_ROLES = {"needs": "warning", "running": "accent", "good": "good", "bad": "bad"}


def header(item: AgentItem, replay: Replay | None, width: int, now: float, look: Look) -> Sides:
    """Where one is: back, the agent; at the right its state, time, tokens, money, or how far the replay is."""
    left = [
        Part("Hermes", "strong", gap=1, weight=3),
        Part("‹ " + _("Back"), "soft", "back", weight=6),
        Part(f"/ {item.name}", "text", gap=1, weight=9, shrinks=6),
    ]
    if item.title and width >= NARROW:
        left.append(Part(f"{look.glyphs.dot} {item.title}", "soft", gap=1, weight=2, shrinks=8))
    if replay is not None:
        state = _("paused") if replay.paused else _("ended") if replay.ended else _("replay")
        place = f"{seconds_short(int(replay.position))} / {seconds_short(int(replay.length))}"
        speed = Part(f"×{replay.speed:g}", "soft")
        told = [Part(state, "accent", weight=8), Part(place, "text", weight=7), speed, Part("", gap=1, weight=9)]
        return left, told
    quiet = item.quiet(now)
    words = _("quiet {time}").format(time=seconds_short(quiet)) if quiet else item.words
    right = [
        Part(f"{sign_of(item, look)[0]} {words}", _ROLES.get(item.sign, "soft"), "answer" if item.needs else "", 8)
    ]
    figures = [part for part in (clock(item, now), *amounts(item)) if part]
    right += [Part(part, "soft", weight=5 - place) for place, part in enumerate(figures)]
    return left, [*right, Part("", gap=1, weight=9)]


def beside(
    item: AgentItem, book: AgentsBook, talked: Talked, replaying: Replaying, width: int, now: float, look: Look
) -> list[Text]:
    """The column beside the transcript."""
    parent = book.find(item.parent) if item.parent else None
    above = parent.name if parent is not None else _("you") if item.kind in ("background", "child") else ""
    lines: list[Text] = []
    if above:
        lines.append(Text(_("Parent").upper() + "   ", look.soft).append(one_line(above), look.text))
    if item.place == "past" or not item.live:
        siblings = [other for other in book.siblings(item) if other.id == item.id or other.parent]
    else:
        siblings = book.siblings(item)
    groups = [family(_("Siblings"), siblings, item.id, width, look) if len(siblings) > 1 else []]
    children = book.children(item)
    if replaying.replay is not None:
        states = replaying.states
        children = [dataclasses.replace(child, state=states[child.id]) for child in children if child.id in states]
    groups.append(family(_("Children"), children, item.id, width, look, doing=replaying.doing))
    groups.append(facts(item, talked, width, now, look))
    for group in groups:
        if group and lines:
            lines.append(Text())
        lines += group
    return lines


def keys(
    item: AgentItem, replay: Replay | None, look: Look, *, typing: bool, answering: str
) -> tuple[list[Part], list[Part]]:
    """The keys below, by what can be done now; `answering`: what Enter and Esc do while an answer is written."""
    told: list[tuple[str, str, int]] = []
    if replay is not None:
        again = _("p plays it again") if replay.ended else _("p goes on") if replay.paused else _("p pauses")
        told = [(again, "replay", 8), (_("+ faster"), "speed(1)", 6),
                (_("- slower"), "speed(-1)", 6), (_("Esc ends it"), "back", 8)]  # fmt: skip
    elif answering and typing:
        told = [(answering, "", 8)]
    elif typing:
        say = _("Enter tells it") if item.live else _("Enter goes on with it")
        told = [(say, "", 8), (_("^S stops its step first"), "interrupt_and_say", 6), (_("Esc keys"), "back", 7)]
    else:
        if item.needs:
            told.append((_("a answer"), "answer", 8))
        told += [(_("Esc back"), "back", 8), (_("[ ] sibling"), "sibling(1)", 3), (_("m message"), "say", 6)]
        if item.live:
            told += [(_("x stop"), "stop", 7), (_("X all below"), "stop(True)", 2)]
        else:
            again = _("r go on") if item.resumable else _("r again")
            told += [(again, "retry", 7), (_("p replay"), "replay", 5)]
        told += [(_("d diff"), "changes", 4), (_("y copy"), "copy", 3)]
        if not item.live:
            told.append((_("o open as chat"), "promote", 4))
    dot = look.glyphs.dot
    return [
        Part(f"{dot} {text}" if number else text, "soft", action, weight=weight, gap=1)
        for number, (text, action, weight) in enumerate(told)
    ], []
