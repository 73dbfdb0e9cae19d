"""Slash commands about what waits and what runs in numbers: the queue, batch runs. Knows no front end."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_engine.errors import UnknownName, UsageError
from hermes_tui.cleaning import one_line
from hermes_tui.commands.host import CommandHost, Completion, Output
from hermes_tui.commands.listing import file_completions
from hermes_tui.commands.registry import command, words
from hermes_tui.texts import _

if TYPE_CHECKING:
    from hermes_engine.session import AgentRow

RUNS = Path("data")
"""Where the runs of a folder are."""

OUTCOMES = ("kept", "rejected", "failed", "invalid")
_QUEUE_VERBS = ("drop", "up", "edit", "send", "clear")


def _queue_words(host: CommandHost, typed: str) -> list[Completion]:
    helps = (_("take one out"), _("move one up"), _("take one back into the prompt"), _("send the first now"), "")
    return words(typed, list(zip(_QUEUE_VERBS, helps, strict=True)))


@command("queue", args="[drop|up|edit N | send | clear]", help="Show and edit what waits to be sent", group="Work",
         while_busy=True, complete=_queue_words)  # fmt: skip
def queue(host: CommandHost, args: str) -> None:
    verb, _blank, number = args.partition(" ")
    items = list(host.engine.queued(host.session))
    if verb == "send":
        if not host.engine.send_next(host.session):
            raise UsageError(_("nothing waits"))
        return
    if verb == "clear":
        items.clear()
    elif verb in _QUEUE_VERBS:
        position = _position(number, len(items))
        item = items.pop(position)
        if verb == "up":
            items.insert(max(0, position - 1), item)
        elif verb == "edit":
            host.set_draft(item)
    elif verb:
        raise UnknownName("verb", verb, _QUEUE_VERBS)
    if verb:
        host.engine.set_queue(host.session, items)
    _show_queue(host, items)


def _position(number: str, count: int) -> int:
    if not number.strip().isdecimal() or not 1 <= int(number) <= count:
        raise UsageError(_("a number from the list is needed"), hint="/queue")
    return int(number) - 1


def _show_queue(host: CommandHost, items: Sequence[str]) -> None:
    if not items:
        host.show(Output("text", _("Nothing waits to be sent.")))
        return
    rows = tuple((str(number), one_line(item, 200)) for number, item in enumerate(items, 1))
    host.show(Output("table", title=_("Waiting"), columns=("#", _("message")), rows=rows))


def _batch_files(host: CommandHost, typed: str) -> list[Completion]:
    return file_completions(typed, (".jsonl", ".json"), host.engine.view(host.session).cwd)


@command("batch", args="[FILE [n] | stop NAME]", help="Run every prompt of a file (or its first n) beside this chat",
         group="Work", while_busy=True, blocking=True, complete=_batch_files)  # fmt: skip
def batch(host: CommandHost, args: str) -> None:
    if not args:
        _show_runs(host)
        return
    first, _blank, rest = args.partition(" ")
    if first == "stop" and rest:
        if not host.engine.stop_batch(rest.strip()):
            raise UnknownName("running batch", rest.strip(), [row.name for row in _batches(host)])
        host.show(Output("text", _("Stopping {name}; what is in flight ends first.").format(name=rest.strip())))
        return
    chat = host.engine.view(host.session)
    file, count = _file_and_count(args, chat.cwd)
    if not file.is_file():
        raise UsageError(_("there is no file {file}").format(file=file), hint=_("one JSON object a line with `prompt`"))
    from hermes_engine.batch.options import checked

    values = {"run_name": run_name(file), "dataset_file": file, "model": chat.model}
    name = host.engine.start_batch(checked(values | ({"max_samples": count} if count else {})))
    line = _("Batch {name} runs beside this chat; its files are in {folder}. /batch stop {name} ends it.")
    host.show(Output("text", line.format(name=name, folder=RUNS / name)))


def _file_and_count(args: str, folder: Path) -> tuple[Path, int]:
    """The file that is meant, seen from a folder, and how many of its prompts (0 = all)."""
    name, _blank, last = args.rpartition(" ")
    if name and last.isdecimal() and not (folder / args).exists():
        if int(last) < 1:
            raise UsageError(_("at least one prompt is needed"))
        return folder / Path(name.strip().strip("\"'")).expanduser(), int(last)
    return folder / Path(args.strip("\"'")).expanduser(), 0


def run_name(file: Path, now: float | None = None) -> str:
    """A run's name out of its file and the local time: `prompts-1129-143005`."""
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", file.stem).strip("-_")[:60] or "run"
    moment = time.localtime(time.time() if now is None else now)
    return f"{stem}-{time.strftime('%m%d-%H%M%S', moment)}"


def _batches(host: CommandHost) -> list[AgentRow]:
    return [row for row in host.engine.agents() if row.kind == "batch"]


def _show_runs(host: CommandHost) -> None:
    from hermes_engine.batch.overview import run_states

    runs = run_states(RUNS)
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
