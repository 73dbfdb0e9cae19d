"""Reads what runs there are and how they stand, for lists. Changes nothing; a run may be at work meanwhile."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from hermes_engine.batch.folder import RunFolder, all_runs, holder, read_object
from hermes_engine.batch.statistics import number
from hermes_engine.errors import StateError

_LOOKED_THROUGH = 500
"""Failed rows that are read to say why rows failed."""


@dataclass(frozen=True, slots=True)
class RunState:
    """One run.

    Attributes:
        state: running | done | interrupted | stopped | failed | killed (it says it runs and nobody works it) | new.
        reason: why it ended, when it did not end well.
        rows: by state, see `Counts.as_dict`.
        holder: who works it, or "".
        since: when that began, in seconds since the epoch; 0 when nobody does.
        checkpoint, statistics, settings: content of its files.
    """

    name: str
    folder: Path
    state: str
    reason: str
    rows: dict[str, int]
    holder: str
    since: float
    checkpoint: dict[str, Any]
    statistics: dict[str, Any]
    settings: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """The run as `hermes batch show --json` gives it."""
        return {
            "name": self.name,
            "folder": str(self.folder),
            "state": self.state,
            "reason": self.reason,
            "holder": self.holder,
            "rows": self.rows,
            "model": self.settings.get("options", {}).get("model"),
            "dataset": self.settings.get("dataset", {}).get("path"),
            "toolset_odds": self.settings.get("toolset_odds", {}),
            "statistics": self.statistics,
        }


def run_state(folder: RunFolder) -> RunState:
    """How a run stands. Files that cannot be read count as empty: the rows are elsewhere."""
    checkpoint = _object(folder.checkpoint)
    statistics, settings = _object(folder.statistics), _settings(folder)
    at_work = holder(folder)
    state = str(checkpoint.get("state", "new"))
    if at_work:
        state = "running"
    elif state == "running":
        state = "killed"
    return RunState(
        name=folder.root.name,
        folder=folder.root,
        state=state,
        reason=str(checkpoint.get("reason", "")),
        rows=_counts(checkpoint.get("rows")),
        holder=at_work,
        since=_since(folder) if at_work else 0.0,
        checkpoint=checkpoint,
        statistics=statistics,
        settings=settings,
    )


def _since(folder: RunFolder) -> float:
    try:
        return datetime.fromisoformat(str(_object(folder.lock).get("since"))).timestamp()
    except ValueError:
        return 0.0


def run_states(output_dir: Path) -> list[RunState]:
    """All runs of a folder, by name."""
    return [run_state(folder) for folder in all_runs(output_dir)]


def _settings(folder: RunFolder) -> dict[str, Any]:
    try:
        return folder.settings()
    except StateError:
        return {}


def met_cap(state: RunState) -> str:
    """The option whose cap the run has reached while rows are left: a resume would end at once. "" for none."""
    spent, options = state.checkpoint.get("spent"), state.settings.get("options")
    if (
        isinstance(spent, dict)
        and isinstance(options, dict)
        and (state.rows.get("pending") or state.rows.get("failed"))
    ):
        for cap, used in (("max_cost_usd", "cost_usd"), ("max_total_tokens", "total_tokens")):
            most = number(options, cap)
            if most and number(spent, used) >= most:
                return cap
    return ""


def examples(folder: RunFolder) -> dict[str, str]:
    """What one row of each kind of failure says, from the beginning of `failed.jsonl`."""
    found: dict[str, str] = {}
    try:
        with folder.failed.open("rb") as stream:
            for line in itertools.islice(stream, _LOOKED_THROUGH):
                record = json.loads(line)
                found.setdefault(str(record.get("error_kind")), str(record.get("reason")))
    except (OSError, ValueError, AttributeError):
        return found
    return found


def _counts(value: Any) -> dict[str, int]:
    if not isinstance(value, dict):
        return {}
    return {name: number for name, number in value.items() if isinstance(number, int)}


def _object(path: Path) -> dict[str, Any]:
    try:
        return read_object(path)
    except StateError:
        return {}
