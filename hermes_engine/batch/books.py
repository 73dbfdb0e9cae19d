"""What is said about a run as a whole: its counts, `checkpoint.json`, `statistics.json` and `run.json`.

Writes nothing itself but `run.json` and the card. Figures of earlier invocations that no row carries (time, spending
on rows that failed and were run again) come from the last checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes_engine import __version__
from hermes_engine.batch.accounts import Account, checkpoint_of, counts_of, spent_until_now, statistics_of
from hermes_engine.batch.accounts import State as State
from hermes_engine.batch.card import card
from hermes_engine.batch.floor import Floor
from hermes_engine.batch.folder import RunFolder, read_object, write_object
from hermes_engine.batch.job import RowResult
from hermes_engine.batch.plan import Plan
from hermes_engine.batch.setup import Setup
from hermes_engine.batch.statistics import Counts, number, of_each_server
from hermes_engine.batch.tokens import TokenFile
from hermes_engine.batch.writer import now
from hermes_engine.errors import StateError
from hermes_engine.messages import Usage
from hermes_engine.paths import write_atomic
from hermes_engine.protocols import ToolSchema
from hermes_engine.redaction import Redactor


class Books:
    """The figures of one run while it is worked."""

    def __init__(self, setup: Setup, plan: Plan, redactor: Redactor, floor: Floor) -> None:
        self._setup, self._plan, self._redactor, self._floor = setup, plan, redactor, floor
        self._begun = time.monotonic()
        self.tokens: TokenFile | None = None
        """Of the run's rows, where they are kept."""
        self.state: State = "running"
        self.reason = ""
        self.in_flight: set[str] = set()
        """Identities of the rows that are worked now."""
        self._retrying: set[str] = set()
        """Those of them that failed before."""
        before = _index(setup.folder.checkpoint)
        told = _index(setup.folder.statistics).get("replicas")
        self._replicas_before = [item for item in told if item.get("base_url")] if isinstance(told, list) else []
        self._seconds_before = number(before, "seconds")
        self._invocations = int(number(before, "invocations")) + 1
        self.lost = 0 if plan.ledger.damaged else _lost(before, setup.folder)
        """Bytes of rows that the last checkpoint knew and the files lack."""
        self.spent = spent_until_now([before], plan)
        self._tools: dict[str, ToolSchema] = {}
        for schema in setup.stored.get("tools", []):
            self._tools[schema["function"]["name"]] = schema
        self._prompt: str = setup.stored.get("system_prompt", "")
        self._known: set[tuple[str, ...]] = set()

    @property
    def seconds(self) -> float:
        """Seconds this invocation has taken."""
        return time.monotonic() - self._begun

    def counts(self) -> Counts:
        """The run's rows by state, now."""
        return counts_of(self._plan, sum(row in self._plan.ledger.failed for row in self._retrying))

    def begin(self, row: str) -> None:
        """A row is in flight; while it runs again it does not count as failed."""
        self.in_flight.add(row)
        if row in self._plan.ledger.failed:
            self._retrying.add(row)
        self._floor.counts = self.counts().as_dict()

    def end(self, row: str) -> None:
        """A row is in flight no more."""
        self.in_flight.discard(row)
        self._retrying.discard(row)
        self._floor.counts = self.counts().as_dict()

    def spend(self, usage: Usage) -> None:
        """Adds what a row used, whatever becomes of it."""
        self.spent.add(usage)

    def checkpoint(self) -> dict[str, Any]:
        """Content of `checkpoint.json`."""
        batches = self._setup.folder.batches() if self.state != "running" else []
        return checkpoint_of(self._account(), self._plan, self.counts(), batches)

    def statistics(self) -> dict[str, Any]:
        """Content of `statistics.json`."""
        return statistics_of(self._account(), self._plan, self.counts())

    def _account(self) -> Account:
        options, floor = self._setup.options, self._floor
        return Account(
            name=options.run_name,
            model=options.model,
            distribution=options.distribution,
            state=self.state,
            reason=self.reason,
            seconds=self._seconds_before + self.seconds,
            invocations=self._invocations,
            spent=self.spent,
            running=len(self.in_flight),
            workers=floor.workers,
            paused=floor.paused,
            notice=self._redactor.text(floor.warning) if self.state == "running" else "",
            times=floor.times(),
            replicas=self._replicas(),
            tokens=self.tokens.figures(len(self._plan.ledger.kept)) if self.tokens else None,
        )

    def _replicas(self) -> list[dict[str, Any]]:
        """What became of each server in all invocations; those that are named no more got what they got."""
        return of_each_server(map(self._redactor.value, self._floor.replicas()), self._replicas_before)

    def meet(self, result: RowResult) -> None:
        """Notes what a row's agent was given; `run.json` is written anew when something is new in it."""
        if result.offered in self._known:
            return
        self._known.add(result.offered)
        new = {schema["function"]["name"]: schema for schema in result.schemas}
        if set(new) <= set(self._tools) and self._prompt:
            return
        self._tools.update(new)
        self._prompt = self._prompt or result.system_prompt
        self.write_settings()

    def write_settings(self) -> None:
        """Writes `run.json`."""
        setup = self._setup
        path = None if setup.options.dataset_file is None else str(setup.options.dataset_file.absolute())
        urls = [one.base_url for one in setup.endpoints]
        content = {
            "run_name": setup.options.run_name,
            "hermes": __version__,
            "created_at": setup.stored.get("created_at") or now(),
            "options": self._redactor.value(setup.options.stored()),
            "seed": setup.seed,
            "sandbox": {
                "kind": setup.surroundings.kind,
                "image": setup.surroundings.image,
                "network": setup.surroundings.kind == "local" or setup.surroundings.network,
            },
            "endpoint": {
                "kind": setup.endpoint.kind,
                "base_url": self._redactor.text(setup.endpoint.base_url),
                "model": setup.endpoint.model,
                **({"replicas": self._redactor.value(urls)} if len(urls) > 1 else {}),
            },
            "toolset_odds": dict(setup.draws),
            "dataset": {"path": path, "sha256": self._plan.digest, "lines": self._plan.lines},
            "system_prompt": self._redactor.text(self._prompt),
            "prefill": [{"role": item.role, "content": self._redactor.text(item.content)} for item in setup.history],
            "tools": [dict(schema) for schema in self._tools.values()],
            **({"merged": setup.stored["merged"]} if "merged" in setup.stored else {}),
            "changes": [*setup.stored.get("changes", []), *self._changes()],
        }
        write_object(setup.folder.run_json, content)

    def _changes(self) -> Sequence[Mapping[str, Any]]:
        if not self._setup.notes or not self._setup.stored:
            return []
        return [{"at": now(), "what": self._redactor.value(list(self._setup.notes))}]

    def write_card(self) -> None:
        """Writes the dataset card."""
        options = self._setup.options
        text = card(
            name=options.run_name,
            made=now(),
            model=str(options.model),
            distribution=options.distribution,
            counts=self.counts().as_dict(),
        )
        try:
            write_atomic(self._setup.folder.card, text)
        except OSError as error:
            raise StateError(f"cannot write {self._setup.folder.card}: {error.strerror or error}") from error


def _index(path: Path) -> dict[str, Any]:
    """What an index file said last; an unreadable one is an index lost, not a run."""
    try:
        return read_object(path)
    except StateError:
        return {}


def _lost(checkpoint: Mapping[str, Any], folder: RunFolder) -> int:
    """How many bytes the row files, which only grow, are shorter than the checkpoint says: a crash of the machine."""
    told = checkpoint.get("files")
    batches = told.get("batches") if isinstance(told, dict) else None
    if not isinstance(told, dict) or not isinstance(batches, dict):
        return 0
    found = sum(folder.batch(which).stat().st_size for which in folder.batches())
    rejected = folder.rejected.stat().st_size if folder.rejected.exists() else 0
    missing = max(0, number(batches, "bytes") - found) + max(0, number(told, "rejected.jsonl") - rejected)
    return int(missing)
