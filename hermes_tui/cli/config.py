"""`hermes config`: the settings in effect, and changing one in its file. Comments in the file stay."""

from __future__ import annotations

import os

import click

from hermes_engine.paths import Home
from hermes_tui.cli.flags import Flags, resolve, takes
from hermes_tui.cli.shape import Group
from hermes_tui.commands.setup import flat, shown_value
from hermes_tui.printing.records import out_json, out_table
from hermes_tui.printing.streams import err, out
from hermes_tui.texts import _, ngettext


@click.group(cls=Group)
def config() -> None:
    """Show and change settings."""


def active_profile(flags: Flags, home: Home) -> str:
    """The profile a command is about, found without reading its settings, which may be what is to be mended."""
    from hermes_engine.profiles.catalog import chosen_profile

    return flags.profile or os.environ.get("HERMES_PROFILE", "") or chosen_profile(home)


@config.command()
@takes("profile")
def path(flags: Flags) -> None:
    """Print where the settings are."""
    from hermes_engine.profiles.places import find_place

    home = Home.from_env()
    out(str(find_place(home, active_profile(flags, home)).config))


@config.command()
@takes("profile")
@click.argument("key", required=False)
@click.option("--json", "as_json", is_flag=True, help=_("The value as JSON."))
def get(flags: Flags, key: str | None, as_json: bool) -> None:
    """Print a setting in effect, or all of them."""
    from hermes_engine.redaction import Redactor
    from hermes_engine.settings.addresses import shown
    from hermes_engine.settings_edit import checked_key

    resolved = resolve(flags)
    settings = resolved.settings.model_dump(mode="json")
    value = Redactor(resolved.secrets).value({**settings, "base_url": shown(settings["base_url"])})
    for name in checked_key(key) if key else ():
        value = value.get(name) if isinstance(value, dict) else None
    if as_json:
        out_json(value)
    elif isinstance(value, dict) and value:
        out_table((_("key"), _("value")), [(name, shown_value(item)) for name, item in flat(value)])
    else:
        out(shown_value(value))


@config.command("set")
@takes("profile")
@click.argument("key")
@click.argument("value")
def set_(flags: Flags, key: str, value: str) -> None:
    """Change a setting: `hermes config set limits.max_turns 40`."""
    from hermes_engine.profiles import config_for_edit
    from hermes_engine.settings_edit import checked_key, set_value, typed_value

    home = Home.from_env()
    path = checked_key(key)
    file = home.config if key == "profile" else config_for_edit(home, active_profile(flags, home))
    if key == "profile":
        from hermes_engine.profiles import use

        use(home, value)
        changed = True
    else:
        changed = set_value(file, key, value)
    if key != "profile" and typed_value(path, value) is None:
        out(_("{key} is empty in {file}: its default counts").format(key=key, file=file))
        return
    line = _("{key} is {value} in {file}") if changed else _("{key} is {value} already in {file}")
    out(line.format(key=key, value=value, file=file))


@config.command()
@takes("profile")
def check(flags: Flags) -> None:
    """Read all files of settings; says on standard error what is odd, exit 2 when something is wrong."""
    resolved = resolve(flags)
    from hermes_engine.tools.rules import without_effect

    approvals = resolved.settings.approvals
    idle = without_effect([*approvals.allow, *approvals.deny])
    for line in idle:
        err(f"hermes: {line}", style="yellow")
    count = len(resolved.warnings) + len(idle)
    told = ngettext("{n} warning", "{n} warnings", count).format(n=count) if count else _("all is well")
    out(f"{resolved.home.config}: {told}")
