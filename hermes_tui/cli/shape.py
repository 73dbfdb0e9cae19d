"""How commands are built on click: groups that name the nearest verb, help that passes through the catalogue.

Knows no command.
"""

from __future__ import annotations

import inspect
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from hermes_engine.errors import UnknownName
from hermes_tui.cli.switches import plain
from hermes_tui.texts import _


def spelling(name: str) -> str:
    """One spelling of names and flags: `_` is `-`."""
    return name.replace("_", "-")


class _Switching(click.Command):
    """Takes switches in every form in which people write them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the arguments into the context. Raises UsageError, which names this command."""
        args, off = plain(self, ctx, args)
        try:
            rest = super().parse_args(ctx, args)
        except click.UsageError as fault:
            fault.ctx = fault.ctx or ctx
            raise
        ctx.params.update(dict.fromkeys(off & ctx.params.keys(), False))
        return rest


class Verb(_Switching):
    """A command whose docstring is its help, in the person's language."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the help."""
        _write_help(self.help, formatter)

    def get_short_help_str(self, limit: int = 45) -> str:
        """The first sentence of the help."""
        first = _(inspect.cleandoc(self.help or "")).partition("\n\n")[0]
        return " ".join(first.split()).partition(". ")[0].rstrip(".") + "."


class Group(_Switching, click.Group):
    """A group that lists its verbs in the order in which they are written and names the nearest for a wrong one."""

    command_class = Verb

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the source."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command the first argument names. Raises UnknownName, which lists the names, or UsageError."""
        if args and not args[0].startswith("-") and self.get_command(ctx, spelling(args[0])) is None:
            raise UnknownName("command", args[0], self.shown(ctx))
        return super().resolve_command(ctx, args)

    def shown(self, ctx: click.Context) -> list[str]:
        """Names of the commands that are listed."""
        return [name for name in self.list_commands(ctx) if name not in self.commands or not self.commands[name].hidden]

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the help."""
        _write_help(self.help, formatter)


class LazyGroup(Group):
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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing one."""
        with formatter.section(_("Commands")):
            formatter.write_dl([(name, _(self.lazy[name][1])) for name in self.lazy])


class JsonOrFile(click.ParamType[dict[str, Any]]):
    """A JSON object, or a file that holds one."""

    name = "JSON|FILE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        """The object. Fails as wrong usage."""
        text, where = str(value), ""
        if not text.lstrip().startswith(("{", "[")):
            where = f"{text}: "
            try:
                text = Path(text).read_text("utf-8-sig")
            except (OSError, ValueError) as error:
                told = getattr(error, "strerror", None) or error
                self.fail(
                    _("{text} is neither a JSON object nor a file: {why}").format(text=text, why=told), param, ctx
                )
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            self.fail(_("{where}not JSON: {error}").format(where=where, error=error), param, ctx)
        if not isinstance(data, dict):
            self.fail(_("{where}no JSON object").format(where=where), param, ctx)
        return data


def _write_help(text: str | None, formatter: click.HelpFormatter) -> None:
    if text:
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(_(inspect.cleandoc(text)))
