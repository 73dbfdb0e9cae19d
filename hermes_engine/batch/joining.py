"""Makes one run of the runs of a dataset's shards: an ordinary run of the whole dataset, which a resume can go on with.

Reads the shards' files and changes none of them. What of a shard is not there is pending in the new run.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes_engine.batch.accounts import Account, State, checkpoint_of, counts_of, spent_until_now, statistics_of
from hermes_engine.batch.card import card
from hermes_engine.batch.export.kept import lines_of
from hermes_engine.batch.files import Appender, sync_folder
from hermes_engine.batch.folder import RunFolder, held, holder, read_object, write_object
from hermes_engine.batch.job import Record
from hermes_engine.batch.merge import compact_failed, merge
from hermes_engine.batch.options import MEANING, BatchOptions, checked
from hermes_engine.batch.plan import Plan, make_plan
from hermes_engine.batch.recording import placeless
from hermes_engine.batch.setup import open_dataset, with_options
from hermes_engine.batch.statistics import Counts, number, of_each_server
from hermes_engine.batch.tokens import token_figures
from hermes_engine.batch.trajectory import line_of
from hermes_engine.batch.writer import now
from hermes_engine.errors import StateError, UsageError
from hermes_engine.paths import private_dir, write_atomic
from hermes_engine.profiles import Resolved
from hermes_engine.redaction import Redactor

_OWN_PLACE = frozenset({"base_url", "sandbox", "prefill_messages_file"})
"""Options that may differ from shard to shard: what machine worked it."""

_SAME_OPTIONS = (
    *(name for name in MEANING if name not in _OWN_PLACE),
    "max_samples",
    "keep_without_reasoning",
    "record_tokens",
)
_AS_THEY_ARE = ("exchanges", "tokens")
"""Files beside the rows whose lines name their row."""


@dataclass(frozen=True, slots=True)
class Shard:
    """The run of one part.

    Attributes:
        folder: of the run.
        which, of: part `which` (from 1) of `of`.
        settings: content of its `run.json`.
    """

    folder: RunFolder
    which: int
    of: int
    settings: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Its part, as a flag has it."""
        return f"{self.which}/{self.of}"


@dataclass(frozen=True, slots=True)
class Joined:
    """A run made of shards.

    Attributes:
        missing: shards that were not among them, as "2/4".
    """

    folder: RunFolder
    counts: Counts
    state: State
    reason: str
    missing: tuple[str, ...]


def join(
    target: RunFolder, runs: Sequence[RunFolder], resolved: Resolved, *, dataset_file: Path | None = None
) -> Joined:
    """Makes the run.

    Args:
        target: its folder, which is not there yet.
        runs: of the shards, in any order.
        resolved: settings in effect.
        dataset_file: where the dataset is now, when it was moved.

    Raises:
        UsageError: what is named does not make one run; says what differs.
        StateError: a file cannot be read or written.
    """
    if target.started:
        raise UsageError(f"the run {target.root.name} exists already in {target.root.parent}", hint="take another name")
    target.check(resume=False)
    shards = _shards(runs)
    _check_equal(shards)
    first = shards[0].settings
    path = dataset_file or Path(str(first["options"]["dataset_file"]))
    stored = {name: value for name, value in first["options"].items() if name in BatchOptions.model_fields}
    given = {"run_name": target.root.name, "shard": None, "dataset_file": path}
    options = checked({**stored, **given, "output_dir": target.root.parent, "only_failed": False, "resume": False})
    with _made_whole(target) as folder:
        _copy(shards, folder)
        dataset = open_dataset(options, with_options(resolved, options).settings)
        try:
            plan = make_plan(dataset, folder, options)
            if plan.digest != first["dataset"].get("sha256"):
                raise UsageError(
                    f"the dataset {path} is not the one of the shards", hint="name theirs with --dataset_file"
                )
            compact_failed(folder, plan.ledger)
            redactor = Redactor(resolved.secrets)
            merge(folder, plan.ledger, plan.places, lambda place: redactor.text(dataset.row(place).extra))
        finally:
            dataset.close()
        return _written(target, folder, shards, plan, options)


