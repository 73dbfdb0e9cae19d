"""`hermes batch watch`: how a run goes that some other process works, from its folder."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermes_tui.cleaning import one_line
from hermes_tui.cli.batch_data import found_run, output_dir_option
from hermes_tui.cli.shape import Verb
from hermes_tui.printing.records import out_json_line
from hermes_tui.printing.streams import out
from hermes_tui.printing_batch import counted, duration
from hermes_tui.texts import _

if TYPE_CHECKING:
    from hermes_engine.batch.overview import RunState

LOOK_SECONDS = 0.25
TELL_SECONDS = 2.0
"""Between two lines, at least."""


@click.command(cls=Verb)
@click.argument("run_name", metavar="RUN")
@output_dir_option
@click.option("--json", "as_json", is_flag=True, help="One object a line.")
def watch(run_name: str, output_dir: Path, as_json: bool) -> int:
    """Follow a run that another process works, to its end; ends as the run does."""
    from hermes_engine.batch.overview import run_state
    from hermes_engine.batch.statistics import exit_code

    folder = found_run(output_dir, run_name)
    told, due = "", 0.0
    while True:
        state = run_state(folder)
        over, now = not state.holder, time.monotonic()
        line = _line(state)
        if (line != told and now >= due) or over:
            told, due = line, now + TELL_SECONDS
            if as_json:
                out_json_line(_object(state))
            else:
                out(line)
        if over:
            return exit_code(state.state, state.rows)
        time.sleep(LOOK_SECONDS)


def _object(state: RunState) -> dict[str, Any]:
    point = state.checkpoint
    return {
        "name": state.name,
        "state": state.state,
        "reason": state.reason,
        "holder": state.holder,
        "rows": state.rows,
        **{
            name: point.get(name)
            for name in ("running", "workers", "paused", "notice", "seconds", "spent", "updated_at")
        },
    }


def _line(state: RunState) -> str:
    point, rows = state.checkpoint, state.rows
    words = _("paused") if state.holder and point.get("paused") else state.state
    parts = [
        f"{state.name}: {words}",
        f"{rows.get('total', 0) - rows.get('pending', 0)}/{rows.get('total', 0)}",
        *counted(rows),
    ]
    if state.holder and point.get("running"):
        parts.append(_("{n} in flight").format(n=point["running"]))
    if not state.holder:
        parts.append(duration(float(point.get("seconds") or 0)))
    if cost := (point.get("spent") or {}).get("cost_usd"):
        parts.append(f"${cost:.4f}")
    if state.holder and (notice := point.get("notice")):
        parts.append(one_line(str(notice), 300))
    if state.reason:
        parts.append(state.reason)
    return " · ".join(parts)
