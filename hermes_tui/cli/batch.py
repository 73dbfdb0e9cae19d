"""`hermes batch`: runs of many prompts. Every field of `BatchOptions` is a flag; the run itself is the engine's."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

import click

from hermes_engine.batch.options import NO_NUMBER, BatchOptions, checked
from hermes_engine.errors import UsageError
from hermes_tui.cleaning import one_line
from hermes_tui.cli.batch_data import export, feed, found_run, output_dir_option
from hermes_tui.cli.batch_merge import merge
from hermes_tui.cli.batch_quality import filter_rows, report
from hermes_tui.cli.batch_replay import replay
from hermes_tui.cli.batch_watch import watch
from hermes_tui.cli.border import INTERRUPTED, leave
from hermes_tui.cli.flags import Flags, resolve
from hermes_tui.cli.presses import listening
from hermes_tui.cli.shape import Group, JsonOrFile
from hermes_tui.printing.records import out_json, out_table
from hermes_tui.printing.streams import err, fancy, is_terminal, out
from hermes_tui.printing_batch import Form, duration, form_for, shown
from hermes_tui.texts import _

if TYPE_CHECKING:
    from hermes_engine.batch.overview import RunState
    from hermes_engine.batch.runner import BatchRun, BatchSummary
    from hermes_engine.events import Event
    from hermes_engine.profiles import Resolved

_SHORT = {"profile": "-p", "model": "-m", "toolsets": "-t"}
_OWN = frozenset({"only_failed", "run_name", "resume"})
_LAST_WORD_SECONDS = 1.5
_REASON_SHOWN = 300


class _NumberOrNone(click.ParamType[int | float | str]):
    """A number, or `none`, which takes away one that a run has."""

    def __init__(self, kind: type[int] | type[float]) -> None:
        self._number = click.INT if kind is int else click.FLOAT
        self.name = self._number.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | float | str:
        """The number, or the word. Fails as wrong usage."""
        if str(value).strip().lower() == NO_NUMBER:
            return NO_NUMBER
        number: int | float = self._number.convert(value, param, ctx)
        return number


def _type_of(annotation: Any) -> Any:
    """What click makes of a field's type."""
    if get_origin(annotation) in (Union, UnionType):
        annotation = next(item for item in get_args(annotation) if item is not type(None))
        if annotation in (int, float):
            return _NumberOrNone(annotation)
    if get_origin(annotation) is Literal:
        return click.Choice(get_args(annotation))
    if get_origin(annotation) is dict:
        return JsonOrFile()
    if annotation is Path:
        return click.Path(path_type=Path)
    return annotation if annotation in (int, float) else str


def _option(name: str, *, begins: bool) -> Callable[[Any], Any]:
    """The flag of a field of `BatchOptions`. `begins`: of a run that may begin, which then has the default."""
    field = BatchOptions.model_fields[name]
    spelled = [f"--{name}", *([_SHORT[name]] if name in _SHORT else []), name]
    if field.annotation is bool:
        return click.option(*spelled, is_flag=True, default=None, help=field.description)
    several = name in ("base_url", "api_key", "filter")
    text = field.description
    if begins and isinstance(field.default, int | float | str | Path):  # click has none: a resume takes the run's own
        value = f"{field.default:g}" if isinstance(field.default, float) else field.default
        text = _("{text} [default: {value}]").format(text=text, value=value)
    return click.option(*spelled, type=_type_of(field.annotation), multiple=several, help=text)


def _run_options(function: Any, *, begins: bool = True) -> Any:
    """Gives a command every flag of a run."""
    for name in reversed([name for name in BatchOptions.model_fields if name not in _OWN]):
        function = _option(name, begins=begins)(function)
    for name, text in (
        ("--plain", "Plain lines instead of the bar."),
        ("--json", "One event a line on standard output."),
        ("--quiet", "Warnings and errors only."),
    ):
        function = click.option(name, f"as_{name[2:]}", is_flag=True, help=text)(function)
    return function


@click.group(cls=Group)
def batch() -> None:
    """Run many prompts from a file and keep every result."""


@batch.command()
@click.option("--run_name", "run_name", help="Name of the run: its folder under output_dir.")
@click.option("--resume", is_flag=True, default=None, help=BatchOptions.model_fields["resume"].description)
@click.option("--list_distributions", is_flag=True, help="List the toolset distributions and end.")
@_run_options
@click.pass_context
def run(context: click.Context, /, list_distributions: bool, **values: Any) -> int:
    """Work every prompt of a JSONL file; ends with 0 when all rows were kept or rejected."""
    flags = context.find_object(Flags) or Flags()
    if list_distributions:
        return _print_distributions(flags, as_json=bool(values["as_json"]))
    if not values.get("run_name"):
        raise UsageError(_("--run_name is needed"), hint=_("it names the folder of the results"))
    return _work(flags, values)


@batch.command()
@click.argument("run_name", metavar="RUN")
@partial(_run_options, begins=False)
@click.pass_context
def retry(context: click.Context, /, **values: Any) -> int:
    """Work the failed rows of a run again, and only those."""
    found_run(values["output_dir"] or Path("data"), values["run_name"])
    return _work(context.find_object(Flags) or Flags(), {**values, "only_failed": True, "resume": True})


