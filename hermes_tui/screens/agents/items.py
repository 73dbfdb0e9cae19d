"""Every agent as the agents' screens show it, made of the engine's rows and of records on disk; their order, their
filter. Pure data: no engine call, no widget.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hermes_tui.cleaning import one_line
from hermes_tui.commands.listing import gone_on_with
from hermes_tui.outcomes import state_words
from hermes_tui.texts import _, ngettext

if TYPE_CHECKING:
    from hermes_engine.store.agents import AgentRecord
    from hermes_engine.work.supervisor import AgentRow

QUIET_SECONDS = 90.0
"""Silence that is worth a word."""

Place = Literal["here", "past", "elsewhere"]
SORTS = ("need", "tree", "newest")

_SIGNS = {"running": "running", "waiting": "waiting", "done": "good", "handed over": "good"}
_BAD = frozenset({"failed", "timeout", "max_turns"})
_URGENCY = {"needs": 0, "running": 1, "waiting": 2}


@dataclass(frozen=True, slots=True)
class AgentItem:
    """One agent.

    Attributes:
        id, name, title, kind, state, activity, session, owner, parent, depth, model, profile, prompt, needs: as in
            `AgentRow`.
        place: here = in this program's list; past = only its record is left; elsewhere = in another running program.
        started, ended, heard: seconds since the epoch; `ended` 0 while it lives.
        tokens, cost: None when nobody knows.
        busy: it works or waits for its turn to; a chat at rest does not.
        where: program and folder of an agent elsewhere, folder of one that ended elsewhere; one line.
        record: what is on disk of it, if that has been read.
    """

    id: str
    name: str
    title: str
    kind: str
    state: str
    activity: str
    session: str
    owner: str
    parent: str
    depth: int
    model: str
    profile: str
    prompt: str
    place: Place
    started: float
    ended: float = 0.0
    heard: float = 0.0
    tokens: int | None = None
    cost: float | None = None
    steps: int = 0
    tools: int = 0
    needs: str = ""
    busy: bool = False
    where: str = ""
    record: AgentRecord | None = None

    @property
    def live(self) -> bool:
        """Whether it has not come to its end."""
        return not self.ended

    @property
    def resumable(self) -> bool:
        """Whether it can be gone on with where it stood."""
        return self.state in ("interrupted", "handed over")

    @property
    def sign(self) -> str:
        """needs | running | waiting | good | bad | stopped."""
        if self.needs:
            return "needs"
        return "bad" if self.state in _BAD else _SIGNS.get(self.state, "stopped")

    def seconds(self, now: float) -> float:
        """How long it has worked, or how long it took."""
        return max(0.0, (self.ended or now) - self.started) if self.started else 0.0

    def quiet(self, now: float) -> float:
        """Seconds since something came from it, 0 while that is recent or it does not work."""
        silent = now - self.heard if self.state == "running" and self.heard and not self.needs else 0.0
        return silent if silent >= QUIET_SECONDS else 0.0

    @property
    def words(self) -> str:
        """Its state in words."""
        if self.needs:
            return _("needs you")
        if self.state == "waiting":
            return _("at rest") if self.kind == "chat" else _("waits for a place")
        return state_words(self.state)

    def doing(self) -> str:
        """What it does now, or how it ended, one line."""
        if self.live:
            return one_line(self.activity) or self.words
        why = one_line(self.record.error, 200) if self.record and self.record.error and self.sign != "good" else ""
        return f"{self.words}: {why}" if why else self.words


def of_row(row: AgentRow, *, busy: bool, record: AgentRecord | None) -> AgentItem:
    """An agent of this program."""
    return AgentItem(
        row.id, row.name, row.title, row.kind, row.state, row.activity, row.session, row.owner, row.parent, row.depth,
        row.model, row.profile, row.prompt, "here", row.started, row.ended, row.heard,
        row.usage.total_tokens if row.usage.tokens_known else None,
        row.usage.cost_usd if row.usage.cost_known else None,
        row.steps, row.tools, row.needs, busy, record=record,
    )  # fmt: skip


def of_record(record: AgentRecord, place: Place, where: str = "") -> AgentItem:
    """An agent of an earlier time or of another program."""
    began = record.started or record.created
    usage = record.usage
    return AgentItem(
        record.id, record.name, record.title, record.kind, record.state, record.activity, record.session, record.owner,
        record.parent, 0, record.model, record.profile, record.prompt, place, began, record.ended or 0.0, 0.0,
        usage.total_tokens if usage.tokens_known and record.ended else None,
        usage.cost_usd if usage.cost_known and record.ended else None,
        needs=record.id if record.request else "", busy=record.ended is None, where=where, record=record,
    )  # fmt: skip


def gathered(
    rows: Sequence[AgentRow],
    working: Iterable[str],
    past: Iterable[AgentRecord],
    elsewhere: Iterable[AgentRecord],
    programs: Mapping[str, tuple[int, str]],
    folders: Mapping[str, str] | None = None,
) -> tuple[AgentItem, ...]:
    """All agents, each once: those of this program, ended ones of earlier times, those of other programs.

    A chat is among them while it works or agents of it live; one that was gone on with is not. `working` are the ids
    of those at work, `folders` the folders of chats that work in another one than this.
    """
    folders = folders or {}
    rows, past, elsewhere = list(rows), list(past), list(elsewhere)
    stale = gone_on_with([*rows, *past, *elsewhere])
    records = {record.id: record for record in past}
    busy = frozenset(working)
    parents = {name for row in rows if row.live for name in (row.parent, row.owner)}
    here = [
        of_row(row, busy=row.id in busy, record=records.get(row.id) if row.ended else None)
        for row in rows
        if row.id not in stale
        and (row.kind != "chat" or (row.live and (row.id in busy or row.id in parents or row.session in parents)))
    ]
    known = {row.id for row in rows}
    strangers = [record for record in elsewhere if record.id not in known and not _rests(record)]
    known |= {record.id for record in strangers} | stale
    gone = [
        of_record(record, "past", folders.get(record.owner, ""))
        for record in records.values()
        if record.id not in known and record.ended
    ]
    away = [of_record(record, "elsewhere", _where(record, programs)) for record in strangers]
    return (*here, *gone, *away)


def _rests(record: AgentRecord) -> bool:
    """Whether it is a chat that does nothing."""
    return record.kind == "chat" and record.state == "waiting" and not record.request


def _where(record: AgentRecord, programs: Mapping[str, tuple[int, str]]) -> str:
    pid, folder = programs.get(record.instance, (0, ""))
    return _("pid {pid} in {folder}").format(pid=pid, folder=one_line(folder)) if pid else _("another program")


def matching(items: Iterable[AgentItem], typed: str) -> list[AgentItem]:
    """Those that hold every word."""
    words = typed.lower().split()

    def text(item: AgentItem) -> str:
        parts = (item.name, item.title, item.kind, item.words, item.activity, item.model, item.id, item.where)
        return " ".join(parts).lower()

    return [item for item in items if all(word in text(item) for word in words)]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the list: an agent, so many levels below the one it is drawn under; else a heading, or nothing."""

    heading: str = ""
    item: AgentItem | None = None
    level: int = 0
    note: str = ""


