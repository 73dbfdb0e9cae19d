"""`hermes tasks`: tasks and agents, of this and of other running programs. Lists and shows from the store alone; what
it asks of another program is an order there. Only `retry` and `resume` start an engine.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from hermes_engine.errors import StateError, UsageError
from hermes_engine.messages import UNKNOWN_USAGE
from hermes_engine.paths import Home
from hermes_tui.cleaning import one_line
from hermes_tui.cli.border import INTERRUPTED
from hermes_tui.cli.flags import ENGINE, Flags, resolve, takes
from hermes_tui.cli.shape import Group
from hermes_tui.commands.listing import agent_columns, agent_rows
from hermes_tui.commands.transcript import message_record
from hermes_tui.outcomes import TASK_KINDS, kept
from hermes_tui.printing.records import out_json, out_table
from hermes_tui.printing.streams import is_terminal, out
from hermes_tui.texts import _, ngettext

if TYPE_CHECKING:
    from hermes_engine.messages import Message
    from hermes_engine.store.agents import AgentRecord, AgentStore
    from hermes_engine.store.database import Database
    from hermes_engine.store.orders import OrderKind

RECENT_SECONDS = 86_400.0
"""What ended longer ago is listed with --all only."""

ORDER_SECONDS = 5.0
"""So long it is waited for another program to take an order."""

EVERY_ONE = 1_000_000
_HEADLESS = tuple(name for name in ENGINE if name not in ("resume", "continue_last"))


@click.group(cls=Group)
def tasks() -> None:
    """List, show, stop, answer and go on with tasks and agents."""


# Reading


class Kept(NamedTuple):
    """The store of a home, and which programs live."""

    database: Database
    agents: AgentStore
    living: frozenset[str]

    def true(self, record: AgentRecord) -> AgentRecord:
        """The record as things are: what a dead program left open is interrupted, whether noted yet or not."""
        if not record.live or record.instance in self.living:
            return record
        from hermes_engine.store.recordings import Recordings

        [last] = self.database.read("SELECT max(created) AS word FROM messages WHERE session = ?", (record.session,))
        return dataclasses.replace(
            record,
            state="interrupted",
            ended=max(record.started or record.created, last["word"] or 0.0),
            usage=Recordings(self.database).spent(record.id) + UNKNOWN_USAGE,
        )

    def started_with(self, record: AgentRecord) -> dict[str, Any]:
        """The flags of the program that ran it, as far as they hold for whoever goes on with it."""
        from hermes_engine.store.instances import Instances

        known = {item.name for item in dataclasses.fields(Flags)}
        kept = Instances(self.database).flags(record.instance)
        return {name: value for name, value in kept.items() if name in known}


@contextlib.contextmanager
def _store() -> Iterator[Kept | None]:
    """What is kept; None when nothing ever was (reading makes no file)."""
    path = Home.from_env().state_db
    if not path.exists():
        yield None
        return
    from hermes_engine.store.agents import AgentStore
    from hermes_engine.store.instances import Instances
    from hermes_engine.store.migrations import open_state

    database = open_state(path)
    try:
        yield Kept(database, AgentStore(database), Instances(database).living())
    finally:
        database.close()


@contextlib.contextmanager
def _found(wanted: str) -> Iterator[tuple[Kept, AgentRecord]]:
    with _store() as store:
        if store is None:
            raise UsageError(_("there is no task {wanted}").format(wanted=repr(wanted)), hint="hermes tasks list")
        yield store, store.true(store.agents.find(wanted))


@tasks.command("list")
@click.option("--all", "every", is_flag=True, help=_("Also what ended more than a day ago."))
@click.option("--json", "as_json", is_flag=True, help=_("One JSON array."))
def list_(every: bool, as_json: bool) -> None:
    """List tasks and agents, the newest first."""
    with _store() as store:
        found = store.agents.list(kinds=TASK_KINDS, limit=EVERY_ONE) if store is not None else ()
        rows = [store.true(record) for record in found] if store is not None else []
    chain = Chain(rows)
    since = 0.0 if every else time.time() - RECENT_SECONDS
    rows = [row for row in rows if row.live or (row.ended or 0) >= since]
    if as_json:
        out_json([_record(row, chain) for row in rows])
    elif is_terminal(sys.stdout):
        if not rows:
            out(_("No tasks. /background TASK in the app or the plain shell starts one."))
        out_table(agent_columns(), [chain.told(row) for row in rows if every or row.id not in chain.next])
    else:
        out_table((), [_cells(row, chain) for row in rows])


class Chain:
    """Which records go on with one another, or run one's task again. `next` names the newest that follows each."""

    def __init__(self, rows: Iterable[AgentRecord]) -> None:
        self._follows = {row.id: row.follows for row in rows}
        self.next = {before: row for row, before in reversed(self._follows.items()) if before}

    def told(self, row: AgentRecord) -> tuple[str, ...]:
        """A record's cells at a terminal: one that was followed says by which, the last of several how many."""
        [cells] = agent_rows([row])
        before, seen = 0, row.id
        while seen := self._follows.get(seen, ""):
            before += 1
        state = cells[3]
        if row.id in self.next:
            state = _("{state}, then {id}").format(state=state, id=self.next[row.id])
        elif before:
            state = ngettext("{state} ({n} before)", "{state} ({n} before)", before).format(state=state, n=before)
        return (*cells[:3], state, *cells[4:])


