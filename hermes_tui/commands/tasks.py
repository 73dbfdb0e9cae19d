"""Slash commands about tasks: start one beside a chat, list, run again, watch, go on with one. Knows no front end."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hermes_engine.errors import UsageError
from hermes_tui.commands.agents import PAST, any_words, found, records
from hermes_tui.commands.host import CommandHost, Completion, Output
from hermes_tui.commands.listing import agent_columns, agent_rows, gone_on_with
from hermes_tui.commands.registry import command, words
from hermes_tui.files import FileFinder, mention
from hermes_tui.texts import _

if TYPE_CHECKING:
    from hermes_engine.session import AgentRow
    from hermes_engine.session.tasks import TaskKind
    from hermes_engine.store.agents import AgentRecord

_FILES = FileFinder()

STARTING = "[--worktree] [--profile NAME] [--model M] TASK"


class Wish(NamedTuple):
    """A task and how it is to be done."""

    prompt: str
    profile: str | None
    model: str | None
    worktree: bool


def wish(args: str) -> Wish:
    """What `/background` is told: options first, then the task as it was typed; `--` ends the options.

    Raises:
        UsageError: an option that does not exist or lacks its value.
    """
    values: dict[str, str] = {}
    worktree, rest = False, args.strip()
    while rest.startswith("--"):
        word, _blank, rest = rest.partition(" ")
        rest = rest.lstrip()
        name, equals, value = word[2:].partition("=")
        if not name:
            break
        if name == "worktree" and not equals:
            worktree = True
        elif name in ("profile", "model"):
            if not equals:
                value, _blank, rest = rest.partition(" ")
            if not value:
                raise UsageError(_("--{name} needs a value").format(name=name))
            values[name] = value
        else:
            raise UsageError(_("there is no option --{name}").format(name=name), hint=STARTING)
    return Wish(rest.strip(), values.get("profile"), values.get("model"), worktree)


def _start_words(host: CommandHost, typed: str) -> list[Completion]:
    before = typed.split(" ")
    if len(before) > 1 and before[-2] == "--profile":
        from hermes_engine.profiles import list_profiles

        return words(typed, [(profile.name, profile.description) for profile in list_profiles(host.resolved.home)])
    if all(word.startswith("--") for word in before):
        options = (("--worktree", _("in a git worktree and branch of its own")), ("--profile", ""), ("--model", ""))
        return words(typed, options) if before[-1] else []
    at = mention(typed)
    if at is None:
        return []
    found = _FILES.find(host.engine.view(host.session).cwd, typed[at + 1 :])
    return [Completion(f"@{path}", "", at) for path in found]


def _start(host: CommandHost, args: str, kind: TaskKind) -> AgentRow:
    wanted = wish(args)
    return host.engine.tasks.start(
        host.session, wanted.prompt, kind=kind, profile=wanted.profile, model=wanted.model, worktree=wanted.worktree
    )


@command("background", args="TASK", help="Run a task beside this chat and report when it is done",
         group="Work", aliases=("bg",), while_busy=True, blocking=True, complete=_start_words)  # fmt: skip
def background(host: CommandHost, args: str) -> None:
    if not args:
        tasks(host, "")
        return
    row = _start(host, args, "background")
    host.show(Output("text", _("⚙ {name} runs in the background · /tasks").format(name=row.name)))


@command("spawn", args="TASK", help="Start an agent below this chat that can be watched and answered",
         group="Work", while_busy=True, blocking=True, complete=_start_words)  # fmt: skip
def spawn(host: CommandHost, args: str) -> None:
    row = _start(host, args, "child")
    host.show(Output("text", _("⑂ {name} works beside this chat · /agents").format(name=row.name)))


@command("tasks", help="Tasks and agents beside this chat, at work and ended", group="Work", while_busy=True,
         blocking=True)  # fmt: skip
def tasks(host: CommandHost, args: str) -> None:
    here = [row for row in host.engine.agents() if row.kind != "chat"]
    past, elsewhere = records(host)
    known = {row.id for row in here}
    live = [row for row in here if row.live]
    away = [record for record in elsewhere if record.id not in known]
    ended: list[AgentRow | AgentRecord] = [row for row in reversed(here) if not row.live]
    ended += [record for record in past if not record.live and record.id not in known]
    stale = gone_on_with([*live, *away, *ended])
    ended = sorted((row for row in ended if row.id not in stale), key=lambda row: -(row.ended or 0))[:PAST]
    listed = [*live, *away, *ended]
    if not listed:
        host.show(Output("text", _("Nothing runs beside this chat. /background TASK keeps it free.")))
        return
    line = _("/attach NAME watches one, /retry NAME runs it again, /open NAME makes it a chat.")
    host.show(Output("table", line, _("Tasks"), agent_columns(), agent_rows(listed)))


@command("retry", args="[name]", help="Send the last message again, or run a task again", group="Work",
         while_busy=True, blocking=True, complete=any_words)  # fmt: skip
def retry(host: CommandHost, args: str) -> None:
    if args:
        row = host.engine.tasks.retry(found(host, args).id)
        host.show(Output("text", _("⚙ {name} runs again · /tasks").format(name=row.name)))
        return
    if host.engine.busy(host.session):
        raise UsageError(_("/{name} works when this turn has ended; Esc stops it").format(name="retry"))
    said = [message.content for message in host.engine.view(host.session).messages if message.role == "user"]
    if not said:
        raise UsageError(_("nothing was sent yet"))
    host.engine.send(host.session, said[-1])


def _attach_words(host: CommandHost, typed: str) -> list[Completion]:
    return any_words(host, typed) or words(typed, [("--chat", _("go on with it as a chat"))] if " " in typed else [])


@command("attach", args="NAME [--chat]", help="Watch an agent or a task", group="Work", while_busy=True, blocking=True,
         complete=_attach_words)  # fmt: skip
def attach(host: CommandHost, args: str) -> None:
    given = args.split()
    names = [word for word in given if word != "--chat"]
    if len(names) != 1:
        raise UsageError(_("whom?"), hint="/attach NAME")
    if len(names) < len(given):
        open_(host, names[0])
        return
    chosen = found(host, names[0])
    if not host.open_screen("agents", agent=chosen.id):
        raise UsageError(_("agents cannot be watched here"), hint="/tasks")


@command("open", args="NAME", help="Go on with an ended agent or task as a chat", group="Work", blocking=True,
         complete=any_words)  # fmt: skip
def open_(host: CommandHost, args: str) -> None:
    if not args:
        raise UsageError(_("which one?"), hint="/open NAME")
    chosen = found(host, args)
    if chosen.live:
        hint = _("/attach {name} watches it, /stop {name} ends it").format(name=chosen.name)
        raise UsageError(_("{name} is still at work").format(name=chosen.name), hint=hint)
    host.run_session(resume=chosen.session)
