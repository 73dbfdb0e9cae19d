"""`hermes batch export` and `feed`: what a run wrote, on its way to a trainer."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hermes_engine.errors import HermesError, Interrupted, UnknownName, UsageError
from hermes_tui.cli.presses import stopping
from hermes_tui.cli.shape import Verb
from hermes_tui.printing.streams import OutputLost, err, out
from hermes_tui.texts import _, ngettext

if TYPE_CHECKING:
    from hermes_engine.batch.export.feed import Fed
    from hermes_engine.batch.export.groups import Groups
    from hermes_engine.batch.folder import RunFolder

T = TypeVar("T")


def output_dir_option(function: Any) -> Any:
    """Adds `--output_dir`."""
    kind: Any = click.Path(path_type=Path)
    return click.option("--output_dir", type=kind, default=Path("data"), help="Folder that holds the runs.")(function)


def found_run(output_dir: Path, name: str) -> RunFolder:
    """The folder of a run. Raises UsageError when there is none."""
    from hermes_engine.batch.folder import find_run

    return find_run(output_dir, name)


@click.command(cls=Verb)
@click.argument("run_name", metavar="RUN")
@click.option("--format", "form", default="sharegpt", help="sharegpt, openai, hermes-fc, llamafactory or atropos.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write; standard output without it.")
@click.option("--all", "everything", is_flag=True, help="Also rows that ended before they were done.")
@click.option("--arguments", type=click.Choice(["string", "object"]), default="string", help="openai: of calls.")
@click.option("--tools", type=click.Choice(["string", "list"]), default="string", help="openai: the definitions.")
@click.option("--tokenizer", type=click.Path(path_type=Path), help="atropos: folder of one, for rows without tokens.")
@click.option("--reward", help="atropos: module:function that gives a record its score.")
@output_dir_option
def export(
    run_name: str, form: str, output: Path | None, everything: bool, arguments: Any, tools: Any, tokenizer: Path | None,
    reward: str | None, output_dir: Path,
) -> int:  # fmt: skip
    """Write a run's rows in the form a trainer reads."""
    from hermes_engine.batch.export import FORMATS, FormOptions, form_of
    from hermes_engine.batch.export import export as write
    from hermes_engine.batch.export.groups import NO_SCORE

    if form not in FORMATS:
        raise UnknownName("format", form, FORMATS)
    folder = found_run(output_dir, run_name)
    chosen = form_of(form, folder.settings().get("tools", []), FormOptions(arguments, tools, tokenizer, folder))
    if reward is not None and form != "atropos":
        raise UsageError(_("--reward counts for --format atropos only"))
    if sys.stdout is None and str(output or "-") == "-":
        raise OutputLost(OSError("it is closed"))
    target: Any = output if output is not None and str(output) != "-" else sys.stdout.buffer
    try:
        with contextlib.redirect_stdout(sys.stderr):  # a reward that prints writes nothing between the rows
            groups = _groups(chosen, reward, everything=everything) if form == "atropos" else None
            told = write(folder, chosen, target, everything=everything, groups=groups)
    except OSError as fault:
        if isinstance(fault, BrokenPipeError) or fault.filename or isinstance(target, Path):
            raise
        raise OutputLost(fault) from None
    err(ngettext("{n} row written", "{n} rows written", told.written).format(n=told.written))
    _tell_left_out(told.left_out)
    _tell_notes(groups)
    return 1 if NO_SCORE in told.left_out and not told.written else 0  # a reward that fails for every row is broken


@click.command(cls=Verb)
@click.argument("run_name", metavar="RUN")
@click.option("--url", required=True, help="Of the server: http://127.0.0.1:8000.")
@click.option("--tokenizer", type=click.Path(path_type=Path), help="Folder of the trainer's, for rows without tokens.")
@click.option("--all", "everything", is_flag=True, help="Also rows that ended before they were done, with score 0.")
@click.option("--reward", help="module:function that gives a record its score.")
@click.option("--wait", type=click.FloatRange(0, min_open=True), default=600.0, help="Seconds to wait for the trainer.")
@click.option("--skip", type=click.IntRange(0), default=0, help="Pass over so many groups: those sent before.")
@output_dir_option
def feed(
    run_name: str, url: str, tokenizer: Path | None, everything: bool, reward: str | None, wait: float, skip: int,
    output_dir: Path,
) -> int:  # fmt: skip
    """Send a run's rows to a running Atropos server, as groups of tokens, masks and scores."""
    from hermes_engine.batch.export.atropos import atropos_of
    from hermes_engine.batch.export.feed import Fed
    from hermes_engine.batch.export.feed import feed as send

    folder = found_run(output_dir, run_name)
    groups = _groups(atropos_of(folder, tokenizer), reward, everything=everything)
    fed = Fed()
    try:
        asyncio.run(stoppable(send(folder, url, groups, fed, skip=skip, wait=wait, tell=groups.tell)))
    except asyncio.CancelledError:
        _tell_broken_off(fed, skip)
        raise Interrupted(_("stopped")) from None
    except HermesError:
        _tell_broken_off(fed, skip)
        raise
    out(_("sent {n} groups").format(n=fed.sent))
    _tell_left_out(fed.skipped)
    _tell_notes(groups)
    if fed.remainder:
        line = _("{n} of them fill no whole batch of {size} and wait at the server")
        err(line.format(n=fed.remainder, size=fed.batch_size))
    return 0 if fed.sent or skip else 1


async def stoppable(work: Coroutine[Any, Any, T]) -> T:
    """Does the work; Ctrl+C, TERM and HUP cancel it, a second one ends the process."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    with stopping(lambda: loop.call_soon_threadsafe(task.cancel)):
        return await task


def _tell_broken_off(fed: Fed, skip: int) -> None:
    """What the server has, so that feeding can go on behind it."""
    if fed.sent:
        err(_("sent {n} groups; --skip {all} goes on behind them").format(n=fed.sent, all=skip + fed.sent))
    if fed.unsure:
        err(_("whether the server took the next {n} is not known: it did not answer").format(n=fed.unsure))


def _groups(form: Any, reward: str | None, *, everything: bool) -> Groups:
    from hermes_engine.batch.export.groups import Groups
    from hermes_engine.batch.rewards import load_reward

    def tell(text: str) -> None:
        err(f"hermes: {text}")

    return Groups(form, load_reward(reward) if reward else None, everything, tell)


def _tell_notes(groups: Groups | None) -> None:
    for note in groups.notes() if groups else ():
        err(f"hermes: {note}")


def _tell_left_out(reasons: Mapping[str, int]) -> None:
    for reason, number in reasons.items():
        err(_("left out {n}: {reason}").format(n=number, reason=reason))