def _time(moment: float | None) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds").replace("+00:00", "Z") if moment else ""


def _cells(row: AgentRecord, chain: Chain) -> tuple[str, ...]:
    """A record off a terminal."""
    record = _record(row, chain)
    usage = record["usage"]
    cost = f"{usage['cost_usd']:.6f}" if usage["cost_known"] else ""
    seconds = f"{record['seconds']:.1f}"
    state = "needs you" if record["needs"] else row.state
    return row.id, row.name, row.kind, state, record["started"], seconds, str(row.usage.total_tokens), cost, row.title


def _record(row: AgentRecord, chain: Chain) -> dict[str, Any]:
    began = row.started or row.created
    usage = row.usage if not row.live else UNKNOWN_USAGE
    asks = json.loads(row.request) if row.request and row.live else None
    return {
        "id": row.id,
        "name": row.name,
        "kind": row.kind,
        "state": row.state,
        "activity": row.activity if row.live else "",
        "needs": asks is not None,
        "request": asks.get("title") or asks.get("question", "") if asks else None,
        "asks": asks,
        "title": row.title,
        "prompt": row.prompt,
        "model": row.model,
        "profile": row.profile,
        "session": row.session,
        "owner": row.owner,
        "parent": row.parent,
        "follows": row.follows or None,
        "followed_by": chain.next.get(row.id),
        "started": _time(began),
        "ended": _time(row.ended),
        "seconds": round((row.ended or time.time()) - began, 1) if began else 0.0,
        "usage": usage.as_record(),
        "answer": row.answer,
        "error": row.error or None,
        "files": list(row.files),
        "note": row.note,
    }


@tasks.command()
@click.argument("task", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help=_("One JSON object with the messages."))
def show(task: str, as_json: bool) -> None:
    """Print what a task was, did and brought."""
    from hermes_engine.store.sessions import SessionStore

    with _found(task) as (store, record):
        chain = Chain(store.agents.list(kinds=TASK_KINDS, limit=EVERY_ONE))
        try:
            messages = SessionStore(store.database).load(record.session)
        except StateError:
            messages = []
    if as_json:
        out_json({**_record(record, chain), "messages": [message_record(message) for message in messages]})
        return
    outcome = kept(record)
    out(f"{record.name} {outcome.heading}  {record.model}", style="bold")
    out(record.prompt.strip())
    for message in messages[1:]:
        _print_message(message)
    if asked := _record(record, chain)["request"]:
        out(_("asks: {what}").format(what=one_line(asked, 200)), style="bold")
    out()
    out((record.answer or _("no answer yet") if record.live else record.answer).rstrip("\n"))
    for line in outcome.remains():
        out(line, style="dim")
    if record.follows:
        out(_("goes on from {id}, or runs its task again").format(id=record.follows), style="dim")
    if later := chain.next.get(record.id):
        out(_("gone on with, or run again, as {id}").format(id=later), style="dim")


def _print_message(message: Message) -> None:
    """A message as one line; the last answer is printed whole elsewhere."""
    if message.role == "user":
        out(f"❯ {one_line(message.content, 160)}", style="dim")
    elif message.content.strip() and message.tool_calls:
        out(f"  {one_line(message.content, 160)}", style="dim")
    for call in message.tool_calls:
        out(f"▸ {call.name} {one_line(call.arguments, 140)}", style="dim")


# Asking other programs


@tasks.command()
@click.argument("task", metavar="ID")
def cancel(task: str) -> None:
    """Stop a task at work, whichever program runs it."""
    with _found(task) as (store, record):
        _order(store, record, "cancel")
    out(_("{name} {id} is being stopped").format(name=record.name, id=record.id))


