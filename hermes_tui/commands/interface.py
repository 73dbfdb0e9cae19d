"""Slash commands for how the app behaves on the screen: mouse and sidebar. Knows no front end."""

from __future__ import annotations

from hermes_engine.errors import UnknownName
from hermes_tui.commands.host import CommandHost, Completion, Output
from hermes_tui.commands.registry import command, words
from hermes_tui.texts import _


def choices_of(name: str) -> dict[str, str]:
    """What a setting of the interface may be, each with what it means."""
    return {
        "mouse": {
            "on": _("the app has it: clicks, the wheel, marking copies"),
            "wheel": _("clicks and the wheel; the app marks nothing"),
            "off": _("the terminal has it, and marks text itself"),
        },
        "sidebar": {
            "auto": _("beside the chat where the screen is wide enough"),
            "on": _("always beside the chat"),
            "off": _("only by Ctrl+T"),
        },
    }[name]


def _choose(host: CommandHost, name: str, args: str) -> None:
    choices = choices_of(name)
    if args and args not in choices:
        raise UnknownName(name, args, list(choices))
    if not host.open_screen(name, choice=args):
        host.show(Output("text", _("Only the app has that; the plain shell draws nothing of its own.")))


def _words(name: str, typed: str) -> list[Completion]:
    return words(typed, choices_of(name).items())


@command("mouse", args="[on|wheel|off]", help="Whether the app or the terminal has the mouse", group="Set-up",
         while_busy=True, complete=lambda host, typed: _words("mouse", typed))  # fmt: skip
def mouse(host: CommandHost, args: str) -> None:
    _choose(host, "mouse", args)


@command("sidebar", args="[auto|on|off]", help="When the work sidebar is shown", group="Set-up",
         while_busy=True, complete=lambda host, typed: _words("sidebar", typed))  # fmt: skip
def sidebar(host: CommandHost, args: str) -> None:
    _choose(host, "sidebar", args)
