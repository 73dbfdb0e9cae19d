"""Runs on the tests' Ray cluster."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from hermes_engine.batch.runner import BatchRun
from hermes_engine.events import Event, Notice, RowFinished
from hermes_engine.profiles import resolve
from hermes_engine.settings import Overrides
from tests.batch.ray_cluster import Cluster
from tests.batch.served import Batch
from tests.batch.support import dataset, options, read_rows
from tests.server.scripted import ScriptedServer


class OnRay:
    """A run on the cluster, on a thread of its own."""

    def __init__(
        self, tmp_path: Path, cluster: Cluster, server: ScriptedServer, rows: list[Any], **values: Any
    ) -> None:
        dataset(tmp_path / "prompts.jsonl", rows)
        self.events: list[Event] = []
        base = {"model": "scripted", "base_url": server.base_url, "engine": "ray", "ray_address": cluster.address}
        given = options(tmp_path, **{**base, **values})
        self.run = BatchRun(given, resolve(Overrides()), self.events.append)
        self._end: Future[Batch] = Future()
        threading.Thread(target=self._work).start()

    def _work(self) -> None:
        try:
            self._end.set_result(Batch(self.run.run(), self.events))
        except BaseException as fault:
            self._end.set_exception(fault)

    def order(self, name: str, *values: Any) -> Any:
        """Gives an order by the name of its method."""
        return asyncio.run(self.run.order(lambda steering: getattr(steering, name)(*values)))

    def ended(self, outcome: str = "kept") -> int:
        """Rows that ended so."""
        return sum(isinstance(event, RowFinished) and event.outcome == outcome for event in list(self.events))

    @property
    def told(self) -> str:
        """What a person reads."""
        return "\n".join(event.text for event in list(self.events) if isinstance(event, Notice))

    def end(self) -> Batch:
        """Waits for the run's end."""
        return self._end.result(120)


def once_each(done: Batch, prompts: list[str]) -> None:
    """Each prompt is a row, once, in every file and figure."""
    assert Counter(row["conversations"][0]["value"] for row in done.rows()) == Counter(prompts)
    assert sum(len(read_rows(path)) for path in done.folder.glob("batch_*.jsonl")) == len(prompts)
    assert done.counts == {"total": len(prompts), "kept": len(prompts)}
    assert done.statistics["rows"]["kept"] == len(prompts)
