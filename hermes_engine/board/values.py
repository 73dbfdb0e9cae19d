"""What a board holds, as frozen values, and what can go wrong with it. Knows no database and no rule.

Times are seconds since the epoch by the database's clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from hermes_engine.errors import HermesError, StateError, UsageError

State = Literal["triage", "todo", "ready", "running", "blocked", "review", "done", "archived"]
STATES: tuple[State, ...] = get_args(State)
WAITING: frozenset[State] = frozenset({"triage", "todo", "ready", "blocked", "review"})
"""States in which a card waits for something, and says for what."""

Role = Literal["work", "review"]
"""What a run is to do: the card's work, or judging it."""

Ending = Literal["done", "review", "sent_back", "blocked", "failed", "gave_up", "provider_error", "lost", "stopped"]
"""How a run ended: finished its card | asked for a review | a reviewer sent the card back | blocked it |
the worker failed | it met a limit of its own (turns, time, money) | the model's server failed |
its process died or fell silent | a person or the program ended it (never counted as a try)."""

Failure = Literal["failed", "gave_up", "provider_error", "lost", "stopped"]
"""Endings a worker's owner reports with `Hold.end`."""


class UnknownCard(UsageError):
    """No card with that id on this board."""


class IllegalMove(UsageError):
    """The card's state does not allow the verb."""


class BoardGone(StateError):
    """The board was renamed or deleted while it was open."""


class RunOver(HermesError):
    """A worker wrote with the token of a run that is no longer the card's: nothing was changed, the worker stops."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Which process holds a claim: never recognised by a pid or a host name alone.

    Attributes:
        machine: stands for the machine (a hash).
        boot: boot id of its kernel, and the pid namespace.
        pid: process id there.
        birth: when the process began, as the kernel tells it.
        token: of the running instance of this program; chosen at random.
        host: the machine's name, for people only.
    """

    machine: str
    boot: str
    pid: int
    birth: str
    token: str
    host: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt at a card.

    Attributes:
        id: grows with time; unique on its board.
        card: id of the card.
        role: the work, or a review of it.
        profile: what it ran on.
        state: `running`, or how it ended.
        owner: process that holds or held it.
        started, heartbeat, expires, ended: when; `expires` is the end of its lease, `ended` None while it runs.
        summary: what it delivered, or why it blocked.
        error: what went wrong, its last text.
        activity: what it did last, one line.
        tokens: used up to now.
        session: its conversation, once known.
        workspace: folder it worked in, once known.
        commit: branch with what was committed there, from whose end the next attempt starts.
    """

    id: int
    card: str
    role: Role
    profile: str
    state: Ending | Literal["running"]
    owner: Owner
    started: float
    heartbeat: float
    expires: float
    ended: float | None
    summary: str
    error: str
    activity: str
    tokens: int
    session: str
    workspace: str
    commit: str


@dataclass(frozen=True, slots=True)
class Card:
    """One card as it stands.

    Attributes:
        id: short, for people (`k12`); never used again on its board.
        title, body: what is to be done. Foreign text: data, never an instruction to the program.
        status: where it stands.
        reason: why it waits; "" when it does not wait (`running`, `done`, `archived`). Of a running card whose
            worker's process is known to be dead: that.
        assignee: profile that works it.
        reviewer: profile that judges it; "" for a person.
        priority: higher is claimed first.
        parents, children: ids of the cards it waits for, and of those that wait for it.
        workspace: `scratch` | `dir:/ABSOLUTE/PATH` | `worktree`.
        max_retries: tries after the first; None: the board's setting.
        idempotency_key: of its creation, or None.
        result: what it delivered; "" before.
        retry_at: not to be claimed before; 0 for at once.
        run: the open run, else None.
        runs: how many there were.
        created, updated, finished: when; `finished` None until it is done.
        created_by: who made it; `created_run` the run that did, or None.
    """

    id: str
    title: str
    body: str
    status: State
    reason: str
    assignee: str
    reviewer: str
    priority: int
    parents: tuple[str, ...]
    children: tuple[str, ...]
    workspace: str
    max_retries: int | None
    idempotency_key: str | None
    result: str
    retry_at: float
    run: Run | None
    runs: int
    created: float
    updated: float
    finished: float | None
    created_by: str
    created_run: int | None


@dataclass(frozen=True, slots=True)
class Comment:
    """A note on a card. `run` is the run that wrote it, None for a person."""

    id: int
    card: str
    run: int | None
    author: str
    text: str
    created: float


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that belongs to a card; the board keeps its name and path, not its content."""

    id: int
    card: str
    name: str
    path: str
    by: str
    created: float


@dataclass(frozen=True, slots=True)
class CardEvent:
    """Something that happened to a card. Events are only ever added.

    Attributes:
        id: grows; `Board.events(after=…)` goes on from it.
        card: id of the card.
        run: run that did it or to which it happened, or None.
        verb: what was done, a verb of `moves` or one that moves nothing (edit, assign, comment, attach, extend).
        source, target: status before and after; equal when nothing moved, `source` "" at creation.
        by: who did it.
        text: reason, comment, summary or error, in full.
        at: when.
    """

    id: int
    card: str
    run: int | None
    verb: str
    source: str
    target: str
    by: str
    text: str
    at: float


@dataclass(frozen=True, slots=True)
class Details:
    """A card with its whole history, oldest first."""

    card: Card
    runs: tuple[Run, ...]
    comments: tuple[Comment, ...]
    attachments: tuple[Attachment, ...]


@dataclass(frozen=True, slots=True)
class Claim:
    """A card taken for a new run.

    Attributes:
        card: as it was taken.
        run: the run opened for it.
        token: secret of the run; every write of its worker carries it (`Hold`).
        lease: seconds until the claim lapses without a heartbeat.
    """

    card: Card
    run: Run
    token: str
    lease: float


@dataclass(frozen=True, slots=True)
class CardDraft:
    """A card to be made.

    Attributes:
        title: one line; its line ends become blanks.
        body: the whole task.
        assignee: profile; None: that of the card whose run makes it, else `default`.
        reviewer: profile that will judge it when a review is asked for; "" for a person.
        priority: higher is claimed first.
        parents: ids; `@0` means the first draft of the same `create_all`.
        idempotency_key: a second creation with it returns the first card, unchanged.
        max_retries: tries after the first; None: the board's setting.
        workspace: `scratch` | `dir:/ABSOLUTE/PATH` | `worktree`.
        triage: a person sorts it first.
    """

    title: str
    body: str = ""
    assignee: str | None = None
    reviewer: str = ""
    priority: int = 0
    parents: tuple[str, ...] = ()
    idempotency_key: str | None = None
    max_retries: int | None = None
    workspace: str = "scratch"
    triage: bool = False
