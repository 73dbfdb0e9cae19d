"""`/kanban`: the board, one card, a goal planned into cards, starting and stopping its workers. Knows no front end."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from hermes_engine.errors import HermesError, UnknownName, UsageError
from hermes_tui.cleaning import escaped, one_line
from hermes_tui.commands.host import CommandHost, Completion, Output
from hermes_tui.commands.registry import command, words
from hermes_tui.person import person
from hermes_tui.texts import _

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_engine.board import Card, CardDraft
    from hermes_engine.session import Engine

_VERBS = ("add", "start", "stop", "board", "accept")
SHELL_VERBS = frozenset({
    "create", "list", "show", "edit", "attach", "comment", "assign", "link", "unlink", "block", "unblock", "complete",
    "review", "sort", "reclaim", "archive", "reopen", "runs", "watch", "stats", "run", "plan", "boards",
})  # fmt: skip
"""Verbs of `hermes kanban`, which knows this module and is not known here."""

_CARD = re.compile(r"[kK][0-9]+\Z")
_plans: WeakKeyDictionary[CommandHost, tuple[CardDraft, ...]] = WeakKeyDictionary()
"""Plans that were shown where there is no screen to say yes on."""


def _complete(host: CommandHost, typed: str) -> list[Completion]:
    first, blank, _rest = typed.partition(" ")
    if blank and first in ("start", "stop", "board"):
        return words(typed, [(name, "") for name in host.engine.kanban.boards.names()])
    helps = (_("make one card"), _("have this board worked"), _("stop that"), _("go to another board"), "")
    return [] if blank else words(typed, list(zip(_VERBS, helps, strict=True))[:4])


@command("kanban", args="[GOAL | add TITLE | start | stop | board SLUG]", group="Work", while_busy=True, blocking=True,
         help="Open the board, or plan a goal into cards", complete=_complete)  # fmt: skip
def kanban(host: CommandHost, args: str) -> None:
    verb, _blank, rest = args.partition(" ")
    rest = rest.strip()
    if not args:
        if not host.open_screen("kanban"):
            _show(host)
    elif verb == "add":
        _add(host, rest)
    elif verb in ("start", "stop") and " " not in rest:
        _work(host, verb, rest)
    elif verb == "board" and " " not in rest:
        _board(host, rest)
    elif verb == "accept" and not rest:
        _accept(host)
    elif _meant_for_the_shell(verb, rest):
        told = _("`{words}` is a verb of the command line, not a goal").format(words=_line(args))
        raise UsageError(told, hint=_("hermes kanban {words}; /kanban alone shows the board").format(words=_line(args)))
    elif not host.open_screen("kanban", goal=args):
        _plan(host, args)


def _meant_for_the_shell(verb: str, rest: str) -> bool:
    """Whether these are the words of `hermes kanban`: as a goal they would cost a model's plan of nothing."""
    return verb in SHELL_VERBS and (not rest or rest.startswith("-") or bool(_CARD.match(rest.split()[0])))


def _show(host: CommandHost) -> None:
    board = host.engine.kanban.board()
    cards = board.cards()
    if not cards:
        line = _("No cards on the board {board}. /kanban add TITLE makes one, /kanban GOAL plans some.")
        host.show(Output("text", line.format(board=board.slug)))
        return
    columns = (_("card"), _("state"), _("profile"), _("priority"), _("title"), _("waits because"))
    host.show(Output("table", title=_("Board {board}").format(board=board.slug), columns=columns,
                     rows=tuple(_row(card) for card in cards)))  # fmt: skip


def _row(card: Card) -> tuple[str, ...]:
    told = card.reason or (card.run.activity if card.run is not None else "")
    state = _("{state} by {name}").format(state=card.status, name=card.run.profile) if card.run else card.status
    priority = str(card.priority) if card.priority else ""
    return card.id, state, card.assignee, priority, _line(card.title), _line(told)


def _line(text: str) -> str:
    return one_line(escaped(text), 200)


def _add(host: CommandHost, title: str) -> None:
    from hermes_engine.board import CardDraft

    if not title:
        raise UsageError(_("a card needs a title"), hint="/kanban add TITLE")
    card = host.engine.kanban.board().create(CardDraft(title), by=person())
    host.show(Output("text", _("{card} is on the board: {reason}").format(card=card.id, reason=_line(card.reason))))


def _work(host: CommandHost, verb: str, slug: str) -> None:
    board = host.engine.kanban.board(slug).slug
    if verb == "start":
        have_worked(host.engine, board, host.engine.view(host.session).cwd)
        line = _("The board {board} is worked; /kanban stop ends that.")
    else:
        host.engine.kanban.stop(board)
        line = _("The board {board} is not worked here; cards that were at work wait anew.")
    host.show(Output("text", line.format(board=board)))


def have_worked(engine: Engine, slug: str, cwd: Path) -> None:
    """Has a board worked by this program, by processes of their own where the settings want them. Blocks."""
    from hermes_tui.leaving_behind import worker_process

    engine.kanban.start(slug, cwd=cwd, isolation=worker_process(engine.resolved, silent=True))


def _board(host: CommandHost, slug: str) -> None:
    boards = host.engine.kanban.boards
    if slug and slug not in boards.names():
        error = UnknownName("board", slug, boards.names())
        raise UsageError(error.line, hint=f"hermes kanban boards create {slug}")
    if slug:
        boards.use(slug)
    if not host.open_screen("kanban"):
        _show(host)


def _plan(host: CommandHost, goal: str) -> None:
    host.show(Output("text", _("Planning; /stop plan ends it.")))
    drafts = host.engine.kanban.plan(goal, cwd=host.engine.view(host.session).cwd)
    _plans[host] = drafts
    rows = []
    for number, draft in enumerate(drafts, 1):
        after = ", ".join(str(int(parent[1:]) + 1) for parent in draft.parents)
        rows.append((str(number), _line(draft.title), draft.assignee or "", after))
    columns = ("#", _("title"), _("profile"), _("after"))
    host.show(Output("table", _("Nothing is created yet: /kanban accept creates these cards."), _("Plan"), columns,
                     tuple(rows)))  # fmt: skip


def _accept(host: CommandHost) -> None:
    drafts = _plans.pop(host, ())
    if not drafts:
        raise UsageError(_("no plan was shown"), hint="/kanban GOAL")
    cards = host.engine.kanban.board().create_all(drafts, by=person())
    host.show(Output("text", _("Created {cards}.").format(cards=", ".join(card.id for card in cards))))


def left_off(engine: Engine) -> list[str]:
    """Boards that a person had worked when the program ended last, and that nobody works now. Blocks; makes no file."""
    from hermes_engine.session.kanban import DISPATCHED

    if not engine.kanban.enabled:
        return []
    found = []
    for slug in engine.kanban.boards.names():
        with (
            contextlib.suppress(HermesError),
            contextlib.closing(engine.kanban.boards.open(slug, only_read=True)) as one,
        ):
            if one.recall(DISPATCHED) == "yes" and not one.attended():
                found.append(slug)
    return found
