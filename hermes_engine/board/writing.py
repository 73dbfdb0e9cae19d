"""The rules of the board, as steps inside one transaction: moving a card, ending a run, letting children go.

Every verb, whoever speaks it, is made of these; none of them opens or commits a transaction.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath

from hermes_engine.board.dialect import Row, Transaction, marks
from hermes_engine.board.moves import Verb, check, legal
from hermes_engine.board.values import CardDraft, Ending, Role, State, UnknownCard
from hermes_engine.errors import UsageError
from hermes_engine.paths import safe_name
from hermes_engine.settings.values import DEFAULT_PROFILE
from hermes_engine.store.database import clean

_CARD = re.compile(r"[kK]?([0-9]{1,15})\Z")
_LONGEST_TITLE = 500
_LONGEST_TEXT = 1_000_000
_LARGEST = 1_000_000_000
_LONGEST_WAIT = 600.0
OPEN_PARENT = (
    "EXISTS (SELECT 1 FROM links l JOIN cards p ON p.number = l.parent"
    " WHERE l.child = cards.number AND p.finished IS NULL)"
)
"""The one rule about parents: a card waits while one of them was never finished, archived or not."""


@dataclass(frozen=True, slots=True)
class Tries:
    """How failures are met. `limit` tries in all, waits of `wait`, twice that, four times that, … seconds."""

    limit: int = 3
    wait: float = 1.0


def number_of(card: str) -> int:
    """The number in a card's id (`k12`; `12` is understood). Raises UnknownCard for anything else."""
    match = _CARD.match(card.strip())
    if match is None:
        raise UnknownCard(f"{text(card)[:60]!r} is no card's id", hint="ids look like k12; hermes kanban list")
    return int(match[1])


def id_of(number: int) -> str:
    """The id of a card."""
    return f"k{number}"


def text(value: str, limit: int = _LONGEST_TEXT) -> str:
    """Text as both databases can hold it. Raises UsageError when it is too long."""
    if len(value) > limit:
        raise UsageError(f"a text of {len(value)} characters is too long: at most {limit}", hint="attach it as a file")
    return clean(value).replace("\0", "\ufffd")


def line(value: str, limit: int = 200) -> str:
    """A name or title on one line: line ends and runs of blanks become one blank."""
    return text(" ".join(value.split()), limit)


def whole(what: str, value: int, *, least: int = -_LARGEST) -> int:
    """A number both databases can hold. Raises UsageError."""
    if not least <= value <= _LARGEST:
        raise UsageError(f"{what} {value} is out of range: {least} to {_LARGEST}")
    return value


def workspace(value: str) -> str:
    """A card's workspace as it is kept. Raises UsageError."""
    kind, _colon, path = value.partition(":")
    if value in ("scratch", "worktree") or (kind == "dir" and PurePath(path).is_absolute()):
        return text(value, 4096)
    raise UsageError(f"workspace {value!r} is not usable", hint="scratch, worktree, or dir: and an absolute path")


def title(value: str) -> str:
    """A title as it is kept. Raises UsageError when nothing is left of it, or too much."""
    if not (kept := line(value, _LONGEST_TEXT)):
        raise UsageError("a card needs a title")
    if len(kept) > _LONGEST_TITLE:
        told = f"a title of {len(kept)} characters is too long: at most {_LONGEST_TITLE}"
        raise UsageError(told, hint="the body has room for it")
    return kept


def card_row(transaction: Transaction, card: str) -> Row:
    """The card's row, held by this transaction. Raises UnknownCard."""
    number = number_of(card)
    row = transaction.one(f"SELECT * FROM cards WHERE number = ?{transaction.dialect.locked}", number)
    if row is None:
        raise UnknownCard(f"there is no card {id_of(number)} on this board", hint="hermes kanban list")
    return row


def resting(transaction: Transaction, number: int, phase: Role) -> State:
    """Where a card waits that is neither running nor blocked."""
    if phase == "review":
        return "review"
    found = transaction.one(
        f"SELECT CASE WHEN {OPEN_PARENT} THEN 'todo' ELSE 'ready' END AS fit FROM cards WHERE number = ?", number
    )
    return "todo" if found is not None and found["fit"] == "todo" else "ready"


