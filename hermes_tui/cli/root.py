"""The tree of commands: names and one-line help known at once, each command imported when it is called."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from hermes_engine.errors import Interrupted, UnknownName, UsageError
from hermes_tui.cli.flags import EVERY, Flags, takes
from hermes_tui.printing.faults import log_to_home
from hermes_tui.texts import _

_COMMANDS = {
    "chat": ("hermes_tui.cli.chat:chat", "Ask once and print the answer (-q), or open the app."),
    "repl": ("hermes_tui.cli.chat:repl", "The plain shell, for SSH, dumb terminals and screen readers."),
    "batch": ("hermes_tui.cli.batch:batch", "Run many prompts from a file and keep every result."),
    "tools": ("hermes_tui.cli.tools:tools", "List, enable and disable toolsets."),
    "profile": ("hermes_tui.cli.profile:profile", "Create, show and choose profiles."),
    "sessions": ("hermes_tui.cli.sessions:sessions", "List, show, resume and delete saved chats."),
    "config": ("hermes_tui.cli.config:config", "Show and change settings."),
    "doctor": ("hermes_tui.cli.doctor:doctor", "Check the set-up."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called.

    Args:
        lazy: name → ("module:attribute", one line of help).
    """

    def __init__(self, *args: Any, lazy: dict[str, tuple[str, str]] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = lazy or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order in which they are documented."""
        return [*self.lazy, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports the command."""
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        module, _colon, attribute = self.lazy[cmd_name][0].partition(":")
        found: click.Command = getattr(import_module(module), attribute)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command the first argument names. Raises UnknownName, which lists the names."""
        if args and not args[0].startswith("-") and self.get_command(ctx, _spelling(args[0])) is None:
            raise UnknownName("command", args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing one."""
        with formatter.section(_("Commands")):
            formatter.write_dl([(name, _(self.lazy[name][1])) for name in self.lazy])


def _spelling(name: str) -> str:
    return name.replace("_", "-")


@click.group(
    cls=LazyGroup,
    lazy=_COMMANDS,
    invoke_without_command=True,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "token_normalize_func": _spelling,
        "max_content_width": 100,
    },
)
@takes(*EVERY)
@click.option("--version", "-V", is_flag=True, help="Print the version.")
@click.pass_context
def hermes(context: click.Context, flags: Flags, version: bool) -> int:
    """An agent shell: chat, many agents at once, and batch runs, in the terminal."""
    if version:
        from hermes_engine import __version__
        from hermes_tui.printing.streams import out

        out(f"hermes {__version__}")
        context.exit(0)
    context.obj = flags
    if context.invoked_subcommand is None:
        from hermes_tui.cli.chat import open_here

        return open_here(flags)
    return 0


def invoke(args: Sequence[str]) -> int:
    """Runs a command line.

    Raises:
        HermesError: anything foreseeable; wrong usage is a UsageError.
    """
    log_to_home()
    try:
        with hermes.make_context("hermes", list(args)) as context:
            result = hermes.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.exceptions.NoArgsIsHelpError as fault:
        raise _needs_verb(fault.ctx) from None
    except click.UsageError as fault:
        raise _usage(fault) from None
    except click.ClickException as fault:
        raise UsageError(fault.format_message()) from None
    except click.Abort:
        raise Interrupted(_("interrupted")) from None
    return result if isinstance(result, int) else 0


def _needs_verb(context: click.Context) -> UsageError:
    path = context.command_path
    command = context.command
    verbs = ", ".join(command.list_commands(context)) if isinstance(command, click.Group) else ""
    return UsageError(_("{command} needs a verb: {verbs}").format(command=path, verbs=verbs), hint=f"see {path} -h")


def _usage(fault: click.UsageError) -> UsageError:
    path = fault.ctx.command_path if fault.ctx else "hermes"
    return UsageError(fault.format_message().rstrip("."), hint=f"see {path} -h")
