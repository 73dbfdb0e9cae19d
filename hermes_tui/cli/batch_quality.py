"""`hermes batch filter` and `report`: how good a run's rows are, looked at afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from hermes_tui.cleaning import one_line
from hermes_tui.cli.batch_data import found_run, output_dir_option
from hermes_tui.cli.shape import Verb
from hermes_tui.printing.records import out_json, out_table
from hermes_tui.printing.streams import err, out
from hermes_tui.texts import _, ngettext

_SHOWN = 160


def _named(context: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    return Path("/dev/stdout") if path == Path("-") else path


def output_option(words: str) -> Callable[[Any], Any]:
    """`-o`, with `-` for standard output."""
    return click.option("-o", "--output", type=click.Path(path_type=Path), callback=_named, help=words)


@click.command("filter", cls=Verb)
@click.argument("run_name", metavar="RUN")
@click.argument("wanted", metavar="NAME[:VALUE]...", nargs=-1, required=True)
@output_option("File for the rows that all filters keep; - is standard output.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@output_dir_option
def filter_rows(run_name: str, wanted: tuple[str, ...], output: Path | None, as_json: bool, output_dir: Path) -> int:
    """Show what filters would drop of a run's kept rows, without running it again."""
    from hermes_engine.batch.quality_preview import preview

    told = preview(found_run(output_dir, run_name), wanted, output)
    if as_json:
        out_json(told.as_dict())
        return 0
    out_table(
        [_("filter"), _("would drop"), _("share")],
        [[one.wanted, str(one.rows), f"{one.rows / told.rows:.1%}" if told.rows else ""] for one in told.dropped],
    )
    for dropped in told.dropped:
        for row in dropped.examples:
            head = _("row {index}, sample {sample}").format(index=row["prompt_index"], sample=row["sample"])
            out(f"  {one_line(dropped.wanted)} · {head}: {one_line(row['detail'], _SHOWN)} · {one_line(row['prompt'])}")
    out(_("all together keep {kept} of {rows}").format(kept=told.kept, rows=told.rows))
    if output:
        err(ngettext("{n} row written", "{n} rows written", told.kept).format(n=told.kept))
    return 0


@click.command(cls=Verb)
@click.argument("run_name", metavar="RUN")
@output_option("The page; RUN.html when not given, - is standard output.")
@output_dir_option
def report(run_name: str, output: Path | None, output_dir: Path) -> int:
    """Write one page with a run's figures, plots and trajectories, to open in a browser."""
    from hermes_engine.batch.report import write_report
    from hermes_engine.batch.targets import is_file

    target = output or Path(f"{run_name}.html")
    told = write_report(found_run(output_dir, run_name), target)
    err(_("{n} of {rows} rows with their conversations").format(n=len(told.rows), rows=sum(told.found.values())))
    if is_file(target):
        out(str(target))
    return 0