def move(
    transaction: Transaction,
    row: Row,
    verb: Verb,
    target: State,
    *,
    by: str,
    told: str = "",
    run: int | None = None,
) -> bool:
    """Moves a card as the table of moves allows, and records it.

    Returns:
        False when the card is no longer as `row` has it (another took it in between).

    Raises:
        IllegalMove: the table has no such move.
    """
    card, source = row["number"], row["status"]
    check(verb, id_of(card), source)
    if not legal(verb, source, target):
        raise AssertionError(f"{verb}: {source} → {target}")
    if not transaction.change(
        "UPDATE cards SET status = ?, updated = ? WHERE number = ? AND status = ?",
        target,
        transaction.now,
        card,
        source,
    ):
        return False
    transaction.tell(card, verb, source=source, target=target, by=by, text=told, run=run)
    return True


def settle(transaction: Transaction, cards: Iterable[int], verb: Verb = "settle") -> None:
    """Puts waiting cards where their parents' state wants them: `todo` or `ready`."""
    numbers = list(cards)
    rows = transaction.all(
        f"SELECT * FROM (SELECT number, status, CASE WHEN {OPEN_PARENT} THEN 'todo' ELSE 'ready' END AS fit"
        f" FROM cards WHERE number IN ({marks(numbers)}) AND status IN ('todo', 'ready')) AS waiting"
        " WHERE status <> fit ORDER BY number",
        *numbers,
    )
    for row in rows:
        move(transaction, row, verb, row["fit"], by="board")


def children(transaction: Transaction, number: int) -> list[int]:
    """Numbers of the cards that wait for a card."""
    return [row["child"] for row in transaction.all("SELECT child FROM links WHERE parent = ?", number)]


def open_run(transaction: Transaction, number: int) -> Row | None:
    """The card's open run."""
    return transaction.one("SELECT * FROM runs WHERE card = ? AND ended IS NULL", number)


def end_run(transaction: Transaction, run: int, state: Ending, *, summary: str = "", error: str = "") -> None:
    """Closes a run; its token is worth nothing from now on."""
    transaction.change(
        "UPDATE runs SET state = ?, summary = ?, error = ?, ended = ? WHERE id = ? AND ended IS NULL",
        state,
        text(summary),
        text(error),
        transaction.now,
        run,
    )


def take_away(transaction: Transaction, row: Row, why: str) -> int | None:
    """Ends the open run of a card that somebody else moves; the run's id, None when there was none."""
    run = open_run(transaction, row["number"])
    if run is None:
        return None
    end_run(transaction, run["id"], "stopped", error=why)
    return int(run["id"])


def finish(
    transaction: Transaction, row: Row, verb: Verb, result: str, *, by: str, told: str = "", run: int | None = None
) -> None:
    """Moves a card to `done` with its result and lets its children go."""
    move(transaction, row, verb, "done", by=by, told=told or result, run=run)
    transaction.change(
        "UPDATE cards SET finished = ?, result = ?, said = '', retry_at = 0, phase = 'work' WHERE number = ?",
        transaction.now,
        text(result),
        row["number"],
    )
    settle(transaction, children(transaction, row["number"]))


def anew(transaction: Transaction, number: int, phase: Role) -> None:
    """From here on the card's tries count anew, and nothing makes it wait."""
    transaction.change(
        "UPDATE cards SET phase = ?, said = '', retry_at = 0,"
        " fresh_after = (SELECT coalesce(max(r.id), 0) FROM runs r WHERE r.card = cards.number) WHERE number = ?",
        phase,
        number,
    )


_LIKE: dict[Ending, tuple[Ending, ...]] = {"failed": ("failed", "gave_up"), "gave_up": ("failed", "gave_up")}
_NAMES: dict[Ending, str] = {
    "provider_error": "provider error",
    "lost": "worker lost",
    "gave_up": "limit reached",
    "sent_back": "sent back",
}