def _work(flags: Flags, values: dict[str, Any]) -> int:
    form = form_for(plain=values.pop("as_plain"), as_json=values.pop("as_json"), quiet=values.pop("as_quiet"))
    named = {name: value for name, value in values.items() if value not in (None, ())}
    for name in ("profile", "model", "base_url", "api_key", "toolsets", "mode", "max_turns", "reasoning_effort"):
        before = getattr(flags, name)
        if before is not None and name not in named:
            named[name] = before
    options = checked(named)
    url, key = (next(iter(given), None) for given in (options.base_url, options.api_key))
    resolved = resolve(Flags(profile=options.profile, base_url=url, api_key=key, mode=options.mode))
    if "batch_size" not in named and not (options.resume and options.folder.exists()):
        err(_("--batch_size is not given; {n} prompts to a batch").format(n=options.batch_size))
    summary = _run(options, resolved, form)
    if form != "json":
        _print_summary(summary, quiet=form == "quiet")
    return summary.exit_code


def _run(options: BatchOptions, resolved: Resolved, form: Form) -> BatchSummary:
    from hermes_engine.batch.runner import BatchRun
    from hermes_engine.sandbox.orphans import end_orphans

    end_orphans()
    sink = shown(form)
    lost: list[OSError] = []

    def hear(event: Event) -> None:
        try:
            sink(event)
        except OSError as fault:  # the run goes on without its reader
            lost.append(fault)

    work = BatchRun(options, resolved, hear)
    try:
        with _interruptible(work):
            summary = work.run()
    finally:
        sink.close()
    if lost:
        raise lost[0]
    return summary


@contextlib.contextmanager
def _interruptible(run: BatchRun) -> Iterator[None]:
    """The first signal ends the run in order, the second at once."""

    def hear(count: int) -> None:
        run.stop(now=count > 1)
        if count == 1:
            _whisper(_("stopping: rows in flight get a moment to end; once more ends at once"))
        elif count == 2:
            threading.Thread(target=_last_word, daemon=True).start()

    with listening(hear, deaf_after=True):
        yield


def _whisper(text: str) -> None:
    """A line to standard error from within a signal handler, where the stream object may be in use."""
    with contextlib.suppress(OSError):
        os.write(2, f"\n{text}\n".encode())


def _last_word() -> None:
    """Ends the process when even the quick end takes too long; nothing it started lives on."""
    import time

    from hermes_engine.sandbox.orphans import end_instance

    time.sleep(_LAST_WORD_SECONDS)
    end_instance()
    leave(INTERRUPTED)


def _print_summary(summary: BatchSummary, *, quiet: bool) -> None:
    words = {
        "done": _("done"),
        "interrupted": _("interrupted"),
        "stopped": _("stopped"),
        "failed": _("failed"),
    }
    name, counts = summary.name, summary.counts
    told = " · ".join(f"{key} {counts.get(key, 0)}" for key in ("kept", "rejected", "failed", "invalid", "pending"))
    reason = f" ({one_line(summary.reason)})" if summary.reason else ""
    if not quiet:
        head = _("{name}: {state} in {time}").format(
            name=name, state=words[summary.state], time=duration(summary.seconds)
        )
        out(f"{head}{reason}")
        out(f"{told} · total {counts.get('total', 0)}")
        _print_reasons(summary.folder)
        if summary.merged:
            out(str(summary.folder / "trajectories.jsonl"))
        else:
            out(_("{folder}: the rows are in its batch files; --resume merges them").format(folder=summary.folder))
    where = "" if summary.folder.parent == Path("data") else f" --output_dir {shlex.quote(str(summary.folder.parent))}"
    if summary.capped:
        advice = _("go on under a higher cap: hermes batch run --resume --run_name {run}{where} --{cap} …")
        err(advice.format(run=name, where=where, cap=summary.capped))
    elif counts.get("pending"):
        err(_("go on with: hermes batch run --resume --run_name {run}{where}").format(run=name, where=where))
    elif counts.get("failed"):
        err(_("run the failed rows again: hermes batch retry {run}{where}").format(run=name, where=where))
    elif not counts.get("kept"):
        err(_("the run kept nothing"), style="red")


def _print_reasons(folder: Path) -> None:
    from hermes_engine.batch.folder import RunFolder
    from hermes_engine.batch.overview import examples, run_state

    statistics = run_state(RunFolder(folder)).statistics
    for title, key in ((_("rejected"), "rejects"), (_("failed"), "failures")):
        reasons: Mapping[str, int] = statistics.get(key, {})
        if reasons:
            out(f"{title}: " + ", ".join(f"{name} {number}" for name, number in reasons.items()))
    for kind, said in examples(RunFolder(folder)).items():
        out(f"  {one_line(kind)}: {one_line(said, _REASON_SHOWN)}")


