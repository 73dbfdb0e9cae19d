"""`hermes sessions`: saved chats. Reads and writes the store only; no engine is started."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermes_engine.errors import UsageError
from hermes_engine.messages import Message
from hermes_engine.paths import Home
from hermes_tui.cli.asking import sure
from hermes_tui.cli.flags import ENGINE, Flags, takes
from hermes_tui.cli.shape import Group
from hermes_tui.commands.listing import session_rows
from hermes_tui.commands.transcript import EXTENSIONS, message_record, write_new, written
from hermes_tui.printing.records import out_json, out_table
from hermes_tui.printing.streams import is_terminal, out
from hermes_tui.texts import _

if TYPE_CHECKING:
    from hermes_engine.store.sessions import SessionRow, SessionStore

SHOWN_AT_TERMINAL = 50
EVERY_ONE = 1_000_000


@click.group(cls=Group)
def sessions() -> None:
    """List, search, show, resume, rename, fork, export and delete saved chats."""


@contextlib.contextmanager
def _store() -> Iterator[SessionStore | None]:
    """The saved chats; None when nothing was ever saved (reading makes no file)."""
    path = Home.from_env().state_db
    if not path.exists():
        yield None
        return
    from hermes_engine.store.migrations import open_state
    from hermes_engine.store.sessions import SessionStore

    database = open_state(path)
    try:
        yield SessionStore(database)
    finally:
        database.close()


def _found(store: SessionStore | None, wanted: str) -> SessionRow:
    if store is None:
        raise UsageError(_("there is no session {wanted}").format(wanted=repr(wanted)), hint=_("none is saved yet"))
    return store.find(wanted)


@sessions.command("list")
@click.option("-n", "--limit", type=click.IntRange(min=1), help=_("At most so many."))
@click.option("--json", "as_json", is_flag=True, help=_("One JSON array."))
def list_(limit: int | None, as_json: bool) -> None:
    """List saved chats, last used first."""
    at_terminal = is_terminal(sys.stdout)
    most = limit or (SHOWN_AT_TERMINAL if at_terminal and not as_json else EVERY_ONE)
    with _store() as store:
        rows = store.list(most) if store is not None else []
    if as_json:
        out_json([_record(row) for row in rows])
    elif at_terminal:
        if not rows:
            out(_("No saved chats yet; every chat is saved by itself."))
        columns = (_("id"), _("title"), _("model"), _("messages"), _("last used"))
        out_table(columns, list(session_rows(rows)))
    else:
        out_table((), [(row.id, row.name, row.model, str(row.messages), _time(row.updated)) for row in rows])


def _time(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _record(row: SessionRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "title": row.title,
        "preview": row.preview,
        "cwd": str(row.cwd),
        "model": row.model,
        "profile": row.profile,
        "messages": row.messages,
        "created": _time(row.created),
        "updated": _time(row.updated),
        "usage": row.usage.as_record(),
    }


@sessions.command()
@click.argument("session", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help=_("One JSON object with the messages."))
def show(session: str, as_json: bool) -> None:
    """Print a saved chat."""
    with _store() as store:
        row = _found(store, session)
        messages = store.load(row.id) if store is not None else []
    if as_json:
        out_json({**_record(row), "messages": [message_record(message) for message in messages]})
        return
    out(f"{row.id}  {row.name}  {row.model}  {row.cwd}", style="bold")
    for message in messages:
        _print(message)


def _print(message: Message) -> None:
    names = {"user": _("you"), "assistant": _("model"), "tool": message.name}
    if message.content.strip():
        out(f"\n{names.get(message.role, message.role)}:", style="bold")
        out(message.content.rstrip("\n"))
    for call in message.tool_calls:
        out(f"\n▸ {call.name} {call.arguments}", style="dim")


@sessions.command()
@click.argument("words", metavar="WORDS", nargs=-1, required=True)
@click.option("-n", "--limit", type=click.IntRange(min=1), default=20, help=_("At most so many (20)."))
@click.option("--json", "as_json", is_flag=True, help=_("One JSON array."))
def search(words: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Find saved chats in which all the words stand."""
    with _store() as store:
        found = store.search(" ".join(words), limit) if store is not None else []
        rows = [(hit, store.row(hit.session)) for hit in found] if store is not None else []
    if as_json:
        out_json([{**_record(row), "matches": hit.count, "excerpt": hit.excerpt} for hit, row in rows])
        return
    if not rows and is_terminal(sys.stdout):
        out(_("No saved chat holds all of these words."))
    columns = (_("id"), _("title"), _("last used"), _("matches"), _("excerpt"))
    out_table(columns, [(row.id, row.name, _time(row.updated), str(hit.count), hit.excerpt) for hit, row in rows])


