"""The slash command about batch runs. Knows no front end."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_engine.errors import UnknownName, UsageError
from hermes_engine.paths import expanded
from hermes_tui.cleaning import one_line
from hermes_tui.commands.host import CommandHost, Completion, Output
from hermes_tui.commands.listing import file_completions
from hermes_tui.commands.registry import command, words
from hermes_tui.texts import _, ngettext

if TYPE_CHECKING:
    from hermes_engine.batch.folder import RunFolder
    from hermes_engine.batch.options import BatchOptions

RUNS = Path("data")
"""Where the runs of a folder are."""

OUTCOMES = ("kept", "rejected", "failed", "invalid")
VERBS = ("stop", "pause", "resume", "retry", "show")


def _completions(host: CommandHost, typed: str) -> list[Completion]:
    start = typed.rfind(" ") + 1
    if start and typed.startswith("--", start):
        from hermes_tui.commands.batch_flags import NAMES

        wanted = typed[start + 2 :].replace("-", "_")
        return [Completion(f"--{name} ", "", start) for name in NAMES if name.startswith(wanted)]
    verb, blank, name = typed.partition(" ")
    if blank and verb in VERBS:
        from hermes_engine.batch.folder import all_runs

        found = [folder.root.name for folder in all_runs(_runs(host))]
        return [Completion(one, "", len(verb) + 1) for one in found if one.startswith(name)]
    return [
        *words(typed, [(verb, "") for verb in VERBS if typed and verb.startswith(typed)]),
        *file_completions(typed, (".jsonl", ".json"), host.engine.view(host.session).cwd),
    ]


@command("batch", args="[FILE [n] [flags] | stop|pause|resume|retry|show NAME]",
         help="Run a file's prompts beside this chat; show runs", group="Work",
         while_busy=True, blocking=True, complete=_completions)  # fmt: skip
def batch(host: CommandHost, args: str) -> None:
    if not args:
        if not host.open_screen("batch"):
            _show_runs(host)
        return
    first, _blank, rest = args.partition(" ")
    if first == "show" and rest:
        folder = _found(host, rest.strip())
        if not host.open_screen("batch", run=folder.root.name):
            _show_run(host, folder)
        return
    if first in VERBS and rest:
        host.show(Output("text", _act(host, first, rest.strip())))
        return
    name = host.engine.start_batch(_options(host, args))
    most = host.resolved.settings.batch.max_runs
    if len(host.engine.runs.names) > most:
        others = ngettext("{count} other run is", "{count} other runs are", most).format(count=most)
        line = _("Batch {name} begins when another one ends: {others} at work, the most at once (batch.max_runs).")
    else:
        others, line = "", _("Batch {name} runs beside this chat; its files are in {folder}.")
    line += " " + _("/batch shows it, /batch stop {name} ends it.")
    host.show(Output("text", line.format(name=name, folder=RUNS / name, others=others)))


def _options(host: CommandHost, args: str) -> BatchOptions:
    """The options of a new run, or of one that is resumed. Raises UsageError, ConfigError for what can be told now."""
    from hermes_engine.batch.options import checked
    from hermes_engine.batch.setup import set_up
    from hermes_tui.commands.batch_flags import parted, values_of

    chat = host.engine.view(host.session)
    words, flags = (args, "") if (chat.cwd / args).exists() else parted(args)
    given = values_of(flags, chat.cwd)
    values: dict[str, Any] = {"output_dir": _runs(host)}
    if words:
        file, count = _file_and_count(words, chat.cwd)
        if not file.is_file():
            hint = _("one JSON object a line with `prompt`")
            raise UsageError(_("there is no file {file}").format(file=file), hint=hint)
        values |= {"run_name": run_name(file), "dataset_file": file, **({"max_samples": count} if count else {})}
    elif not given.get("resume") or "run_name" not in given:
        raise UsageError(_("a file is needed"), hint="/batch prompts.jsonl --num_workers 8")
    if not given.get("resume"):
        values["model"] = chat.model
    options = checked(values | given)
    set_up(options, host.resolved)
    return options


def _runs(host: CommandHost) -> Path:
    return host.engine.view(host.session).cwd / RUNS


def _act(host: CommandHost, verb: str, name: str) -> str:
    """Does something to a run; what is to be said about it."""
    runs, here = host.engine.runs, name in host.engine.runs.names
    if verb == "stop":
        if not here:
            _found(host, name).ask_to_stop()
        runs.stop(name)
        return _("Stopping {name}; what is in flight ends first.").format(name=name)
    if verb == "retry":
        count = runs.retry(_found(host, name).root)
        if count < 0:
            return _("The failed rows of {name} run again.").format(name=name)
        words = ngettext("{count} failed row runs again.", "{count} failed rows run again.", count)
        return words.format(count=count)
    if verb == "pause" and not here:
        raise UnknownName("run at work here", name, runs.names)
    if here:
        runs.pause(name, verb == "pause")
        done = _("{name} begins no further rows; what is in flight is finished.") if verb == "pause" else None
        return (done or _("{name} goes on.")).format(name=name)
    from hermes_engine.batch.options import checked

    folder = _found(host, name).root
    refuse_capped(folder)
    host.engine.start_batch(checked({"run_name": name, "output_dir": folder.parent, "resume": True}))
    return _("{name} goes on.").format(name=name)


def refuse_capped(folder: Path) -> None:
    """Raises UsageError for a run that a resume under its own caps would not take further."""
    from hermes_engine.batch.folder import RunFolder
    from hermes_engine.batch.overview import met_cap, run_state

    if cap := met_cap(run_state(RunFolder(folder))):
        raise UsageError(
            _("{name} has reached its cap").format(name=folder.name),
            hint=f"/batch --resume --{cap} … --run_name {folder.name}",
        )


def _found(host: CommandHost, name: str) -> RunFolder:
    """The folder of a run, of one at work here wherever it is. Raises UnknownName."""
    from hermes_engine.batch.folder import RunFolder, find_run

    folder = host.engine.runs.folder(name)
    return RunFolder(folder) if folder is not None else find_run(_runs(host), name)


def _file_and_count(args: str, folder: Path) -> tuple[Path, int]:
    """The file that is meant, seen from a folder, and how many of its prompts (0 = all)."""
    name, _blank, last = args.rpartition(" ")
    if name and last.isdecimal() and not (folder / args).exists():
        if int(last) < 1:
            raise UsageError(_("at least one prompt is needed"))
        return folder / expanded(name.strip().strip("\"'")), int(last)
    return folder / expanded(args.strip("\"'")), 0


def run_name(file: Path, now: float | None = None) -> str:
    """A run's name out of its file and the local time: `prompts-1129-143005`."""
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", file.stem).strip("-_")[:60] or "run"
    moment = time.localtime(time.time() if now is None else now)
    return f"{stem}-{time.strftime('%m%d-%H%M%S', moment)}"