def arranged(items: Sequence[AgentItem], sort: str = "need", *, every: bool = True) -> list[Line]:
    """The lines of the list: what lives here, what lives elsewhere, what has ended; of other folders `every` one or
    how many.
    """
    here = [item for item in items if item.place == "here" and (item.live or sort == "tree")]
    shown = {item.id for item in here}
    ended = [item for item in items if item.place != "elsewhere" and item.id not in shown]
    away = [item for item in items if item.place == "elsewhere"]
    if sort == "tree":
        lines = list(_tree(here))
    else:
        ordered = sorted(here, key=_newest) if sort == "newest" else sorted(here, key=_urgent)
        lines = [Line(item=item) for item in ordered]
    near = [item for item in ended if every or not item.where]
    for heading, group in ((_("In other programs"), sorted(away, key=_urgent)), (_("Ended"), sorted(near, key=_last))):
        if group:
            lines += [Line()] if lines else []
            lines += [Line(heading), *(Line(item=item) for item in group)]
    if more := len(ended) - len(near):
        lines += [Line()] if lines and not near else []
        words = ngettext("{n} more of other folders · o shows it", "{n} more of other folders · o shows them", more)
        lines.append(Line(note=words.format(n=more)))
    return lines


def _urgent(item: AgentItem) -> tuple[int, bool, float]:
    """What needs the person first; a chat, which they know, after the agents of its state."""
    return _URGENCY.get(item.sign, len(_URGENCY)), item.kind == "chat", item.started


def _newest(item: AgentItem) -> float:
    return -item.started


def _last(item: AgentItem) -> float:
    return -item.ended


def _tree(items: Sequence[AgentItem]) -> Iterable[Line]:
    """Each agent after the one that started it; background tasks after the chat they belong to."""
    chats = {item.session: item.id for item in items if item.kind == "chat"}
    ids = {item.id for item in items}
    below: dict[str, list[AgentItem]] = {}
    for item in items:
        above = item.parent or (chats.get(item.owner, "") if item.kind != "chat" else "")
        below.setdefault(above if above in ids else "", []).append(item)

    def grow(parent: str, level: int) -> Iterable[Line]:
        for item in sorted(below.get(parent, ()), key=lambda item: (not item.live, item.started)):
            yield Line(item=item, level=level)
            yield from grow(item.id, level + 1)

    return grow("", 0)


def counts(items: Iterable[AgentItem]) -> dict[str, int]:
    """How many agents of this program need the person, run and wait; of chats those that need the person."""
    told = dict.fromkeys(_URGENCY, 0)
    for item in items:
        if item.place == "here" and item.live and item.sign in told and (item.needs or item.kind != "chat"):
            told[item.sign] += 1
    return told