@sessions.command()
@click.argument("session", metavar="ID")
@click.argument("title", metavar="TITLE", nargs=-1, required=True)
def rename(session: str, title: tuple[str, ...]) -> None:
    """Give a saved chat a title."""
    name = " ".join(" ".join(title).split())[:200]
    if not name:
        raise UsageError(_("a title is needed"))
    with _store() as store:
        row = _found(store, session)
        if store is not None:
            store.set_title(row.id, name)
    out(_("{id} is called {title} now").format(id=row.id, title=name))


@sessions.command()
@click.argument("session", metavar="ID")
@click.option("--back", type=click.IntRange(min=0), default=0, help=_("Leave out your last so many messages."))
@click.option("--json", "as_json", is_flag=True, help=_("One JSON object."))
def fork(session: str, back: int, as_json: bool) -> None:
    """Copy a saved chat to go on with beside it; prints the copy's id."""
    from hermes_engine.store.copies import copied

    with _store() as store:
        row = _found(store, session)
        assert store is not None
        made, _left_out = copied(store, row.id, back=back)
        record = _record(store.row(made))
    if as_json:
        out_json(record)
    else:
        out(made)


@sessions.command()
@click.argument("session", metavar="ID")
@click.option(
    "-o", "--output", metavar="FILE", help=_("Where to; `-` or nothing is standard output, `.json` means JSON.")
)
@click.option("--format", "form", type=click.Choice(EXTENSIONS), help=_("md or json."))
def export(session: str, output: str | None, form: str | None) -> None:
    """Write a saved chat as Markdown or JSON."""
    with _store() as store:
        row = _found(store, session)
        messages = store.load(row.id) if store is not None else []
    text = written(
        row.id, row.title, row.model, messages, form or ("json" if (output or "").endswith(".json") else "md")
    )
    if output is None or output == "-":
        out(text.rstrip("\n"))
        return
    write_new(Path(output), text)
    out(_("wrote {path}").format(path=output))


@sessions.command()
@takes(*(name for name in ENGINE if name not in ("resume", "continue_last")), "linear")
@click.argument("session", metavar="ID")
def resume(flags: Flags, session: str) -> int:
    """Open the app on a saved chat."""
    from hermes_tui.cli.chat import open_here

    with _store() as store:
        row = _found(store, session)
    return open_here(flags.merged(Flags(resume=row.id)))


@sessions.command()
@click.argument("session", metavar="ID...", nargs=-1, required=True)
@click.option("-y", "--yes", is_flag=True, help=_("Do not ask."))
def delete(session: tuple[str, ...], yes: bool) -> None:
    """Delete saved chats for good."""
    with _store() as store:
        rows = [_found(store, wanted) for wanted in session]
        for row, wanted in zip(rows, session, strict=True):
            if yes and not row.id.startswith(wanted):
                raise UsageError(_("{wanted} is a title").format(wanted=repr(wanted)), hint=_("delete by id"))
        for row in {row.id: row for row in rows}.values():
            if yes or sure(_("Delete {id} ({name})?").format(id=row.id, name=row.name)):
                if store is not None:
                    store.delete(row.id)
                    (Home.from_env().drafts / f"{row.id}.txt").unlink(missing_ok=True)
                out(_("deleted {id}").format(id=row.id))
