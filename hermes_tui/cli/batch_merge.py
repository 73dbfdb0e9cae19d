"""`hermes batch merge`: one run of the runs of a dataset's shards."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermes_tui.cli.batch_data import found_run, output_dir_option
from hermes_tui.cli.flags import Flags, resolve
from hermes_tui.cli.shape import Verb
from hermes_tui.printing.streams import err, out
from hermes_tui.texts import _

if TYPE_CHECKING:
    from hermes_engine.batch.folder import RunFolder

_PATH: Any = click.Path(path_type=Path)


@click.command(cls=Verb)
@click.argument("name", metavar="OUT")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option("--dataset_file", type=_PATH, help="The shards' dataset, where it is no longer at its old place.")
@output_dir_option
@click.pass_context
def merge(
    context: click.Context, /, name: str, runs: tuple[str, ...], dataset_file: Path | None, output_dir: Path
) -> int:
    """Make one run OUT of the runs of a dataset's shards, given by name or folder."""
    from hermes_engine.batch.folder import RunFolder
    from hermes_engine.batch.joining import join
    from hermes_engine.paths import safe_name

    flags = context.find_object(Flags) or Flags()
    target = RunFolder(output_dir / safe_name("run name", name))
    found = [_folder(output_dir, run) for run in runs]
    joined = join(target, found, resolve(Flags(profile=flags.profile)), dataset_file=dataset_file)
    counts = joined.counts.as_dict()
    told = " · ".join(f"{key} {counts[key]}" for key in ("kept", "rejected", "failed", "invalid", "pending"))
    out(_("{name}: {n} shards").format(name=name, n=len(found)))
    out(f"{told} · total {counts['total']}")
    out(str(target.trajectories))
    if joined.missing:
        err(_("not there, their rows are pending: shard {names}").format(names=", ".join(joined.missing)))
    if counts["pending"]:
        where = "" if output_dir == Path("data") else f" --output_dir {shlex.quote(str(output_dir))}"
        err(_("go on with: hermes batch run --resume --run_name {run}{where}").format(run=name, where=where))
    return 1 if counts["pending"] else 0


def _folder(output_dir: Path, run: str) -> RunFolder:
    """The run of a name, or in a folder."""
    path = Path(run)
    return found_run(path.parent, path.name) if os.sep in run.rstrip(os.sep) else found_run(output_dir, path.name)
