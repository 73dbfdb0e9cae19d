"""`hermes profile`: make, show, choose and hand on profiles."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermes_engine.paths import Home
from hermes_tui.cli.asking import sure
from hermes_tui.cli.shape import Group
from hermes_tui.commands.setup import flat, shown_value
from hermes_tui.printing.records import out_json, out_table
from hermes_tui.printing.streams import err, is_terminal, out
from hermes_tui.texts import _, ngettext

if TYPE_CHECKING:
    from hermes_engine.board import Board
    from hermes_engine.profiles import ProfileInfo


@click.group(cls=Group)
def profile() -> None:
    """Create, show and choose profiles."""


def _record(info: ProfileInfo) -> dict[str, Any]:
    return {
        "name": info.name,
        "description": info.description,
        "model": info.model or None,
        "own": info.own,
        "chosen": info.chosen,
        "folder": str(info.folder),
    }


def _kind(info: ProfileInfo) -> str:
    return _("own") if info.own else _("template")


@profile.command()
@click.argument("name")
@click.option("--description", help=_("What it is good at; an orchestrator chooses by it."))
@click.option("-m", "--model", help=_("Its model."))
@click.option("--clone", metavar="SRC", help=_("Copy settings and instructions of this profile; never its keys."))
@click.option("--json", "as_json", is_flag=True, help=_("One JSON object."))
def create(name: str, description: str | None, model: str | None, clone: str | None, as_json: bool) -> None:
    """Make a profile. The name of a shipped one makes your own copy of it, which wins from then on."""
    from hermes_engine.profiles import create as make

    info = make(Home.from_env(), name, description=description, model=model, clone=clone)
    if as_json:
        out_json(_record(info))
    else:
        out(_("created {name} in {folder}").format(name=info.name, folder=info.folder))


@profile.command("list")
@click.option("--json", "as_json", is_flag=True, help=_("One JSON array."))
def list_(as_json: bool) -> None:
    """List profiles with their descriptions."""
    from hermes_engine.profiles import list_profiles

    found = list_profiles(Home.from_env())
    if as_json:
        out_json([_record(info) for info in found])
        return
    columns = (_("profile"), _("kind"), _("model"), _("chosen"), _("description"))
    chosen = _("chosen") if is_terminal(sys.stdout) else "chosen"
    rows = [(item.name, _kind(item), item.model, chosen if item.chosen else "", item.description) for item in found]
    out_table(columns, rows)


@profile.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help=_("One JSON object."))
def show(name: str | None, as_json: bool) -> None:
    """Show a profile in full (default: the chosen one)."""
    from hermes_engine.profiles import show as detail_of
    from hermes_engine.profiles.catalog import chosen_profile
    from hermes_engine.redaction import Redactor
    from hermes_engine.settings.addresses import shown

    home = Home.from_env()
    detail = detail_of(home, name or chosen_profile(home))
    settings = Redactor().value(detail.settings)
    if url := settings.get("base_url"):
        settings["base_url"] = shown(str(url))
    if as_json:
        values = {"extends": detail.extends or None, "settings": settings, "soul": detail.soul}
        out_json({**_record(detail.info), **values, "keys": list(detail.keys)})
        return
    rows = [
        (_("profile"), detail.info.name),
        (_("description"), detail.info.description),
        (_("kind"), _kind(detail.info)),
        (_("folder"), str(detail.info.folder)),
    ]
    if detail.extends:
        rows.append((_("extends"), detail.extends))
    rows += [(key, shown_value(value)) for key, value in flat(settings)]
    if detail.keys:
        rows.append((_("keys"), ", ".join(detail.keys)))
    out_table(("", ""), rows)
    if detail.soul and is_terminal(sys.stdout):
        out("\n" + detail.soul.rstrip())


@profile.command()
@click.argument("name")
def use(name: str) -> None:
    """Choose the profile to work with when none is named."""
    from hermes_engine.profiles import use as choose

    out(_("{name} is the chosen profile").format(name=choose(Home.from_env(), name).name))


@profile.command()
@click.argument("name")
@click.argument("text")
def describe(name: str, text: str) -> None:
    """Say what a profile is good at."""
    from hermes_engine.profiles import describe as change

    info = change(Home.from_env(), name, text)
    out(f"{info.name}: {info.description}")


@profile.command()
@click.argument("name")
@click.argument("new_name")
def rename(name: str, new_name: str) -> int:
    """Give a profile another name; its cards go with it."""
    from hermes_engine.profiles import rename as change

    new = change(Home.from_env(), name, new_name).name
    out(_("{old} is called {new} now").format(old=name, new=new))
    cards, faults = 0, list[str]()
    for board in _boards(faults):
        cards += board.reassign(name, new, by="profile rename")
    if cards:
        out(ngettext("{n} card goes to {new} now", "{n} cards go to {new} now", cards).format(n=cards, new=new))
    return 1 if faults else 0


@profile.command()
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help=_("Do not ask."))
def delete(name: str, yes: bool) -> int:
    """Delete a profile with its keys."""
    from hermes_engine.profiles import delete as remove
    from hermes_engine.profiles import list_profiles
    from hermes_engine.profiles.editing import own_place

    home = Home.from_env()
    place = own_place(home, name)
    if not yes and not sure(_("Delete {name} and everything in {folder}?").format(name=name, folder=place.folder)):
        return 1
    remove(home, name)
    out(_("deleted {name}").format(name=name))
    template = any(info.name == name for info in list_profiles(home))
    faults: list[str] = []
    for board in _boards(faults):
        left = [card for card in board.cards() if card.finished is None and name in (card.assignee, card.reviewer)]
        if left and template:
            line = _("board {board}: the shipped profile of that name works {cards} now")
        elif any(card.assignee == name for card in left):
            line = _("board {board}: {cards} wait for that profile: hermes kanban assign ID PROFILE")
        else:
            line = _("board {board}: {cards} would be judged by it: hermes kanban edit ID --reviewer PROFILE")
        if left:
            err(line.format(board=board.slug, cards=", ".join(card.id for card in left[:20])))
    return 1 if faults else 0


def _boards(faults: list[str]) -> Iterator[Board]:
    """Every board there is, open for one round of the loop; what is wrong with one is told, and added to `faults`."""
    from hermes_engine.board import Boards
    from hermes_engine.errors import HermesError
    from hermes_engine.profiles import resolve

    boards = Boards(Home.from_env(), resolve().settings.kanban)
    for slug in boards.names():
        try:
            with contextlib.closing(boards.open(slug, only_read=True)) as board:
                yield board
        except HermesError as error:
            faults.append(slug)
            err(_("hermes: board {board} was not looked at: {fault}").format(board=slug, fault=error.line))


@profile.command()
@click.argument("name")
@click.option("-o", "--output", type=click.Path(path_type=Path), help=_("File or folder to write to."))
def export(name: str, output: Path | None) -> None:
    """Write a profile to a file to hand on; keys are left out."""
    from hermes_engine.profiles import export as write

    out(str(write(Home.from_env(), name, output)))


@profile.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--name", help=_("Another name for it."))
def import_(file: Path, name: str | None) -> None:
    """Make a profile from an exported file."""
    from hermes_engine.profiles import import_profile

    info = import_profile(Home.from_env(), file, name=name)
    out(_("created {name} in {folder}").format(name=info.name, folder=info.folder))
