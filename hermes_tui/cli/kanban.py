"""`hermes kanban`: the board from the command line. No model is asked, and the toolset need not be enabled."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermes_engine.errors import UsageError
from hermes_engine.paths import expanded
from hermes_tui.cleaning import one_line
from hermes_tui.cli.flags import Flags, takes
from hermes_tui.cli.kanban_boards import boards, boards_of
from hermes_tui.cli.kanban_run import plan, run, work
from hermes_tui.cli.shape import Group
from hermes_tui.person import person
from hermes_tui.texts import _

if TYPE_CHECKING:
    from hermes_engine.board import Board

_BOARD = "hermes.kanban.board"


@click.group(cls=Group)
@click.option("--board", metavar="SLUG", default="", help=_("Board to work on (default: the chosen one)."))
@click.pass_context
def kanban(context: click.Context, board: str) -> None:
    """A board of cards that agents work: create, list, link, block, review."""
    context.meta[_BOARD] = board


@contextlib.contextmanager
def _opened(flags: Flags, slug: str, only_read: bool) -> Iterator[Board]:
    opened = boards_of(flags).open(slug, only_read=only_read)
    try:
        yield opened
    finally:
        opened.close()


def on_board(*, only_read: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Gives a verb `--board` and `--json`; its function gets the open board and whether JSON is wanted."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(flags: Flags, board: str, as_json: bool, **values: Any) -> Any:
            slug = board or click.get_current_context().meta.get(_BOARD, "")
            with _opened(flags, slug, only_read) as opened:
                return function(opened, as_json, **values)

        functools.update_wrapper(call, function)
        call = click.option("--json", "as_json", is_flag=True, help=_("JSON."))(call)
        call = click.option("--board", metavar="SLUG", default="", help=_("Board (default: the chosen one)."))(call)
        return takes("profile")(call)

    return decorate


_card = click.argument("card", metavar="ID")


def _words(name: str, *, required: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    shown = name.upper() if required else f"[{name.upper()}]"
    return click.argument(name, metavar=shown, nargs=-1, required=required)


def _tell(board: Board, card: str, as_json: bool) -> None:
    from hermes_tui.cli.kanban_shown import tell

    tell(board.show(card), as_json)


def _tell_ended(board: Board, card: str, as_json: bool) -> None:
    """After a verb that takes a running card from its worker: what a dead one left running ends, too."""
    from hermes_engine.work.remains import end_remains

    end_remains(board, card)
    _tell(board, card, as_json)


def _warn_of_profile(board: Board, card: str) -> None:
    from hermes_tui.printing.streams import err

    for name in board.strangers(card):
        err(f"hermes: {board.card(card).id}: no profile {one_line(name, 100)} here", style="yellow")


@kanban.command()
@on_board()
@click.argument("title")
@click.option("--body", default="", help=_("The whole task."))
@click.option("--assignee", metavar="PROFILE", help=_("Profile that works it (default: `default`)."))
@click.option("--reviewer", metavar="PROFILE", default="", help=_("Profile that judges it, if a review is asked for."))
@click.option("--parent", "parents", metavar="ID", multiple=True, help=_("Card it waits for; several times."))
@click.option("--priority", type=int, default=0, metavar="N", help=_("Higher is worked first."))
@click.option("--idempotency-key", metavar="K", help=_("A second creation with this key makes no second card."))
@click.option("--max-retries", type=int, metavar="N", help=_("Tries after the first."))
@click.option("--workspace", default="scratch", metavar="W", help=_("scratch | dir:PATH | worktree"))
@click.option("--triage", is_flag=True, help=_("A person sorts it first."))
def create(board: Board, as_json: bool, parents: tuple[str, ...], workspace: str, **values: Any) -> None:
    """Make a card."""
    from hermes_engine.board import CardDraft

    ids = tuple(part.strip() for item in parents for part in item.split(",") if part.strip())
    draft = CardDraft(parents=ids, workspace=_workspace(workspace), **values)
    card = board.create(draft, by=person()).id
    _tell(board, card, as_json)
    _warn_of_profile(board, card)


def _workspace(value: str) -> str:
    kind, _colon, path = value.partition(":")
    return f"dir:{expanded(path).absolute()}" if kind == "dir" and path else value


@kanban.command("list")
@on_board(only_read=True)
@click.option("--status", metavar="STATE", help=_("Only cards in this state."))
@click.option("--assignee", metavar="PROFILE", help=_("Only cards of this profile."))
@click.option("--archived", is_flag=True, help=_("Archived cards too."))
def list_(board: Board, as_json: bool, status: str | None, assignee: str | None, archived: bool) -> None:
    """List cards, those to be worked first on top."""
    from hermes_engine.board import STATES
    from hermes_engine.errors import UnknownName
    from hermes_tui.cli.kanban_shown import card_record, table
    from hermes_tui.printing.records import out_json

    if status is not None and status not in STATES:
        raise UnknownName("state", status, STATES)
    found = [
        details
        for details in board.details(archived=archived or status == "archived")
        if status in (None, details.card.status) and assignee in (None, details.card.assignee)
    ]
    if as_json:
        out_json([card_record(details) for details in found])
    else:
        table(details.card for details in found)


@kanban.command()
@on_board(only_read=True)
@_card
@click.option("--all", "more", is_flag=True, help=_("With --json: also workspace, times, attachments and events."))
def show(board: Board, as_json: bool, card: str, more: bool) -> None:
    """Show a card with its runs and comments."""
    from hermes_tui.cli.kanban_shown import card_record, more_record, page
    from hermes_tui.printing.records import out_json

    details = board.show(card)
    if not as_json:
        page(details)
        return
    extra = more_record(details, board.events(card=card, limit=100_000)) if more else {}
    out_json({**card_record(details), **extra})


@kanban.command()
@on_board()
@_card
@click.option("--title")
@click.option("--body")
@click.option("--reviewer", metavar="PROFILE", help=_("'' for a person."))
@click.option("--priority", type=int, metavar="N")
@click.option("--max-retries", type=int, metavar="N")
@click.option("--workspace", metavar="W", help=_("scratch | dir:PATH | worktree"))
@click.option("--attach", "files", metavar="FILE", multiple=True, type=click.Path(path_type=Path))
def edit(board: Board, as_json: bool, card: str, files: tuple[Path, ...], **values: Any) -> None:
    """Change what a card says, or name files that belong to it."""
    if values["workspace"] is not None:
        values["workspace"] = _workspace(values["workspace"])
    board.edit(card, **values, files=files, by=person())
    _tell(board, card, as_json)
    _warn_of_profile(board, card)


@kanban.command()
@on_board()
@_card
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
def attach(board: Board, as_json: bool, card: str, files: tuple[Path, ...]) -> None:
    """Name files that belong to a card; they are not copied."""
    board.attach(card, *files, by=person())
    _tell(board, card, as_json)


@kanban.command()
@on_board()
@_card
@_words("text")
def comment(board: Board, as_json: bool, card: str, text: tuple[str, ...]) -> None:
    """Add a note; the card's next worker reads it."""
    board.comment(card, " ".join(text), by=person())
    _tell(board, card, as_json)


