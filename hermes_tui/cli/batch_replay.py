"""`hermes batch replay`: rows of a recorded run once more, without its model."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from pathlib import Path

import click

from hermes_engine.batch.options import BatchOptions, checked
from hermes_engine.errors import Interrupted
from hermes_tui.cleaning import one_line
from hermes_tui.cli.batch_data import found_run, output_dir_option, stoppable
from hermes_tui.cli.flags import Flags, resolve
from hermes_tui.cli.shape import Verb
from hermes_tui.printing.records import out_json_line
from hermes_tui.printing.streams import out
from hermes_tui.texts import _, ngettext

_SHOWN = 240


@click.command(cls=Verb)
@click.argument("run_name", metavar="RUN")
@click.argument("index", type=click.IntRange(0), required=False)
@click.option("--no_tools", is_flag=True, help="Run no tool: calls get the results they had.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@output_dir_option
def replay(run_name: str, index: int | None, no_tools: bool, as_json: bool, output_dir: Path) -> int:
    """Run rows of a recorded run again without its model; ends with 1 when something came out differently.

    INDEX is the row's place in the dataset, from 0; all recorded rows without it.
    """
    found_run(output_dir, run_name)
    options = checked({"run_name": run_name, "output_dir": output_dir, "resume": True})
    try:
        return asyncio.run(stoppable(_replay(options, index, no_tools=no_tools, as_json=as_json)))
    except asyncio.CancelledError:
        raise Interrupted(_("stopped")) from None


async def _replay(options: BatchOptions, index: int | None, *, no_tools: bool, as_json: bool) -> int:
    from hermes_engine.batch.replay import replay as run_again

    rows = differ = 0
    replayed = run_again(options, resolve(Flags()), index=index, no_tools=no_tools)
    async with contextlib.aclosing(replayed):  # also when nobody reads any more: the rows' folders are removed
        async for told in replayed:
            rows += 1
            differ += bool(told.differences)
            if as_json:
                out_json_line(dataclasses.asdict(told))
                continue
            head = _("row {index}, sample {sample} ({outcome})").format(
                index=told.index, sample=told.sample, outcome=told.outcome
            )
            state = _("differs") if told.differences else _("the same")
            out(f"{head}: {state}, " + ngettext("{n} reply", "{n} replies", told.steps).format(n=told.steps))
            for line in told.differences:
                out(f"  {one_line(line, _SHOWN)}")
    if not as_json:
        out(_("{same} of {rows} rows are the same").format(same=rows - differ, rows=rows))
    return 1 if differ else 0
