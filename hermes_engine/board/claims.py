"""A whole board: reading, the verbs of people, and the claims by which dispatchers take cards."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from hermes_engine.board import writing
from hermes_engine.board.dialect import Row, Transaction, marks
from hermes_engine.board.moves import check
from hermes_engine.board.owners import lives
from hermes_engine.board.reading import run_of
from hermes_engine.board.values import Claim, IllegalMove, Owner, Run
from hermes_engine.board.verbs import Verbs
from hermes_engine.board.writing import id_of, line

Alive = Callable[[Run], bool | None]
"""Whether a run's owner lives: True, False, or None where it cannot be told."""


@dataclass(frozen=True, slots=True)
class Reclaimed:
    """What `Board.reclaim_expired` found.

    Attributes:
        lost: runs that were ended; their cards wait for another try or are blocked.
        extended: runs beyond their lease whose owner lives; they go on.
    """

    lost: tuple[Run, ...] = ()
    extended: tuple[Run, ...] = ()


class Board(Verbs):
    """One board. Safe to be used by many threads and processes at once; every method blocks for the database.

    Args: see `Reading`.
    """

    def claim(self, owner: Owner, *, profiles: Collection[str], cap: int | None = None) -> Claim | None:
        """Takes the next card to be worked or reviewed and opens a run for it, in one transaction.

        The card of the highest priority, among equals the oldest, whose assignee (in review: reviewer) is among
        `profiles` and whose time has come.

        Args:
            owner: process that will work it.
            profiles: names of the profiles that can work here.
            cap: cards that may run on this board at once, by whomever; None: `kanban.max_workers`.

        Returns:
            None when there is no such card, or the cap is reached.
        """
        names = list(profiles)
        most = self.rules.max_workers if cap is None else cap
        with self._database.write("claims") as transaction:
            running = transaction.one("SELECT count(*) AS n FROM runs WHERE ended IS NULL")
            if not names or (running and running["n"] >= most):
                return None
            row = transaction.one(
                "SELECT * FROM cards WHERE retry_at <= ?"
                f" AND ((status = 'ready' AND assignee IN ({marks(names)}))"
                f" OR (status = 'review' AND reviewer IN ({marks(names)})))"
                f" ORDER BY priority DESC, number LIMIT 1{transaction.dialect.skip_locked}",
                transaction.now,
                *names,
                *names,
            )
            return None if row is None else self._take(transaction, row, owner)

    def claim_card(self, card: str, owner: Owner, *, profile: str = "") -> Claim:
        """Takes one named card that is to be worked, whatever the cap: a person or an orchestrator works it.

        Args:
            card: its id.
            owner: process that works it.
            profile: what works it; "" for the card's own assignee.

        Raises:
            UnknownCard, IllegalMove: it does not exist, or cannot be claimed now, or waits for a review.
        """
        with self._database.write("claims") as transaction:
            row = writing.card_row(transaction, card)
            if row["status"] == "review":
                told = f"{id_of(row['number'])} waits for a review, it is not to be worked now"
                raise IllegalMove(told, hint="a person or its reviewer judges it")
            return self._take(transaction, row, owner, profile)

    def _take(self, transaction: Transaction, row: Row, owner: Owner, profile: str = "") -> Claim:
        token, lease = secrets.token_hex(16), self.rules.claim_ttl_seconds
        by_card = row["reviewer"] if row["phase"] == "review" else row["assignee"]
        name = line(profile or by_card or "a person")
        check("claim", id_of(row["number"]), row["status"])
        transaction.look_at_clock()  # a parent may have been done since this began, and no run begins before that
        run = transaction.one(
            "INSERT INTO runs (card, token, role, profile, machine, boot, pid, birth, instance, host, started,"
            " heartbeat, lease, expires) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?) RETURNING *",
            row["number"],
            token,
            row["phase"],
            name,
            owner.machine,
            owner.boot,
            owner.pid,
            owner.birth,
            owner.token,
            owner.host,
            transaction.now,
            transaction.now,
            lease,
            transaction.now + lease,
        )
        assert run is not None
        writing.move(transaction, row, "claim", "running", by=name, run=run["id"])
        transaction.change("UPDATE cards SET said = '', retry_at = 0 WHERE number = ?", row["number"])
        return Claim(self._one(transaction, id_of(row["number"])), run_of(run), token, lease)

    def reclaim_expired(self, *, alive: Alive | None = None) -> Reclaimed:
        """Ends the runs of owners that are gone, and extends the leases of those that live. For dispatchers.

        A run whose owner lives is never taken, however old its heartbeat; one whose owner is dead is taken at once;
        one whose owner cannot be looked up is taken when its lease lapsed. Only the run's own heartbeat counts, and
        one that beats meanwhile is left alone.

        Args:
            alive: judges a run's owner; None: `owners.lives`. One that ends old processes itself says True
                until they are gone.
        """
        with self._snapshot() as view:
            now = view.now
            rows = view.all("SELECT * FROM runs WHERE ended IS NULL ORDER BY id")
        judged = [(row, (alive or _by_owner(now))(run_of(row))) for row in rows]
        expired = {row["id"] for row, _ in judged if row["expires"] < now}
        todo = [(row, verdict) for row, verdict in judged if verdict is False or row["id"] in expired]
        if not todo:
            return Reclaimed()
        lost, extended = [], []
        with self._database.write() as transaction:
            for old, verdict in todo:
                card = writing.card_row(transaction, id_of(old["card"]))
                row = transaction.one(
                    f"SELECT * FROM runs WHERE id = ? AND ended IS NULL AND heartbeat = ?{transaction.dialect.locked}",
                    old["id"],
                    old["heartbeat"],
                )
                if row is None:
                    continue
                if verdict:
                    transaction.change("UPDATE runs SET expires = ? + lease WHERE id = ?", transaction.now, row["id"])
                    extended.append(run_of(row))
                else:
                    silent = round(transaction.now - row["heartbeat"])
                    why = "its process is gone" if verdict is False else f"no sign of life for {silent} s"
                    writing.failed(transaction, card, row, "lost", why, self.tries)
                    lost.append(run_of(row))
        return Reclaimed(tuple(lost), tuple(extended))

    def attend(self, owner: Owner, *, takes: str = "", paused: Mapping[str, str] | None = None) -> None:
        """Says that a process dispatches this board; to be repeated every 20 s, ended with `leave`.

        Args:
            owner: the process.
            takes: the one profile whose cards it works; "" for all.
            paused: profiles whose cards it takes none of now, with the reason.
        """
        with self._database.write("") as transaction:
            transaction.change(
                "INSERT INTO attendants (instance, machine, boot, pid, birth, host, beat, takes, paused)"
                " VALUES (?,?,?,?,?,?,?,?,?)"
                " ON CONFLICT (instance) DO UPDATE SET machine = excluded.machine, boot = excluded.boot,"
                " pid = excluded.pid, birth = excluded.birth, host = excluded.host, beat = excluded.beat,"
                " takes = excluded.takes, paused = excluded.paused",
                owner.token,
                owner.machine,
                owner.boot,
                owner.pid,
                owner.birth,
                owner.host,
                transaction.now,
                takes,
                json.dumps(dict(paused or {})),
            )

    def leave(self, owner: Owner) -> None:
        """Says that the process no longer dispatches this board."""
        with self._database.write("") as transaction:
            transaction.change("DELETE FROM attendants WHERE instance = ?", owner.token)


def _by_owner(now: float) -> Alive:
    return lambda run: lives(run.owner, now - run.heartbeat)
