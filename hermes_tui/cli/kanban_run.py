"""`hermes kanban run` and `plan`: the verbs of the board that ask a model. Nobody is there to be asked, so what would
ask is denied.
"""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from hermes_engine.errors import UnknownName
from hermes_engine.events import AgentFinished, CardChanged, Event, to_json
from hermes_tui.cleaning import one_line
from hermes_tui.cli.asking import sure
from hermes_tui.cli.flags import Flags, here, resolve, takes
from hermes_tui.cli.presses import stopping
from hermes_tui.cli.shape import Verb
from hermes_tui.printing.lines import EventLines
from hermes_tui.printing.records import out_json, out_json_line
from hermes_tui.printing.streams import err, is_terminal, out
from hermes_tui.texts import _, ngettext

if TYPE_CHECKING:
    from hermes_engine.board import CardDraft
    from hermes_engine.session import Engine

Inbox = queue.SimpleQueue[Event | None]
_BOARD = "hermes.kanban.board"
_WITH_REASON = ("retry", "give_up", "block", "send_back")
"""Changes of a card of which a person wants to know why."""


@click.command(cls=Verb)
@takes("profile", "model", "base_url", "api_key", "mode", "max_turns")
@click.option("--board", metavar="SLUG", default="", help=_("Board (default: the chosen one)."))
@click.option("--assignee", metavar="P", help=_("Only cards of this profile."))
@click.option("--workers", type=click.IntRange(1), help=_("Cards at work at once (default: kanban.max_workers)."))
@click.option("--once", is_flag=True, help=_("End when nothing is ready or running here."))
@click.option("--isolation", type=click.Choice(("inprocess", "process")), help=_("Where workers run."))
@click.option("--json", "as_json", is_flag=True, help=_("One event a line on standard output."))
@click.option("--quiet", is_flag=True, help=_("Errors only."))
def run(
    flags: Flags,
    board: str,
    assignee: str | None,
    workers: int | None,
    once: bool,
    isolation: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Work the board without the app; ends with 1 when cards were left blocked."""
    from hermes_tui.leaving_behind import worker_process

    slug, cwd = _slug(board), here()
    tell = _tell_events if as_json else _tell
    with _engine(flags, None if quiet and not as_json else tell) as engine, stopping(engine.kanban.halt) as presses:
        blocked = engine.kanban.work(
            slug,
            cwd=cwd,
            workers=workers,
            only=assignee,
            once=once,
            isolation=worker_process(engine.resolved, isolation),
        )
        cards = engine.kanban.board(slug).cards() if once else ()
    if presses.count:
        err(_("hermes: interrupted; cards that were at work wait anew"))
        return 130
    for card in cards:
        if card.reason.startswith("no profile"):
            err(f"hermes: {card.id}: {card.reason}", style="yellow")
    if blocked:
        told = ngettext("{n} card is blocked", "{n} cards are blocked", blocked).format(n=blocked)
        err(f"hermes: {told}: hermes kanban list --status blocked")
    return 1 if blocked else 0


@click.command(cls=Verb, hidden=True)
@takes("profile", "model", "base_url", "api_key", "mode", "max_turns", "reasoning_effort")
@click.argument("board")
@click.option("--excused", is_flag=True)
def work(flags: Flags, board: str, excused: bool) -> int:
    """Work the one card whose run's token comes on standard input; `run --isolation process` starts this."""
    from hermes_engine.board import RunOver
    from hermes_engine.work.isolated import SERVER_DOWN

    token = sys.stdin.readline().strip()
    with _engine(flags, _tell) as engine, stopping(engine.kanban.halt):
        try:
            down = engine.kanban.work_card(board, token, cwd=here(), excused=excused)
        except RunOver:
            return 0
    return 0 if down is None else SERVER_DOWN


@click.command(cls=Verb)
@takes("profile", "model", "base_url", "api_key")
@click.argument("goal")
@click.option("--board", metavar="SLUG", default="", help=_("Board (default: the chosen one)."))
@click.option("--yes", "-y", is_flag=True, help=_("Create the cards without asking."))
@click.option("--json", "as_json", is_flag=True, help=_("JSON."))
def plan(flags: Flags, goal: str, board: str, yes: bool, as_json: bool) -> int:
    """Turn a goal into cards: shows them first, creates them when you say so."""
    slug, cwd = _slug(board), here()
    with _engine(flags, None) as engine:
        if slug and slug not in (names := engine.kanban.boards.names()):
            raise UnknownName("board", slug, names)  # before a model is paid for a plan that has no place
        drafts = engine.kanban.plan(goal, cwd=cwd)
        wanted = yes
        if not as_json:
            for line in told(drafts):
                out(line)
            if not yes and is_terminal(sys.stdin) and is_terminal(sys.stdout):
                wanted = sure(_("Create these {n} cards?").format(n=len(drafts)))
        if not wanted:
            if as_json:
                out_json([_planned(draft) for draft in drafts])
            err(_("hermes: nothing was created; --yes creates the cards"))
            return 0
        cards = engine.kanban.board(slug).create_all(drafts, by="plan")
    if as_json:
        out_json([{"id": card.id, "title": card.title, "assignee": card.assignee} for card in cards])
    else:
        out(_("created {ids}").format(ids=", ".join(card.id for card in cards)))
    return 0


def told(drafts: tuple[CardDraft, ...]) -> list[str]:
    """A plan as lines, a card each."""
    lines = []
    for number, draft in enumerate(drafts, 1):
        after = ", ".join(str(int(parent.removeprefix("@")) + 1) for parent in draft.parents)
        waits = _(" after {cards}").format(cards=after) if after else ""
        lines.append(f"{number}. {one_line(draft.title, 100)}  [{draft.assignee}]{waits}")
    return lines


def _planned(draft: CardDraft) -> dict[str, Any]:
    after = [int(parent.removeprefix("@")) + 1 for parent in draft.parents]
    return {"title": draft.title, "body": draft.body, "assignee": draft.assignee, "after": after}


def _slug(board: str) -> str:
    return board or str(click.get_current_context().meta.get(_BOARD, ""))


@contextlib.contextmanager
def _engine(flags: Flags, tell: Callable[[Inbox], None] | None) -> Iterator[Engine]:
    """An engine whose workers' progress is told by `tell`, on a thread of its own; None: not at all."""
    resolved = resolve(flags)
    from hermes_engine.session import Engine

    inbox: Inbox = queue.SimpleQueue()
    engine = Engine(resolved, (lambda event: None) if tell is None else inbox.put, attended=False)
    lost: list[OSError] = []
    teller = threading.Thread(target=_told, args=(tell or _tell, inbox, lost), name="hermes-lines", daemon=True)
    teller.start()
    engine.start()
    try:
        yield engine
    finally:
        engine.close()
        inbox.put(None)
        teller.join(2)
    if lost:
        raise lost[0]


def _told(tell: Callable[[Inbox], None], inbox: Inbox, lost: list[OSError]) -> None:
    try:
        tell(inbox)
    except OSError as fault:  # the work goes on without its reader
        lost.append(fault)
        while inbox.get() is not None:
            pass


def _tell(inbox: Inbox) -> None:
    lines = EventLines("", answers=False, children=True)
    while (event := inbox.get()) is not None:
        if isinstance(event, CardChanged):
            err(_card_line(event), style="dim")
        told = lines.feed(event)
        if isinstance(event, AgentFinished) and event.state == "done":
            continue  # of its turn: what became of the card says the card's line
        for line in told:
            err(line.text, style=line.style)


def _card_line(event: CardChanged) -> str:
    why = f": {one_line(event.text, 300)}" if event.text and event.verb in _WITH_REASON else ""
    return f"{event.card} {event.status}{why}"


def _tell_events(inbox: Inbox) -> None:
    while (event := inbox.get()) is not None:
        out_json_line(to_json(event))
