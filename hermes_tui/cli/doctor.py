"""`hermes doctor`: the checks of the set-up, printed."""

from __future__ import annotations

import sys

import click

from hermes_engine.errors import ConfigError, HermesError
from hermes_engine.paths import Home
from hermes_tui.cli.flags import ENDPOINT, Flags, overrides, takes
from hermes_tui.cli.shape import Verb
from hermes_tui.commands.checks import Check, checks_of, home_checks, rows_of
from hermes_tui.printing.records import out_json, out_table
from hermes_tui.printing.streams import is_terminal
from hermes_tui.texts import _


@click.command(cls=Verb)
@takes(*ENDPOINT)
@click.option("--probe", is_flag=True, help=_("Also ask the endpoint for its models."))
@click.option("--json", "as_json", is_flag=True, help=_("One JSON array."))
def doctor(flags: Flags, probe: bool, as_json: bool) -> int:
    """Check the set-up. Nothing goes over the network without --probe; exit 1 with a fault, 2 for a wrong set-up."""
    from hermes_engine.profiles import resolve

    code = 0
    try:
        found = checks_of(resolve(overrides(flags)), probe=probe)
    except HermesError as error:
        found = [*home_checks(Home.from_env()), Check(_("config"), "fault", error.line)]
        code = error.exit_code if isinstance(error, ConfigError) else 2
    if as_json:
        out_json([{"name": check.name, "state": check.state, "detail": check.detail} for check in found])
    else:
        rows = rows_of(found)
        out_table(("", "", ""), rows if is_terminal(sys.stdout) else [(c.state, c.name, c.detail) for c in found])
    return code or int(any(check.state == "fault" for check in found))
