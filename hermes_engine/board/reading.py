"""Reading a board: cards with their reasons, runs, comments, events. Nothing here changes anything.

Each call sees one state of the board. Whoever needs more rows than one card reads them all at once: a board of a
thousand cards is five statements.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager

from hermes_engine.board.dialect import Changes, Dialect, Row, Transaction
from hermes_engine.board.owners import lives
from hermes_engine.board.reasons import Attendance, Facts, Parent, reason, silence
from hermes_engine.board.values import (
    STATES,
    Attachment,
    Card,
    CardEvent,
    Comment,
    Details,
    Owner,
    Run,
    State,
    UnknownCard,
)
from hermes_engine.board.writing import id_of, number_of
from hermes_engine.settings.values import KanbanSettings
from hermes_engine.store.instances import STALE_SECONDS


class Reading:
    """A board to read.

    Args:
        slug: its name.
        database: its tables; closed with the board.
        rules: limits that decide about workers and tries.
        profiles: names of the profiles that exist here, asked when a reason depends on them; None: not known.
    """

    def __init__(
        self,
        slug: str,
        database: Dialect,
        rules: KanbanSettings | None = None,
        profiles: Callable[[], Collection[str]] | None = None,
    ) -> None:
        self.slug = slug
        self.rules = rules or KanbanSettings()
        self._database = database
        self._profiles = profiles

    def cards(self, *, archived: bool = False) -> tuple[Card, ...]:
        """All cards, those to be claimed first on top. Archived ones only when asked for."""
        with self._snapshot() as view:
            return self._cards(view, [row for row in _rows(view) if archived or row["status"] != "archived"])

    def card(self, card: str) -> Card:
        """One card. Raises UnknownCard."""
        with self._snapshot() as view:
            return self._one(view, card)

    def show(self, card: str) -> Details:
        """One card with its history. Raises UnknownCard."""
        with self._snapshot() as view:
            return self._details(view, [self._one(view, card)])[0]

    def strangers(self, card: str) -> tuple[str, ...]:
        """Profiles the card names, to work or to judge it, that are not here. Raises UnknownCard."""
        found = self.card(card)
        known = self._profiles() if self._profiles is not None else None
        named = dict.fromkeys(name for name in (found.assignee, found.reviewer) if name)
        return () if known is None or found.finished else tuple(name for name in named if name not in known)

    def details(self, *, archived: bool = False) -> tuple[Details, ...]:
        """All cards with their history, in the order of `cards`."""
        with self._snapshot() as view:
            rows = [row for row in _rows(view) if archived or row["status"] != "archived"]
            return self._details(view, self._cards(view, rows))

    def runs(self, card: str) -> tuple[Run, ...]:
        """The attempts at a card, oldest first. Raises UnknownCard."""
        return self.show(card).runs

    def open_runs(self) -> tuple[Run, ...]:
        """Every run that has not ended, by whomever it is held."""
        with self._snapshot() as view:
            return tuple(run_of(row) for row in view.all("SELECT * FROM runs WHERE ended IS NULL ORDER BY id"))

    def standing(self, tokens: Iterable[str]) -> frozenset[str]:
        """Those of the tokens whose runs are still open: what a dispatcher asks after each change, for all its own."""
        wanted = set(tokens)
        with self._snapshot() as view:
            return frozenset(row["token"] for row in view.all("SELECT token FROM runs WHERE ended IS NULL")) & wanted

    def events(self, *, after: int = 0, card: str | None = None, limit: int = 1000) -> tuple[CardEvent, ...]:
        """Events later than number `after`, oldest first, at most `limit`; of one card when it is named."""
        number = number_of(card) if card is not None else None
        where = "id > ?" if number is None else "id > ? AND card = ?"
        values = [after] if number is None else [after, number]
        with self._snapshot() as view:
            rows = view.all(f"SELECT * FROM events WHERE {where} ORDER BY id LIMIT ?", *values, limit)
        return tuple(_event(row) for row in rows)

    def latest(self) -> int:
        """Number of the newest event; 0 without any."""
        with self._snapshot() as view:
            row = view.one("SELECT coalesce(max(id), 0) AS newest FROM events")
        return int(row["newest"]) if row else 0

    def counts(self) -> dict[State, int]:
        """Cards by state; every state is named."""
        with self._snapshot() as view:
            found = {row["status"]: row["n"] for row in view.all("SELECT status, count(*) AS n FROM cards GROUP BY 1")}
        return {state: int(found.get(state, 0)) for state in STATES}

    def attended(self) -> tuple[Owner, ...]:
        """The living processes that dispatch this board."""
        with self._snapshot() as view:
            return tuple(_owner(row) for row in _attendants(view))

    def recall(self, name: str) -> str | None:
        """What `remember` keeps under the name."""
        with self._snapshot() as view:
            row = view.one("SELECT value FROM memory WHERE name = ?", name)
        return None if row is None else str(row["value"])

    def changes(self) -> Changes:
        """A watch that tells within a tenth of a second that anybody changed the board; to be closed."""
        return self._database.changes()

    def gone(self) -> bool:
        """Whether it is known to have been renamed or deleted since it was opened."""
        return self._database.gone()

    def close(self) -> None:
        """Closes the board. Later use raises StateError."""
        self._database.close()

    def _snapshot(self) -> AbstractContextManager[Transaction]:
        return self._database.snapshot()

    def _one(self, view: Transaction, card: str) -> Card:
        row = view.one("SELECT * FROM cards WHERE number = ?", number_of(card))
        if row is None:
            raise UnknownCard(f"there is no card {id_of(number_of(card))} on this board", hint="hermes kanban list")
        return self._cards(view, [row])[0]

    def _cards(self, view: Transaction, rows: Collection[Row]) -> tuple[Card, ...]:
        parents: dict[int, list[Parent]] = defaultdict(list)
        children: dict[int, list[int]] = defaultdict(list)
        only = "" if len(rows) != 1 else " WHERE l.child = ? OR l.parent = ?"
        number = [row["number"] for row in rows][:1]
        for link in view.all(
            "SELECT l.parent, l.child, p.status, p.finished, p.said FROM links l JOIN cards p ON p.number = l.parent"
            f"{only} ORDER BY l.parent, l.child",
            *(number * 2 if only else ()),
        ):
            parent = Parent(id_of(link["parent"]), link["status"], link["finished"] is not None, link["said"])
            parents[link["child"]].append(parent)
            children[link["parent"]].append(link["child"])
        counted = "SELECT card, count(*) AS n FROM runs{} GROUP BY card".format(" WHERE card = ?" if only else "")
        runs = {row["card"]: row["n"] for row in view.all(counted, *(number if only else ()))}
        at_work = {row["card"]: run_of(row) for row in view.all("SELECT * FROM runs WHERE ended IS NULL")}
        profiles = self._profiles() if self._profiles is not None else None
        attended = tuple(Attendance(row["takes"], json.loads(row["paused"])) for row in _attendants(view))
        made = []
        for row in rows:
            number_here, status = row["number"], row["status"]
            run = at_work.get(number_here)
            facts = Facts(
                status,
                worker=row["reviewer"] if status == "review" else row["assignee"],
                said=row["said"],
                parents=tuple(parents[number_here]),
                wait=row["retry_at"] - view.now,
                last_error=row["said"],
                profiles=profiles,
                running=len(at_work),
                cap=self.rules.max_workers,
                attended=attended,
                gone=run is not None and lives(run.owner, view.now - run.heartbeat) is False,
                silent=0.0 if run is None else silence(run, view.now, self.rules.claim_ttl_seconds),
            )
            made.append(
                Card(
                    id=id_of(number_here),
                    title=row["title"],
                    body=row["body"],
                    status=status,
                    reason=reason(facts),
                    assignee=row["assignee"],
                    reviewer=row["reviewer"],
                    priority=row["priority"],
                    parents=tuple(parent.id for parent in parents[number_here]),
                    children=tuple(id_of(child) for child in children[number_here]),
                    workspace=row["workspace"],
                    max_retries=row["max_retries"],
                    idempotency_key=row["idempotency_key"],
                    result=row["result"],
                    retry_at=row["retry_at"],
                    run=run,
                    runs=runs.get(number_here, 0),
                    created=row["created"],
                    updated=row["updated"],
                    finished=row["finished"],
                    created_by=row["created_by"],
                    created_run=row["created_run"],
                )
            )
        return tuple(made)

    def _details(self, view: Transaction, cards: Collection[Card]) -> tuple[Details, ...]:
        only = " WHERE card = ?" if len(cards) == 1 else ""
        values = [number_of(card.id) for card in cards] if only else []
        kept: dict[str, dict[int, list[Row]]] = {}
        for table in ("runs", "comments", "attachments"):
            kept[table] = defaultdict(list)
            for row in view.all(f"SELECT * FROM {table}{only} ORDER BY id", *values):
                kept[table][row["card"]].append(row)
        return tuple(
            Details(
                card,
                tuple(run_of(row) for row in kept["runs"][number_of(card.id)]),
                tuple(_comment(row) for row in kept["comments"][number_of(card.id)]),
                tuple(_attachment(row) for row in kept["attachments"][number_of(card.id)]),
            )
            for card in cards
        )


def _rows(view: Transaction) -> list[Row]:
    return view.all("SELECT * FROM cards ORDER BY priority DESC, number")


def _attendants(view: Transaction) -> list[Row]:
    """Rows of those that live."""
    rows = view.all("SELECT * FROM attendants ORDER BY instance")
    silent = [view.now - row["beat"] for row in rows]
    return [
        row
        for row, quiet in zip(rows, silent, strict=True)
        if quiet < STALE_SECONDS and lives(_owner(row), quiet) is not False
    ]


def _owner(row: Row) -> Owner:
    return Owner(row["machine"], row["boot"], row["pid"], row["birth"], row["instance"], row["host"])


def run_of(row: Row) -> Run:
    """A run from its row."""
    return Run(
        id=row["id"],
        card=id_of(row["card"]),
        role=row["role"],
        profile=row["profile"],
        state=row["state"],
        owner=_owner(row),
        started=row["started"],
        heartbeat=row["heartbeat"],
        expires=row["expires"],
        ended=row["ended"],
        summary=row["summary"],
        error=row["error"],
        activity=row["activity"],
        tokens=row["tokens"],
        session=row["session"],
        workspace=row["workspace"],
        commit=row["commit_id"],
    )


def _comment(row: Row) -> Comment:
    return Comment(row["id"], id_of(row["card"]), row["run"], row["author"], row["text"], row["created"])


def _attachment(row: Row) -> Attachment:
    return Attachment(row["id"], id_of(row["card"]), row["name"], row["path"], row["by_whom"], row["created"])


def _event(row: Row) -> CardEvent:
    return CardEvent(
        id=row["id"],
        card=id_of(row["card"]),
        run=row["run"],
        verb=row["verb"],
        source=row["source"],
        target=row["target"],
        by=row["by_whom"],
        text=row["text"],
        at=row["at"],
    )
