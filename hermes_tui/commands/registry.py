"""The one registry of slash commands: completion, `/help`, the palette and both front ends are fed from here.

Knows no front end and no single command: the families beside it register themselves when first asked for.
"""

from __future__ import annotations

import difflib
import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal

from hermes_engine.errors import HermesError
from hermes_tui.commands.host import Command, CommandHost, Complete, Completion, Output, Run
from hermes_tui.texts import _

GROUPS = ("Work", "Chat", "Look", "Set-up", "Reach")
"""Headings of `/help` and the palette, in order."""

_FAMILIES = ("tasks", "agents", "work", "batch", "kanban", "chat", "look", "setup", "interface", "reach")
_NAME = re.compile(r"/([A-Za-z][A-Za-z0-9_-]*|\?)(?=\s|$)")
_commands: dict[str, Command] = {}
_loaded = False
_loading = threading.RLock()


@dataclass(frozen=True, slots=True)
class Invocation:
    """A known command and the text after its name, stripped."""

    command: Command
    args: str


@dataclass(frozen=True, slots=True)
class PlainText:
    """No command: text for the model, unchanged."""

    text: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """Looks like a command but is none. `nearest` is the closest name, or ""."""

    name: str
    nearest: str


Dispatched = Literal["ran", "text", "refused"]
"""ran: the command ran or runs in the background; text: send it to the model; refused: nothing was done, the
reason is shown and the text belongs back in the prompt."""


def command(
    name: str,
    *,
    args: str = "",
    help: str,
    group: str,
    aliases: tuple[str, ...] = (),
    while_busy: bool = False,
    blocking: bool = False,
    complete: Complete | None = None,
) -> Callable[[Run], Run]:
    """Registers the decorated function as a slash command; see `Command` for the fields."""

    def register(run: Run) -> Run:
        made = Command(name, args, help, group, aliases, while_busy, blocking, run, complete)
        for word in (name, *aliases):
            if word in _commands:
                raise ValueError(f"/{word} is registered twice")
            _commands[word] = made
        return run

    return register


def commands() -> tuple[Command, ...]:
    """Every command once, by group, within it in the order of registration."""
    _load()
    return tuple(sorted(dict.fromkeys(_commands.values()), key=lambda item: GROUPS.index(item.group)))


def find(name: str) -> Command | None:
    """The command of that name or alias, whatever the case."""
    _load()
    return _commands.get(name.lower())


def parse(text: str) -> Invocation | PlainText | Unknown:
    """What a line means. Text that does not begin with `/`, and a path, is text (a leading blank makes any line
    text).
    """
    if not text.startswith("/"):
        return PlainText(text)
    match = _NAME.match(text)
    if match is None:
        return Unknown("", "") if text.strip() == "/" else PlainText(text)
    name = match[1]
    found = find(name)
    if found is not None:
        return Invocation(found, text[match.end() :].strip())
    if Path(f"/{name}").exists():
        return PlainText(text)
    near = difflib.get_close_matches(name.lower(), _commands, n=1, cutoff=0.5)
    return Unknown(name, _commands[near[0]].name if near else "")


def complete(text: str, host: CommandHost) -> list[Completion]:
    """Proposals for a line that begins with `/`: names first, then arguments. May read the disk."""
    if not text.startswith("/") or "\n" in text:
        return []
    head, blank, rest = text.partition(" ")
    if not blank:
        return _complete_name(head[1:].lower())
    found = find(head[1:])
    if found is None or found.complete is None:
        return []
    offset = len(head) + 1
    try:
        return [Completion(item.text, item.help, item.start + offset) for item in found.complete(host, rest)]
    except HermesError:
        return []


def _complete_name(typed: str) -> list[Completion]:
    """Names that begin with what was typed, then names whose alias does, then names that contain it."""
    ranked: list[tuple[int, Command]] = []
    for item in commands():
        if item.name.startswith(typed):
            ranked.append((0, item))
        elif any(alias.startswith(typed) for alias in item.aliases):
            ranked.append((1, item))
        elif len(typed) > 1 and typed in item.name:
            ranked.append((2, item))
    ranked.sort(key=lambda pair: pair[0])
    return [Completion(f"/{item.name}", _row(item), 0) for _rank, item in ranked]


def _row(item: Command) -> str:
    return f"{item.args} · {_(item.help)}" if item.args else _(item.help)


def dispatch(text: str, host: CommandHost) -> Dispatched:
    """Runs the command a line names. Never raises a HermesError: it is shown.

    Returns:
        "text" when the line is for the model (nothing was done), "refused" when the line belongs back in the
        prompt (unknown command, or one that waits for the turn's end), else "ran".
    """
    parsed = parse(text)
    if isinstance(parsed, PlainText):
        return "text"
    if isinstance(parsed, Unknown):
        host.show(Output("error", _unknown_line(parsed)))
        return "refused"
    chosen = parsed.command
    if not chosen.while_busy and (reason := _must_wait(chosen, host)):
        host.show(Output("error", reason))
        return "refused"
    if chosen.blocking:
        host.in_background(lambda: _run(chosen, host, parsed.args))
    else:
        _run(chosen, host, parsed.args)
    return "ran"


def _must_wait(chosen: Command, host: CommandHost) -> str:
    """Why the command cannot run now, or ""."""
    try:
        busy = host.engine.busy(host.session)
    except HermesError as error:
        return error.line
    return _("/{name} works when this turn has ended; Esc stops it").format(name=chosen.name) if busy else ""


def _run(chosen: Command, host: CommandHost, args: str) -> None:
    try:
        chosen.run(host, args)
    except HermesError as error:
        host.show(Output("error", error.line))


def _unknown_line(unknown: Unknown) -> str:
    if not unknown.name:
        return _("Type a command after the slash; /help lists them.")
    line = _("No /{name}.").format(name=unknown.name)
    if unknown.nearest:
        return f"{line} " + _("Did you mean /{name}?").format(name=unknown.nearest)
    return f"{line} " + _("/help lists the commands.")


def words(typed: str, choices: Iterable[tuple[str, str]]) -> list[Completion]:
    """Proposals for the last word of an argument text out of (word, help) pairs; used by the families."""
    start = len(typed) - len(typed.split(" ")[-1])
    last = typed[start:].lower()
    return [Completion(word, help, start) for word, help in choices if word.lower().startswith(last)]


def _load() -> None:
    global _loaded
    if _loaded:
        return
    with _loading:  # completion asks from a thread while the first line is dispatched: both see the whole table
        for family in _FAMILIES:
            import_module(f"hermes_tui.commands.{family}")
        _loaded = True
