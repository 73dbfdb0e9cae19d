"""Slash commands about this chat: new, saved ones, its name, its length, taking text out. Knows no front end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hermes_engine.errors import UsageError
from hermes_tui.cleaning import one_line
from hermes_tui.commands.host import CommandHost, Completion, Output
from hermes_tui.commands.listing import ago, recent_sessions, session_rows
from hermes_tui.commands.registry import command, words
from hermes_tui.commands.transcript import EXTENSIONS, answers, code_blocks, write_new, written
from hermes_tui.texts import _, ngettext


@command("new", help="Start an empty chat; this one stays saved", group="Chat")
def new(host: CommandHost, args: str) -> None:
    host.new_session()


def _sessions(host: CommandHost, typed: str) -> Iterator[Completion]:
    for row in recent_sessions(host.engine.sessions(), limit=30):
        if row.id != host.session and (row.id.startswith(typed) or typed.lower() in row.name.lower()):
            yield Completion(row.id, f"{one_line(row.name, 60)} · {ago(row.updated)}")


@command(
    "resume",
    args="[id or words of the title]",
    help="Go on with a saved chat",
    group="Chat",
    blocking=True,
    complete=_sessions,
)
def resume(host: CommandHost, args: str) -> None:
    if not args:
        if not host.open_screen("sessions"):
            _list_sessions(host)
        return
    row = host.engine.sessions().find(args)
    if row.id == host.session:
        raise UsageError(_("this chat is open"))
    host.run_session(resume=row.id)


@command("sessions", help="List saved chats", group="Chat", while_busy=True, blocking=True)
def sessions(host: CommandHost, args: str) -> None:
    if not host.open_screen("sessions"):
        _list_sessions(host)


def _list_sessions(host: CommandHost) -> None:
    rows = recent_sessions(host.engine.sessions(), limit=20)
    if not rows:
        host.show(Output("text", _("No saved chats yet; every chat is saved by itself.")))
        return
    columns = (_("id"), _("title"), _("model"), _("messages"), _("last used"))
    cells = tuple(session_rows(rows, here=host.session))
    host.show(Output("table", _("/resume ID goes on with one."), _("Saved chats"), columns, cells))


@command("rename", args="TITLE", help="Give this chat a title", group="Chat", while_busy=True)
def rename(host: CommandHost, args: str) -> None:
    title = " ".join(args.split())[:200]
    if not title:
        raise UsageError(_("a title is needed"), hint="/rename TITLE")
    host.engine.set_title(host.session, title)
    host.show(Output("text", _("This chat is called {title} now.").format(title=title)))


@command("fork", args="[title]", help="Copy this chat and go on in the copy", group="Chat", blocking=True)
def fork(host: CommandHost, args: str) -> None:
    made, _nothing = host.engine.copy_session(host.session)
    if title := " ".join(args.split())[:200]:
        host.engine.sessions().set_title(made, title)
    host.run_session(resume=made)


@command("rewind", args="[n]", help="Go back to before your last, or n-th last, message", group="Chat", blocking=True)
def rewind(host: CommandHost, args: str) -> None:
    """The chat as it was stays saved: what is gone on with is a copy up to there. Files stay as they are."""
    if args and not (args.isdecimal() and int(args) > 0):
        raise UsageError(_("a number is needed: how many of your messages to go back"), hint="/rewind 2")
    made, said = host.engine.copy_session(host.session, back=int(args or 1))
    host.run_session(resume=made)
    host.set_draft(said)


@command("compact", args="[what to keep]", help="Shorten what the model sees of this chat", group="Chat")
def compact(host: CommandHost, args: str) -> None:
    if not host.engine.view(host.session).messages:
        raise UsageError(_("there is nothing to shorten yet"))
    host.engine.compact(host.session, args)


def _export_words(host: CommandHost, typed: str) -> list[Completion]:
    return words(typed, [("md", _("Markdown, to read")), ("json", _("messages, for programs"))])


@command(
    "export",
    args="[md|json] [file]",
    help="Write this chat to a file",
    group="Chat",
    while_busy=True,
    blocking=True,
    complete=_export_words,
)
def export(host: CommandHost, args: str) -> None:
    first, _blank, rest = args.partition(" ")
    form = first if first in EXTENSIONS else ""
    name = rest.strip() if form else args.strip()
    form = form or ("json" if name.endswith(".json") else "md")
    view = host.engine.view(host.session)
    if not view.messages:
        raise UsageError(_("there is nothing to write yet"))
    path = export_path(Path.cwd(), name or f"chat-{view.id}.{form}")
    write_new(path, written(view.id, view.title, view.model, view.messages, form))
    count = len(view.messages)
    wrote = ngettext("Wrote {n} message to {path}.", "Wrote {n} messages to {path}.", count)
    host.show(Output("text", wrote.format(n=count, path=path)))


def export_path(folder: Path, name: str) -> Path:
    """Where an export goes: in the folder or below it. Raises UsageError for any other place (faults 10.6)."""
    if "\0" in name or not name.strip():
        raise UsageError(_("{name} is no file name").format(name=repr(name)))
    wanted = Path(name)
    path = (folder / wanted).resolve()
    if wanted.is_absolute() or ".." in wanted.parts or not path.is_relative_to(folder.resolve()):
        raise UsageError(_("an export goes into the current folder"), hint=_("give a name without a path"))
    return path


def _copy_words(host: CommandHost, typed: str) -> list[Completion]:
    return words(typed, [("code", _("the last code block"))])


@command(
    "copy",
    args="[n|code]",
    help="Copy the last answer, the n-th last, or the last code block",
    group="Chat",
    while_busy=True,
    complete=_copy_words,
)
def copy(host: CommandHost, args: str) -> None:
    texts = answers(host.engine.view(host.session).messages)
    if args == "code":
        blocks = [block for text in texts for block in code_blocks(text)]
        if not blocks:
            raise UsageError(_("there is no code block yet"))
        host.show(Output("text", host.copy(blocks[-1])))
        return
    if args and not (args.isdecimal() and int(args) > 0):
        raise UsageError(_("a number or `code` is needed"), hint="/copy 2")
    number = int(args or 1)
    if number > len(texts):
        count = len(texts)
        raise UsageError(ngettext("there is {n} answer", "there are {n} answers", count).format(n=count))
    host.show(Output("text", host.copy(texts[-number])))


@command("clear", help="Empty the view; the chat goes on", group="Chat", while_busy=True)
def clear(host: CommandHost, args: str) -> None:
    host.open_screen("clear")
