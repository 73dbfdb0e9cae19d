"""Interrupts, orders from elsewhere, and servers that are away: nothing that is done is lost."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.batch.runner import BatchRun
from hermes_engine.errors import UsageError
from hermes_engine.events import Event, RowFinished, RowStarted
from hermes_engine.protocols import AgentSpec
from tests.batch.support import Played, Ran, adds_up, dataset, fails, play, thinks


def test_a_sink_that_raises_stops_nothing(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "b"])

    def broken(event: Event) -> None:
        raise ZeroDivisionError

    def prepare(run: BatchRun) -> None:
        run._sink = broken

    assert play(tmp_path, lambda prompt, spec: thinks(), prepare=prepare).summary.counts["kept"] == 2


def stop_after(rows: int, *, now: bool, again: bool = False) -> Any:
    """Prepares a run that is asked to stop from another thread once some rows have ended."""

    def prepare(run: BatchRun) -> None:
        hear = run._sink
        ended = 0

        def count(event: Any) -> None:
            nonlocal ended
            hear(event)
            if isinstance(event, RowFinished):
                ended += 1
                if ended == rows:
                    threading.Thread(target=ask).start()

        def ask() -> None:
            run.stop(now=now)
            if again:
                time.sleep(0.2)
                run.stop(now=True)

        run._sink = count

    return prepare


async def quick_or_endless(prompt: str, spec: AgentSpec) -> Played:
    await asyncio.sleep(60 if prompt.startswith("slow") else 0.001)
    return thinks()


def test_f1_8_an_interrupt_ends_in_seconds_and_keeps_what_is_done(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "b", "c", "slow1", "slow2", "slow3", "slow4", "d"])
    begun = time.monotonic()
    ran = play(tmp_path, quick_or_endless, prepare=stop_after(3, now=False), num_workers=4)
    assert time.monotonic() - begun < 5
    assert (ran.summary.state, ran.summary.exit_code) == ("interrupted", 130)
    assert ran.summary.counts["kept"] == 3
    assert ran.summary.counts["pending"] == 5
    adds_up(ran)
    cancelled = [event for event in ran.heard(RowFinished) if event.outcome == "cancelled"]
    assert len(cancelled) == len(ran.heard(RowStarted)) - 3
    again = play(tmp_path, lambda prompt, spec: thinks(), resume=True)
    assert sorted(again.agents.prompts) == ["d", "slow1", "slow2", "slow3", "slow4"]
    assert again.summary.exit_code == 0


def test_f1_8_a_second_interrupt_ends_at_once(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "slow1", "slow2"])
    begun = time.monotonic()
    ran = play(tmp_path, quick_or_endless, prepare=stop_after(1, now=False, again=True))
    assert time.monotonic() - begun < 2
    assert ran.summary.exit_code == 130
    assert len(ran.rows("batch_0.jsonl")) == 1
    assert play(tmp_path, lambda prompt, spec: thinks(), resume=True).summary.counts["kept"] == 3


def test_rows_in_flight_get_a_moment_to_end(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a", "b", "c", "d"])

    async def player(prompt: str, spec: AgentSpec) -> Played:
        await asyncio.sleep(0.0 if prompt == "a" else 0.3)
        return thinks()

    ran = play(tmp_path, player, prepare=stop_after(1, now=False), num_workers=2)
    assert ran.summary.counts["kept"] in (2, 3)
    assert not [event for event in ran.heard(RowFinished) if event.outcome == "cancelled"]


def test_a_stop_before_the_start_and_after_the_end(tmp_path: Path) -> None:
    dataset(tmp_path / "prompts.jsonl", ["a"])
    runs: list[BatchRun] = []

    def prepare(run: BatchRun) -> None:
        runs.append(run)
        run.stop()

    ran = play(tmp_path, lambda prompt, spec: thinks(), prepare=prepare)
    assert (ran.summary.state, ran.agents.prompts) == ("interrupted", [])
    runs[0].stop(now=True)


def test_another_process_can_ask_the_run_to_stop(tmp_path: Path) -> None:
    from hermes_engine.batch.folder import RunFolder, holder

    folder = RunFolder(tmp_path / "data" / "run")
    with pytest.raises(UsageError, match="not running"):
        folder.ask_to_stop()
    dataset(tmp_path / "prompts.jsonl", ["a", "slow1"])
    asked: list[str] = []

    async def player(prompt: str, spec: AgentSpec) -> Played:
        if prompt == "slow1":
            asked.append(holder(folder))
            folder.ask_to_stop()
        return await quick_or_endless(prompt, spec)

    ran = play(tmp_path, player)
    assert ran.summary.exit_code == 130
    assert "process " in asked[0]
    assert not folder.control.exists()
    assert holder(folder) == ""


def test_a_row_that_timed_out_while_the_server_was_down_runs_again(tmp_path: Path) -> None:
    from hermes_engine.errors import EndpointDown

    dataset(tmp_path / "prompts.jsonl", ["a", "b"])
    tries: list[str] = []
    box: list[Ran] = []

    def player(prompt: str, spec: AgentSpec) -> Any:
        tries.append(prompt)
        if len(tries) == 1:
            return timed_out()
        return thinks()

    agents_outage: list[Any] = []

    async def timed_out() -> Played:
        outage = agents_outage[0].outage
        await outage.wait_out(EndpointDown("connection refused"))
        outage.back()
        return Played([], "timeout", "stopped after 1 s", "timeout")

    def prepare(run: BatchRun) -> None:
        made = run._make_agents
        assert made

        def make(setup: Any, outage: Any) -> Any:
            agents = made(setup, outage)
            agents_outage.append(agents)
            return agents

        run._make_agents = make

    box.append(play(tmp_path, player, prepare=prepare, num_workers=1))
    assert box[0].summary.counts["kept"] == 2
    assert sorted(tries) == ["a", "a", "b"]
    assert box[0].json("statistics.json")["failures"] == {}


def test_a_server_that_stays_away_stops_the_run_and_fails_no_row(tmp_path: Path) -> None:
    from hermes_engine.errors import EndpointDown

    dataset(tmp_path / "prompts.jsonl", ["a", "b", "c"])
    outages: list[Any] = []

    async def player(prompt: str, spec: AgentSpec) -> Played:
        try:
            while True:
                await outages[0].wait_out(EndpointDown("connection refused"))
        except EndpointDown:
            return fails("endpoint_down", "connection refused")

    def prepare(run: BatchRun) -> None:
        made = run._make_agents
        assert made
        run._make_agents = lambda setup, outage: outages.append(outage) or made(setup, outage)  # type: ignore[func-returns-value]

    ran = play(tmp_path, player, prepare=prepare, endpoint_wait=0.2)
    assert (ran.summary.state, ran.summary.exit_code) == ("stopped", 1)
    assert "down" in ran.summary.reason
    assert ran.summary.counts == {"total": 3, "kept": 0, "rejected": 0, "failed": 0, "invalid": 0, "pending": 3}
    adds_up(ran)
