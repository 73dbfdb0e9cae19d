"""Why a card waits, in one line, computed from the facts each time it is asked. Changes nothing, asks nobody."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from hermes_engine.board.values import WAITING, Run, State
from hermes_engine.cleaning import one_line

QUIET_SECONDS = 90.0
"""Seconds without a sign of life after which a worker's card says so: three beats are missing then."""

_LONGEST = 300
_PARENTS_SHOWN = 5
_NOBODY = "nobody works this board: hermes kanban run"


@dataclass(frozen=True, slots=True)
class Parent:
    """What a card needs to know of one it waits for."""

    id: str
    status: State
    finished: bool
    said: str


@dataclass(frozen=True, slots=True)
class Attendance:
    """What a process that dispatches the board takes: cards of the profile `takes` ("": of all), but those `paused`,
    each with the reason."""

    takes: str = ""
    paused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything a reason depends on.

    Attributes:
        status: of the card.
        worker: profile that would take it now: the assignee's, or in review the reviewer's ("": a person).
        said: the reason that is kept with a blocked card.
        parents: all of them.
        wait: seconds until it may be tried again; ≤ 0: now.
        last_error: of the try before.
        profiles: names that exist here; None: not known.
        running, cap: cards at work on the board, and how many may be; None: not known.
        attended: those that dispatch this board.
        gone: whether the process that works a running card is known to be dead.
        silent: seconds since a running card's last sign of life, where that is longer than it should be; else 0.
    """

    status: State
    worker: str = ""
    said: str = ""
    parents: tuple[Parent, ...] = ()
    wait: float = 0.0
    last_error: str = ""
    profiles: Collection[str] | None = None
    running: int = 0
    cap: int | None = None
    attended: Sequence[Attendance] = ()
    gone: bool = False
    silent: float = 0.0


def silence(run: Run, now: float, lease: float) -> float:
    """Seconds without a sign of life, 0 for what is usual: a worker beats by itself, a chat that claimed a card says by
    a call that it goes on."""
    quiet = now - run.heartbeat
    return quiet if quiet > (min(QUIET_SECONDS, lease) if run.session else lease) else 0.0


def reason(facts: Facts) -> str:
    """The reason as one line; "" for a card that does not wait."""
    if facts.status == "running" and facts.gone:
        told = "the process that worked it is gone"
        return f"{told}, it is taken over at once" if facts.attended else f"{told}; {_NOBODY}"
    if facts.status == "running" and facts.silent:
        return f"no sign of life for {round(facts.silent)} s: reclaim takes it back"
    if facts.status not in WAITING:
        return ""
    if facts.status == "triage":
        return "not sorted yet: a person says when it is ready"
    if facts.status == "blocked":
        return one_line(facts.said, _LONGEST) or "blocked"
    if facts.status == "todo":
        return _for_parents([parent for parent in facts.parents if not parent.finished])
    if facts.status == "review" and not facts.worker:
        return "waits for a person's review"
    return _for_a_worker(facts)


def _for_parents(parents: list[Parent]) -> str:
    told = []
    for parent in parents[:_PARENTS_SHOWN]:
        if parent.status == "blocked":
            told.append(f"{parent.id}, which is blocked: {one_line(parent.said, 120)}")
        elif parent.status == "archived":
            told.append(f"{parent.id}, which was archived unfinished: unlink it, or reopen it")
        elif parent.status in ("triage", "review"):
            told.append(f"{parent.id} (in {parent.status})")
        else:
            told.append(parent.id)
    more = len(parents) - _PARENTS_SHOWN
    plain = all(parent.status in ("todo", "ready", "running") for parent in parents[:_PARENTS_SHOWN])
    text = ("waits for " + (", " if plain else "; ").join(told)) if told else "waits for its parents"
    return one_line(text + (f" and {more} more" if more > 0 else ""), _LONGEST)


def _for_a_worker(facts: Facts) -> str:
    if facts.profiles is not None and facts.worker not in facts.profiles:
        return f"no profile {one_line(facts.worker, 100)} here"
    if facts.wait > 0:
        after = f": {one_line(facts.last_error, 200)}" if facts.last_error else ""
        return f"retry in {max(1, round(facts.wait))} s{after}"
    if not facts.attended:
        return _NOBODY
    takers = [one.paused.get(facts.worker) for one in facts.attended if one.takes in ("", facts.worker)]
    if not takers:
        return f"nobody works cards of {one_line(facts.worker, 100)}: hermes kanban run"
    if all(why is not None for why in takers):
        return one_line(f"waits for the model's server: {takers[0]}", _LONGEST)
    if facts.cap is not None and facts.running >= facts.cap:
        return f"waits for a free worker: {facts.running} of {facts.cap} are at work"
    return f"waits for a worker: {facts.running} at work" if facts.running else "waits for a worker"