@tasks.command()
@click.argument("task", metavar="ID")
@click.argument("answer", metavar="once|session|no|TEXT...", nargs=-1, required=True)
def answer(task: str, answer: tuple[str, ...]) -> None:
    """Answer what a task waits to be told."""
    from hermes_engine.events import ApprovalAsked
    from hermes_tui.commands.answers import read_answer

    with _found(task) as (store, record):
        asked = record.asks
        if asked is None:
            raise UsageError(_("{name} {id} asks nothing").format(name=record.name, id=record.id))
        said = read_answer(asked, " ".join(answer))
        if said is None:
            ruled = isinstance(asked, ApprovalAsked) and asked.rule
            hint = "once, session, no [WHY], always" if ruled else "once, no [WHY]"
            raise UsageError(_("{said} is no answer here").format(said=repr(" ".join(answer))), hint=hint)
        payload = {"request": asked.request, "choice": said.choice, "note": said.note}
        _order(store, record, "answer", payload)
    out(_("answered {name} {id}").format(name=record.name, id=record.id))


def _order(store: Kept, record: AgentRecord, kind: OrderKind, payload: Mapping[str, Any] | None = None) -> None:
    """Posts an order to the program that runs an agent and waits until it was taken.

    Raises:
        UsageError: the agent is not at work.
        StateError: nobody took the order in time.
    """
    from hermes_engine.store.orders import OrderBook

    if not record.live:
        raise UsageError(
            _("{name} {id} is not at work: {state}").format(name=record.name, id=record.id, state=record.state)
        )
    orders = OrderBook(store.database)
    order = orders.post(kind, agent=record.id, payload=payload)
    end = time.monotonic() + ORDER_SECONDS
    while not orders.taken(order):
        if time.monotonic() > end:
            raise StateError(_("its program has not answered within {n:.0f} s").format(n=ORDER_SECONDS))
        time.sleep(0.05)


# Going on


@tasks.command()
@takes(*_HEADLESS)
@click.argument("task", metavar="ID...", nargs=-1, required=True)
@click.option("--detach", is_flag=True, help=_("Return at once; it goes on in a process of its own."))
def resume(flags: Flags, task: tuple[str, ...], detach: bool) -> int:
    """Go on with interrupted tasks and print what they bring."""
    records = _ended(task)
    for record in records:
        if record.state not in ("interrupted", "handed over"):
            words = _("{name} {id} is {state}, so there is nothing to go on with")
            raise UsageError(words.format(name=record.name, id=record.id, state=record.state))
    if not detach:
        return _carried_on(flags, records, anew=False)
    from hermes_tui.leaving_behind import go_on_without_us

    for asked, given in _as_started(flags, records):
        resolved = resolve(asked)
        resolved.endpoint_for()
        process = go_on_without_us([record.id for record in given], resolved)
        names = ", ".join(record.name for record in given)
        out(_("{names} goes on in process {process} · hermes tasks list").format(names=names, process=process))
    return 0


@tasks.command()
@takes(*_HEADLESS)
@click.argument("task", metavar="ID...", nargs=-1, required=True)
def retry(flags: Flags, task: tuple[str, ...]) -> int:
    """Run ended tasks again from their beginning and print what they bring."""
    return _carried_on(flags, _ended(task), anew=True)


def _carried_on(flags: Flags, records: Sequence[AgentRecord], *, anew: bool) -> int:
    from hermes_tui.cli.headless import carry_on

    code = 0
    for asked, given in _as_started(flags, records):
        code = max(code, carry_on(asked, [record.id for record in given], anew=anew))
        if code == INTERRUPTED:
            break
    return code


def _as_started(flags: Flags, records: Sequence[AgentRecord]) -> list[tuple[Flags, list[AgentRecord]]]:
    """The tasks by the flags their programs were started with, over which the flags given now stand."""
    groups: dict[Flags, list[AgentRecord]] = {}
    with _store() as store:
        for record in records:
            kept = Flags(**store.started_with(record)) if store is not None else Flags()
            groups.setdefault(kept.merged(flags), []).append(record)
    return list(groups.items())


def _ended(wanted: tuple[str, ...]) -> list[AgentRecord]:
    """The records of these tasks. Raises UsageError: none of that id, or one that is at work."""
    found: dict[str, AgentRecord] = {}
    for text in wanted:
        with _found(text) as (_kept, record):
            if record.live:
                raise UsageError(
                    _("{name} {id} is at work").format(name=record.name, id=record.id),
                    hint=f"hermes tasks cancel {record.id}",
                )
            found[record.id] = record
    return list(found.values())
