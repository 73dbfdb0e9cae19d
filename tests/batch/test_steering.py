"""Orders to a run at work: pausing, more and fewer workers, failed rows again. Real agent, real server."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.batch.floor import RowName
from hermes_engine.batch.runner import BatchRun, BatchSummary
from hermes_engine.batch.steering import Steering
from hermes_engine.errors import UsageError
from hermes_engine.events import BatchChanged, Event, RowFinished, TextDelta
from hermes_engine.profiles import resolve
from hermes_engine.settings import Overrides
from tests.batch.served import Batch, prompt_of
from tests.batch.support import dataset, options
from tests.conftest import Serve
from tests.server.scripted import Answer, ScriptedServer, Seen, hang, say, status


class AtWork:
    """A run on a thread of its own, as the app has it."""

    def __init__(self, tmp_path: Path, server: ScriptedServer, only: set[RowName] | None = None, **values: Any) -> None:
        self.events: list[Event] = []
        given = options(tmp_path, **{"model": "scripted", "base_url": server.base_url, **values})
        self.run = BatchRun(given, resolve(Overrides()), self.events.append, only=only)
        self.server, self.folder = server, given.folder
        self._summary: list[BatchSummary] = []
        self._thread = threading.Thread(target=lambda: self._summary.append(self.run.run()))
        self._thread.start()

    def order(self, name: str, *values: Any) -> Any:
        """Gives an order by the name of its method."""

        def carry_out(steering: Steering) -> Any:
            return getattr(steering, name)(*values)

        return asyncio.run(self.run.order(carry_out))

    def until(self, condition: Any) -> None:
        """Waits until something holds."""
        assert self.server.wait_until(condition), self.run.floor.counts

    def end(self) -> Batch:
        """Waits for the run's end."""
        self._thread.join(20)
        return Batch(self._summary[0], self.events)


@contextmanager
def at_work(tmp_path: Path, server: ScriptedServer, **values: Any) -> Iterator[AtWork]:
    work = AtWork(tmp_path, server, **values)
    try:
        yield work
    finally:
        work.run.stop(now=True)
        work.end()


def slow(seconds: float = 0.2) -> Answer:
    return say("Done.", "I think.", first_delay=seconds)


def test_pausing_finishes_what_is_in_flight_and_begins_nothing(serve: Serve, tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", [f"row {n}" for n in range(12)])
    server = serve([slow()])
    with at_work(tmp_path, server, num_workers=2) as work:
        work.until(lambda: server.open_requests == 2)
        work.order("pause", True)
        work.until(lambda: work.run.floor.counts.get("kept") == 2 and not work.run.floor.rows)
        checkpoint = work.folder / "checkpoint.json"
        work.until(lambda: json.loads(checkpoint.read_bytes())["paused"])
        told = json.loads(checkpoint.read_bytes())
        assert (told["running"], told["rows"]["kept"], told["rows"]["pending"]) == (0, 2, 10)
        assert len(server.requests) == 2
        work.order("set_workers", 5)
        assert len(server.requests) == 2
        work.order("pause", False)
        work.until(lambda: server.open_requests == 5)
        ended = work.end()
    assert ended.counts == {"total": 12, "kept": 12}
    assert server.max_in_flight == 5
    changes = [(event.paused, event.workers) for event in ended.events if isinstance(event, BatchChanged)]
    assert changes == [(True, 2), (True, 5), (False, 5)]
    assert ended.statistics["workers"] == 5
    assert ended.statistics["times"]["rows"]["max"] >= 0.2


def test_fewer_workers_take_effect_as_rows_end(serve: Serve, tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", [f"row {n}" for n in range(10)])
    server = serve([slow(0.1)])
    with at_work(tmp_path, server, num_workers=4) as work:
        work.until(lambda: server.open_requests == 4)
        assert work.order("set_workers", 0) == 1
        work.until(lambda: len(work.run.floor.rows) == 1)
        before = len(server.requests)
        server.max_in_flight = 0
        work.until(lambda: work.run.floor.counts["pending"] == 0)
        assert len(server.requests) > before
        assert server.max_in_flight == 1
        assert work.end().counts == {"total": 10, "kept": 10}


def test_failed_rows_run_again_in_the_run_at_work(serve: Serve, tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "bad", "worse", "slow"])
    broken, again = True, 0.0

    def script(seen: Seen) -> Answer:
        prompt = prompt_of(seen)
        if prompt == "slow":
            return hang(60) if broken else slow(0)
        if not broken or prompt == "a":
            return slow(0)
        return status(400, {"error": {"message": f"no {prompt}"}}, delay=again)

    server = serve(script)
    with at_work(tmp_path, server, num_workers=4) as work:
        work.until(lambda: work.run.floor.counts.get("failed") == 2)
        broken = False
        assert work.order("retry", {(0, 0), (1, 0)}) == 1, "a kept row is not run again"
        work.until(lambda: work.run.floor.counts["kept"] == 2)
        assert work.run.floor.counts["failed"] == 1
        broken, again = True, 1.0  # time to ask for it twice
        assert work.order("retry") == 1
        assert work.order("retry") == 0, "it waits or runs already"
        work.until(lambda: sum(prompt_of(seen) == "worse" for seen in server.requests) == 2)
        broken = False
        work.until(lambda: work.run.floor.counts["failed"] == 1 and len(work.run.floor.rows) == 1)
        assert work.order("retry", None) == 1
        work.until(lambda: work.run.floor.counts["kept"] == 3)
        work.run.stop()
        ended = work.end()
    assert ended.counts == {"total": 4, "kept": 3, "pending": 1}
    assert [row["prompt_index"] for row in ended.rows()] == [0, 1, 2]
    assert ended.rows("failed.jsonl") == []


def test_only_the_named_rows_are_worked(serve: Serve, tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "b", "c"])
    AtWork(tmp_path, serve([status(400, {"error": {"message": "no"}})])).end()
    good = serve([slow(0)])
    again = AtWork(tmp_path, good, {(1, 0)}, resume=True, only_failed=True).end()
    assert [prompt_of(seen) for seen in good.requests] == ["b"]
    assert again.counts == {"total": 3, "kept": 1, "failed": 2}


def test_a_row_that_somebody_looks_at_tells_its_pieces_and_no_other_does(serve: Serve, tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["one", "two"])
    server = serve([say("word " * 40, "I think.", chunks=40, delay=0.02)])
    heard: list[Event] = []
    with at_work(tmp_path, server, num_workers=2) as work:
        work.until(lambda: len(work.run.floor.rows) == 2 and server.open_requests == 2)
        row = work.run.floor.row((1, 0))
        assert row is not None
        messages, _recent = row.watch(heard.append)
        assert [message.content for message in messages] == ["two"]
        ended = work.end()
    assert "word" in "".join(event.text for event in heard if isinstance(event, TextDelta))
    assert {event.agent for event in heard} == {"row-1.0"}
    assert not [event for event in ended.events if isinstance(event, TextDelta)]
    assert [event.outcome for event in ended.events if isinstance(event, RowFinished)] == ["kept", "kept"]


def test_an_order_to_a_run_that_is_over_says_so(serve: Serve, tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["one"])
    work = AtWork(tmp_path, serve([slow(0)]))
    work.end()
    with pytest.raises(UsageError, match="does not work rows now"):
        work.order("pause", True)
