"""`hermes kanban boards`: the boards themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hermes_tui.cli.asking import sure
from hermes_tui.cli.flags import Flags, resolve, takes
from hermes_tui.cli.shape import Group
from hermes_tui.texts import _

if TYPE_CHECKING:
    from hermes_engine.board import Boards

_json = click.option("--json", "as_json", is_flag=True, help=_("JSON."))


def boards_of(flags: Flags) -> Boards:
    """The boards of the home, with the limits in force."""
    from hermes_engine.board import Boards

    resolved = resolve(flags)
    return Boards(resolved.home, resolved.settings.kanban)


@click.group(cls=Group)
def boards() -> None:
    """List, create, rename, delete and choose boards."""


def _tell(flags: Flags, slug: str, as_json: bool, told: str) -> None:
    from hermes_tui.printing.records import out_json
    from hermes_tui.printing.streams import out

    if as_json:
        out_json(next((record for record in _records(flags) if record["slug"] == slug), {"slug": slug}))
    else:
        out(told)


def _records(flags: Flags) -> list[dict[str, object]]:
    return [
        {
            "slug": info.slug,
            "chosen": info.chosen,
            "place": info.place,
            "cards": dict(info.counts),
            "error": info.fault or None,
        }
        for info in boards_of(flags).list()
    ]


@boards.command("list")
@takes("profile")
@_json
def list_(flags: Flags, as_json: bool) -> None:
    """List boards with their cards."""
    from hermes_tui.printing.records import out_json, out_table

    if as_json:
        out_json(_records(flags))
        return
    columns = (_("board"), _("chosen"), _("cards"), _("place"))
    rows = []
    for info in boards_of(flags).list():
        counts = ", ".join(f"{count} {state}" for state, count in info.counts.items() if count)
        rows.append((info.slug, "chosen" if info.chosen else "", info.fault or counts, info.place))
    out_table(columns, rows)


@boards.command()
@takes("profile")
@click.argument("slug")
@_json
def create(flags: Flags, slug: str, as_json: bool) -> None:
    """Make an empty board."""
    boards_of(flags).create(slug)
    _tell(flags, slug, as_json, _("created board {slug}").format(slug=slug))


@boards.command()
@takes("profile")
@click.argument("slug")
@click.argument("new_slug", metavar="NEW")
@_json
def rename(flags: Flags, slug: str, new_slug: str, as_json: bool) -> None:
    """Give a board another name."""
    boards_of(flags).rename(slug, new_slug)
    _tell(flags, new_slug, as_json, _("{old} is called {new} now").format(old=slug, new=new_slug))


@boards.command()
@takes("profile")
@click.argument("slug")
@click.option("-y", "--yes", is_flag=True, help=_("Do not ask."))
@_json
def delete(flags: Flags, slug: str, yes: bool, as_json: bool) -> None:
    """Delete a board and its cards for good."""
    shelf = boards_of(flags)
    shelf.open(slug or "?", only_read=True).close()
    if yes or sure(_("Delete board {slug} with all its cards?").format(slug=slug)):
        shelf.delete(slug)
        _tell(flags, slug, as_json, _("deleted board {slug}").format(slug=slug))


@boards.command()
@takes("profile")
@click.argument("slug")
@_json
def use(flags: Flags, slug: str, as_json: bool) -> None:
    """Choose the board that is meant when none is named."""
    boards_of(flags).use(slug)
    _tell(flags, slug, as_json, _("{slug} is the chosen board").format(slug=slug))