def _shards(runs: Sequence[RunFolder]) -> list[Shard]:
    """The runs as shards, in order. Raises UsageError when they are none, or no set of parts."""
    found: dict[int, Shard] = {}
    for folder in runs:
        if who := holder(folder):
            raise UsageError(f"the run {folder.root.name} is being worked by {who}", hint="wait for it, or stop it")
        settings = folder.settings()
        told = settings.get("options", {}).get("shard")
        if not told:
            raise UsageError(f"the run {folder.root.name} is of no shard", hint="only runs with --shard can be merged")
        which, of = map(int, str(told).split("/"))
        shard = Shard(folder, which, of, settings)
        other = next(iter(found.values()), shard)
        if other.of != of:
            raise UsageError(
                f"{folder.root} is shard {shard.name} and {other.folder.root} is {other.name}: not of one division"
            )
        if which in found:
            raise UsageError(f"{found[which].folder.root} and {folder.root} are both shard {shard.name}")
        found[which] = shard
    return [found[which] for which in sorted(found)]


def _check_equal(shards: Sequence[Shard]) -> None:
    """Raises UsageError, naming what differs, when the rows of the shards do not mean the same."""
    first: dict[str, Any] = {}
    of: dict[str, str] = {}
    for shard in shards:
        told = _meaning(shard.settings)
        if differ := [name for name in told if name in first and first[name] != told[name]]:
            other = of[differ[0]]
            raise UsageError(f"{other} and {shard.folder.root.name} differ in: {', '.join(differ)}")
        first |= told
        of |= dict.fromkeys(told.keys() - of.keys(), shard.folder.root.name)


