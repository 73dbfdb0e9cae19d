"""`hermes tools`: toolsets of the active profile."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from hermes_engine.errors import UsageError
from hermes_engine.paths import Home
from hermes_engine.toolsets import TOOLSETS, expand
from hermes_tui.cli.flags import Flags, resolve, takes
from hermes_tui.cli.shape import Group
from hermes_tui.commands.costs import cost_line, tokens_of
from hermes_tui.printing.records import out_json, out_table
from hermes_tui.printing.streams import is_terminal, out
from hermes_tui.texts import _

if TYPE_CHECKING:
    from hermes_engine.settings_edit import ToolsetChange


@click.group(cls=Group)
def tools() -> None:
    """List, enable and disable toolsets."""


@tools.command("list")
@takes("profile", "toolsets")
@click.option("--json", "as_json", is_flag=True, help=_("One JSON array."))
def list_(flags: Flags, as_json: bool) -> None:
    """List toolsets: whether they are on, their tools, and their cost in tokens a request."""
    enabled = expand(resolve(flags).settings.toolsets)
    if as_json:
        out_json(
            [
                {
                    "name": name,
                    "enabled": name in enabled,
                    "tools": list(TOOLSETS[name]),
                    "tokens": tokens_of([name]),
                }
                for name in TOOLSETS
            ]
        )
        return
    words = (_("on"), _("off")) if is_terminal(sys.stdout) else ("on", "off")
    rows = [(name, words[name not in enabled], str(tokens_of([name])), ", ".join(TOOLSETS[name])) for name in TOOLSETS]
    out_table((_("toolset"), "", _("tokens"), _("tools")), rows)


@tools.command()
@takes("profile")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
def enable(flags: Flags, names: tuple[str, ...]) -> None:
    """Put toolsets on offer; `all` means every one but kanban."""
    _change(flags, enable=_split(names))


@tools.command()
@takes("profile")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
def disable(flags: Flags, names: tuple[str, ...]) -> None:
    """Take toolsets off: they are in no request of any agent then."""
    _change(flags, disable=_split(names))


def _split(names: tuple[str, ...]) -> tuple[str, ...]:
    found = tuple(part for name in names for part in name.split(",") if part)
    if not found:
        raise UsageError(_("which toolset?"), hint=", ".join(TOOLSETS))
    return found


def _change(flags: Flags, *, enable: tuple[str, ...] = (), disable: tuple[str, ...] = ()) -> None:
    from hermes_engine.profiles import edit_toolsets

    expand(enable + disable)
    resolved = resolve(flags)
    change = edit_toolsets(
        Home.from_env(), resolved.profile, resolved.settings.toolsets, enable=enable, disable=disable
    )
    _tell(resolved.profile, change, expand(enable), tuple(disable))


def _tell(profile: str, change: ToolsetChange, enabled: tuple[str, ...], disabled: tuple[str, ...]) -> None:
    for name in enabled:
        if name in change.before:
            out(_("{name} is enabled already in profile {profile}").format(name=name, profile=profile))
        else:
            out(_("enabled {name} in profile {profile} ({path})").format(name=name, profile=profile, path=change.path))
        out(cost_line(name))
    for name in dict.fromkeys(disabled):
        if name in change.before:
            out(_("disabled {name} in profile {profile} ({path})").format(name=name, profile=profile, path=change.path))
        else:
            out(_("{name} is disabled already in profile {profile}").format(name=name, profile=profile))
