"""Slash commands about agents: list, stop, tell; and finding one by its name or id. Knows no front end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes_engine.errors import HermesError, StateError, UnknownName, UsageError
from hermes_tui.cleaning import one_line
from hermes_tui.commands.host import CommandHost, Completion, Output
from hermes_tui.commands.listing import agent_columns, agent_rows
from hermes_tui.commands.registry import command, words
from hermes_tui.texts import _, ngettext

if TYPE_CHECKING:
    from hermes_engine.session import AgentRow
    from hermes_engine.store.agents import AgentRecord

PAST = 15
"""Ended tasks that are listed."""


@command("agents", help="Everything that is running", group="Work", while_busy=True)
def agents(host: CommandHost, args: str) -> None:
    if not host.open_screen("agents"):
        rows = agent_rows(host.engine.agents())
        host.show(Output("table", title=_("Agents"), columns=agent_columns(), rows=rows))


# Naming


def _at_work(host: CommandHost) -> list[AgentRow]:
    supervisor = host.engine.supervisor
    return [row for row in host.engine.agents() if supervisor.at_work(row.id)]


def _named(rows: Sequence[AgentRow], name: str) -> AgentRow | None:
    """The row of that name or id: a live one before the last ended one."""
    fitting = [row for row in rows if name in (row.name, row.id)]
    return next((row for row in fitting if row.live), fitting[-1] if fitting else None)


def _known(host: CommandHost) -> list[AgentRow]:
    return [row for row in host.engine.agents() if row.kind not in ("chat", "batch")]


def found(host: CommandHost, name: str) -> AgentRow | AgentRecord:
    """The agent or task of that name or id, of this program or of an earlier one. Blocks for the disk.

    Raises:
        UnknownName: none; names those there are.
    """
    if row := _named(_known(host), name):
        return row
    past, _elsewhere = records(host)
    record = next((record for record in past if name in (record.name, record.id)), None)
    if record is None:
        names = dict.fromkeys([*(row.name for row in _known(host)), *(record.name for record in past[:PAST])])
        raise UnknownName("agent or task", name, names)
    return record


def _words_of(typed: str, rows: Sequence[AgentRow | AgentRecord], *more: tuple[str, str]) -> list[Completion]:
    if " " in typed:
        return []
    named = {row.name: one_line(row.title, 60) for row in rows}
    return words(typed, [*more, *named.items()])


def any_words(host: CommandHost, typed: str) -> list[Completion]:
    """Completion of every known name. Blocks for the disk."""
    return _words_of(typed, [*reversed(_known(host)), *records(host)[0][:PAST]])


def records(host: CommandHost) -> tuple[tuple[AgentRecord, ...], tuple[AgentRecord, ...]]:
    """Past agents of all programs and those at work in others; nothing where nothing is kept."""
    try:
        away = tuple(record for record in host.engine.tasks.elsewhere() if record.kind != "chat")
        return host.engine.tasks.past(), away
    except StateError:
        return (), ()


# Stopping, telling


def _stop_words(host: CommandHost, typed: str) -> list[Completion]:
    return _words_of(typed, _at_work(host), ("all", _("everything that runs")))


@command("stop", args="[name|id|all]", help="Stop this chat's turn, one agent, or all", group="Work", while_busy=True,
         complete=_stop_words)  # fmt: skip
def stop(host: CommandHost, args: str) -> None:
    engine = host.engine
    if not args:
        if not engine.interrupt(host.session):
            raise UsageError(_("nothing runs in this chat"), hint="/stop all")
        return
    working = _at_work(host)
    chosen = working if args == "all" else [row for row in working if args in (row.name, row.id)]
    if args != "all" and not chosen:
        host.in_background(lambda: _stop_elsewhere(host, args, [row.name for row in working]))
        return
    count = sum(engine.stop_agent(row.id) for row in chosen)
    if not count:
        raise UsageError(_("nothing runs"))
    host.show(Output("text", ngettext("Stopping {n} agent.", "Stopping {n} agents.", count).format(n=count)))


def _stop_elsewhere(host: CommandHost, name: str, here: Sequence[str]) -> None:
    """Asks the program that runs an agent to stop it. Blocks for the disk."""
    try:
        away = records(host)[1]
        record = next((record for record in away if name in (record.name, record.id)), None)
        if record is None:
            raise UnknownName("running agent", name, [*here, *(record.name for record in away)])
        host.engine.tasks.order("stop", record.id)
    except HermesError as error:
        host.show(Output("error", error.line))
        return
    words = _("{name} works in another program, which was asked to stop it.")
    host.show(Output("text", words.format(name=record.name)))


def _steer_words(host: CommandHost, typed: str) -> list[Completion]:
    return _words_of(typed, [row for row in _at_work(host) if row.kind != "batch" and row.session != host.session])


@command("steer", args="[name] TEXT", help="Tell a running agent something before its next step", group="Work",
         while_busy=True, complete=_steer_words)  # fmt: skip
def steer(host: CommandHost, args: str) -> None:
    if not args:
        raise UsageError(_("what should it be told?"), hint="/steer TEXT")
    name, _blank, rest = args.partition(" ")
    working = [row for row in _at_work(host) if row.kind != "batch" and row.session != host.session]
    row = _named(working, name)
    if row is None and name.startswith("ag_"):
        raise UnknownName("running agent", name, [row.name for row in working])
    if row is None or not rest.strip():
        host.steer(args)
        return
    host.engine.tasks.tell(row.id, rest.strip())
    host.show(Output("text", _("{name} hears it before its next step.").format(name=row.name)))
