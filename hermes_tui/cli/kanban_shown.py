"""How cards are printed: the JSON objects other programs read, records off a terminal, pages for a person.

Card text is data: nothing in it acts on a terminal, what is hidden is shown as an escape, and on a page every line of
it stands behind a bar, so that no card can look like another or like the program speaking.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from hermes_engine.board import Card, CardEvent, Details, Run
from hermes_tui.cleaning import escaped
from hermes_tui.printing.records import aligned, out_json, out_json_line, out_table
from hermes_tui.printing.streams import is_terminal, out
from hermes_tui.texts import _

Cells = tuple[str, ...]


def time_text(moment: float | None) -> str:
    """A moment in UTC, "" for none."""
    if moment is None:
        return ""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def card_record(details: Details) -> dict[str, Any]:
    """The object that `create`, `show` and `list` print."""
    card = details.card
    return {
        "id": card.id,
        "title": card.title,
        "body": card.body,
        "status": card.status,
        "reason": card.reason or None,
        "assignee": card.assignee,
        "priority": card.priority,
        "parents": list(card.parents),
        "children": list(card.children),
        "result": card.result or None,
        "runs": [run_record(run) for run in details.runs],
        "comments": [
            {"author": item.author, "text": item.text, "created": time_text(item.created)} for item in details.comments
        ],
    }


def more_record(details: Details, events: Iterable[CardEvent]) -> dict[str, Any]:
    """What else is known of a card."""
    card = details.card
    return {
        "reviewer": card.reviewer or None,
        "workspace": card.workspace,
        "max_retries": card.max_retries,
        "idempotency_key": card.idempotency_key,
        "created": time_text(card.created),
        "created_by": card.created_by,
        "updated": time_text(card.updated),
        "finished": time_text(card.finished) or None,
        "attachments": [{"name": item.name, "path": item.path} for item in details.attachments],
        "events": [event_record(event) for event in events],
    }


def run_record(run: Run) -> dict[str, Any]:
    """One attempt."""
    return {
        "id": run.id,
        "role": run.role,
        "profile": run.profile,
        "state": run.state,
        "started": time_text(run.started),
        "ended": time_text(run.ended) or None,
        "heartbeat": time_text(run.heartbeat),
        "summary": run.summary or None,
        "error": run.error or None,
        "activity": run.activity or None,
        "tokens": run.tokens,
        "session": run.session or None,
        "workspace": run.workspace or None,
        "branch": run.commit or None,
    }


def event_record(event: CardEvent) -> dict[str, Any]:
    """One line of a card's history."""
    return {
        "id": event.id,
        "card": event.card,
        "run": event.run,
        "verb": event.verb,
        "from": event.source or None,
        "to": event.target,
        "by": event.by,
        "text": event.text,
        "at": time_text(event.at),
    }


def tell(details: Details, as_json: bool) -> None:
    """The card after a verb: its object, or one record."""
    if as_json:
        out_json(card_record(details))
    else:
        out_table(("", "", "", ""), [_short(details.card)])


def _short(card: Card) -> Cells:
    return card.id, card.status, escaped(card.title), escaped(card.reason)


def table(cards: Iterable[Card]) -> None:
    """A list of cards; at a terminal, what to do when there are none."""
    columns = (_("card"), _("state"), _("assignee"), _("priority"), _("title"), _("waits because"))
    rows = [
        (card.id, card.status, card.assignee, str(card.priority), escaped(card.title), escaped(card.reason))
        for card in cards
    ]
    if rows or not is_terminal(sys.stdout):
        out_table(columns, rows)
    else:
        out(_("No cards: `hermes kanban create TITLE` makes one."))


def runs_table(runs: Iterable[Run]) -> None:
    """A list of attempts."""
    out_table(_RUN_COLUMNS, [_run_cells(run) for run in runs])


_RUN_COLUMNS = tuple(map(_, ("run", "role", "profile", "state", "started", "ended", "last sign of life", "outcome")))


def _run_cells(run: Run) -> Cells:
    told = run.error or run.summary or run.activity
    times = (time_text(run.started), time_text(run.ended), time_text(run.heartbeat))
    return (str(run.id), run.role, escaped(run.profile), run.state, *times, escaped(told))


def event_line(event: CardEvent, as_json: bool) -> None:
    """One event, at once."""
    if as_json:
        out_json_line(event_record(event))
        return
    moved = event.target if event.source == event.target else f"{event.source or '-'} → {event.target}"
    cells = (time_text(event.at), event.card, event.verb, moved, escaped(event.by), escaped(event.text))
    if is_terminal(sys.stdout):
        out("  ".join(" ".join(cell.split()) for cell in cells if cell))
    else:
        out_table((), [cells])


def page(details: Details) -> None:
    """Everything about a card: a page at a terminal, else one record a line, each with its kind in front."""
    facts = _facts(details)
    texts = [(_("body"), details.card.body), (_("result"), details.card.result)]
    if not is_terminal(sys.stdout):
        out_table((), [*facts, *((name, escaped(text)) for name, text in texts if text)])
        out_table((), [("run", *_run_cells(run)) for run in details.runs])
        out_table((), [("comment", time_text(c.created), escaped(c.author), escaped(c.text)) for c in details.comments])
        return
    out(aligned(("", ""), facts), end="")
    for name, text in texts:
        if text:
            _quoted(name, text)
    if details.runs:
        out()
        runs_table(details.runs)
    for comment in details.comments:
        _quoted(f"{escaped(comment.author) or _('somebody')}, {time_text(comment.created)}", comment.text)


def _facts(details: Details) -> list[Cells]:
    card = details.card
    facts = [
        (_("card"), card.id),
        (_("title"), escaped(card.title)),
        (_("state"), card.status),
        (_("waits because"), escaped(card.reason)),
        (_("assignee"), card.assignee),
        (_("reviewer"), card.reviewer),
        (_("priority"), str(card.priority)),
        (_("waits for"), ", ".join(card.parents)),
        (_("waited for by"), ", ".join(card.children)),
        (_("workspace"), escaped(card.workspace)),
        (_("branch"), next((run.commit for run in reversed(details.runs) if run.commit), "")),
        (_("created"), f"{time_text(card.created)} {escaped(card.created_by)}".strip()),
        (_("finished"), time_text(card.finished)),
        *((_("attachment"), f"{escaped(item.name)}: {escaped(item.path)}") for item in details.attachments),
    ]
    return [fact for fact in facts if fact[1]]


def _quoted(heading: str, text: str) -> None:
    out(f"\n{' '.join(heading.split())}:", style="bold")
    for line in escaped(text).splitlines():
        out(f"│ {line}")