def failed(transaction: Transaction, row: Row, run: Row, state: Ending, error: str, tries: Tries) -> None:
    """Ends a run that brought no result: the card is tried again after a wait, or blocked with the run's last text.

    Failures of the worker, of the model's server and of its process are counted apart. A run that was `stopped`
    counts as none.
    """
    end_run(transaction, run["id"], state, error=error)
    count = 0 if state == "stopped" else _count(transaction, row, state)
    if count and _used_up(transaction, row, run, state, count, error, tries):
        return
    told = _said(state, "", error)
    target = resting(transaction, row["number"], row["phase"])
    move(transaction, row, "retry", target, by="board", told=told, run=run["id"])
    wait = min(_LONGEST_WAIT, tries.wait * 2.0 ** min(count - 1, 30)) if count else 0.0
    transaction.change(
        "UPDATE cards SET retry_at = ?, said = ? WHERE number = ?",
        transaction.now + wait if count else 0,
        told if count else "",
        row["number"],
    )


def sent_back(transaction: Transaction, row: Row, run: Row, note: str, tries: Tries) -> None:
    """Ends a review that asks for more: the card is worked again, or blocked after as many verdicts as it has tries."""
    end_run(transaction, run["id"], "sent_back", summary=note)
    transaction.change("UPDATE cards SET phase = 'work' WHERE number = ?", row["number"])
    if _used_up(transaction, row, run, "sent_back", _count(transaction, row, "sent_back"), note, tries):
        return
    target = resting(transaction, row["number"], "work")
    move(transaction, row, "send_back", target, by=run["profile"], told=text(note), run=run["id"])


def _count(transaction: Transaction, row: Row, state: Ending) -> int:
    alike = _LIKE.get(state, (state,))
    found = transaction.one(
        f"SELECT count(*) AS n FROM runs WHERE card = ? AND id > ? AND state IN ({marks(alike)})",
        row["number"],
        row["fresh_after"],
        *alike,
    )
    return int(found["n"]) if found else 0


def _used_up(transaction: Transaction, row: Row, run: Row, state: Ending, count: int, error: str, tries: Tries) -> bool:
    limit = tries.limit if row["max_retries"] is None else row["max_retries"] + 1
    if count < limit:
        return False
    tried = "1 try" if count == 1 else f"{count} tries"
    why = _said(state, f" after {tried}", error)
    move(transaction, row, "give_up", "blocked", by="board", told=why, run=run["id"])
    transaction.change("UPDATE cards SET said = ? WHERE number = ?", why, row["number"])
    return True


def _said(state: Ending, tried: str, error: str) -> str:
    """How a run ended, how often by now, and its last text, which need not repeat the first."""
    name = _NAMES.get(state, state)
    error = error.removeprefix(f"{name}: ")
    return text(f"{name}{tried}: {error}" if error.strip() else f"{name}{tried}")


def insert(transaction: Transaction, draft: CardDraft, *, by: str, run: Row | None = None) -> int:
    """A new card; the number of the old one when its key was used already.

    Raises:
        UnknownCard, UsageError: a parent does not exist or can never be finished; a value is not usable.
    """
    key = text(draft.idempotency_key, 500) if draft.idempotency_key else None
    if key is not None and (old := transaction.one("SELECT number FROM cards WHERE idempotency_key = ?", key)):
        return int(old["number"])
    parents = [card_row(transaction, parent) for parent in dict.fromkeys(id_of(number_of(p)) for p in draft.parents)]
    for parent in parents:
        refuse_lost(parent)
    waits = any(parent["finished"] is None for parent in parents)
    status: State = "triage" if draft.triage else "todo" if waits else "ready"
    assignee = draft.assignee
    if assignee is None:
        of_run = transaction.one("SELECT assignee FROM cards WHERE number = ?", run["card"]) if run else None
        assignee = str(of_run["assignee"]) if of_run else DEFAULT_PROFILE
    made = transaction.one(
        "INSERT INTO cards (title, body, status, assignee, reviewer, priority, workspace, max_retries, idempotency_key,"
        " created_by, created_run, created, updated) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?) RETURNING number",
        title(draft.title),
        text(draft.body),
        status,
        safe_name("profile", assignee),
        safe_name("profile", draft.reviewer) if draft.reviewer else "",
        whole("priority", draft.priority),
        workspace(draft.workspace),
        None if draft.max_retries is None else whole("max retries", draft.max_retries, least=0),
        key,
        line(by),
        run["id"] if run else None,
        transaction.now,
        transaction.now,
    )
    assert made is not None
    number = int(made["number"])
    for parent in parents:
        transaction.change("INSERT INTO links (parent, child) VALUES (?,?)", parent["number"], number)
    transaction.tell(number, "create", source="", target=status, by=line(by), run=run["id"] if run else None)
    return number


