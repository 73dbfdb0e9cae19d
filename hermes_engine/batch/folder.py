"""A run's folder: names of its files, the lock that gives it to one process, the wish to stop, and `run.json`.

Knows no row. Everything in it is private from the moment it exists.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes_engine.batch.options import DELETE_IT
from hermes_engine.batch.rows import remove_tree
from hermes_engine.errors import StateError, UnknownName, UsageError
from hermes_engine.paths import open_private, private_dir, safe_name, write_atomic

_BATCH = re.compile(r"batch_(\d+)\.jsonl\Z")
_HALF_WRITTEN = re.compile(r"\.(?:.+\.jsonl?|README\.md|control)\.[a-z0-9_]+\Z")
_SETTINGS: Mapping[str, type] = {
    "options": dict,
    "dataset": dict,
    "tools": list,
    "changes": list,
    "system_prompt": str,
    "sandbox": dict,
}
WORK_PREFIX = "hermes-rows-"
_LOCK_TRIES, _LOCK_WAIT = 5, 0.02


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Where everything of a run is."""

    root: Path

    @property
    def trajectories(self) -> Path:
        """Kept rows of all batches, merged."""
        return self.root / "trajectories.jsonl"

    @property
    def rejected(self) -> Path:
        """Rows a filter turned away."""
        return self.root / "rejected.jsonl"

    @property
    def failed(self) -> Path:
        """Rows that are failed now."""
        return self.root / "failed.jsonl"

    @property
    def exchanges(self) -> Path:
        """What was asked of the model and what it said, with --record."""
        return self.root / "exchanges.jsonl"

    @property
    def tokens(self) -> Path:
        """Tokens of replies as their server told them, with --record_tokens."""
        return self.root / "tokens.jsonl"

    @property
    def checkpoint(self) -> Path:
        """Counters, and how long the files are."""
        return self.root / "checkpoint.json"

    @property
    def statistics(self) -> Path:
        """Figures of the whole run."""
        return self.root / "statistics.json"

    @property
    def run_json(self) -> Path:
        """Settings of the run."""
        return self.root / "run.json"

    @property
    def card(self) -> Path:
        """The dataset card."""
        return self.root / "README.md"

    @property
    def lock(self) -> Path:
        """Held by the process that works the run; says who."""
        return self.root / "lock"

    @property
    def control(self) -> Path:
        """Orders to that process."""
        return self.root / "control"

    def batch(self, number: int) -> Path:
        """Kept rows of one batch."""
        return self.root / f"batch_{number}.jsonl"

    def batches(self) -> list[int]:
        """Numbers of the batches that have a file, in order."""
        if not self.root.is_dir():
            return []
        found = (_BATCH.match(item.name) for item in self.root.iterdir())
        return sorted(int(match[1]) for match in found if match)

    @property
    def started(self) -> bool:
        """Whether a run is here. Raises StateError when one may not look."""
        try:
            return self.run_json.exists() or bool(self.batches())
        except OSError as error:
            raise StateError(f"{self.root} cannot be read: {error.strerror or error}") from None

    def settings(self) -> dict[str, Any]:
        """Content of `run.json`; {} when there is none.

        Raises:
            StateError: it cannot be read, or is something else.
        """
        settings = read_object(self.run_json, hint=DELETE_IT)
        for name, kind in _SETTINGS.items():
            if not isinstance(settings.get(name, kind()), kind):
                raise StateError(f"{self.run_json} is not a run's settings: {name}", hint=DELETE_IT)
        if not all(isinstance(schema, dict) and "function" in schema for schema in settings.get("tools", [])):
            raise StateError(f"{self.run_json} is not a run's settings: tools", hint=DELETE_IT)
        return settings

    def check(self, *, resume: bool) -> None:
        """Sees whether a run of this name may be worked. Changes nothing.

        Raises:
            UsageError: a run is here and this is no resume; or the folder is something else's.
        """
        try:
            parent = next(folder for folder in self.root.absolute().parents if folder.exists())
        except FileNotFoundError:
            raise UsageError("the current folder is gone", hint="change to one that exists") from None
        if not parent.is_dir():
            raise UsageError(f"{parent} is a file; no run can have its folder there", hint="take another --output_dir")
        if self.started:
            if not resume:
                raise UsageError(
                    f"the run {self.root.name} exists already in {self.root.parent}",
                    hint="add --resume to go on with it, or take another --run_name",
                )
        elif self.root.exists() and (not self.root.is_dir() or any(map(_foreign, self.root.iterdir()))):
            raise UsageError(f"{self.root} holds something that is no run", hint="take another --run_name")

    def ask_to_stop(self) -> None:
        """Tells the process that works the run to stop. Raises UsageError when none does."""
        if not holder(self):
            raise UsageError(f"the run {self.root.name} is not running")
        write_atomic(self.control, "stop\n")

    def stop_asked(self) -> bool:
        """Whether someone asked."""
        return self.control.exists()


