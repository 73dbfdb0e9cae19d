"""Slash commands about agents: list, stop, tell; and finding one by its name or id. Knows no front end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from hermes_engine.errors import HermesError, StateError, UnknownName, UsageError
from hermes_tui.cleaning import one_line
from hermes_tui.commands.host import CommandHost, Completion, Output
from hermes_tui.commands.listing import agent_columns, agent_rows
from hermes_tui.commands.registry import command, words
from hermes_tui.texts import _, ngettext

if TYPE_CHECKING:
    from hermes_engine.session import AgentRow
    from hermes_engine.store.agents import AgentRecord

Named = TypeVar("Named", "AgentRow", "AgentRecord")

PAST = 15
"""Ended tasks that are listed."""

LISTED = 6
"""Agents of one name that are listed."""

TOLD = 300
"""Characters shown of what an agent is told."""

CHAT = "main"
"""What the person's own chat is called."""


@command("agents", help="Everything that is running", group="Work", while_busy=True)
def agents(host: CommandHost, args: str) -> None:
    if not host.open_screen("agents"):
        rows = agent_rows(host.engine.agents())
        host.show(Output("table", title=_("Agents"), columns=agent_columns(), rows=rows))


# Naming


def _at_work(host: CommandHost) -> list[AgentRow]:
    supervisor = host.engine.supervisor
    return [row for row in host.engine.agents() if supervisor.at_work(row.id)]


def named(rows: Iterable[Named], name: str) -> Named | None:
    """The one of that name or id, None for none; of one task that was run again the first in `rows`.

    Raises:
        UsageError: several tasks have that name; lists their ids.
    """
    tasks: dict[str, Named] = {}
    for row in rows:
        if name in (row.name, row.id):
            tasks.setdefault(row.id if row.live else row.prompt, row)
    fitting = list(tasks.values())
    if len(fitting) < 2:
        return fitting[0] if fitting else None
    listed = ", ".join(f"{row.id} {one_line(row.title, 40)}".strip() for row in fitting[:LISTED])
    more = _(" and {n} more").format(n=len(fitting) - LISTED) if len(fitting) > LISTED else ""
    raise UsageError(
        _("several are called {name}: {listed}").format(name=name, listed=listed + more), hint=_("give the id")
    )


def called(row: AgentRow | AgentRecord) -> str:
    """An agent in a sentence: its name, and its task where that tells more."""
    return f"{row.name} ({one_line(row.title, 40)})" if row.title and row.title != row.name else row.name


def _known(host: CommandHost) -> list[AgentRow]:
    return [row for row in host.engine.agents() if row.kind not in ("chat", "batch")]


def found(host: CommandHost, name: str) -> AgentRow | AgentRecord:
    """The agent or task of that name or id, of this program or of an earlier one. Blocks for the disk.

    What lives comes before what has ended, this chat's before other chats'.

    Raises:
        UnknownName: none; names those there are.
        UsageError: several.
    """
    known = _known(host)
    if row := named([row for row in known if row.live], name) or named(reversed(known), name):
        return row
    past, _elsewhere = records(host)
    own = [record for record in past if record.owner == host.session]
    record = named(own, name) or named(past, name)
    if record is None:
        names = dict.fromkeys([*(row.name for row in known), *(record.name for record in past[:PAST])])
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
    if args == "all":
        count = sum(engine.stop_agent(row.id) for row in working)
        if not count:
            raise UsageError(_("nothing runs"))
        host.show(Output("text", ngettext("Stopping {n} agent.", "Stopping {n} agents.", count).format(n=count)))
        return
    row = named(working, args)
    if row is None:
        host.in_background(lambda: _stop_elsewhere(host, args, [row.name for row in working]))
        return
    if not engine.stop_agent(row.id):
        raise UsageError(_("{name} has ended").format(name=called(row)))
    host.show(Output("text", _("Stopping {name}.").format(name=called(row))))


