"""Slash commands, alike in the app and the plain shell. Knows no front end."""

from hermes_tui.commands.host import Command, CommandHost, Completion, Output
from hermes_tui.commands.registry import (
    GROUPS,
    Dispatched,
    Invocation,
    PlainText,
    Unknown,
    command,
    commands,
    complete,
    dispatch,
    find,
    parse,
)

__all__ = [
    "GROUPS",
    "Command",
    "CommandHost",
    "Completion",
    "Dispatched",
    "Invocation",
    "Output",
    "PlainText",
    "Unknown",
    "command",
    "commands",
    "complete",
    "dispatch",
    "find",
    "parse",
]
