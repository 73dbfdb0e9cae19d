"""Slash commands around the program: help, quit, set-up check, writing AGENTS.md. Knows no front end."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_engine.errors import UnknownName
from hermes_tui.commands.checks import checks_of, rows_of
from hermes_tui.commands.host import CommandHost, Completion, Output
from hermes_tui.commands.registry import GROUPS, command, commands, find, words
from hermes_tui.texts import _

INIT_PROMPT = """\
Look at this folder and write a file AGENTS.md at its top for agents that will work here.

Read what is there first: the README, the build and dependency files, the test set-up, the layout of the source. \
Then write, in at most 60 lines: what the project is; how to install, run, test and lint it (commands that you \
found in its files, not guesses); how the source is laid out; conventions that the code follows; what to be careful \
with. If an AGENTS.md exists, keep what is still true and mend the rest. Say at the end what you wrote."""


def _command_names(host: CommandHost, typed: str) -> list[Completion]:
    return words(typed, [(item.name, _(item.help)) for item in commands()])


@command("help", args="[command]", help="List the commands", group="Reach", aliases=("?",), while_busy=True,
         complete=_command_names)  # fmt: skip
def help_(host: CommandHost, args: str) -> None:
    if args:
        host.show(_help_of(args.split()[0].removeprefix("/")))
        return
    rows = tuple((item.usage, _(item.help)) for group in GROUPS for item in commands() if item.group == group)
    line = _("Anything else is sent to the model. A blank before the slash makes any line text.")
    host.show(Output("table", line, _("Commands"), ("", ""), rows))


def _help_of(name: str) -> Output:
    item = find(name)
    if item is None:
        raise UnknownName("command", name, [known.name for known in commands()])
    return Output("text", "\n".join(_help_lines(item.name)))


def _help_lines(name: str) -> Iterator[str]:
    item = find(name)
    assert item is not None
    yield item.usage
    yield f"  {_(item.help)}."
    if item.aliases:
        yield "  " + _("also: {names}").format(names=", ".join(f"/{alias}" for alias in item.aliases))
    if item.while_busy:
        yield "  " + _("works while a turn runs")


@command("init", help="Let the model write AGENTS.md for this folder", group="Reach")
def init(host: CommandHost, args: str) -> None:
    host.engine.send(host.session, INIT_PROMPT + (f"\n\n{args}" if args else ""))


@command("doctor", help="Check the set-up", group="Reach", while_busy=True, blocking=True)
def doctor(host: CommandHost, args: str) -> None:
    rows = rows_of(checks_of(host.resolved))
    line = _("`hermes doctor --probe` also asks the endpoint.")
    host.show(Output("table", line, _("Set-up"), ("", "", ""), rows))


@command("quit", help="Leave; everything is saved", group="Reach", aliases=("exit", "q"), while_busy=True)
def quit_(host: CommandHost, args: str) -> None:
    host.ask_quit()