def _stop_elsewhere(host: CommandHost, name: str, here: Sequence[str]) -> None:
    """Asks the program that runs an agent to stop it. Blocks for the disk."""
    try:
        past, away = records(host)
        record = named(away, name)
        if record is None:
            _no_end(host, name, past)
            raise UnknownName("running agent", name, [*here, *(record.name for record in away)])
        host.engine.tasks.order("stop", record.id)
    except HermesError as error:
        host.show(Output("error", error.line))
        return
    words = _("{name} works in another program, which was asked to stop it.")
    host.show(Output("text", words.format(name=called(record))))


def _no_end(host: CommandHost, name: str, past: Iterable[AgentRecord]) -> None:
    """Raises UsageError: the agent of that name, or the task of that id, has ended."""
    row = named(reversed(_known(host)), name) or named([one for one in past if one.id == name], name)
    if row is not None and not row.live:
        hint = _("/open {name} goes on with it as a chat, /retry {name} runs it again").format(name=name)
        raise UsageError(_("{name} has ended").format(name=called(row)), hint=hint)


def _tell_elsewhere(host: CommandHost, args: str, here: Sequence[str]) -> None:
    """Asks the program that runs an agent to tell it something; else it was meant for this chat. Blocks."""
    name, _blank, text = args.partition(" ")
    try:
        past, away = records(host)
        record = named(away, name)
        if record is None:
            _no_end(host, name, past)
            _no_agent(host, args, [*here, *(record.name for record in away)])
            return
        if not text.strip():
            raise UsageError(_("what should it be told?"), hint=f"/steer {name} TEXT")
        host.engine.tasks.order("steer", record.id, {"text": text.strip()})
    except HermesError as error:
        host.show(Output("error", error.line))
        return
    words = _("{name} works in another program; it hears before its next step: {text}")
    host.show(Output("text", words.format(name=called(record), text=one_line(text, TOLD))))


def _beside(host: CommandHost) -> list[AgentRow]:
    return [row for row in _at_work(host) if row.kind != "batch" and row.session != host.session]


def _steer_words(host: CommandHost, typed: str) -> list[Completion]:
    return _words_of(typed, _beside(host), (CHAT, _("this chat")))


def _no_agent(host: CommandHost, args: str, names: Sequence[str]) -> None:
    """What is told to nobody by name is for this chat, where nothing else can be meant and its turn runs: a name that
    is mistyped never becomes a turn.

    Raises:
        UsageError: it could be meant for an agent.
    """
    name = args.partition(" ")[0]
    hint = _("/steer {chat} TEXT tells this chat").format(chat=CHAT)
    if not args:
        raise UsageError(_("what should it be told?"), hint=hint)
    if not names and name not in {one for row in _known(host) for one in (row.name, row.id)}:
        if not host.engine.busy(host.session):
            raise UsageError(_("nothing runs"), hint=hint)
        if not name.startswith("ag_"):
            host.steer(args)
            return
    fault = UnknownName("running agent", name, [CHAT, *names])
    raise UsageError(str(fault), hint=f"{fault.hint} {hint}".strip())


@command("steer", args="NAME|main TEXT", group="Work",
         help="Tell a running agent, or this chat (main), something before its next step",
         while_busy=True, complete=_steer_words)  # fmt: skip
def steer(host: CommandHost, args: str) -> None:
    name, _blank, rest = args.partition(" ")
    beside, rest = _beside(host), rest.strip()
    row = named([row for row in beside if name != CHAT or row.kind != "chat"], name)
    if row is None and name != CHAT:
        host.in_background(lambda: _tell_elsewhere(host, args, [row.name for row in beside]))
        return
    if not rest:
        raise UsageError(_("what should it be told?"), hint=f"/steer {name} TEXT")
    if row is None:
        host.steer(rest)
        return
    host.engine.tasks.tell(row.id, rest)
    words = _("{name} hears before its next step: {text}")
    host.show(Output("text", words.format(name=called(row), text=one_line(rest, TOLD))))
