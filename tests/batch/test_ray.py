"""`--engine ray` on a cluster of two nodes: the same rows, files and promises as with the run's own loop.

Real processes of a real Ray on the loopback. All tests use one cluster, which is made whole again for each.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.batch.floor import RowAtWork
from hermes_engine.batch.runner import BatchRun
from hermes_engine.events import Event, Notice, RowFinished, TextDelta
from hermes_engine.profiles import resolve
from hermes_engine.settings import Overrides
from tests.batch.ray_cluster import Cluster, one_at_a_time, wait_until
from tests.batch.served import Batch, prompt_of, results_in
from tests.batch.served import run as run_here
from tests.batch.support import dataset, options, read_rows
from tests.batch.test_server import running
from tests.conftest import Serve
from tests.server.scripted import Answer, ScriptedServer, Seen, call, hang, say, status

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400), pytest.mark.xdist_group("ray")]


@pytest.fixture(scope="module")
def made() -> Iterator[Cluster]:
    pytest.importorskip("ray", reason="Ray is not installed: make test does it where the package index has it")
    with one_at_a_time():
        cluster = Cluster()
        try:
            yield cluster
        finally:
            cluster.close()


@pytest.fixture
def cluster(made: Cluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made.whole()
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN"):
        monkeypatch.setenv(name, made.env[name])
    return made


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
        import asyncio

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


def by_row(rows: list[dict[str, Any]]) -> dict[Any, dict[str, Any]]:
    """Records without their times, by what row they are of."""
    for row in rows:
        del row["metadata"]["timestamp"]
    return {(row["prompt_index"], row["sample"]): row for row in rows}


def test_the_same_rows_give_the_same_records(serve: Serve, tmp_path: Path, cluster: Cluster) -> None:
    """Also the same exchanges, draws and seeds; and the key, which travels with the rows, is in no file of Ray."""
    key = "sk-for-the-rows-0123456789"

    def script(seen: Seen) -> Answer:
        if results_in(seen):
            return say(f"It is {prompt_of(seen)}.", "I think.")
        return call("terminal", {"command": "echo $((6*7)); printenv HOME | wc -l; ls | wc -l"}, reasoning="I look.")

    rows = [{"prompt": f"p{number}", "id": number} for number in range(12)] + [{"prompt": "bare", "toolsets": []}]
    given: dict[str, Any] = {"record": True, "seed": 5, "num_generations": 2, "distribution": "balanced"}
    given |= {"toolsets": ("terminal", "file"), "batch_size": 4, "api_key": key}
    server = serve(script)
    here = run_here(tmp_path, server, rows, run_name="here", **given)
    there = OnRay(tmp_path, cluster, server, rows, run_name="there", **given).end()
    assert here.counts == there.counts
    assert sorted(here.counts) == ["kept", "rejected", "total"], "a row that drew no terminal invents it"
    for name in ("trajectories.jsonl", "rejected.jsonl"):
        assert by_row(there.rows(name)) == by_row(here.rows(name))
    mine, other = (json.loads((done.folder / "run.json").read_bytes()) for done in (here, there))
    assert (mine["system_prompt"], mine["tools"]) == (other["system_prompt"], other["tools"])
    packed = [
        {line["row"]: line["packed"] for line in read_rows(done.folder / "exchanges.jsonl")} for done in (here, there)
    ]
    assert packed[0].keys() == packed[1].keys()
    assert {seen.headers["authorization"] for seen in server.requests} == {f"Bearer {key}"}
    files = [path for path in cluster.folder.rglob("*") if path.is_file()]
    assert any("logs" in path.parts for path in files)
    assert [path for path in files if key.encode() in path.read_bytes()] == []
    assert all(key not in value for process in cluster.processes() for value in process.environ().values())


def test_rows_of_a_lost_node_run_again(serve: Serve, tmp_path: Path, cluster: Cluster) -> None:
    server = serve(lambda seen: say(f"Yes, {prompt_of(seen)}.", "hm", first_delay=0.4))
    prompts = [f"p{number}" for number in range(60)]
    work = OnRay(tmp_path, cluster, server, prompts, num_workers=6)
    wait_until(lambda: all(map(cluster.working, cluster.nodes)) and work.ended() >= 10)
    lost = cluster.working(cluster.nodes[1])
    os.kill(cluster.nodes[1], signal.SIGKILL)
    done = work.end()
    once_each(done, prompts)
    assert "rows run again" in work.told
    assert done.rows("failed.jsonl") == []
    assert len(server.requests) > 60
    assert work.ended("cancelled") == len(server.requests) - 60
    assert not any(process.is_running() for process in lost)


def test_a_run_whose_cluster_is_gone_ends_in_order_and_goes_on_elsewhere(
    serve: Serve, tmp_path: Path, cluster: Cluster
) -> None:
    server = serve([say("Yes.", "hm", first_delay=0.3)])
    prompts = [f"p{number}" for number in range(30)]
    work = OnRay(tmp_path, cluster, server, prompts, num_workers=4)
    wait_until(lambda: work.ended() >= 6)
    cluster.end()
    done = work.end()
    assert (done.summary.state, done.summary.exit_code) == ("failed", 1)
    assert "Ray is gone" in done.summary.reason
    assert done.counts["kept"] + done.counts["pending"] == 30
    assert len(done.rows()) == done.counts["kept"] >= 6
    once_each(run_here(tmp_path, server, resume=True, engine="threads"), prompts)


def test_a_row_that_ends_its_process_each_time_fails_in_the_end(serve: Serve, tmp_path: Path, cluster: Cluster) -> None:
    def script(seen: Seen) -> Answer:
        if prompt_of(seen) != "poison":
            return say("Yes.", "hm")
        if not results_in(seen):
            return call("terminal", {"command": "true"}, reasoning="hm")
        for node in cluster.nodes:
            for process in cluster.working(node):
                process.kill()
        return hang(60)

    done = OnRay(tmp_path, cluster, serve(script), ["poison", "a", "b"], num_workers=1).end()
    assert done.counts == {"total": 3, "kept": 2, "failed": 1}
    failed = done.rows("failed.jsonl")[0]
    assert (failed["error_kind"], failed["attempts"]) == ("worker_lost", 1)
    assert done.statistics["spent"]["total_tokens"] >= 5 * 15 + 2 * 15, "what lost tries used is counted"


def test_one_pace_for_all_processes(serve: Serve, tmp_path: Path, cluster: Cluster) -> None:
    def script(seen: Seen) -> Answer:
        if seen.index == 9:
            return status(429, {"error": {"message": "too many"}}, {"Retry-After": "4"})
        return say("Yes.", "hm", first_delay=0.3)

    server = serve(script)
    prompts = [f"p{number}" for number in range(24)]
    once_each(OnRay(tmp_path, cluster, server, prompts, num_workers=8, requests_per_minute=600).end(), prompts)
    times = [seen.started for seen in server.requests]
    refused = times[9]
    assert times[8] - times[0] >= 8 * 0.1 - 0.1
    assert not any(refused + 1.5 < at < refused + 3.9 for at in times), "the server's wait holds for all"
    assert sum(later - earlier >= 0.05 for earlier, later in pairwise(times)) >= 12, "they are spread, not in bursts"


def test_orders_and_the_floor(serve: Serve, tmp_path: Path, cluster: Cluster) -> None:
    server = serve([say("one two three four five six", "hm", first_delay=0.5)])
    work = OnRay(tmp_path, cluster, server, [f"p{number}" for number in range(30)], num_workers=2)
    wait_until(lambda: server.open_requests == 2)
    work.order("set_workers", 6)
    wait_until(lambda: server.open_requests == 6)
    assert len(work.run.floor.rows) == 6
    work.order("pause", True)
    wait_until(lambda: not work.run.floor.rows)
    before = len(server.requests)
    checkpoint = work.run.options.folder / "checkpoint.json"
    wait_until(lambda: json.loads(checkpoint.read_bytes())["paused"])
    assert len(server.requests) == before
    work.order("set_workers", 1)
    work.order("pause", False)
    wait_until(lambda: any(row.words == "thinking" for row in work.run.floor.rows))
    heard: list[Event] = []
    wait_until(lambda: _watched(work.run.floor.rows, heard))
    wait_until(lambda: any(isinstance(event, TextDelta) for event in heard))
    server.max_in_flight = 0
    work.order("set_workers", 3)
    assert work.end().counts == {"total": 30, "kept": 30}
    assert server.max_in_flight == 3


def _watched(rows: tuple[RowAtWork, ...], heard: list[Event]) -> bool:
    """Watches the rows in flight; whether one told its conversation so far."""
    told = [row.watch(heard.append)[0] for row in rows]
    return any([message.role for message in messages] == ["user"] for messages in told)


def test_a_server_that_is_down_pauses_the_run_and_one_that_fails_one_row_does_not(
    serve: Serve, tmp_path: Path, cluster: Cluster
) -> None:
    down: list[float] = []

    def script(seen: Seen) -> Answer:
        if prompt_of(seen) == "bad":
            return status(503, "busy")
        if seen.index >= 10 and not down:
            down.append(time.monotonic())
        if down and time.monotonic() - down[0] < 2.5:
            return status(503, "loading")
        return say("Yes.", "hm")

    server = serve(script)
    prompts = [f"p{number}" for number in range(20)]
    done = OnRay(tmp_path, cluster, server, [*prompts, "bad"], num_workers=6, timeout_seconds=60).end()
    assert done.counts == {"total": 21, "kept": 20, "failed": 1}
    assert done.rows("failed.jsonl")[0]["error_kind"] == "endpoint_down"
    assert len(server.requests) < 70, "few tries, not one of each row again and again"


def test_a_cost_cap_over_all_processes(serve: Serve, tmp_path: Path, cluster: Cluster) -> None:
    server = serve([say("Yes.", "hm", usage={"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500})])
    prompts = [f"p{number}" for number in range(30)]
    done = OnRay(tmp_path, cluster, server, prompts, price_in=10, price_out=20, max_cost_usd=0.09, num_workers=2).end()
    assert done.summary.state == "stopped"
    assert 5 <= done.counts["kept"] <= 6


def test_f1_8_an_interrupt_leaves_no_command_running(serve: Serve, tmp_path: Path, cluster: Cluster) -> None:
    mark = f"33{os.getpid()}"
    server = serve(
        lambda seen: (
            hang(60) if prompt_of(seen) == "silent" else call("terminal", {"command": f"sleep {mark}"}, reasoning="hm")
        )
    )
    work = OnRay(tmp_path, cluster, server, ["a", "b", "silent", "c"], num_workers=3, work_dir=tmp_path / "work")
    wait_until(lambda: len(running(mark)) == 2 and server.open_requests == 1)
    began = time.monotonic()
    work.run.stop()
    wait_until(lambda: running(mark) == [] and server.open_requests == 0, 30)
    assert time.monotonic() - began < 8
    done = work.end()
    assert (done.summary.exit_code, done.counts) == (130, {"total": 4, "pending": 4})
    assert work.ended("cancelled") == 3
    assert list((tmp_path / "work").iterdir()) == []
    wait_until(lambda: not any(map(cluster.working, cluster.nodes)))
