"""`--engine ray` on a cluster of two nodes: the same rows, files and promises as with the run's own loop.

Real processes of a real Ray on the loopback. All tests use one cluster, which is made whole again for each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hermes_engine.batch.floor import RowAtWork
from hermes_engine.events import Event, TextDelta
from tests.batch.ray_cluster import Cluster, wait_until
from tests.batch.ray_runs import OnRay, once_each
from tests.batch.served import prompt_of, results_in
from tests.batch.served import run as run_here
from tests.batch.support import read_rows
from tests.batch.test_server import running
from tests.conftest import Serve
from tests.server.scripted import Answer, Seen, call, hang, say, status

pytestmark = [pytest.mark.slow, pytest.mark.cluster, pytest.mark.timeout(400)]


def by_row(rows: list[dict[str, Any]]) -> dict[Any, dict[str, Any]]:
    """Records without their times, by what row they are of."""
    for row in rows:
        del row["metadata"]["timestamp"]
    return {(row["prompt_index"], row["sample"]): row for row in rows}


LOOK = """
import ray
ray.init(log_to_driver=False, logging_level="error")
from ray._private import state
from ray.experimental.internal_kv import _internal_kv_get, _internal_kv_list
print(state.jobs(), state.actors())
print([(name, _internal_kv_get(name)) for name in _internal_kv_list("")])
"""


def told_by(cluster: Cluster) -> str:
    """What Ray tells whoever asks of its runs, their processes and what these were given."""
    env = {**os.environ, **cluster.env, "RAY_ADDRESS": cluster.address}
    done = subprocess.run([sys.executable, "-c", LOOK], env=env, capture_output=True, text=True, timeout=90, check=True)
    return done.stdout


def test_the_same_rows_give_the_same_records(serve: Serve, tmp_path: Path, cluster: Cluster) -> None:
    """Also the same exchanges, draws and seeds; and the key, which travels with the rows, is told by nothing of Ray."""
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
    told = told_by(cluster)
    assert "Site" in told, "the processes are among it"
    assert key not in told
    own = [path for folder in (there.folder, Path(os.environ["HERMES_HOME"])) for path in folder.rglob("*")]
    assert any(path.name == "ray.log" for path in own)
    assert [path for path in own if path.is_file() and key.encode() in path.read_bytes()] == []


def test_rows_of_a_lost_node_run_again(serve: Serve, tmp_path: Path, cluster: Cluster) -> None:
    slow, asked = False, [0]

    def script(seen: Seen) -> Answer:
        asked[0] += slow
        return say(f"Yes, {prompt_of(seen)}.", "hm", first_delay=5 if slow else 0.1)

    server = serve(script)
    prompts = [f"p{number}" for number in range(30)]
    work = OnRay(tmp_path, cluster, server, prompts, num_workers=6)
    wait_until(lambda: all(map(cluster.working, cluster.nodes)) and work.ended() >= 6)
    slow = True
    wait_until(lambda: asked[0] == 6)
    cluster.lose(cluster.nodes[1])
    slow = False
    done = work.end()
    once_each(done, prompts)
    assert "rows run again" in work.told
    assert done.rows("failed.jsonl") == []
    assert 1 <= work.ended("cancelled") == len(server.requests) - 30 <= 5


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
            return status(429, {"error": {"message": "too many"}}, {"Retry-After": "3"})
        return say("Yes.", "hm", first_delay=0.3)

    server = serve(script)
    prompts = [f"p{number}" for number in range(18)]
    once_each(OnRay(tmp_path, cluster, server, prompts, num_workers=8, requests_per_minute=600).end(), prompts)
    times = [seen.started for seen in server.requests]
    refused = times[9]
    assert times[8] - times[0] >= 8 * 0.1 - 0.1
    assert not any(refused + 1.5 < at < refused + 2.9 for at in times), "the server's wait holds for all"
    assert sum(later - earlier >= 0.05 for earlier, later in pairwise(times)) >= 9, "they are spread, not in bursts"


def test_orders_and_the_floor(serve: Serve, tmp_path: Path, cluster: Cluster) -> None:
    delay = 4.0
    server = serve(lambda seen: say("one two three four five six", "hm", first_delay=delay))
    work = OnRay(tmp_path, cluster, server, [f"p{number}" for number in range(20)], num_workers=2)
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
    delay = 0.5
    heard: list[Event] = []
    wait_until(lambda: _watched(work.run.floor.rows, heard))
    wait_until(lambda: any(isinstance(event, TextDelta) for event in heard))
    server.max_in_flight = 0
    work.order("set_workers", 3)
    assert work.end().counts == {"total": 20, "kept": 20}
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