def _print_distributions(flags: Flags, *, as_json: bool) -> int:
    from hermes_engine.batch.distributions import available

    table = available(resolve(Flags(profile=flags.profile)).home)
    if as_json:
        told = (
            {"name": item.name, "toolsets": dict(item.odds), "description": item.description} for item in table.values()
        )
        out_json(list(told))
        return 0
    rows = [
        [item.name, ", ".join(f"{name} {odds:g}" for name, odds in item.odds.items()), item.description]
        for item in table.values()
    ]
    out_table([_("name"), _("odds in percent"), _("what for")], rows)
    return 0


@batch.command("list")
@output_dir_option
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
def list_runs(output_dir: Path, as_json: bool) -> int:
    """List the runs of a folder."""
    from hermes_engine.batch.overview import run_states

    states = run_states(output_dir)
    if as_json:
        out_json([state.as_dict() for state in states])
        return 0
    out_table([_("run"), _("state"), _("rows"), _("kept"), _("failed"), _("model")], [_row(state) for state in states])
    if not states and is_terminal(sys.stdout):
        out(_("no run in {folder}").format(folder=output_dir))
    return 0


def _row(state: RunState) -> list[str]:
    counts, settled = state.rows, state.rows.get("total", 0) - state.rows.get("pending", 0)
    model = str(state.settings.get("options", {}).get("model") or "")
    told = [str(counts.get(name, 0)) for name in ("kept", "failed")]
    return [state.name, state.state, f"{settled}/{counts.get('total', 0)}", *told, model]


@batch.command()
@click.argument("run_name", metavar="RUN")
@output_dir_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def show(run_name: str, output_dir: Path, as_json: bool) -> int:
    """Show how a run stands."""
    from hermes_engine.batch.overview import run_state

    state = run_state(found_run(output_dir, run_name))
    if as_json:
        out_json(state.as_dict())
        return 0
    figures = state.statistics
    lines = {
        _("run"): state.name,
        _("folder"): str(state.folder),
        _("state"): " ".join(part for part in (state.state, state.reason, state.holder) if part),
        _("model"): str(state.settings.get("options", {}).get("model") or ""),
        _("rows"): _listed(state.rows),
        _("rejected"): _listed(figures.get("rejects", {})),
        _("failed"): _listed(figures.get("failures", {})),
        _("tools"): _listed({name: item["count"] for name, item in figures.get("tools", {}).items()}),
        _("servers"): _servers(figures.get("replicas") or ()),
        _("reasoning"): _share(figures.get("reasoning", {})),
        _("tokens"): _known(figures.get("spent", {}), "tokens_known", "total_tokens", "{:,}"),
        _("cost"): _known(figures.get("spent", {}), "cost_known", "cost_usd", "${:.4f}"),
        _("time"): duration(figures.get("duration_seconds", 0)),
    }
    out_table(["", ""], [[name, text] for name, text in lines.items() if text])
    if is_terminal(sys.stdout):
        _draw_toolsets(state)
    return 0


def _draw_toolsets(state: RunState) -> None:
    from hermes_engine.batch.statistics import stated_and_drawn
    from hermes_tui.printing.charts import pairs

    rows = stated_and_drawn(state.settings.get("toolset_odds", {}), state.statistics)
    if rows:
        out(_("toolsets of the rows that ran"))
        for line in pairs(rows, (_("stated"), _("drawn")), plain=not fancy(sys.stdout)):
            out(line)


def _known(spent: Mapping[str, Any], known: str, name: str, form: str) -> str:
    """A figure of what was spent, with how far it is known."""
    told = form.format(spent.get(name, 0))
    if spent.get(known, True):
        return told
    return _("at least {figure}").format(figure=told) if spent.get(name) else _("unknown")


def _listed(numbers: Mapping[str, int]) -> str:
    return " · ".join(f"{name} {number}" for name, number in numbers.items() if number)


def _servers(replicas: Sequence[Mapping[str, Any]]) -> str:
    """What each of several servers got."""
    told = []
    for item in replicas:
        words = [_("{n} rows").format(n=item["rows"]), _("{n} requests").format(n=item["requests"])]
        if item["downs"]:
            words.append(_("down {n}×").format(n=item["downs"]))
        told.append(f"{one_line(str(item['base_url']))} {', '.join(words)}")
    return " · ".join(told)


def _share(reasoning: Mapping[str, Any]) -> str:
    if not reasoning.get("turns"):
        return ""
    return _("{with_it} of {turns} turns").format(with_it=reasoning["with_reasoning"], turns=reasoning["turns"])


batch.add_command(export)
batch.add_command(feed)
batch.add_command(filter_rows)
batch.add_command(merge)
batch.add_command(report)
batch.add_command(replay)
batch.add_command(watch)


@batch.command()
@click.argument("run_name", metavar="RUN")
@output_dir_option
def stop(run_name: str, output_dir: Path) -> int:
    """Ask the process that works a run to end it in order."""
    folder = found_run(output_dir, run_name)
    folder.ask_to_stop()
    out(_("{run} is asked to stop; go on later with --resume").format(run=run_name))
    return 0
