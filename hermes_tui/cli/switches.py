"""Switches in every form in which people write them: `--resume`, `--resume=True`, `--resume true`, `--noresume`.

Click knows the first one only; scripts written for other batch runners have the rest. Knows no command.
"""

from __future__ import annotations

import click

from hermes_tui.switch_words import ALONE, meant
from hermes_tui.texts import _


def plain(command: click.Command, ctx: click.Context, args: list[str]) -> tuple[list[str], set[str]]:
    """The arguments as click reads them, and the names of the switches that were turned off.

    A word after a switch belongs to it only where the command takes no other words. What is no switch, stands after
    `--` or after the name of a verb, or is another option's value is left as it is.

    Raises:
        click.BadParameter: a switch with a value that is neither yes nor no.
    """
    group = isinstance(command, click.Group)
    loose = not group and not any(isinstance(item, click.Argument) for item in command.get_params(ctx))
    known = _options(command, ctx)
    kept: list[str] = []
    off: set[str] = set()
    rest = args[::-1]
    while rest:
        token = rest.pop()
        if token == "--" or (group and not token.startswith("-")):
            return [*kept, token, *rest[::-1]], off
        name, equals, word = token.partition("=")
        option, wanted = _found(known, _spelled(ctx, name))
        if option is None or not option.is_flag:
            kept.append(token)
            if option is not None and not equals and rest:
                kept.append(rest.pop())
            continue
        if loose and not equals and rest and rest[-1].lower() in ALONE:
            equals, word = "=", rest.pop()
        if equals:
            wanted = _meant(word, wanted, option, ctx)
        off.discard(option.name or "")
        if wanted:
            kept.append(option.opts[0])
        else:
            off.add(option.name or "")
    return kept, off


def _meant(word: str, wanted: bool, option: click.Option, ctx: click.Context) -> bool:
    said = meant(word)
    if said is None:
        raise click.BadParameter(_("{word!r} is neither true nor false").format(word=word), ctx, option)
    return said is wanted


def _spelled(ctx: click.Context, name: str) -> str:
    return ctx.token_normalize_func(name) if ctx.token_normalize_func else name


def _options(command: click.Command, ctx: click.Context) -> dict[str, click.Option]:
    found = (item for item in command.get_params(ctx) if isinstance(item, click.Option))
    return {_spelled(ctx, name): item for item in found for name in item.opts}


def _found(known: dict[str, click.Option], name: str) -> tuple[click.Option | None, bool]:
    """The option of that name, and whether it is switched on by it: `--noNAME` and `--no-NAME` switch off."""
    if name not in known and name.startswith("--no"):
        option = known.get(f"--{name[4:].removeprefix('-')}")
        if option is not None and option.is_flag:
            return option, False
    return known.get(name), True