def refuse_lost(parent: Row) -> None:
    """Raises UsageError for a parent that was archived unfinished: a card would wait for it for ever."""
    if parent["status"] == "archived" and parent["finished"] is None:
        raise UsageError(f"{id_of(parent['number'])} was archived unfinished", hint="reopen it first")


def add_comment(transaction: Transaction, row: Row, said: str, *, author: str, run: int | None = None) -> None:
    """A note on a card. Raises UsageError when it is empty."""
    if not said.strip():
        raise UsageError("a comment needs a text")
    transaction.change(
        "INSERT INTO comments (card, run, author, text, created) VALUES (?,?,?,?,?)",
        row["number"],
        run,
        line(author),
        text(said),
        transaction.now,
    )
    status = row["status"]
    transaction.tell(row["number"], "comment", source=status, target=status, by=line(author), text=text(said), run=run)


def add_file(
    transaction: Transaction, row: Row, path: Path, *, name: str = "", by: str, run: int | None = None
) -> None:
    """Names a file that belongs to a card, once. Raises UsageError when it is no file."""
    place = path.absolute()
    if not place.is_file():
        raise UsageError(f"{path} is not a file")
    kept, where = line(place.name, 300), text(str(place), 4096)
    if transaction.one("SELECT id FROM attachments WHERE card = ? AND path = ?", row["number"], where):
        return
    transaction.change(
        "INSERT INTO attachments (card, name, path, by_whom, created) VALUES (?,?,?,?,?)",
        row["number"],
        kept,
        where,
        line(by),
        transaction.now,
    )
    status = row["status"]
    transaction.tell(row["number"], "attach", source=status, target=status, by=line(by), text=kept, run=run)


def add_link(transaction: Transaction, parent: str, child: str, *, by: str) -> None:
    """Makes `child` wait for `parent`. A link that exists already changes nothing.

    Raises:
        UnknownCard, UsageError: no such card, one that began already, the same twice, or a circle.
    """
    if number_of(parent) == number_of(child):
        raise UsageError(f"{id_of(number_of(child))} cannot wait for itself")
    above, below = card_row(transaction, parent), card_row(transaction, child)
    if below["status"] not in ("triage", "todo", "ready", "blocked"):
        raise UsageError(f"{id_of(below['number'])} is {below['status']}: it can no longer wait for a card")
    refuse_lost(above)
    circle = transaction.one(
        "WITH RECURSIVE above (number) AS (SELECT parent FROM links WHERE child = ?"
        " UNION SELECT l.parent FROM links l JOIN above a ON l.child = a.number)"
        " SELECT 1 AS found FROM above WHERE number = ?",
        above["number"],
        below["number"],
    )
    if circle is not None:
        raise UsageError(f"{id_of(above['number'])} waits for {id_of(below['number'])} already: that would be a circle")
    added = transaction.change(
        "INSERT INTO links (parent, child) VALUES (?,?) ON CONFLICT DO NOTHING", above["number"], below["number"]
    )
    if not added:
        return
    if below["status"] == "ready" and above["finished"] is None:
        move(transaction, below, "link", "todo", by=line(by), told=id_of(above["number"]))
        return
    status = below["status"]
    transaction.tell(below["number"], "link", source=status, target=status, by=line(by), text=id_of(above["number"]))
