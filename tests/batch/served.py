"""Runs of the real agent, tools and commands against a scripted server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hermes_engine.batch.runner import BatchRun, BatchSummary
from hermes_engine.events import Event
from hermes_engine.profiles import resolve
from hermes_engine.settings import Overrides
from tests.batch.support import dataset, options, read_rows
from tests.server.scripted import (
    Answer,
    ScriptedServer,
    Seen,
    call,
    say,
)


class Batch:
    """A run that ended, and its files."""

    def __init__(self, summary: BatchSummary, events: list[Event]) -> None:
        self.summary, self.events, self.folder = summary, events, summary.folder

    def rows(self, name: str = "trajectories.jsonl") -> list[dict[str, Any]]:
        return read_rows(self.folder / name)

    @property
    def counts(self) -> dict[str, int]:
        return {name: number for name, number in self.summary.counts.items() if number}

    @property
    def statistics(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads((self.folder / "statistics.json").read_bytes())
        return value


def run(tmp_path: Path, server: ScriptedServer | str, rows: list[Any] | None = None, **values: Any) -> Batch:
    """Runs a batch against a server."""
    if rows is not None:
        dataset(tmp_path / "prompts.jsonl", rows)
    url = server if isinstance(server, str) else server.base_url
    events: list[Event] = []
    given = options(tmp_path, **{"model": "scripted", **({"base_url": url} if url else {}), **values})
    return Batch(BatchRun(given, resolve(Overrides()), events.append).run(), events)


def prompt_of(seen: Seen) -> str:
    """The prompt a request is about."""
    return next(str(item["content"]) for item in seen.messages if item["role"] == "user")


def results_in(seen: Seen) -> int:
    """Tool results a request carries."""
    return sum(item["role"] == "tool" for item in seen.messages)


def shell(command: str, answer: str = "Done.") -> Any:
    """A script: one command, then an answer."""

    def script(seen: Seen) -> Answer:
        if results_in(seen):
            return say(answer)
        return call("terminal", {"command": command}, reasoning="I run it.")

    return script