def _show_run(host: CommandHost, folder: RunFolder) -> None:
    """How one run stands, where there is no screen for it."""
    from hermes_engine.batch.overview import examples, run_state

    run = run_state(folder)
    spent = run.statistics.get("spent", {})
    tokens, cost = f"{spent.get('total_tokens', 0):,}", f"${spent.get('cost_usd', 0.0):.4f}"
    facts = {
        _("state"): " · ".join(one_line(part, 200) for part in (run.state, run.reason, run.holder) if part),
        _("model"): one_line(str(run.settings.get("options", {}).get("model") or "")),
        _("rows"): _listed(run.rows),
        _("rejected"): _listed(run.statistics.get("rejects", {})),
        _("failed"): _listed(run.statistics.get("failures", {})),
        **{one_line(kind): one_line(said, 200) for kind, said in examples(folder).items()},
        _("tokens"): tokens if spent.get("tokens_known") else _("at least {figure}").format(figure=tokens),
        _("cost"): cost if spent.get("cost_known") else _("unknown"),
        _("folder"): str(folder.root),
    }
    rows = tuple((name, text) for name, text in facts.items() if text)
    host.show(Output("table", title=_("Batch {name}").format(name=run.name), columns=("", ""), rows=rows))


def _listed(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{one_line(name)} {number}" for name, number in numbers.items() if number)


def _show_runs(host: CommandHost) -> None:
    from hermes_engine.batch.overview import run_states

    runs = run_states(_runs(host))
    if not runs:
        host.show(Output("text", _("No batch runs. /batch FILE runs every prompt of a JSONL file.")))
        return
    rows = []
    for run in runs:
        settled = run.rows.get("total", 0) - run.rows.get("pending", 0)
        done = f"{settled}/{run.rows.get('total', 0)}"
        counts = ", ".join(f"{run.rows[name]} {name}" for name in OUTCOMES if run.rows.get(name))
        rows.append((run.name, run.state, done, counts, one_line(run.reason, 80)))
    columns = (_("run"), _("state"), _("done"), _("rows"), _("reason"))
    host.show(Output("table", title=_("Batch runs"), columns=columns, rows=tuple(rows)))
