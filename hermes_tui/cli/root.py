"""The tree of commands: names and one-line help known at once, each command imported when it is called."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

import click

from hermes_engine.errors import ConfigError, Interrupted, UsageError
from hermes_tui.cli import quit_at_once
from hermes_tui.cli.flags import EVERY, Flags, takes
from hermes_tui.cli.shape import Group, LazyGroup, spelling
from hermes_tui.printing.faults import log_to_home
from hermes_tui.printing.streams import OutputLost
from hermes_tui.texts import _

_COMMANDS = {
    "chat": ("hermes_tui.cli.chat:chat", "Ask once and print the answer (-q), or open the app."),
    "repl": ("hermes_tui.cli.chat:repl", "The plain shell, for SSH, dumb terminals and screen readers."),
    "batch": ("hermes_tui.cli.batch:batch", "Run many prompts from a file and keep every result."),
    "tools": ("hermes_tui.cli.tools:tools", "List, enable and disable toolsets."),
    "profile": ("hermes_tui.cli.profile:profile", "Create, show and choose profiles."),
    "sessions": ("hermes_tui.cli.sessions:sessions", "List, show, resume and delete saved chats."),
    "kanban": ("hermes_tui.cli.kanban:kanban", "A board of cards that agents work."),
    "tasks": ("hermes_tui.cli.tasks:tasks", "List, show, stop, answer and go on with tasks and agents."),
    "config": ("hermes_tui.cli.config:config", "Show and change settings."),
    "local": ("hermes_tui.cli.local:local", "The small real model of this machine: install, status, stop."),
    "doctor": ("hermes_tui.cli.doctor:doctor", "Check the set-up."),
}


@click.group(
    cls=LazyGroup,
    lazy=_COMMANDS,
    invoke_without_command=True,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "token_normalize_func": spelling,
        "max_content_width": 100,
    },
)
@takes(*EVERY)
@click.option("--version", "-V", is_flag=True, help=_("Print the version."))
@click.pass_context
def hermes(context: click.Context, flags: Flags, version: bool) -> int:
    """An agent shell: chat, many agents at once, and batch runs, in the terminal."""
    if signal.getsignal(signal.SIGINT) is quit_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if version:
        from hermes_engine import __version__
        from hermes_tui.printing.streams import out

        out(f"hermes {__version__}")
        context.exit(0)
    context.obj = flags
    if context.invoked_subcommand not in ("doctor", "help"):
        _check_home()
    if context.invoked_subcommand is None:
        from hermes_tui.cli.chat import open_here

        return open_here(flags)
    return 0


def _check_home() -> None:
    from hermes_engine.paths import Home

    root = Home.from_env().root
    there = next(folder for folder in (root, *root.parents) if folder.exists())
    if not there.is_dir():
        raise ConfigError(_("the home {path} is not a folder").format(path=root), hint=_("HERMES_HOME names another"))


@hermes.command("help", hidden=True)
@click.argument("names", nargs=-1)
@click.pass_context
def help_(context: click.Context, names: tuple[str, ...]) -> int:
    """`hermes help COMMAND` is `hermes COMMAND -h`."""
    return invoke([*names, "--help"])


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
        if sys.stdout is None:  # click writes its help to nobody without a word
            raise OutputLost(OSError("it is closed")) from None
        return end.exit_code
    except click.exceptions.NoArgsIsHelpError as fault:
        raise _needs_verb(fault.ctx) from None
    except click.UsageError as fault:
        raise _usage(fault) from None
    except click.ClickException as fault:
        raise UsageError(fault.format_message()) from None
    except click.Abort:
        raise Interrupted(_("interrupted")) from None
    except OSError as fault:
        if _writing_help(fault):
            raise OutputLost(fault) from None
        raise
    return result if isinstance(result, int) else 0


def _writing_help(fault: OSError) -> bool:
    """Whether click could not write its help text, the one thing it writes itself."""
    place = fault.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    ours = place is not None and place.tb_frame.f_globals.get("__name__") == "click.utils"
    return ours and not isinstance(fault, BrokenPipeError)


def _needs_verb(context: click.Context) -> UsageError:
    path = context.command_path
    command = context.command
    verbs = ", ".join(command.shown(context)) if isinstance(command, Group) else ""
    return UsageError(_("{command} needs a verb: {verbs}").format(command=path, verbs=verbs), hint=f"see {path} -h")


def _usage(fault: click.UsageError) -> UsageError:
    path = fault.ctx.command_path if fault.ctx else "hermes"
    return UsageError(fault.format_message().rstrip("."), hint=f"see {path} -h")