def _meaning(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What the rows of all shards have to have in common, by names that a person knows; what no row has met is not
    there.
    """
    options = settings.get("options", {})
    told = {name: options.get(name) for name in _SAME_OPTIONS}
    told["dataset"] = settings.get("dataset", {}).get("sha256")
    told["the model's name at the server"] = settings.get("endpoint", {}).get("model")
    told["prefilled messages"] = settings.get("prefill")
    told["toolset odds"] = settings.get("toolset_odds")
    if prompt := settings.get("system_prompt"):
        told["system prompt"] = placeless(prompt)
    return told | {f"tool {schema['function']['name']}": schema for schema in settings.get("tools", [])}


@contextmanager
def _made_whole(target: RunFolder) -> Iterator[RunFolder]:
    """A folder that becomes the target when all is well, and is gone when not; what a killed merge left is removed."""
    private_dir(target.root.parent)
    folder = RunFolder(target.root.parent / f".{target.root.name}.merging")
    if who := holder(folder):
        raise UsageError(f"{target.root} is being made by {who}", hint="wait for it, or stop it")
    try:
        with held(folder, None):
            _empty(folder)
            yield folder
            sync_folder(folder.root)
            folder.root.rename(target.root)
        sync_folder(target.root.parent)
    except OSError as error:
        raise StateError(f"cannot make {target.root}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(folder.root, ignore_errors=True)


def _empty(folder: RunFolder) -> None:
    for path in folder.root.iterdir():
        if path != folder.lock:
            path.unlink()


def _copy(shards: Sequence[Shard], folder: RunFolder) -> None:
    """The shards' row files, their batches numbered one after another."""
    free = 0
    for shard in shards:
        before, highest = shard.folder, -1
        files = [(before.batch(which), folder.batch(free + which)) for which in before.batches()]
        files += [(before.rejected, folder.rejected), (before.failed, folder.failed)]
        highest = max([highest, *before.batches()])
        for source, copy in files:
            if not source.exists():
                continue
            with _appended(copy) as target:
                for kept in lines_of(source):
                    highest = max(highest, _moved(kept.record, free))
                    target.append(line_of(kept.record))
        for name in _AS_THEY_ARE:
            source = getattr(before, name)
            if source.exists():
                with _appended(getattr(folder, name)) as target:
                    for kept in lines_of(source):
                        target.append(kept.line)
        free += highest + 1


def _moved(record: Record, by: int) -> int:
    """Gives a record the number its batch has now; the one it had."""
    metadata = record.get("metadata")
    which = metadata.get("batch_num") if isinstance(metadata, dict) else None
    if not isinstance(which, int):
        return -1
    record["metadata"]["batch_num"] = which + by
    return which


@contextmanager
def _appended(path: Path) -> Iterator[Appender]:
    file = Appender(path)
    try:
        yield file
        file.sync()
    finally:
        file.close()


def _written(
    target: RunFolder, folder: RunFolder, shards: Sequence[Shard], plan: Plan, options: BatchOptions
) -> Joined:
    """Writes what is said of the run as a whole."""
    counts = counts_of(plan)
    there = {shard.which for shard in shards}
    missing = tuple(f"{which}/{shards[0].of}" for which in range(1, shards[0].of + 1) if which not in there)
    reason = f"not there: shard {', '.join(missing)}" if missing else "not all rows of its shards are worked"
    reason = reason if missing or counts.pending else ""
    before = [read_object(shard.folder.checkpoint) for shard in shards]
    figures = [read_object(shard.folder.statistics) for shard in shards]
    account = Account(
        name=options.run_name,
        model=options.model,
        distribution=options.distribution,
        state="stopped" if reason else "done",
        reason=reason,
        seconds=sum(number(one, "seconds") for one in before),
        invocations=sum(int(number(one, "invocations")) for one in before),
        spent=spent_until_now(before, plan),
        workers=sum(int(number(one, "workers")) for one in before),
        replicas=of_each_server((item for one in figures for item in one.get("replicas") or ()), ()),
        tokens=token_figures(folder, plan.ledger.kept) if options.record_tokens else None,
    )
    write_object(folder.checkpoint, checkpoint_of(account, plan, counts, folder.batches()))
    write_object(folder.statistics, statistics_of(account, plan, counts))
    write_object(folder.run_json, _settings(shards, plan, options))
    told = counts.as_dict()
    name, model, distribution = options.run_name, str(options.model), options.distribution
    text = card(name=name, made=now(), model=model, distribution=distribution, counts=told)
    try:
        write_atomic(folder.card, text)
    except OSError as error:
        raise StateError(f"cannot write {folder.card}: {error.strerror or error}") from error
    return Joined(target, counts, account.state, reason, missing)


def _settings(shards: Sequence[Shard], plan: Plan, options: BatchOptions) -> dict[str, Any]:
    """Content of `run.json`: the first shard's, over the whole dataset, with the tools that any of them met."""
    first = shards[0].settings
    tools = {schema["function"]["name"]: schema for shard in shards for schema in shard.settings.get("tools", [])}
    prompt = next((text for shard in shards if (text := shard.settings.get("system_prompt"))), "")
    kept = options.stored()
    return {
        **first,
        "run_name": options.run_name,
        "options": {**first["options"], **{name: kept[name] for name in ("run_name", "shard", "dataset_file")}},
        "dataset": {"path": kept["dataset_file"], "sha256": plan.digest, "lines": plan.lines},
        "system_prompt": prompt,
        "tools": list(tools.values()),
        "changes": [change for shard in shards for change in shard.settings.get("changes", [])],
        "merged": [_told(shard) for shard in shards],
    }


def _told(shard: Shard) -> dict[str, Any]:
    """Where a part comes from."""
    settings = shard.settings
    return {
        "run": shard.folder.root.name,
        "shard": shard.name,
        "created_at": settings.get("created_at"),
        "base_url": settings.get("endpoint", {}).get("base_url"),
        "sandbox": settings.get("sandbox", {}),
        "rows": read_object(shard.folder.checkpoint).get("rows", {}),
    }