@kanban.command()
@on_board()
@_card
@click.argument("profile_name", metavar="PROFILE")
def assign(board: Board, as_json: bool, card: str, profile_name: str) -> None:
    """Give a card to a profile."""
    board.assign(card, profile_name, by=person())
    _tell(board, card, as_json)
    _warn_of_profile(board, card)


@kanban.command()
@on_board()
@click.argument("parent", metavar="PARENT")
@click.argument("child", metavar="CHILD")
def link(board: Board, as_json: bool, parent: str, child: str) -> None:
    """Make CHILD wait until PARENT is done."""
    board.link(parent, child, by=person())
    _tell(board, child, as_json)


@kanban.command()
@on_board()
@click.argument("parent", metavar="PARENT")
@click.argument("child", metavar="CHILD")
def unlink(board: Board, as_json: bool, parent: str, child: str) -> None:
    """Let CHILD go on without PARENT."""
    board.unlink(parent, child, by=person())
    _tell(board, child, as_json)


@kanban.command()
@on_board()
@_card
@_words("reason")
def block(board: Board, as_json: bool, card: str, reason: tuple[str, ...]) -> None:
    """Keep a card back until it is unblocked; a worker at it stops."""
    board.block(card, " ".join(reason), by=person())
    _tell_ended(board, card, as_json)