def _foreign(path: Path) -> bool:
    return path.name not in ("lock", "control") and not path.name.startswith(".")


def find_run(output_dir: Path, name: str) -> RunFolder:
    """The run of this name. Raises UnknownName with those there are."""
    folder = RunFolder(output_dir / safe_name("run name", name))
    if not folder.started:
        raise UnknownName("run", name, (item.root.name for item in all_runs(output_dir)))
    return folder


def all_runs(output_dir: Path) -> list[RunFolder]:
    """The runs of a folder, by name; one that a merge is about to make has a dot before its name, and is none yet."""
    if not output_dir.is_dir():
        return []
    there = (item for item in sorted(output_dir.iterdir()) if item.is_dir() and not item.name.startswith("."))
    found = map(RunFolder, there)
    return [folder for folder in found if _readable(folder) and folder.started]


def _readable(folder: RunFolder) -> bool:
    """Whether one may look into it: a folder of somebody else is no reason to list no run."""
    return os.access(folder.root, os.R_OK | os.X_OK)


def read_object(path: Path, *, hint: str = "") -> dict[str, Any]:
    """A JSON object from a file; {} when it is missing. Raises StateError, with `hint` for a wrong content."""
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StateError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise StateError(f"{path} cannot be read: {error}", hint=hint) from None
    return value if isinstance(value, dict) else {}


def write_object(path: Path, value: Mapping[str, Any], *, sync: bool = True) -> None:
    """Replaces a file by a JSON object, whole or not at all. Raises StateError."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        write_atomic(path, text.encode("utf-8", "replace") + b"\n", sync=sync)
    except OSError as error:
        raise StateError(f"cannot write {path}: {error.strerror or error}") from error


def holder(folder: RunFolder) -> str:
    """Who works the run, in words; "" when nobody does."""
    try:
        descriptor = os.open(folder.lock, os.O_RDONLY | os.O_CLOEXEC)  # the disk may be one that is only read here
    except OSError:
        return ""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return _who(folder)
    else:
        return ""
    finally:
        os.close(descriptor)


def _who(folder: RunFolder) -> str:
    try:
        told = read_object(folder.lock)
    except StateError:
        told = {}
    if not told:
        return "another process"
    return f"process {told.get('pid')} on {told.get('host')} since {told.get('since')}"


@contextlib.contextmanager
def held(folder: RunFolder, work_dir: Path | None, *, keep_work: bool = False) -> Iterator[Path]:
    """Holds the run for this process, with a fresh folder for its rows, which is the value.

    What a process that was killed left behind (its rows' folders, half-written files) is removed.

    Raises:
        UsageError: another process works the run; names it.
        StateError: nothing can be written there.
    """
    private_dir(folder.root)
    try:
        descriptor = open_private(folder.lock, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise StateError(f"cannot write {folder.lock}: {error.strerror or error}") from None
    try:
        if not _locked(descriptor):
            raise UsageError(
                f"the run {folder.root.name} is being worked by {_who(folder)}", hint="wait for it, or stop it"
            )
        _clear_left_over(folder)
        work = fresh_work(work_dir)
        told = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "work": str(work),
            "keep_work": keep_work,
        }
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(told).encode(), 0)
        try:
            yield work
        finally:
            if not keep_work:
                remove_tree(work)
            folder.control.unlink(missing_ok=True)
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    """Whether the lock was had. Who only looks whether it is held (`holder`) has it for a moment: tried a few times."""
    for _try in range(_LOCK_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            time.sleep(_LOCK_WAIT)
        else:
            return True
    return False


def fresh_work(work_dir: Path | None) -> Path:
    """A new private folder for the folders of rows, in `work_dir` or the system's temporary one, without links.

    Raises StateError.
    """
    base = Path(tempfile.gettempdir()) if work_dir is None else private_dir(work_dir.absolute())
    try:
        return Path(os.path.realpath(tempfile.mkdtemp(prefix=WORK_PREFIX, dir=base)))
    except OSError as error:
        raise StateError(f"cannot make a folder for rows in {base}: {error.strerror or error}") from None


def _clear_left_over(folder: RunFolder) -> None:
    """Removes half-written files, old orders, and the rows' folder of a killed process when it is surely ours."""
    folder.control.unlink(missing_ok=True)
    for item in folder.root.iterdir():
        if _HALF_WRITTEN.match(item.name):
            item.unlink(missing_ok=True)
    try:
        told = read_object(folder.lock)
    except StateError:
        return
    work = Path(str(told.get("work", "")))
    with contextlib.suppress(OSError):
        ours = work.name.startswith(WORK_PREFIX) and not work.is_symlink() and work.stat().st_uid == os.getuid()
        if ours and not told.get("keep_work"):
            remove_tree(work)
