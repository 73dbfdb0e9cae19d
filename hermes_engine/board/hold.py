"""A worker's hold on its card: every write carries the token of its run.

Once the run is over (finished, taken away, blocked or archived by somebody) each of these raises RunOver and changes
nothing: the worker stops. A worker in another process makes its hold from the board's name and the token alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hermes_engine.board import writing
from hermes_engine.board.claims import Board
from hermes_engine.board.dialect import Row, Transaction
from hermes_engine.board.reading import run_of
from hermes_engine.board.values import Card, CardDraft, Failure, IllegalMove, Owner, Run, RunOver
from hermes_engine.board.writing import id_of, line, number_of, text
from hermes_engine.errors import UsageError
from hermes_engine.paths import safe_name


class Hold:
    """What a worker may do with its card.

    Args:
        board: the card's; the hold does not close it.
        token: of the run (`Claim.token`).
    """

    def __init__(self, board: Board, token: str) -> None:
        self.board = board
        self._token = token
        self._database = board._database

    def check(self) -> Run:
        """The run as it stands; writes nothing. To be asked before a first request, and after a suspend.

        Raises:
            RunOver: it is no longer the card's.
        """
        with self._database.snapshot() as view:
            row = view.one("SELECT * FROM runs WHERE token = ?", self._token)
        if row is None or row["ended"] is not None:
            raise _over(row)
        return run_of(row)

    def card(self) -> Card:
        """The card as it stands. Raises RunOver."""
        return self.board.card(self.check().card)

    def heartbeat(self, *, activity: str | None = None, tokens: int | None = None) -> float:
        """Renews the lease; returns its seconds from now.

        A worker that could not renew by two thirds of them stops itself, its own processes first.

        Args:
            activity: what the worker does, one line for people; None leaves it.
            tokens: used up to now; None leaves them.
        """
        values = {"activity": None if activity is None else line(activity[:2000], 2000)[:500], "tokens": tokens}
        return self._note({name: value for name, value in values.items() if value is not None})

    def record(self, *, session: str | None = None, workspace: str | None = None, commit: str | None = None) -> None:
        """Tells where the attempt can be looked at, for people and for the next attempt; None leaves a value."""
        values = {"session": session, "workspace": workspace, "commit_id": commit}
        self._note({name: text(value, 4096) for name, value in values.items() if value is not None})

    def adopt(self, owner: Owner) -> None:
        """Makes another process the owner of the run: a worker process that starts takes it from its dispatcher."""
        self._note(
            {
                "machine": owner.machine,
                "boot": owner.boot,
                "pid": owner.pid,
                "birth": owner.birth,
                "instance": owner.token,
                "host": owner.host,
            }
        )

    def complete(self, summary: str, *, created: Iterable[str] = ()) -> Card:
        """Finishes the card; in a review, passes it, and the summary is the verdict.

        Args:
            summary: the result.
            created: ids of cards the worker says it made.

        Raises:
            UsageError: one of them was not made for this card; it is named and the card runs on.
        """
        with self._running() as (transaction, run, card):
            self._refuse_foreign(transaction, card, created)
            review = run["role"] == "review"
            writing.end_run(transaction, run["id"], "done", summary=summary)
            result = (card["result"] or summary) if review else summary
            verb: Any = "accept" if review else "complete"
            writing.finish(transaction, card, verb, result, by=run["profile"], told=summary, run=run["id"])
            return self.board._one(transaction, id_of(card["number"]))

    def request_review(self, summary: str, *, reviewer: str | None = None) -> Card:
        """Hands the work in for review; the summary is the result if it is passed.

        Args:
            summary: what was done.
            reviewer: profile that judges it; None leaves the card's own, "" is a person.

        Raises:
            IllegalMove: this run is itself a review.
        """
        with self._running() as (transaction, run, card):
            if run["role"] == "review":
                raise IllegalMove(
                    f"this run reviews {id_of(card['number'])}", hint="complete it, send it back, or block it"
                )
            judge = card["reviewer"] if reviewer is None else reviewer
            judge = safe_name("profile", judge) if judge else ""
            writing.end_run(transaction, run["id"], "review", summary=summary)
            writing.move(transaction, card, "review", "review", by=run["profile"], told=text(summary), run=run["id"])
            transaction.change(
                "UPDATE cards SET phase = 'review', reviewer = ?, result = ?, retry_at = 0, said = '' WHERE number = ?",
                judge,
                text(summary),
                card["number"],
            )
            return self.board._one(transaction, id_of(card["number"]))

    def send_back(self, note: str) -> Card:
        """A reviewer asks for more: the note becomes a comment, and the card is worked again.

        After as many verdicts as the card has tries it is blocked instead, with the last note.

        Raises:
            IllegalMove: this run is no review.
            UsageError: there is no note.
        """
        with self._running() as (transaction, run, card):
            if run["role"] != "review":
                raise IllegalMove(f"this run works {id_of(card['number'])}, it does not review it")
            writing.add_comment(transaction, card, note, author=run["profile"], run=run["id"])
            writing.sent_back(transaction, card, run, note, self.board.tries)
            return self.board._one(transaction, id_of(card["number"]))

    def block(self, why: str) -> Card:
        """Ends the run with a reason why the card cannot go on; it stays so until somebody unblocks it.

        Also the way to finish with a "no": the cards that wait for this one are kept back and say why.
        """
        if not why.strip():
            raise UsageError("blocking needs a reason")
        with self._running() as (transaction, run, card):
            writing.end_run(transaction, run["id"], "blocked", summary=why)
            writing.move(transaction, card, "block", "blocked", by=run["profile"], told=text(why), run=run["id"])
            transaction.change("UPDATE cards SET said = ? WHERE number = ?", text(why), card["number"])
            return self.board._one(transaction, id_of(card["number"]))

    def comment(self, said: str, *, card: str | None = None) -> Card:
        """Adds a note to its card, or to another one."""
        with self._running() as (transaction, run, own):
            row = own if card is None else writing.card_row(transaction, card)
            writing.add_comment(transaction, row, said, author=run["profile"], run=run["id"])
            return self.board._one(transaction, id_of(row["number"]))

    def attach(self, files: Iterable[Path]) -> None:
        """Names files that belong to its card. Raises UsageError when one is no file; then none is named."""
        with self._running() as (transaction, run, card):
            for file in files:
                writing.add_file(transaction, card, file, by=run["profile"], run=run["id"])

    def create(self, draft: CardDraft) -> Card:
        """Makes a card; without an assignee it goes to the profile of this card's assignee."""
        with self._running() as (transaction, run, _card):
            number = writing.insert(transaction, draft, by=run["profile"], run=run)
            return self.board._one(transaction, id_of(number))

    def link(self, parent: str, child: str) -> Card:
        """Makes one card wait for another; returns the child."""
        with self._running() as (transaction, run, _card):
            writing.add_link(transaction, parent, child, by=run["profile"])
            return self.board._one(transaction, child)

    def end(self, state: Failure, error: str = "") -> Card:
        """Ends a run that brought no result; the worker's owner says why.

        Args:
            state: `failed` (the worker's own fault, also when it simply stopped) and `gave_up` (a limit of its own)
                count together, `provider_error` and `lost` each for themselves, `stopped` not at all.
            error: the last text, which a person will read.
        """
        with self._running() as (transaction, run, card):
            writing.failed(transaction, card, run, state, error, self.board.tries)
            return self.board._one(transaction, id_of(card["number"]))

    @contextlib.contextmanager
    def _running(self) -> Iterator[tuple[Transaction, Row, Row]]:
        with self._database.write() as transaction:
            found = transaction.one("SELECT * FROM runs WHERE token = ?", self._token)
            if found is None or found["ended"] is not None:
                raise _over(found)
            card = writing.card_row(transaction, id_of(found["card"]))
            yield transaction, found, card

    def _note(self, values: dict[str, Any]) -> float:
        with self._database.write("") as transaction:
            values["heartbeat"] = transaction.now
            named = ", ".join(f"{name} = ?" for name in values)
            rows = transaction.all(
                f"UPDATE runs SET {named}, expires = ? + lease WHERE token = ? AND ended IS NULL RETURNING lease",
                *values.values(),
                transaction.now,
                self._token,
            )
            if not rows:
                raise _over(transaction.one("SELECT * FROM runs WHERE token = ?", self._token))
            return float(rows[0]["lease"])

    def _refuse_foreign(self, transaction: Transaction, card: Row, created: Iterable[str]) -> None:
        made = {
            row["number"]
            for row in transaction.all(
                "SELECT c.number FROM cards c JOIN runs r ON r.id = c.created_run WHERE r.card = ?", card["number"]
            )
        }
        foreign = [str(item)[:60] for item in created if not _among(str(item), made)]
        if foreign:
            raise UsageError(
                f"not made by the worker of {id_of(card['number'])}: {', '.join(foreign)}",
                hint="name only ids that create returned, or none",
            )


def _among(card: str, made: set[int]) -> bool:
    with contextlib.suppress(UsageError):
        return number_of(card) in made
    return False


def _over(row: Row | None) -> RunOver:
    if row is None:
        return RunOver("there is no run with this token on this board")
    told = f": {line(row['error'][:300], 300)}" if row["error"] else ""
    return RunOver(
        f"run {row['id']} of {id_of(row['card'])} is over ({row['state']}{told}); nothing was changed",
        hint="stop working on it",
    )