@kanban.command()
@on_board()
@_card
@_words("result", required=False)
@click.option("--result", "told", metavar="TEXT", default="", help=_("What came of it."))
def complete(board: Board, as_json: bool, card: str, result: tuple[str, ...], told: str) -> None:
    """Say that a card is done; a worker at it stops."""
    board.complete(card, told or " ".join(result), by=person())
    _tell_ended(board, card, as_json)


@kanban.command()
@on_board()
@_card
@click.option("--accept", is_flag=True, help=_("Pass the review: the card is done."))
@click.option("--send-back", "back", metavar="NOTE", help=_("Ask for more: the card is worked again."))
@click.option("--note", default="", help=_("A word with the request or the acceptance."))
def review(board: Board, as_json: bool, card: str, accept: bool, back: str | None, note: str) -> None:
    """Ask for a review, pass it, or send the card back."""
    if accept and back is not None:
        raise UsageError(_("--accept and --send-back cannot be combined"))
    if accept:
        board.accept(card, note, by=person())
    elif back is not None:
        board.send_back(card, back, by=person())
    else:
        board.review(card, note, by=person())
    _tell_ended(board, card, as_json)


def _plain(name: str, help_text: str) -> None:
    """A verb that only names its card."""

    def act(board: Board, as_json: bool, card: str) -> None:
        getattr(board, name)(card, by=person())
        (_tell_ended if name in ("archive", "reclaim") else _tell)(board, card, as_json)

    act.__name__, act.__doc__ = name, help_text
    kanban.command(name)(on_board()(_card(act)))


_plain("unblock", "Let a blocked card go on; its tries count anew.")
_plain("sort", "Let a card out of triage: it is to be worked.")
_plain("archive", "Put a card away; a worker at it stops.")
_plain("reopen", "Have a done or archived card worked once more.")
_plain("reclaim", "Take a running card from its worker; it waits anew.")


@kanban.command()
@on_board(only_read=True)
@_card
def runs(board: Board, as_json: bool, card: str) -> None:
    """List the attempts at a card."""
    from hermes_tui.cli.kanban_shown import run_record, runs_table
    from hermes_tui.printing.records import out_json

    found = board.runs(card)
    if as_json:
        out_json([run_record(run) for run in found])
    else:
        runs_table(found)


@kanban.command()
@on_board()
@click.option("--after", type=click.IntRange(min=0), metavar="N", help=_("First the events later than number N."))
def watch(board: Board, as_json: bool, after: int | None) -> None:
    """Print what happens on the board, as it happens, until interrupted."""
    from hermes_tui.cli.kanban_shown import event_line

    seen = board.latest() if after is None else after
    with contextlib.closing(board.changes()) as changes:
        while True:
            for event in board.events(after=seen):
                event_line(event, as_json)
                seen = event.id
            if not board.events(after=seen, limit=1):
                changes.wait(60)


@kanban.command()
@on_board(only_read=True)
def stats(board: Board, as_json: bool) -> None:
    """Count the cards by state."""
    from hermes_tui.printing.records import out_json, out_table

    counts = board.counts()
    if as_json:
        workers = {"running": len(board.open_runs()), "max_workers": board.rules.max_workers}
        out_json({"board": board.slug, "cards": counts, **workers, "dispatchers": len(board.attended())})
    else:
        out_table((_("state"), _("cards")), [(state, str(count)) for state, count in counts.items()])


kanban.add_command(plan)
kanban.add_command(run)
kanban.add_command(work)
kanban.add_command(boards)
