"""What people and orchestrators do with cards. Each verb is one transaction and returns the card as it then stands.

`by` is who does it, a name for people to read. A verb on a running card ends its run: the worker learns it from its
next write or look (`Hold.check`, `Board.standing`). Every verb raises UnknownCard for a card that does not exist,
IllegalMove where the table of moves does not allow it, UsageError for an unusable value (nothing is changed then), and
StateError when the database cannot be used.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from hermes_engine.board import writing
from hermes_engine.board.dialect import Row, Transaction
from hermes_engine.board.moves import Verb, check
from hermes_engine.board.reading import Reading
from hermes_engine.board.values import Card, CardDraft, IllegalMove, State
from hermes_engine.board.writing import Tries, id_of, line, text
from hermes_engine.errors import UsageError
from hermes_engine.paths import safe_name


class Verbs(Reading):
    """A board that people write to."""

    @property
    def tries(self) -> Tries:
        """How failures are met on this board."""
        return Tries(self.rules.failure_limit, self.rules.retry_seconds)

    def create(self, draft: CardDraft, *, by: str = "") -> Card:
        """A new card; with an idempotency key that was used before, the card of then, unchanged."""
        return self.create_all([draft], by=by)[0]

    def create_all(self, drafts: Iterable[CardDraft], *, by: str = "") -> tuple[Card, ...]:
        """Several cards or none, for a plan: `@0` among the parents of a draft is the first of them."""
        numbers: list[int] = []
        with self._database.write() as transaction:
            for draft in drafts:
                parents = tuple(_planned(parent, numbers) for parent in draft.parents)
                numbers.append(writing.insert(transaction, replace(draft, parents=parents), by=by))
            return tuple(self._one(transaction, id_of(number)) for number in numbers)

    def edit(
        self,
        card: str,
        *,
        title: str | None = None,
        body: str | None = None,
        reviewer: str | None = None,
        priority: int | None = None,
        max_retries: int | None = None,
        workspace: str | None = None,
        files: Iterable[Path] = (),
        by: str = "",
    ) -> Card:
        """Changes what a card says; None leaves a value. A running worker keeps what it was given at its claim.

        `files` are named as `attach` names them; where one is no file nothing at all is changed.
        """
        values: dict[str, Any] = {
            "title": None if title is None else writing.title(title),
            "body": None if body is None else text(body),
            "reviewer": reviewer if not reviewer else safe_name("profile", reviewer),
            "priority": None if priority is None else writing.whole("priority", priority),
            "max_retries": None if max_retries is None else writing.whole("max retries", max_retries, least=0),
            "workspace": None if workspace is None else writing.workspace(workspace),
        }
        changed = {name: value for name, value in values.items() if value is not None}
        named = list(files)
        if not changed and not named:
            raise UsageError("nothing to change", hint=", ".join([*values, "files"]).replace("_", " "))
        with self._database.write() as transaction:
            row = writing.card_row(transaction, card)
            for file in named:
                writing.add_file(transaction, row, file, by=by)
            if not changed:
                return self._one(transaction, card)
            self._set(transaction, row, **changed)
            return self._noted(transaction, row, "edit", ", ".join(changed), by)

    def assign(self, card: str, profile: str, *, by: str = "") -> Card:
        """Gives a card to a profile; its tries count anew. IllegalMove while it runs."""
        name = safe_name("profile", profile)
        with self._database.write() as transaction:
            row = writing.card_row(transaction, card)
            if row["status"] == "running":
                raise IllegalMove(f"{id_of(row['number'])} is running", hint="reclaim or block it first")
            self._set(transaction, row, assignee=name)
            if row["status"] in ("todo", "ready"):
                writing.anew(transaction, row["number"], row["phase"])
            return self._noted(transaction, row, "assign", name, by)

    def reassign(self, old: str, new: str, *, by: str = "") -> int:
        """Follows a profile that was renamed: every card's assignee and reviewer; how many cards changed.

        Those that are done too: one that is reopened must find its profile.
        """
        name = safe_name("profile", new)
        with self._database.write() as transaction:
            rows = transaction.all(
                f"SELECT * FROM cards WHERE assignee = ? OR reviewer = ? ORDER BY number{transaction.dialect.locked}",
                old,
                old,
            )
            for row in rows:
                changed = {column: name for column in ("assignee", "reviewer") if row[column] == old}
                self._set(transaction, row, **changed)
                self._noted(transaction, row, "assign", name, by)
            return len(rows)

    def comment(self, card: str, said: str, *, by: str = "") -> Card:
        """Adds a note; the card's next worker reads it."""
        with self._database.write() as transaction:
            row = writing.card_row(transaction, card)
            writing.add_comment(transaction, row, said, author=by)
            return self._one(transaction, card)

    def attach(self, card: str, *files: Path, by: str = "") -> Card:
        """Names files that belong to the card; they are not copied. UsageError when one is no file: none is named."""
        return self.edit(card, files=files, by=by)

    def link(self, parent: str, child: str, *, by: str = "") -> Card:
        """Makes `child` wait for `parent`; returns the child. UsageError for a circle or a card that began."""
        with self._database.write() as transaction:
            writing.add_link(transaction, parent, child, by=by)
            return self._one(transaction, child)

    def unlink(self, parent: str, child: str, *, by: str = "") -> Card:
        """Takes the wait away; returns the child. UsageError when it did not wait for that card."""
        with self._database.write() as transaction:
            above, below = writing.card_row(transaction, parent), writing.card_row(transaction, child)
            if not transaction.change(
                "DELETE FROM links WHERE parent = ? AND child = ?", above["number"], below["number"]
            ):
                raise UsageError(f"{id_of(below['number'])} does not wait for {id_of(above['number'])}")
            self._noted(transaction, below, "unlink", id_of(above["number"]), by)
            writing.settle(transaction, [below["number"]])
            return self._one(transaction, child)

    def sort(self, card: str, *, by: str = "") -> Card:
        """Lets a card out of `triage`."""
        return self._rest(card, "sort", by)

    def block(self, card: str, why: str, *, by: str = "") -> Card:
        """Keeps a card back until somebody unblocks it; a run at work ends. UsageError without a reason."""
        if not why.strip():
            raise UsageError("blocking needs a reason")
        return self._put(card, "block", "blocked", by, why, said=text(why))

    def unblock(self, card: str, *, by: str = "") -> Card:
        """Lets a blocked card go on where it was; its tries count anew."""
        with self._database.write() as transaction:
            row = writing.card_row(transaction, card)
            target = writing.resting(transaction, row["number"], row["phase"])
            writing.move(transaction, row, "unblock", target, by=line(by))
            writing.anew(transaction, row["number"], row["phase"])
            return self._one(transaction, card)

    def complete(self, card: str, result: str = "", *, by: str = "") -> Card:
        """A person's word that the card is done; a run at work ends, children go on."""
        with self._database.write() as transaction:
            row = writing.card_row(transaction, card)
            check("complete", id_of(row["number"]), row["status"])
            run = writing.take_away(transaction, row, f"completed by {line(by) or 'a person'}")
            writing.finish(transaction, row, "complete", result or row["result"], by=line(by), run=run)
            return self._one(transaction, card)

    def review(self, card: str, note: str = "", *, by: str = "") -> Card:
        """Asks for a review, by the card's reviewer or else a person, who find the note among its comments; a run at
        work ends."""
        with self._database.write() as transaction:
            row = writing.card_row(transaction, card)
            check("review", id_of(row["number"]), row["status"])
            self._remarked(transaction, row, note, by)
            return self._put_in(transaction, row, "review", "review", by, note, said="", phase="review", retry_at=0)

    def accept(self, card: str, note: str = "", *, by: str = "") -> Card:
        """A person passes the review: the card is done with the result it has, the note is a comment."""
        with self._database.write() as transaction:
            row = self._under_review(transaction, card, "accept")
            self._remarked(transaction, row, note, by)
            run = writing.take_away(transaction, row, f"accepted by {line(by) or 'a person'}")
            writing.finish(transaction, row, "accept", row["result"] or note, by=line(by), told=note, run=run)
            return self._one(transaction, card)

    def send_back(self, card: str, note: str, *, by: str = "") -> Card:
        """A person asks for more; the note becomes a comment for the next worker. UsageError without a note."""
        with self._database.write() as transaction:
            row = self._under_review(transaction, card, "send_back")
            run = writing.take_away(transaction, row, f"sent back by {line(by) or 'a person'}")
            writing.add_comment(transaction, row, note, author=by)
            target = writing.resting(transaction, row["number"], "work")
            writing.move(transaction, row, "send_back", target, by=line(by), told=text(note), run=run)
            writing.anew(transaction, row["number"], "work")
            return self._one(transaction, card)

    def reclaim(self, card: str, *, by: str = "") -> Card:
        """Takes a running card from its worker; it waits anew and the run counts as no try."""
        return self._rest(card, "reclaim", by)

    def archive(self, card: str, *, by: str = "") -> Card:
        """Puts a card away; a run at work ends. Children of an unfinished one wait on and say so."""
        return self._put(card, "archive", "archived", by, "")

    def reopen(self, card: str, *, by: str = "") -> Card:
        """A done or archived card is to be worked once more; children that did not begin wait for it again."""
        with self._database.write() as transaction:
            row = writing.card_row(transaction, card)
            target = writing.resting(transaction, row["number"], "work")
            writing.move(transaction, row, "reopen", target, by=line(by))
            writing.anew(transaction, row["number"], "work")
            transaction.change("UPDATE cards SET finished = NULL WHERE number = ?", row["number"])
            writing.settle(transaction, writing.children(transaction, row["number"]))
            return self._one(transaction, card)

    def remember(self, name: str, value: str) -> None:
        """Keeps a short text with the board (whether it is dispatched, by which choice)."""
        with self._database.write() as transaction:
            transaction.change(
                "INSERT INTO memory (name, value) VALUES (?,?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                name,
                text(value),
            )

    def _put(self, card: str, verb: Verb, target: State, by: str, told: str, **columns: Any) -> Card:
        with self._database.write() as transaction:
            row = writing.card_row(transaction, card)
            return self._put_in(transaction, row, verb, target, by, told, **columns)

    def _put_in(
        self, transaction: Transaction, row: Row, verb: Verb, target: State, by: str, told: str, **columns: Any
    ) -> Card:
        check(verb, id_of(row["number"]), row["status"])
        run = writing.take_away(transaction, row, _told(verb, by, told))
        writing.move(transaction, row, verb, target, by=line(by), told=text(told), run=run)
        self._set(transaction, row, **columns)
        return self._one(transaction, id_of(row["number"]))

    def _remarked(self, transaction: Transaction, row: Row, note: str, by: str) -> None:
        """Keeps the word that came with a move where whoever has the card next reads it."""
        if note.strip():
            writing.add_comment(transaction, row, note, author=by)

    def _rest(self, card: str, verb: Verb, by: str) -> Card:
        with self._database.write() as transaction:
            row = writing.card_row(transaction, card)
            check(verb, id_of(row["number"]), row["status"])
            run = writing.take_away(transaction, row, _told(verb, by, ""))
            target = writing.resting(transaction, row["number"], row["phase"])
            writing.move(transaction, row, verb, target, by=line(by), run=run)
            return self._one(transaction, card)

    def _under_review(self, transaction: Transaction, card: str, verb: Verb) -> Row:
        row = writing.card_row(transaction, card)
        check(verb, id_of(row["number"]), row["status"])
        if row["phase"] != "review":
            raise IllegalMove(f"{id_of(row['number'])} is at work, nothing was handed in for review yet")
        return row

    def _set(self, transaction: Transaction, row: Row, **columns: Any) -> None:
        columns["updated"] = transaction.now
        named = ", ".join(f"{name} = ?" for name in columns)
        transaction.change(f"UPDATE cards SET {named} WHERE number = ?", *columns.values(), row["number"])

    def _noted(self, transaction: Transaction, row: Row, verb: str, told: str, by: str) -> Card:
        status = row["status"]
        transaction.tell(row["number"], verb, source=status, target=status, by=line(by), text=told)
        return self._one(transaction, id_of(row["number"]))


_PAST = {"block": "blocked", "review": "put under review", "archive": "archived", "reclaim": "reclaimed"}


def _told(verb: str, by: str, why: str) -> str:
    told = f"{_PAST.get(verb, verb)} by {line(by) or 'a person'}"
    return f"{told}: {why}" if why else told


def _planned(parent: str, numbers: list[int]) -> str:
    if not parent.startswith("@"):
        return parent
    place = parent[1:]
    if not place.isdecimal() or int(place) >= len(numbers):
        raise UsageError(f"parent {parent!r} names no earlier card of the plan")
    return id_of(numbers[int(place)])
